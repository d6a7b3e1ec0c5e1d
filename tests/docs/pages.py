"""The pages that a user reads: README and docs, their blocks, headings, tables and links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md")), ROOT / "deploy/README.md"]
_BLOCK = re.compile(
    r"^```(\w+)(?: title=\"(\S+)\")?\n(.*?)^```$|^<!-- (stop) -->$", re.MULTILINE | re.DOTALL
)
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the file that it is, its text. `stop` ends the service."""

    kind: str
    file: str
    text: str


def name(page: Path) -> str:
    """The page's path in the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> list[Block]:
    """The blocks of a page in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(found[4] or found[1], found[2] or "", found[3] or "")
        for found in _BLOCK.finditer(text)
    ]


def prose(page: Path) -> str:
    """The text of a page without its blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> Iterator[str]:
    """The anchors of a page's headings, as code hosts make them."""
    for heading in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        yield re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


def links(page: Path) -> list[str]:
    """The relative targets of a page's links and pictures."""
    found = re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"", prose(page))
    return [link for pair in found for link in pair if link and "://" not in link]
