"""Predictions of many callers on their way to Redis: at most two requests by turns."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

from hinged_service.errors import Unavailable
from hinged_service.store import pending_predictions
from hinged_service.wire.events import Question
from tests.support.engine import worker
from tests.support.redis_server import RedisServer

TIMES = 20
CALLERS = 30


def test_all_who_wait_are_answered_soon_when_redis_is_away(own_server: RedisServer) -> None:
    async def run() -> float:
        async with worker(own_server.url, append_timeout_ms=300, redis_timeout_ms=150) as one:
            await one.create("m", late_labels={})
            live_model = await one.open("m")

            async def ask(number: int) -> None:
                await live_model.delayed.keep(
                    [Question({"a": 1.0}, f"p{number}")], ['{"a":1}'], [True]
                )

            await ask(0)
            own_server.kill()
            began_s = time.monotonic()
            found = await asyncio.gather(*map(ask, range(1, CALLERS + 1)), return_exceptions=True)
            assert {type(error) for error in found} == {Unavailable}
            return time.monotonic() - began_s

    # by turns it would be 0.3 s for each; a machine may stand still for a while
    assert asyncio.run(run()) < 0.3 * CALLERS / 3


@pytest.mark.parametrize("callers", [1, 2, 16, 17])
def test_callers_that_come_back_go_in_two_requests(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch, callers: int
) -> None:
    sizes: list[int] = []
    send = pending_predictions.PendingPredictions._send

    def counted(self: pending_predictions.PendingPredictions, taken: Sequence[Any]) -> None:
        sizes.append(len(taken))
        send(self, taken)

    monkeypatch.setattr(pending_predictions.PendingPredictions, "_send", counted)

    async def run() -> int | None:
        async with worker(server.url) as one:
            name = f"together{callers}"
            await one.create(name, late_labels={})
            live_model = await one.open(name)

            async def caller(number: int) -> None:
                for turn in range(TIMES):
                    question = Question({"a": 1.0}, f"p{number}-{turn}")
                    await live_model.delayed.keep([question], ['{"a":1}'], [True])

            await asyncio.gather(*map(caller, range(callers)))
            return (await pending_predictions.counts(one.connection, live_model.keys.on) or {}).get(
                "waiting"
            )

    assert asyncio.run(run()) == callers * TIMES == sum(sizes)
    assert max(sizes) <= callers
    assert len(sizes) <= 2 * TIMES + callers
