"""Directory through which the workers of one service share counters and reports.

Each worker has a file of counters (`….sheet`) and one with its report (`….page`). It keeps its
counters locked while it lives, so a worker whose lock can be had is dead, even if its process id
is in use again. Any worker can answer a scrape; it adds the dead to `totals` and removes their
files.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import threading
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from hinged_service.errors import StartupError, Unavailable
from hinged_service.file_lock import FileLock
from hinged_service.telemetry.mmap_counters import SIZE, CounterFile, Key, read_sheet
from hinged_service.telemetry.worker_report import (
    Totals,
    WorkerReport,
    add_counts,
    add_numbers,
    merge,
)

__all__ = ["Gathered", "WorkerDirectory"]

_TIMEOUT_S = 2.0
_ENCODE = msgspec.msgpack.Encoder().encode
_PAGE = msgspec.msgpack.Decoder(WorkerReport)
_TOTALS = msgspec.msgpack.Decoder(Totals)


class Gathered(NamedTuple):
    """Counters and reports of all workers.

    Attributes
    ----------
    numbers
        Counters of living and dead workers, added up.
    pages
        Reports of the living.
    totals
        The models.
    left_out
        Number of models that are not among them.

    """

    numbers: dict[Key, list[float]]
    pages: list[WorkerReport]
    totals: Totals
    left_out: int


class WorkerDirectory:
    """One worker's files in the shared directory.

    Parameters
    ----------
    directory
        The directory, which exists. `None`: the worker is alone, and all of it in memory.
    most
        Most models with labels of their own.

    Attributes
    ----------
    sheet
        The worker's counters.

    Raises
    ------
    StartupError
        The directory cannot be used.

    """

    def __init__(self, directory: Path | None, most: int) -> None:
        self._directory = directory
        self._most = most
        self._name = secrets.token_hex(8)
        self._turn = threading.Lock()
        self._written = -1
        self._totals = Totals()
        self._file: int | None = None
        if directory is not None:
            try:
                self._file = self._begin()
            except OSError as error:
                raise StartupError(
                    f"HINGED_METRICS_DIR {directory} cannot be used: {error.strerror}. It must be "
                    "a directory that the workers may write to."
                ) from error
        self.sheet = CounterFile(self._file)

    def _begin(self) -> int:
        """Make the file of the counters, locked before others can see it."""
        start = self._path("start")
        file = os.open(start, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        fcntl.flock(file, fcntl.LOCK_EX)
        os.truncate(file, SIZE)
        start.rename(self._path("sheet"))
        return file

    def close(self, page: WorkerReport) -> None:
        """Leave a last report; from now on the worker counts as dead."""
        self.write(page)
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)  # the sheet holds the file open
            os.close(self._file)
            self._file = None

    def write(self, page: WorkerReport) -> None:
        """Show the other workers a report, unless a later one is there."""
        with self._turn:
            if self._directory is not None and page.version > self._written:
                _replace(self._path("page"), _ENCODE(page))
                self._written = page.version

    def gather(self, page: WorkerReport) -> Gathered:
        """Write a report and return those of all workers; no number ever goes back.

        Raises
        ------
        Unavailable
            Another worker gathers, and stands still.

        """
        self.write(page)
        if self._directory is None:
            with self._turn:
                left_out = merge(self._totals, [page], self._most)
                numbers: dict[Key, list[float]] = {}
                add_numbers(numbers, self.sheet.read())
                totals = msgspec.structs.replace(self._totals)  # the next call changes ours
                return Gathered(numbers, [page], totals, left_out)
        with self._turn, FileLock(self._directory / "lock") as lock:
            if not lock.wait(time.monotonic() + _TIMEOUT_S):
                raise Unavailable(
                    "Another worker is collecting the metrics. Try again.", retry_after_s=1
                )
            return self._gathered(self._directory)

    def _gathered(self, directory: Path) -> Gathered:
        kept = directory / "totals"
        totals = _TOTALS.decode(kept.read_bytes()) if kept.exists() else Totals()
        past = {_key(text): numbers for text, numbers in totals.sheet.items()}
        living: list[WorkerReport] = []
        dead: list[WorkerReport] = []
        numbers: dict[Key, list[float]] = {}
        leftover = set(totals.folded)
        totals.folded = []
        for sheet in sorted(directory.glob("*.sheet")):
            if sheet.stem in leftover:  # added before, by a worker that died before it removed it
                totals.folded.append(sheet.stem)
                continue
            alive = _is_alive(sheet)  # asked first: of a dead one everything is read
            page, counts = _page(sheet.with_suffix(".page")), read_sheet(sheet.read_bytes())
            if alive:
                living.append(page)
                add_numbers(numbers, counts)
            else:
                dead.append(page)
                add_numbers(past, counts)
                add_counts(totals, page)
                totals.folded.append(sheet.stem)
        totals.sheet = {_text(key): values for key, values in past.items()}
        left_out = merge(totals, [*living, *dead], self._most)
        _replace(kept, _ENCODE(totals))
        for name in totals.folded:
            (directory / f"{name}.page").unlink(missing_ok=True)
            (directory / f"{name}.sheet").unlink(missing_ok=True)
        add_numbers(numbers, past)
        return Gathered(numbers, living, totals, left_out)

    def _path(self, kind: str) -> Path:
        assert self._directory is not None  # noqa: S101 - only a directory has paths
        return self._directory / f"{self._name}.{kind}"


def _page(path: Path) -> WorkerReport:
    try:
        return _PAGE.decode(path.read_bytes())
    except FileNotFoundError:  # a worker that has just started
        return WorkerReport()


def _is_alive(sheet: Path) -> bool:
    with FileLock(sheet, create=False) as lock:
        return not lock.try_lock(exclusive=False)


def _replace(path: Path, data: bytes) -> None:
    """Write a file so that others see it whole or not at all."""
    new = path.with_suffix(f".{secrets.token_hex(4)}.new")
    new.write_bytes(data)
    new.replace(path)


def _text(key: Key) -> str:
    return "\0".join(key)


def _key(text: str) -> Key:
    return tuple(text.split("\0"))
