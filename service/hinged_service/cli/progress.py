"""Progress of a command that takes longer than a second, at a terminal, on standard error."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from hinged_service.client import Progress

__all__ = ["ProgressDisplay", "counted", "progress"]

T = TypeVar("T")

_QUIET_S: Final = 1.0
_EVERY_S: Final = 0.1
_STEPS: Final = {
    "send": "sending",
    "load": "loading",
    "check": "checking",
    "write": "writing",
    "read": "reading",
    "receive": "receiving",
}
_OF_WEIGHTS: Final = frozenset({"load", "write", "read"})


def _bytes_per_s(rate: float) -> str:
    return f"{rate / 1e6:,.1f} MB/s"


class ProgressDisplay:
    """The display of one command: a bar, or one for each of its steps.

    Parameters
    ----------
    what, unit
        As for `progress`.
    bars
        The place for bars; `None` if nothing is displayed.

    """

    def __init__(self, what: str, unit: str, bars: Bars | None) -> None:
        self._what, self._unit, self._bars = what, unit, bars
        self._step = ""
        self._begin(what)

    def _begin(self, description: str, done: int = 0) -> None:
        self._began_s = self._displayed_s = time.monotonic()
        self._done_before = done
        if self._bars is not None:
            self._task = self._bars.add_task(description, total=None, rate="")

    def update(self, share: float, events: int) -> None:
        """Show the share that is done, 0 to 1, and its number of events or other `unit`."""
        self._show(share, events, lambda rate: f"{rate:,.0f} {self._unit}/s")

    def step(self, progress: Progress) -> None:
        """Show how far a step of a call is: a new one gets a bar below those before."""
        if progress.step != self._step:
            if self._bars is not None:
                if self._step:
                    self._bars.update(self._task, total=1.0, completed=1.0)
                else:
                    self._bars.remove_task(self._task)
            self._step = progress.step
            name = _STEPS.get(progress.step, progress.step)
            self._begin(f"{self._what}: {name}", progress.done)
        of_weights = progress.step in _OF_WEIGHTS
        speed = (lambda rate: f"{rate:,.0f} weights/s") if of_weights else _bytes_per_s
        self._show(progress.done / max(progress.total, 1), progress.done, speed)

    def _show(self, share: float, done: int, speed: Callable[[float], str]) -> None:
        now_s = time.monotonic()
        if self._bars is not None and (now_s - self._displayed_s >= _EVERY_S or share >= 1):
            self._displayed_s = now_s
            rate = speed((done - self._done_before) / max(now_s - self._began_s, 1e-6))
            self._bars.update(self._task, total=1.0, completed=share, rate=rate)


@contextmanager
def progress(what: str, unit: str = "events") -> Iterator[ProgressDisplay]:
    """Show how far something is while the block runs; until the block reports, only the time.

    Parameters
    ----------
    what
        The work, as `learning`.
    unit
        Name of what is counted.

    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield ProgressDisplay(what, unit, None)
        return
    bars = Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%  {task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    later = threading.Timer(_QUIET_S, bars.start)
    later.daemon = True
    later.start()
    try:
        yield ProgressDisplay(what, unit, bars)
    finally:
        later.cancel()
        later.join()
        bars.stop()


def counted(what: str, results: Iterable[T], total: int, unit: str = "events") -> Iterator[T]:
    """Yield results, and show how many of them there are."""
    with progress(what, unit) as bar:
        for number, result in enumerate(results, start=1):
            bar.update(number / total, number)
            yield result
