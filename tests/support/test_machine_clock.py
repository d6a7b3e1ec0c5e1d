"""The clock by which other tests judge how long something takes."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support import machine_clock
from tests.support.processes import wait_until


@pytest.fixture
def sleepers(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes by which a clock that is made from here on sees the machine stand still."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(*arguments))
        return started[-1]

    monkeypatch.setattr(machine_clock, "_start", start)
    return started


def test_it_forgives_what_the_machine_did_not_give_and_nothing_else(
    tmp_path: Path, sleepers: list[subprocess.Popen[bytes]]
) -> None:
    with machine_clock.machine_clock(tmp_path) as clock:
        (sleeper,) = sleepers
        began_s, clock_s = time.monotonic(), clock()
        busy_until_s = began_s + 0.3
        while time.monotonic() < busy_until_s:
            pass
        worked_s = clock() - clock_s
        sleeper.send_signal(signal.SIGSTOP)  # as if no process had a processor
        time.sleep(1)
        stood_s = clock() - clock_s
        sleeper.send_signal(signal.SIGCONT)
        time.sleep(0.3)
        assert clock() - clock_s <= time.monotonic() - began_s - 0.9
    # beside other tests the machine may well not give all of it
    assert worked_s > 0.0
    assert stood_s <= worked_s + 0.2


def test_a_clock_whose_keeper_is_gone_is_none(
    tmp_path: Path, sleepers: list[subprocess.Popen[bytes]]
) -> None:
    with machine_clock.machine_clock(tmp_path) as clock:
        clock()
        sleepers[0].kill()
        wait_until(lambda: sleepers[0].poll() is not None)
        with pytest.raises(AssertionError, match="the clock has ended"):
            clock()
