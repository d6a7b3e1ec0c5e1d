"""Limits of the operating system on a process."""

from __future__ import annotations

import contextlib
from typing import Final

__all__ = ["allow_many_connections"]

_OPEN_FILES: Final = 65_536


def allow_many_connections() -> None:
    """Let this process open more files than the 1,024 that many systems begin with."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if most == resource.RLIM_INFINITY else min(_OPEN_FILES, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
