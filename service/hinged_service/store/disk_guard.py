"""Room on the disk for the append-only file of the embedded Valkey.

A write to a full disk fails after Valkey has carried out its command, so it would be acknowledged
and yet be in memory only. Therefore blocks behind the end of the file are allocated ahead of the
writes, and writes are refused before those blocks are used up: what Valkey acknowledges has its
place on the disk already, even if other programs fill the rest.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hinged_service.store.unix_call import call
from hinged_service.telemetry.state_log import StateChangeLog

__all__ = ["Disk", "DiskGuard", "DiskLimits"]

logger = logging.getLogger(__name__)

_KEEP_SIZE: Final = 1
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_BLOCK_BYTES: Final = 512
_REWRITE_ROOM: Final = 4
"""Reserves that must be free for Valkey to rewrite its file: its next file begins without one."""
_MEND_AGAIN_S: Final = 10.0
_LOG_AGAIN_S: Final = 3_600.0


@dataclass(frozen=True, slots=True)
class DiskLimits:
    """Bytes to reserve for the append-only file; free bytes below which to warn."""

    reserve_bytes: int
    warning_bytes: int


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk of an embedded Valkey when it was last checked.

    Attributes
    ----------
    free_bytes
        Free for all users.
    reserved_bytes
        Allocated for the append-only file, behind its end.
    writable
        Whether Valkey takes writes.
    unwritten_bytes
        Acknowledged, and in the memory of Valkey only.
    safe
        Whether no write to the file has failed that is not mended.
    warning
        A sentence if there is little room or none, else empty.

    """

    free_bytes: int
    reserved_bytes: int
    writable: bool
    unwritten_bytes: int
    safe: bool
    warning: str


class DiskGuard:
    """Reserve for the append-only file in a data directory, and the refusal of writes without it.

    Any number of guards may look after one directory.

    Parameters
    ----------
    data_dir
        Directory of the embedded Valkey.
    limits
        Bytes to reserve, and free bytes below which to warn.

    Attributes
    ----------
    disk
        Result of the last look; `None` before the first.
    tight
        Whether the reserve is less than it should be, so that looks should be frequent.

    """

    def __init__(self, data_dir: Path, limits: DiskLimits) -> None:
        self._data_dir = data_dir
        self._files = data_dir / "appendonlydir"
        self._limits = limits
        self._changes = StateChangeLog()
        self._holed = False
        self._mended_s = -_MEND_AGAIN_S
        self.disk: Disk | None = None
        self.tight = False

    def look(self, socket: Path) -> Disk:
        """Bring the reserve up to its size; have Valkey take writes, or refuse them.

        Raises
        ------
        OSError
            Valkey cannot be asked, or the directory cannot be read.

        """
        base, increments = self._parts()
        free = _free_bytes(self._data_dir)
        ahead = _extended(increments[-1], self._limits.reserve_bytes) if increments else 0
        if ahead is None:
            ahead = free
        for older in increments[:-1]:
            _release(older)
        self.tight = ahead < _least(self._limits.reserve_bytes)
        sizes = [_size(part) for part in [*base, *increments]]
        info = _fields(call(socket, b"INFO persistence"))
        if not info:
            raise ConnectionRefusedError(f"{socket}: Valkey does not report its state")
        failed = info.get("aof_last_write_status") != "ok"
        if info.get("loading") == "0" and sizes == [
            _size(part) for part in [*base, *increments]
        ]:  # nothing came meanwhile
            extra = sum(sizes) - int(info.get("aof_current_size", sum(sizes)))
            # A server that made its first, empty base file does not count it.
            self._holed = extra > 0 and extra != sum(sizes[: len(base)])
        holed = self._holed
        writable = not self.tight and not failed and not holed
        rewrite = free >= _REWRITE_ROOM * self._limits.reserve_bytes
        call(
            socket,
            b"CONFIG SET min-replicas-to-write %d auto-aof-rewrite-percentage %d"
            % (not writable, 100 * rewrite),
        )
        if holed and not failed:
            self._mend(socket)
        self.disk = Disk(
            free,
            ahead,
            writable,
            int(info.get("aof_buffer_length", 0)),
            not failed and not holed,
            self._warning(free, writable, failed or holed),
        )
        self._log_state(self.disk)
        return self.disk

    def _parts(self) -> tuple[list[Path], list[Path]]:
        """Return the base file and the files of increments, the one in use last."""
        base, increments = [], []
        try:
            manifest = (self._files / "appendonly.aof.manifest").read_text()
        except FileNotFoundError:
            return [], []
        for line in manifest.splitlines():
            words = line.split()
            if words[0::2][:3] == ["file", "seq", "type"]:
                if words[5] == "b":
                    base.append(self._files / words[1])
                elif words[5] == "i":
                    increments.append(self._files / words[1])
        return base, increments

    def _mend(self, socket: Path) -> None:
        """Let Valkey rewrite its file.

        A write that fails in the middle of a file that was begun while Valkey ran leaves a hole,
        with which the file cannot be read again.
        """
        if time.monotonic() - self._mended_s >= _MEND_AGAIN_S:
            self._mended_s = time.monotonic()
            logger.warning("A write failed halfway: Valkey rewrites its append-only file.")
            call(socket, b"BGREWRITEAOF")

    def _warning(self, free: int, writable: bool, failed: bool) -> str:
        # Without the number of free bytes: a text that changes is logged again.
        where = f"disk of {self._data_dir}"
        if failed:
            return (
                f"The {where} is full, and a write to it failed: the last acknowledged events are "
                "in the memory of Valkey only. Make room, and do not stop Valkey before it has "
                "written them."
            )
        if not writable:
            return (
                f"The {where} is full: learning is refused, as it needs "
                f"{self._limits.reserve_bytes:,} bytes in reserve. Nothing is lost. Make room, and "
                "it goes on by itself."
            )
        if free < self._limits.warning_bytes:
            return (
                f"The {where} is nearly full: less than {self._limits.warning_bytes:,} bytes are "
                "free. Make room, or learning will be refused."
            )
        return ""

    def _log_state(self, disk: Disk) -> None:
        level = logging.WARNING if disk.writable else logging.ERROR
        if disk.warning:
            self._changes.enter(
                "disk", logger, "%s", disk.warning, level=level, every_s=_LOG_AGAIN_S
            )
        else:
            self._changes.leave("disk", logger, "The disk of %s has room again.", self._data_dir)


