"""Predictions as lines of a file."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from hinged_service.file_lock import FileLock
from hinged_service.ingest.predictions import Output, Predicted
from hinged_service.ingest.target import BAD_USAGE, Failed
from hinged_service.wire.faults import DECODE_ERRORS
from hinged_service.wire.position import EntryId, Position

__all__ = ["PredictionFile"]

_TAIL = 2**16
_BEGIN = b'{"position": "'


class PredictionFile(Output):
    """A file of NDJSON that grows, and that one run at a time writes.

    A line that a kill has cut off is taken away. The last line decides which predictions are there.
    """

    def __init__(self, path: str) -> None:
        self._one_at_a_time = threading.Lock()
        with contextlib.ExitStack() as unless_whole:
            try:
                self._lock = unless_whole.enter_context(FileLock(Path(path)))
                if not self._lock.try_lock():
                    raise Failed(f"Another run writes its predictions to {path}.", BAD_USAGE)
                self._last = self._whole()
            except OSError as error:
                raise Failed(f"The predictions cannot go to {path}: {error}.", BAD_USAGE) from None
            unless_whole.pop_all()

    def _whole(self) -> tuple[int, int, int]:
        """Remove an incomplete last line; return the order of the last prediction."""
        fd = self._lock.fd
        size = os.fstat(fd).st_size
        tail = os.pread(fd, min(_TAIL, size), max(0, size - _TAIL))
        whole = tail[: tail.rfind(b"\n") + 1]
        cut = tail[len(whole) :]
        last = (0, 0, -1)
        try:
            if whole:
                line = json.loads(whole.splitlines()[-1])
                ms, number = EntryId.of(Position.parse(line["position"]).id)
                last = ms, number, int(line["event"])
            if cut[: len(_BEGIN)] != _BEGIN[: len(cut)]:
                raise ValueError  # noqa: TRY301 - one answer to all of it
        except (*DECODE_ERRORS, ValueError, KeyError, TypeError):
            raise Failed(
                "The file for the predictions has other lines already: give another.", BAD_USAGE
            ) from None
        os.ftruncate(fd, size - len(cut))
        return last

    async def put(self, rows: Sequence[Predicted]) -> None:
        """Append those that are not there, and wait for the disk."""
        await asyncio.to_thread(self._append, rows)

    def _append(self, rows: Sequence[Predicted]) -> None:
        fd = self._lock.fd
        with self._one_at_a_time:  # the waiter for the one before may have been cancelled
            new = [row for row in rows if row.order > self._last]
            text = "".join(f"{row.json()}\n" for row in new).encode()
            begin = os.lseek(fd, 0, os.SEEK_END)
            try:
                while text:
                    text = text[os.write(fd, text) :]
                os.fsync(fd)
            except OSError as error:
                with contextlib.suppress(OSError):
                    os.ftruncate(fd, begin)
                raise Failed(f"The predictions cannot be written: {error}.") from None
            if new:
                self._last = new[-1].order

    async def aclose(self) -> None:
        """Close it."""
        self._lock.close()
