"""An event id counts once, for any number of senders, attempts and workers."""

import asyncio
import contextlib
import functools
import json
import time
from typing import Any

import pytest
import redis

from hinged import Outcome
from hinged_service.errors import Conflict, ServiceError
from tests.support.engine import (
    Event,
    Script,
    Worker,
    connected,
    event,
    fold_of,
    stored_state,
    until,
    worker,
)
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer


async def test_white_space_and_order_of_keys_do_not_make_another_event(one: Worker) -> None:
    await one.create("m")
    first = await one.learn("m", raw=b'{"x":{"a":1,"b":2.50},"y":true,"id":"e"}')
    assert first.outcomes[0] is not None
    for same in (
        b' {"id" : "e",\n"y":true, "x":{"b":2.5,  "a":1.0}, "w": 1} ',
        b'{"id":"\\u0065","x":{"a":1e0,"b":25e-1},"y":true}',
    ):
        assert (await one.learn("m", raw=same)).outcomes == [None]
    for other in (
        b'{"x":{"a":1,"b":2.5},"y":false,"id":"e"}',
        b'{"x":{"a":1,"b":2.5000001},"y":true,"id":"e"}',
        b'{"x":{"a":1,"b":2.5,"c":0},"y":true,"id":"e"}',
        b'{"x":{"a":1,"b":2.5},"y":true,"id":"e","w":2}',
    ):
        with pytest.raises(Conflict):
            await one.learn("m", raw=other)
    state = await one.state("m")
    assert (state["events"], state["weights"]) == (1, {"a": (1.0).hex(), "b": (2.5).hex()})


@pytest.mark.parametrize(("first", "again", "other"), [("true", "1", "0"), ("0", "false", "1")])
@pytest.mark.parametrize("weight", ["", ',"w":2.5'])
async def test_a_label_may_be_written_as_truth_value_and_as_number(
    one: Worker, first: str, again: str, other: str, weight: str
) -> None:
    await one.create("m")

    def text(y: str, name: str = "e") -> bytes:
        return f'{{"x":{{"a":1}},"y":{y},"id":"{name}"{weight}}}'.encode()

    await one.learn("m", raw=text(first))
    for y in (again, first):
        assert (await one.learn("m", raw=text(y))).outcomes == [None]
        label = f'{{"y":{y},"id":"e"{weight}}}'.encode()
        assert (await one.learn("m", raw=label)).outcomes == [None]
    with pytest.raises(Conflict):
        await one.learn("m", raw=text(other))
    both = b"[" + text(first, "f") + b"," + text(again, "f") + b"]"
    assert (await one.learn("m", raw=both)).outcomes[1] is None
    assert (await one.state("m"))["events"] == 2


async def test_fifty_copies_at_once_over_four_workers_count_once(redis_url: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(worker(redis_url)) for _ in range(4)]
        await workers[0].create("m")
        copy = {"x": {"a": 1}, "y": True, "id": "one"}
        answers = await asyncio.gather(*(workers[i % 4].learn("m", copy) for i in range(50)))
        assert sum(answer.outcomes != [None] for answer in answers) == 1
        for one in workers:
            state = await one.state("m")
            assert (state["events"], state["hinge_loss"]) == (1, (1.0).hex())
            assert (state["weights"], state["intercept"]) == ({"a": (1.0).hex()}, (1.0).hex())


async def test_four_workers_lose_no_update(redis_url: str, db: redis.Redis) -> None:
    """2,000 events, 500 at each of four workers, all at once and small snapshots between."""
    async with contextlib.AsyncExitStack() as stack:
        workers = [
            await stack.enter_async_context(
                worker(redis_url, snapshot_every_events=50, housekeeping_ms=10)
            )
            for _ in range(4)
        ]
        await workers[0].create("m")

        async def client(one: Worker, first: int) -> int:
            mistakes = 0
            for start in range(first, first + 500, 25):
                many = [
                    one.learn("m", event(n), event(n + 1))
                    for n in range(start, start + 25, 2)
                    if n + 1 < first + 500
                ]
                for answer in await asyncio.gather(*many):
                    mistakes += sum(o.mistake for o in answer.outcomes if isinstance(o, Outcome))
            return mistakes

        wrong = await asyncio.gather(*(client(w, 500 * i) for i, w in enumerate(workers)))
        plain = fold_of(db)
        for one in workers:
            assert await one.state("m") == plain
        await workers[0].save("m")
        assert stored_state(db) == plain
        assert plain["mistakes"] == sum(wrong)
        assert plain["events"] == len({n for i in range(4) for n in _sent(500 * i)})


def _sent(first: int) -> set[int]:
    return {
        n + k
        for start in range(first, first + 500, 25)
        for n in range(start, start + 25, 2)
        for k in (0, 1)
        if n + 1 < first + 500
    }


