"""A signal ends the demonstration between two steps, where nothing holds a lock."""

from __future__ import annotations

import os
import signal

import pytest

from hinged_service.cli.demo import _Signals


def step(signals: _Signals, numbers: list[int], sent: list[int]) -> None:
    """Get signals in the middle of a step; note after which it went on."""
    with signals.step():
        for number in numbers:
            os.kill(os.getpid(), number)
            sent.append(number)


@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
def test_it_waits_for_the_end_of_the_step(
    number: signal.Signals, raised: type[BaseException]
) -> None:
    before = signal.getsignal(number)
    sent: list[int] = []
    with _Signals() as signals:
        with pytest.raises(raised):
            step(signals, [number], sent)
        assert sent == [number]
        with pytest.raises(raised):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def test_a_second_one_does_not_wait() -> None:
    sent: list[int] = []
    with _Signals() as signals, pytest.raises(SystemExit) as ended:
        step(signals, [signal.SIGINT, signal.SIGTERM, signal.SIGTERM], sent)
    assert sent == [signal.SIGINT]
    assert ended.value.code == 128 + signal.SIGTERM
