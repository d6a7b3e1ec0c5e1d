"""The time for which a source waits for a server that does not answer."""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from hinged_service.ingest.target import Failed

__all__ = ["Patience", "public_address"]


class Patience:
    """A bound on the time for which a server may be away in a row.

    Parameters
    ----------
    server
        The server, with its address: the subject of a sentence.
    limit_s
        The bound in seconds; `None` to wait without limit.

    """

    def __init__(self, server: str, limit_s: float | None) -> None:
        self._server = server
        self._limit_s = limit_s
        self._since_s: float | None = None

    def failed(self, why: str) -> None:
        """Note that it did not answer; raise `Failed` if that has been so for too long."""
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s = now_s
        if self._limit_s is not None and now_s - self._since_s >= self._limit_s:
            raise Failed(f"{self._server} gave no answer for {self._limit_s:g} seconds: {why}")

    def answered(self) -> None:
        """Note that it answers."""
        self._since_s = None


def public_address(url: str) -> str:
    """Return an address without user, password and parameters."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
