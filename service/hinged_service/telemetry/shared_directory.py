"""The directory that `hinged serve` makes for what its workers count together."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from hinged_service.file_lock import FileLock

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
    with FileLock(made / _OWNER) as owner:
        owner.try_lock()  # held for as long as the service lives
        try:
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _remove_if_left(directory: Path) -> None:
    """Remove a directory unless its service lives, or it is somebody else's."""
    with contextlib.suppress(OSError), FileLock(directory / _OWNER, create=False) as owner:
        if owner.try_lock():
            shutil.rmtree(directory, ignore_errors=True)
