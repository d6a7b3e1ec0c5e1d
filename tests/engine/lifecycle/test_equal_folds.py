"""Restore, replay, challenger and import each end at the state of a plain fold, bit for bit."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import redis

from hinged_service.engine import export
from hinged_service.model.inspection import weights_of
from hinged_service.model.start import Exclude
from tests.engine.lifecycle.plain_model import SCALED, Plain, fold_log, live
from tests.support.engine import Worker, event, worker
from tests.support.plain_fold import model_uid
from tests.support.redis_server import RedisServer


async def _learn(one: Worker, *numbers: int) -> None:
    await one.learn("m", *(event(n) for n in numbers))


async def _command(one: Worker, **command: Any) -> str:
    return (await (await one.read("m")).commands.append(command)).id


async def _checkpoint(one: Worker, name: str | None = None) -> tuple[str, str]:
    made = await (await one.read("m")).checkpoints.make(name)
    assert made.position is not None
    return made.uid, made.position.partition(".")[0]


async def test_commands_and_restores_are_the_plain_fold_on_every_worker(
    redis_url: str, one: Worker, two: Worker, db: redis.Redis
) -> None:
    await one.create("m", **SCALED)
    await one.create("other", stream="m", **SCALED)
    kept: dict[str, str] = {}
    for turn, both in enumerate(((one, two), (two, one), (one, two))):
        first, second = both
        start = 1_000 * turn
        await _learn(first, *range(start, start + 30))
        uid, place = await _checkpoint(second, f"c{turn}")
        kept[uid] = place
        await _command(second, do="configure", set={"learning_rate": 0.1 * (turn + 1)})
        await _learn(first, *range(start + 30, start + 50))
        await _command(first, do="freeze")
        await _learn(second, *range(start + 50, start + 60))
        await _command(second, do="unfreeze")
        if turn == 1:
            await _command(first, do="reset")
        await _learn(first, *range(start + 60, start + 70))
        await first.save("m")
        await _command(second, do="restore", checkpoint=next(iter(kept)))
        await _learn(second, *range(start + 70, start + 90))
        await second.save("m")
    plain = fold_log(db, "m", model_uid(db, "m"), kept).state()
    other = fold_log(db, "m", model_uid(db, "other")).state()
    async with worker(redis_url) as cold:
        for who in (one, two, cold):
            assert live(await who.read("m")) == plain
            assert live(await who.read("other")) == other


async def test_challengers_and_replays_are_the_plain_fold_from_their_base(
    one: Worker, two: Worker, db: redis.Redis
) -> None:
    await one.create("m", **SCALED)
    for n in range(40):
        await _learn(one if n % 3 else two, 2 * n, 2 * n + 1)
    _, place = await _checkpoint(one, "forty")
    places = [place]
    for n in range(100, 120):
        learned = await two.learn("m", event(n), event(n + 100))
        places.append(learned.position.id)
    await one.create("copy", start={"model": "m"}, **SCALED)
    await two.create("of-forty", start={"model": "m", "checkpoint": "forty"}, **SCALED)
    await one.create("log", stream="m", start="log", **SCALED)
    source = await one.read("m")
    ids = ["e3", "e110"]
    left = {"ids": ids, "entries": [places[3], {"first": places[5], "last": places[7]}]}
    exclude = Exclude.model_validate_json(json.dumps(left))
    await one.lifecycle.replay(source, "without", None, exclude, None)
    await one.lifecycle.replay(source, "without-since", "forty", exclude, None)
    await _learn(two, *range(300, 330))

    def leaves(entry_id: str, one_event: Any) -> bool:
        gone = {places[3], *places[5:8]}
        return entry_id in gone or one_event["id"] in ids

    everything = fold_log(db, "m", "-").state()
    without = fold_log(db, "m", "-", leaves=leaves).state()
    at_forty = Plain()
    since = fold_log(
        db,
        "m",
        "-",
        leaves=lambda entry_id, e: _after(entry_id, place) and leaves(entry_id, e),
        model=at_forty,
    ).state()
    for who in (one, two):
        for name in ("m", "copy", "of-forty", "log"):
            assert live(await who.read(name)) == everything, name
        assert live(await who.read("without")) == without
        assert live(await who.read("without-since")) == since
        assert (await who.read("without")).state.excluded == 2 + 2 * 4


def _after(entry_id: str, place: str) -> bool:
    def order(text: str) -> list[int]:
        return [int(part) for part in text.split("-")]

    return order(entry_id) > order(place)


def test_an_imported_model_goes_on_as_the_exported_one(
    redis_url: str, shared_server: RedisServer, tmp_path: Path
) -> None:
    async def run(other_url: str) -> None:
        async with worker(redis_url) as one, worker(other_url) as far:
            await one.create("m", **SCALED)
            await _learn(one, *range(60))
            live_model = await one.read("m")
            made = await live_model.checkpoints.make("then")
            await _learn(one, *range(60, 70))
            body = b"".join(export.exported(made, await live_model.checkpoints.read(made)))
            await far.lifecycle.create_imported("m", export.imported(body))
            plain = Plain()
            for n in range(60):
                plain.learn(event(n))
            assert live(await far.read("m")) == plain.state()
            for n in (*range(200, 220), 5):
                plain.learn(event(n))
                await far.learn("m", event(n))
            assert live(await far.read("m")) == plain.state()
            await far.save("m")
            async with worker(other_url) as cold:
                assert live(await cold.read("m")) == plain.state()

    other = RedisServer(tmp_path / "other")
    other.start()
    try:
        asyncio.run(run(other.url))
    finally:
        other.kill()


MULTICLASS = (
    {"type": "multiclass_perceptron"},
    {"type": "multiclass_averaged_perceptron"},
    {"type": "multiclass_arow"},
)


@pytest.mark.parametrize("learner", MULTICLASS, ids=lambda learner: str(learner["type"]))
async def test_a_reset_multiclass_model_leaves_no_old_weights_in_redis(
    redis_url: str, learner: dict[str, Any]
) -> None:
    """After a reset it knows no class, so that no vector is written; the old ones must go."""
    async with worker(redis_url, retention_bytes=0) as one:
        await one.create("m", learner=learner)
        await one.create("fresh", learner=learner)
        for n, y in enumerate("abcabcba"):
            await one.learn("m", event(n, y=y))
        await one.save("m")
        await _command(one, do="reset")
        await one.save("m")
        for n, y in enumerate("cacb"):
            await one.learn("m", event(20 + n, y=y))
            await one.learn("fresh", event(20 + n, y=y))
            await one.save("m")
        async with worker(redis_url) as cold:
            reset = weights_of((await cold.read("m")).state, None)
            assert reset == weights_of((await one.read("fresh")).state, None)
