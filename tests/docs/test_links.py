"""Every link leads somewhere, and no page is too long."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import DOCS, PAGES, README, anchors, links, name


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    for link in links(page):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        if anchor:
            assert anchor in set(anchors(target)), link
        if DOCS in page.parents:
            assert DOCS in (target, *target.parents), f"{link} is not on the site"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_pages_are_short(page: Path) -> None:
    limit = 180 if page == README else 250
    assert len(page.read_text(encoding="utf-8").splitlines()) <= limit


def test_every_page_is_in_the_navigation() -> None:
    text = (DOCS.parent / "mkdocs.yml").read_text()
    for page in DOCS.rglob("*.md"):
        assert f": {page.relative_to(DOCS).as_posix()}\n" in text, page
