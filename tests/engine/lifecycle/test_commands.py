"""Commands through lost replies and restarts, among events of other workers: one order for all."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, TypeVar

import pytest
import redis

from hinged_service.errors import Unavailable
from tests.engine.lifecycle.plain_model import SCALED, fold_log, live
from tests.support.engine import Worker, event
from tests.support.plain_fold import model_uid
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

T = TypeVar("T")

ROUNDS = 120


@pytest.fixture
def proxies(shared_server: RedisServer) -> Iterator[list[Proxy]]:
    made = [Proxy(shared_server.port) for _ in range(2)]
    for proxy in made:
        proxy.start()
    yield made
    for proxy in made:
        proxy.stop()


class Sent:
    """The commands that were sent, to compare with the log."""

    def __init__(self) -> None:
        self.events = 0
        self.commands: list[dict[str, Any]] = []
        self.checkpoints: dict[str, str] = {}


async def _act(one: Worker, chance: random.Random, sent: Sent) -> None:
    match chance.choice(["learn"] * 5 + ["configure", "freeze", "unfreeze", "reset", "restore"]):
        case "learn":
            count = chance.randint(1, 6)
            first, sent.events = sent.events, sent.events + count
            events = [event(n) for n in range(first, first + count)]
            await _again(lambda: one.learn("m", *events))
        case "configure":
            rate = chance.choice([0.25, 0.7, 1.5])
            await _command(one, sent, do="configure", set={"learning_rate": rate})
        case "restore":
            if len(sent.checkpoints) < 3:
                made = await (await _again(lambda: one.read("m"))).checkpoints.make(None)
                assert made.position is not None
                sent.checkpoints[made.uid] = made.position.partition(".")[0]
            else:
                uid = chance.choice(list(sent.checkpoints))
                await _command(one, sent, do="restore", checkpoint=uid)
        case what:
            await _command(one, sent, do=what)


async def _command(one: Worker, sent: Sent, **command: Any) -> None:
    sent.commands.append(command)
    await (await _again(lambda: one.read("m"))).commands.append(command)


async def _save(one: Worker) -> None:
    await (await _again(lambda: one.registry.open("m"))).save()


async def _again(call: Callable[[], Awaitable[T]]) -> T:
    """Do it again while replies are lost, as a client that is told 503 does."""
    while True:
        try:
            return await call()
        except Unavailable as error:
            if type(error) is not Unavailable:
                raise


@pytest.mark.parametrize("seed", range(3))
async def test_commands_among_events_of_two_workers_with_lost_replies_and_restarts(
    redis_url: str, db: redis.Redis, proxies: list[Proxy], seed: int
) -> None:
    chance = random.Random(seed)
    sent = Sent()

    workers = [_worker(proxy) for proxy in proxies]
    await workers[0].create("m", **SCALED)
    await workers[0].create("other", stream="m", **SCALED)
    for turn in range(ROUNDS):
        n = chance.randrange(2)
        if chance.random() < 0.2:
            proxies[n].drop_replies = chance.randint(1, 2)
        if chance.random() < 0.3:  # both at a time
            await asyncio.gather(*(_act(one, chance, sent) for one in workers))
        else:
            await _act(workers[n], chance, sent)
        if chance.random() < 0.1:
            await _save(workers[1 - n])
        if turn % 40 == 25:
            proxies[n].drop_replies = 0
            await (workers[n].kill() if turn % 80 == 25 else workers[n].stop())
            workers[n] = _worker(proxies[n])
    for proxy in proxies:
        proxy.drop_replies = 0
    cold = _worker(proxies[0])
    uid = model_uid(db, "m")
    log: Any = db.xrange("hinged:{m}:log")
    plain = fold_log(db, "m", uid, sent.checkpoints).state()
    other = fold_log(db, "m", model_uid(db, "other")).state()
    for who in (*workers, cold):
        assert live(await who.read("m")) == plain
        assert live(await who.read("other")) == other
        await who.kill()
    logged = [json.loads(fields["command"]) for _, fields in log if "command" in fields]
    assert all(command.pop("model") == uid for command in logged)
    assert _sorted(logged) == _sorted(sent.commands)
    ids = [e["id"] for _, f in log if "events" in f for e in _counted(f)]
    assert sorted(ids) == sorted(f"e{n}" for n in range(sent.events))
    assert sum(proxy.dropped for proxy in proxies) > 10


def _worker(proxy: Proxy) -> Worker:
    return Worker(proxy.url, append_timeout_ms=5_000)


def _counted(fields: dict[str, str]) -> list[dict[str, Any]]:
    skip = set(json.loads(fields["skip"]))
    return [e for n, e in enumerate(json.loads(fields["events"])) if n not in skip]


def _sorted(commands: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(command, sort_keys=True) for command in commands)
