"""The directory that `hinged serve` makes for what its workers count together."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

__all__ = ["shared_directory"]

_MEMORY = Path("/dev/shm")  # noqa: S108 - a private directory is made in it
_PREFIX = "hinged-metrics-"
_OWNER = "owner"


@contextlib.contextmanager
def shared_directory() -> Iterator[Path]:
    """Make a private directory, in memory if there is a place for that; remove it in the end.

    Those that killed services left are removed too.
    """
    writable = os.access(_MEMORY, os.W_OK | os.X_OK)
    parent = _MEMORY if writable else Path(tempfile.gettempdir())
    for left in parent.glob(f"{_PREFIX}*"):
        _remove_if_left(left)
    made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    owner = os.open(made / _OWNER, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(owner, fcntl.LOCK_EX)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(owner)


def _remove_if_left(directory: Path) -> None:
    """Remove a directory unless its service lives, or it is somebody else's."""
    try:
        owner = os.open(directory / _OWNER, os.O_RDWR)
    except OSError:
        return
    try:
        fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(directory, ignore_errors=True)
    except BlockingIOError:
        pass
    finally:
        os.close(owner)
