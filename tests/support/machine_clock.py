"""A clock that stands still while the machine does.

A host may give a virtual machine no processor for seconds. All that is measured then is
the host's doing, so a bound on what the service takes is judged by this clock instead. A
process that does nothing but sleep a moment, again and again, tells: what it oversleeps,
the machine did not give. What the service or a test spends, it does not forgive, as long as a
process that wakes up is soon given a processor.
"""

from __future__ import annotations

import contextlib
import mmap
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

MOMENT_S = 0.01
OVERSLEPT_S = 0.05
"""A sleep that ends this much too late is how a busy machine shares its processors."""

_START_S = 30.0
_TURN, _ENDED, _OVERSLEPT = range(3)
"""The shared memory: a number that is odd while the others change, when the last sleep ended, and
what was overslept till then."""

Clock = Callable[[], float]

_start = subprocess.Popen


@contextlib.contextmanager
def machine_clock(folder: Path) -> Iterator[Clock]:
    """Give a clock in seconds, from some beginning."""
    path = folder / "machine-clock"
    path.write_bytes(bytes(24))
    sleeper = _start([sys.executable, "-S", __file__, str(path)])
    try:
        with _shared(path) as shared:
            deadline = time.monotonic() + _START_S
            while shared[_ENDED] == 0.0:  # it has not begun
                assert time.monotonic() < deadline, "the clock does not start"
                time.sleep(MOMENT_S)

            def clock() -> float:
                assert sleeper.poll() is None, "the clock has ended: start it again"
                while True:
                    turn, now = shared[_TURN], time.monotonic()
                    overslept = shared[_OVERSLEPT] + _overslept(now - shared[_ENDED])
                    if turn % 2 == 0 and shared[_TURN] == turn:
                        return now - overslept

            yield clock
    finally:
        sleeper.kill()
        sleeper.wait()


def _overslept(slept: float) -> float:
    return slept - MOMENT_S if slept - MOMENT_S > OVERSLEPT_S else 0.0


@contextlib.contextmanager
def _shared(path: Path) -> Iterator[memoryview[float]]:
    with (
        path.open("r+b") as file,
        mmap.mmap(file.fileno(), 0) as mapped,
        memoryview(mapped) as plain,
        plain.cast("d") as numbers,
    ):
        yield numbers


def _sleep_on(path: Path) -> None:
    with _shared(path) as shared:
        shared[_ENDED] = ended = time.monotonic()
        while True:
            time.sleep(MOMENT_S)
            now = time.monotonic()
            shared[_TURN] += 1
            shared[_OVERSLEPT] += _overslept(now - ended)
            shared[_ENDED] = ended = now
            shared[_TURN] += 1


if __name__ == "__main__":
    _sleep_on(Path(sys.argv[1]))
