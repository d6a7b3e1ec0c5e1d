"""Lock on a file: the kernel drops it with the last process that holds it."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import fcntl

__all__ = ["FileLock"]

_POLL_S: Final = 0.005


class FileLock:
    """A file that can be locked, until it is closed or every process that has it open is gone.

    Parameters
    ----------
    path
        The file.
    create
        Whether it is made if it is missing.

    Attributes
    ----------
    fd
        Its descriptor.

    """

    def __init__(self, path: Path, create: bool = True) -> None:
        self.fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600)

    def __enter__(self) -> FileLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; a process that inherited the descriptor keeps the lock."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def try_lock(self, exclusive: bool = True) -> bool:
        """Take the lock, or change it to another kind; a change that fails loses it."""
        try:
            fcntl.flock(self.fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def wait(self, deadline_s: float, exclusive: bool = True) -> bool:
        """Take the lock within a time of `time.monotonic`; return `False` if it cannot be had."""
        while not self.try_lock(exclusive):
            if time.monotonic() >= deadline_s:
                return False
            time.sleep(_POLL_S)
        return True
