"""A clock that stands still while the machine does.

A host may give a virtual machine no processor for seconds. Whatever is measured then is
the host's doing, so a bound on what the service takes is judged by this clock instead. A
process that does nothing but sleep a moment, again and again, tells: what it oversleeps,
the machine did not give. What the service or a test spends, it does not forgive.
"""

from __future__ import annotations

import contextlib
import mmap
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

MOMENT_S = 0.01
OVERSLEPT_S = 0.05
"""A sleep that ends this much too late is how a busy machine shares its processors."""

_SHARED = struct.Struct("=dd")  # when the last sleep ended, and what was overslept till then

Clock = Callable[[], float]


@contextlib.contextmanager
def machine_clock(folder: Path) -> Iterator[Clock]:
    """Give a clock in seconds, from some beginning."""
    path = folder / "machine-clock"
    path.write_bytes(_SHARED.pack(time.monotonic(), 0.0))
    sleeper = subprocess.Popen([sys.executable, "-S", __file__, str(path)])
    try:
        with path.open("r+b") as file, mmap.mmap(file.fileno(), _SHARED.size) as shared:
            while _SHARED.unpack_from(shared)[1] == 0.0:  # it says that it has begun
                time.sleep(MOMENT_S)

            def clock() -> float:
                now = time.monotonic()
                ended, overslept = map(float, _SHARED.unpack_from(shared))
                return now - overslept - _overslept(now - ended)

            yield clock
    finally:
        sleeper.kill()
        sleeper.wait()


def _overslept(slept: float) -> float:
    return slept - MOMENT_S if slept - MOMENT_S > OVERSLEPT_S else 0.0


def _sleep_on(path: Path) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), _SHARED.size) as shared:
        ended, overslept = time.monotonic(), sys.float_info.min
        while True:
            _SHARED.pack_into(shared, 0, ended, overslept)
            time.sleep(MOMENT_S)
            now = time.monotonic()
            overslept += _overslept(now - ended)
            ended = now


if __name__ == "__main__":
    _sleep_on(Path(sys.argv[1]))
