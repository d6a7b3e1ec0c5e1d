"""Tests of retry with back-off: pauses, deadline, errors that end it."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from hinged_service.errors import ModelGone, SetAside, Unavailable
from hinged_service.retry import backoff, retry


def test_each_pause_is_twice_the_one_before_up_to_the_longest() -> None:
    assert list(itertools.islice(backoff(0.1, 0.5), 5)) == [0.1, 0.2, 0.4, 0.5, 0.5]
    spread = list(itertools.islice(backoff(1.0, 1.0, 0.5), 100))
    assert 0.5 <= min(spread) < max(spread) <= 1.0


def test_a_step_is_repeated_until_it_succeeds() -> None:
    left = [Unavailable("away"), ModelGone("gone"), Unavailable("away")]
    seen: list[str] = []
    waited: list[float] = []

    async def step() -> str:
        if left:
            raise left.pop()
        return "done"

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    done = retry(
        step,
        pauses=backoff(1.0, 60.0),
        on=(Unavailable, ModelGone),
        failed=lambda error: seen.append(str(error)),
        wait=wait,
    )
    assert asyncio.run(done) == "done"
    assert seen == ["away", "gone", "away"]
    assert waited == [1.0, 2.0, 4.0]


def test_the_last_error_is_raised_at_the_deadline() -> None:
    tried = 0

    async def step() -> None:
        nonlocal tried
        tried += 1
        raise Unavailable(f"try {tried}")

    async def run() -> None:
        await retry(step, asyncio.get_running_loop().time() + 0.2)

    with pytest.raises(Unavailable) as caught:
        asyncio.run(run())
    assert caught.value.detail == f"try {tried}"
    assert 2 <= tried <= 10


def test_another_error_ends_it_at_once() -> None:
    tried = 0

    async def step() -> None:
        nonlocal tried
        tried += 1
        raise SetAside("damaged")

    with pytest.raises(SetAside):
        asyncio.run(retry(step))
    assert tried == 1
