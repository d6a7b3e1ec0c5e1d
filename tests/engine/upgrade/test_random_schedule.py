"""Two versions on one Redis, everything at random: the folding, the handing over, the kills."""

import random
from collections.abc import Awaitable
from functools import partial

import pytest

from hinged_service.engine import registry
from hinged_service.engine.live_model import AppendResult
from hinged_service.errors import ServiceError, SetAside
from tests.engine.upgrade.versions import NEW, OLD, Plain, Versioned
from tests.support.engine import Event, event, stored_state, until
from tests.support.fleet.faults import Fault, Faults, beside
from tests.support.fleet.senders import LocalSenders, in_bodies
from tests.support.plain_fold import model_uid
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.usefixtures("versions")

MODELS = ("m", "challenger")
EVENTS = 250


class Schedule(LocalSenders[Versioned]):
    """One run; what it decides comes from `seed`, timing apart."""

    def __init__(self, server: RedisServer, proxy: Proxy, seed: int) -> None:
        self.random = random.Random(seed)
        self._server = server
        self._proxy = proxy
        first = [self.new_worker(version) for version in (OLD, NEW, OLD, NEW)]
        super().__init__(first, self._learn, may_refuse=True)

    def new_worker(self, version: str) -> Versioned:
        """Return a new worker."""
        return Versioned(
            version,
            self._proxy.url,
            append_timeout_ms=2_000,
            snapshot_every_events=self.random.choice((3, 20, 1_000)),
            reply_bytes=self.random.choice((1024, 2**22)),
            hold_ms=200,
        )

    def _learn(
        self, rng: random.Random, one: Versioned, events: list[Event]
    ) -> Awaitable[AppendResult]:
        return one.learn(rng.choice(MODELS), *events)

    async def all(self) -> None:
        """Have all events learned while versions take over, save and die."""
        await self.workers[0].create("m")
        await self.workers[0].create("challenger", stream="m")
        faults = Faults(self.random, self._server, [self._proxy])
        steps: list[Fault] = [
            *[partial(self._tried, self._upgrade)] * 30,
            *[partial(self._tried, self._save)] * 22,
            *[self._kill] * 9,
            *[beside(faults.lose_answers, 1, 1)] * 8,
        ]
        self.random.shuffle(steps)
        events = [event(number) for number in range(EVENTS)]
        await self.run(in_bodies(self.random, events, (1, 1, 1, 2)), steps, clients=2)
        faults.calm()

    async def _tried(self, step: Fault) -> None:
        try:
            await step()
        except SetAside as error:
            self.refused.append(error.detail)
        except ServiceError:
            pass  # an answer was lost

    async def _upgrade(self) -> None:
        await self.random.choice(self.workers).upgrade(self.random.choice(MODELS))

    async def _save(self) -> None:
        await self.random.choice(self.workers).save(self.random.choice(MODELS))

    async def _kill(self) -> None:
        number = self.random.randrange(len(self.workers))
        await self.replace(number, self.new_worker(self.random.choice((OLD, NEW))))


@pytest.mark.parametrize("seed", range(4))
async def test_each_event_counts_once_and_all_workers_agree(
    redis_url: str,
    shared_server: RedisServer,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    monkeypatch.setattr(registry, "_ASIDE_S", 0.0)
    schedule = Schedule(shared_server, proxy, seed)
    try:
        await schedule.all()
        for name in MODELS:
            last = schedule.new_worker(schedule.random.choice((OLD, NEW)))
            await _check(schedule, last, shared_server, name)
    finally:
        await schedule.stop()


async def _check(schedule: Schedule, last: Versioned, server: RedisServer, name: str) -> None:
    schedule.dead.append(last)
    await last.upgrade(name)
    state = await last.state(name)
    await last.save_for_sure(name)
    with server.client() as client:
        plain = Plain(client, name, OLD)
        assert state == plain.state() == stored_state(client, "m", model_uid(client, name))
    assert len(plain.counted) == len(set(plain.counted)), "counted twice"
    assert schedule.acknowledged.keys() == set(plain.counted), "acknowledged and lost"
    assert max(map(len, schedule.counted.values())) == 1, "told twice what it did"
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