def test_lost_replies_double_nothing_and_tell_the_outcome_all_the_same(
    redis_url: str, shared_server: RedisServer
) -> None:
    proxy = Proxy(shared_server.port)
    proxy.start()

    async def run() -> None:
        async with worker(proxy.url) as one:
            await one.create("m")
            await one.learn("m", event(0))
            for n in range(1, 30):
                proxy.drop_replies = n % 3
                learned = await one.learn("m", event(n, id=None))
                assert learned.outcomes[0] is not None
            assert proxy.dropped >= 29
            proxy.drop_replies = 0
            with shared_server.client() as client:
                plain = fold_of(client)
            assert plain["events"] == 30
            assert await one.state("m") == plain

    try:
        asyncio.run(run())
    finally:
        proxy.stop()


async def _is_duplicate(one: Worker, *events: Event) -> bool:
    return set((await one.learn("m", *events)).outcomes) == {None}


async def test_a_caller_who_is_told_503_may_send_the_same_again_anywhere(
    redis_url: str, proxy: Proxy
) -> None:
    async with worker(proxy.url, append_timeout_ms=500) as one, worker(redis_url) as two:
        await two.create("m")
        await two.learn("m", event(0))
        await one.read("m")
        proxy.drop_replies = 10**6
        with pytest.raises(ServiceError):
            await one.learn("m", event(1))
        proxy.drop_replies = 0
        assert (await two.learn("m", event(1))).outcomes == [None]
        await until(functools.partial(_is_duplicate, one, event(1)))
        assert (await two.state("m"))["events"] == 2


async def test_one_callers_conflict_reaches_that_caller_alone(one: Worker) -> None:
    """All four wait for one append that is under way and so go out as one batch."""
    await one.create("m")
    await one.learn("m", event(0))
    answers: Any = await asyncio.gather(
        one.learn("m", event(99)),
        one.learn("m", event(1), event(0, y="other")),
        one.learn("m", event(1), event(2)),
        one.learn("m", event(2), event(0)),
        return_exceptions=True,
    )
    assert isinstance(answers[1], Conflict)
    assert answers[1].errors[0].field == "[1].id"
    assert [o is None for o in answers[2].outcomes] == [False, False]
    assert [o is None for o in answers[3].outcomes] == [True, True]
    assert (await one.state("m"))["events"] == 4


async def test_a_generation_of_ids_is_forgotten_only_after_as_many_again(
    redis_url: str, shared_server: RedisServer
) -> None:
    """Ten to remember: the last ten ids are known, and never more than twenty."""
    async with connected(redis_url) as connection:
        script = Script(connection)
        await script.register(seen_ids=10)
        sequence = iter(range(1, 10**6))
        for n in range(100):
            assert (await script.append([event(n)], sequence=next(sequence))).appended
            for back in range(min(n, 9) + 1):
                reply = await script.append([event(n - back)], sequence=next(sequence))
                assert not reply.appended, (n, back)
        assert (await script.append([event(0)], sequence=next(sequence))).appended
        with shared_server.client() as client:
            kept = [client.hlen(key) for key in script.keys.seen]
        assert sum(kept) <= 20


async def test_a_generation_of_ids_is_forgotten_only_after_its_time(redis_url: str) -> None:
    async with connected(redis_url) as connection:
        script = Script(connection)
        await script.register(seen_ms=300)
        sequence = iter(range(1, 10**6))
        sent_at_s = time.monotonic()
        assert (await script.append([event(0)], sequence=next(sequence))).appended
        filler = 1_000
        while True:
            began_s = time.monotonic()
            again = await script.append([event(0)], sequence=next(sequence))
            if again.appended:
                break
            await script.append([event(filler)], sequence=next(sequence))
            filler += 1
            await asyncio.sleep(0.01)
            assert time.monotonic() - sent_at_s < 10, "the id is never forgotten"
        assert time.monotonic() - sent_at_s >= 0.3, "within the window"
        assert began_s - sent_at_s < 3


async def test_an_array_that_straddles_a_turn_of_generations_counts_once(redis_url: str) -> None:
    async with worker(redis_url, seen_ids=10) as one:
        await one.create("m")
        for start in range(0, 60, 7):
            batch = [event(n) for n in range(start, start + 7)]
            await one.learn("m", *batch)
            assert (await one.learn("m", *batch)).outcomes == [None] * 7
        assert (await one.state("m"))["events"] == 63


async def test_the_log_holds_the_sent_events(redis_url: str, db: redis.Redis) -> None:
    """Digits, order of keys and white space arrive in the log untouched."""
    sent = b'[ {"x":{"b":0.1000000000000000055511151231257827, "a":1E+2},"y":1 } ]'

    async with worker(redis_url) as one:
        await one.create("m")
        await one.learn("m", raw=sent)
        entries: Any = db.xrange("hinged:{m}:log")
        assert entries[1][1]["events"] == sent.decode()
        assert json.loads(entries[1][1]["events"])[0]["x"]["b"] == 0.1
