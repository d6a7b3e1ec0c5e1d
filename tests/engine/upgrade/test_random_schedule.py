"""Two versions on one Redis, everything at random: who folds, who is handed over, who dies."""

import asyncio
import random
from typing import Any

import pytest

from hinged_service.engine import registry
from hinged_service.errors import ServiceError, SetAside
from tests.engine.upgrade.versions import NEW, OLD, Plain, Versioned
from tests.support.engine import Event, event, stored_state, until
from tests.support.plain_fold import model_uid
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.usefixtures("versions")

MODELS = ("m", "challenger")
TURNS = 150


class Schedule:
    """One run; what it decides comes from `seed`, timing apart."""

    def __init__(self, url: str, seed: int) -> None:
        self.random = random.Random(seed)
        self._url = url
        self.workers = [self.worker(version) for version in (OLD, NEW, OLD, NEW)]
        self.dead: list[Versioned] = []
        self.acknowledged: set[str] = set()
        self.sent: set[str] = set()
        self.refused: list[str] = []

    def worker(self, version: str) -> Versioned:
        return Versioned(
            version,
            self._url,
            append_timeout_ms=2_000,
            snapshot_every_events=self.random.choice((3, 20, 1_000)),
            reply_bytes=self.random.choice((1024, 2**22)),
            hold_ms=200,
        )

    async def turn(self, number: int) -> None:
        """Let some events be learned, and perhaps something else happen beside it."""
        steps: list[Any] = [self._learn(number)]
        if self.random.random() < 0.3:
            steps.append(self._learn(number + 10**6))
        match self.random.choices(
            ["nothing", "upgrade", "save", "kill", "sleep"], [55, 20, 15, 6, 4]
        )[0]:
            case "upgrade":
                steps.append(self._any().upgrade(self.random.choice(MODELS)))
            case "save":
                steps.append(self._any().save(self.random.choice(MODELS)))
            case "kill":
                steps.append(self._kill(self.random.randrange(len(self.workers))))
        await asyncio.gather(*(self._tried(step) for step in steps))

    def _any(self) -> Versioned:
        return self.random.choice(self.workers)

    async def _tried(self, step: Any) -> None:
        try:
            await step
        except SetAside as error:
            self.refused.append(error.detail)
        except (ServiceError, asyncio.CancelledError):
            pass  # an answer was lost, or the worker died

    async def _learn(self, number: int) -> None:
        events: list[Event] = [event(number)]
        if self.random.random() < 0.2 and self.sent:  # one that was sent before
            events.append(event(int(self.random.choice(sorted(self.sent))[1:])))
        ids = {e["id"] for e in events}
        if len(ids) < len(events):
            events = events[:1]
        self.sent |= ids
        await self._any().learn(self.random.choice(MODELS), *events)
        self.acknowledged |= ids

    async def _kill(self, number: int) -> None:
        old = self.workers[number]
        self.workers[number] = self.worker(self.random.choice((OLD, NEW)))
        self.dead.append(old)
        await old.kill()

    async def stop(self) -> None:
        for one in (*self.workers, *self.dead):
            await one.kill()


@pytest.mark.parametrize("seed", range(4))
async def test_whoever_folds_each_event_counts_once_and_all_agree(
    redis_url: str,
    shared_server: RedisServer,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    monkeypatch.setattr(registry, "_ASIDE_S", 0.0)

    async def _all_turns(schedule: Schedule) -> None:
        await schedule.workers[0].create("m")
        await schedule.workers[0].create("challenger", stream="m")
        for number in range(TURNS):
            if schedule.random.random() < 0.05:
                proxy.drop_replies += 1
            await schedule.turn(number)

    schedule = Schedule(proxy.url, seed)
    try:
        await _all_turns(schedule)
        proxy.drop_replies = 0
        for name in MODELS:
            last = schedule.worker(schedule.random.choice((OLD, NEW)))
            await _check(schedule, last, shared_server, name)
    finally:
        await schedule.stop()


async def _check(schedule: Schedule, last: Versioned, server: RedisServer, name: str) -> None:
    schedule.dead.append(last)
    await last.upgrade(name)
    state = await last.state(name)
    await last.save(name)
    with server.client() as client:
        plain = Plain(client, name, OLD)
        assert state == plain.state() == stored_state(client, "m", model_uid(client, name))
    assert len(plain.counted) == len(set(plain.counted)), "counted twice"
    assert schedule.acknowledged <= set(plain.counted), "acknowledged and lost"
    assert plain.upgrades > 1
    assert schedule.refused
    assert all("is folded by" in why for why in schedule.refused), "set aside for good"
    for one in schedule.workers:
        if one.version == last.version:

            async def reads(one: Versioned = one) -> bool:
                await one.read(name)
                return True

            await until(reads, 30)
            assert await one.state(name) == plain.state()
