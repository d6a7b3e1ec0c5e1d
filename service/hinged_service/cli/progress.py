"""Progress of a command that takes longer than a second, at a terminal, on standard error."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

__all__ = ["counted", "progress"]

T = TypeVar("T")
Told = Callable[[float, int], None]

_QUIET_S: Final = 1.0
_EVERY_S: Final = 0.1


@contextmanager
def progress(what: str, unit: str = "events") -> Iterator[Told]:
    """Show how far something is while the block runs.

    Yields a function of the share that is done, 0 to 1, and of the events, or what `unit` names,
    that this took. Until it is called, only the time is shown.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _share, _events: None
        return
    bar = Progress(
        TextColumn(what),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%  {task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    task = bar.add_task("", total=None, rate="")
    later = threading.Timer(_QUIET_S, bar.start)
    later.daemon = True
    later.start()
    began_s = told_s = time.monotonic()

    def tell(share: float, events: int) -> None:
        nonlocal told_s
        now_s = time.monotonic()
        if now_s - told_s >= _EVERY_S:
            told_s = now_s
            rate = f"{events / (now_s - began_s):,.0f} {unit}/s"
            bar.update(task, total=1.0, completed=share, rate=rate)

    try:
        yield tell
    finally:
        later.cancel()
        later.join()
        bar.stop()


def counted(what: str, results: Iterable[T], total: int, unit: str = "events") -> Iterator[T]:
    """Yield results, and show how many of them there are."""
    with progress(what, unit) as tell:
        for number, result in enumerate(results, start=1):
            tell(number / total, number)
            yield result
