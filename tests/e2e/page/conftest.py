"""A real browser before a real service.

Playwright's loop runs in the main thread as long as its browser is open, where no other test
could run a loop of its own: the browser ends with this folder.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.e2e.page.visiting import Visit
from tests.support.redis_server import RedisServer
from tests.support.service import Service

Open = Callable[..., Visit]


def chromium() -> str:
    """The path of a Chromium; without one the tests are skipped."""
    named = os.environ.get("HINGED_TEST_CHROMIUM")
    usual = ("chromium-headless-shell", "chromium", "google-chrome")  # the first is the quickest
    found = [named, *map(shutil.which, usual)]
    if not any(found):
        pytest.skip("no chromium: install Debian's or point HINGED_TEST_CHROMIUM at one")
    return next(path for path in found if path)


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """A browser without a window."""
    path = chromium()
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service; each test makes models of its own."""
    with RedisServer(tmp_path_factory.mktemp("page")) as server, Service(server.url) as running:
        yield running


@pytest.fixture
def client(service: Service) -> Iterator[httpx.Client]:
    """A client of the service."""
    with service.client() as made:
        yield made


@pytest.fixture
def visit(browser: Any, service: Service) -> Iterator[Open]:
    """Open the page, as often as one likes; in the end there may be no error."""
    visits: list[Visit] = []

    def opened(path: str = "#/", url: str | None = None, **options: Any) -> Visit:
        visits.append(Visit(browser, url or service.url, options))
        visits[-1].go(path)
        return visits[-1]

    yield opened
    for one in visits:
        one.close()
    assert [one.complaints for one in visits if one.complaints] == []