def _fields(text: bytes) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.decode().splitlines())
    return {name: value for name, colon, value in pairs if colon}


def _free_bytes(directory: Path) -> int:
    about = os.statvfs(directory)
    return about.f_bavail * about.f_frsize


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _least(reserve: int) -> int:
    """Return the least size of a reserve before it is restored, or else writes are refused.

    The rest is for what comes between two looks.
    """
    return reserve * 3 // 4


def _ahead(fd: int) -> int:
    about = os.fstat(fd)
    return max(0, about.st_blocks * _BLOCK_BYTES - about.st_size)


def _extended(path: Path, reserve: int) -> int | None:
    """Allocate blocks behind the end of a file; return their bytes, `None` if it cannot be done."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return 0
    try:
        if _ahead(fd) < _least(reserve) and not _allocate(fd, reserve):
            return None
        return _ahead(fd)
    finally:
        os.close(fd)


def _allocate(fd: int, reserve: int) -> bool:
    """Allocate blocks behind the end, or as many as there are; return whether that can be done."""
    allocate: Callable[..., int] | None = _fallocate()
    if allocate is None:
        return False
    number = allocate(fd, _KEEP_SIZE, os.fstat(fd).st_size, reserve)
    return number == 0 or ctypes.get_errno() in _FULL


def _fallocate() -> Callable[..., int] | None:
    try:
        found = ctypes.CDLL(None, use_errno=True).fallocate
    except (AttributeError, OSError):
        return None
    found.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return found


def _release(path: Path) -> None:
    """Free the space allocated behind the end of a file that is not written any more."""
    with contextlib.suppress(FileNotFoundError):
        about = path.stat()
        if about.st_blocks * _BLOCK_BYTES - about.st_size > about.st_blksize:
            os.truncate(path, about.st_size)
