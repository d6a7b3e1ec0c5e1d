"""Long work of models: in one thread, part by part, while the loop serves other callers.

A thread of Python takes turns with the loop even within one event, which no pause between events
can do. There is one for all models: their parts take turns, and the loop has one rival at most.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import os
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter, thread_time
from typing import Final, TypeVar

from hinged_service.model.cost import EVENT_BYTES, cost_of
from hinged_service.model.spec import ModelSpec

__all__ = [
    "LARGE_BYTES",
    "TURN_S",
    "Pace",
    "at_once",
    "in_parts",
    "in_thread",
    "portions",
    "result_in_parts",
]

T = TypeVar("T")
U = TypeVar("U")

TURN_S: Final = 0.005
"""Time of the loop that the work of one call may take."""
LARGE_BYTES: Final = 2**19
"""Bytes of JSON whose reading alone takes a millisecond or two."""
_PART_S: Final = 0.02
_PORTION_S: Final = 0.002
_MOST_GROWTH: Final = 32.0
_LEAST_S: Final = 1e-6
_LEAST_MS = 0.01
_LONGEST_S = 0.05
_SWITCH_S = 0.001  # the wait of each system call of the loop until the thread yields


def _begin() -> None:
    sys.setswitchinterval(_SWITCH_S)


class _Worker:
    """The thread; a forked process gets another one."""

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        self.thread = ThreadPoolExecutor(1, "long-work", _begin)


_worker = _Worker()
os.register_at_fork(after_in_child=_worker.renew)


async def in_thread(part: Callable[[], T]) -> T:
    """Return the result of a part of long work, from the thread that does one part at a time.

    A caller that is cancelled goes only when the part has ended: what it holds is held until then.
    """
    run = functools.partial(contextvars.copy_context().run, part)
    done = asyncio.get_running_loop().run_in_executor(_worker.thread, run)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([done])
        if not done.cancelled():
            done.exception()  # noted: the caller is gone
        raise


async def in_parts(step: Callable[[], bool]) -> float:
    """Take steps in the thread until one returns that nothing is left; return their CPU time.

    One step at least is taken between two turns of other work.
    """
    took_s = 0.0
    left = True
    while left:
        left, part_s = await in_thread(functools.partial(_part, step))
        took_s += part_s
    return took_s


def _part(step: Callable[[], bool]) -> tuple[bool, float]:
    """Take steps for the length of a part; return whether any are left, and the CPU time taken."""
    began_s = thread_time()
    while left := step():
        if thread_time() - began_s >= _PART_S:
            break
    return left, thread_time() - began_s


async def result_in_parts(work: Generator[None, None, T]) -> T:
    """Return the result of work that pauses after each step, done as by `in_parts`."""
    found: list[T] = []

    def step() -> bool:
        try:
            next(work)
        except StopIteration as end:
            found.append(end.value)
            return False
        return True

    await in_parts(step)
    return found[0]


def at_once(work: Generator[None, None, T]) -> T:
    """Return the result of the same work without a pause."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            found: T = end.value
            return found


def portions(items: Sequence[U]) -> Iterator[tuple[int, Sequence[U]]]:
    """Yield some of the items at a time and the index of their first.

    Each portion has as many as take 2 ms, by the one before, but for 32 times as many at most.
    """
    first, size = 0, 1
    while first < len(items):
        began_s = perf_counter()
        yield first, items[first : first + size]
        first += size
        fitting = _PORTION_S / max(perf_counter() - began_s, _LEAST_S)
        size = int(size * min(max(fitting, 1.0), _MOST_GROWTH))


def _estimated(spec: ModelSpec) -> tuple[int, int]:
    cost_ms = max(_LEAST_MS, cost_of(spec).ms)
    few = min(int(EVENT_BYTES * TURN_S * 1000 / cost_ms), LARGE_BYTES)
    return few, max(1, int(_LONGEST_S * 1000 / cost_ms))


class Pace:
    """Amount of work that a model does within one turn of the loop.

    It follows from the spec's estimated cost, and from what was measured. It decides where work
    is done, never its result.

    Attributes
    ----------
    few
        Bytes of JSON up to which the work is done on the loop.
    most_events
        Events up to which it is: what was measured with few classes predicts nothing of many small
        events that bring one class each.

    """

    __slots__ = ("few", "most_events")

    def __init__(self, spec: ModelSpec) -> None:
        self.few, self.most_events = spec.once(_estimated)

    def note(self, size: int, took_s: float) -> None:
        """Take note of the time that work on `size` bytes took."""
        if took_s > TURN_S:
            self.few = min(self.few, int(size * TURN_S / took_s))
        elif size > self.few:  # it was done in the thread and need not have been
            self.few = min(2 * size, LARGE_BYTES)
