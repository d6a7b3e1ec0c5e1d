"""The page that the service shows itself on: files, read once, and the headers they go out with.

The page has no build step, and nothing of it comes from elsewhere. Its charts are drawn by some
hundred lines of its own (`static/charts`) instead of by a library. The libraries whose Python
packages carry their JavaScript are made for notebooks: they bring 4 to 10 MB of script and large
Python packages that a service would install for that script alone, set styles inline or build
code from text, which the policy below forbids, and most of them paint on a canvas, where a screen
reader finds nothing. What is needed here is little: lines over time with marks, bars, a histogram
and a plane with a boundary. As SVG these are text to a screen reader, take their colours from the
style sheet in light and dark, and cost a viewer about 150 kB.
"""

from __future__ import annotations

import hashlib
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Final, NamedTuple

__all__ = ["POLICY", "Asset", "assets"]

POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ]
)
"""The Content Security Policy of the page: its own files and its own service, nothing else."""

_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class Asset(NamedTuple):
    """A file of the page.

    Parameters
    ----------
    body
        What it holds.
    media_type
        What it is.
    etag
        Names its content, so that a browser need not fetch it again.

    """

    body: bytes
    media_type: str
    etag: str


def assets() -> dict[str, Asset]:
    """Return the files of the page by their path below `static`."""
    return dict(_below(resources.files(__name__) / "static", ""))


def _below(folder: Traversable, prefix: str) -> list[tuple[str, Asset]]:
    found: list[tuple[str, Asset]] = []
    for one in folder.iterdir():
        if one.is_dir():
            found += _below(one, f"{prefix}{one.name}/")
            continue
        kind = _TYPES.get(one.name.rpartition(".")[2])
        if kind is not None:
            body = one.read_bytes()
            etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            found.append((f"{prefix}{one.name}", Asset(body, kind, etag)))
    return found
