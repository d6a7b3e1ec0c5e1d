"""Sources outside: offsets move with the batches, so nothing comes twice and nothing is lost."""

import asyncio
from typing import Any

import msgspec
import pytest
import redis

from hinged_service.engine.live_model import SourceAppendResult
from hinged_service.errors import Unavailable
from hinged_service.store.log_types import Span
from hinged_service.wire.events import Event
from tests.support.engine import Worker, fold_of, stored_state


def events_of(first: int, count: int, ids: bool = False) -> list[Event]:
    return [
        Event({"a": float(n), "b": 1.0}, n % 3 == 0, 1.0, f"e{n}" if ids else None)
        for n in range(first, first + count)
    ]


async def feed(one: Worker, events: list[Event], start: str, end: str) -> SourceAppendResult:
    payload = b",".join(map(msgspec.json.encode, events))
    live_model = await one.open("m")
    return await live_model.learn_each(events, payload, Span("file:x", start, end))


async def test_batches_follow_one_another_and_none_is_taken_twice(
    one: Worker, two: Worker, db: redis.Redis
) -> None:
    await one.create("m")
    first = await feed(one, events_of(0, 5), "", "5")
    assert first.offset == "5"
    assert first.learned is not None
    assert len(first.learned.outcomes) == 5
    again = await feed(two, events_of(0, 5), "", "5")  # a zombie, or after a lost reply
    assert again == SourceAppendResult("5", None)
    gap = await feed(two, events_of(7, 2), "7", "9")
    assert gap == SourceAppendResult("5", None)
    rest = await feed(two, events_of(5, 2), "5", "7")
    assert rest.offset == "7"
    assert (await feed(one, [], "7", "9")).offset == "9"  # nothing but bad records
    assert await (await one.open("m")).offset("file:x") == "9"
    assert await (await one.open("m")).offset("file:y") == ""
    assert (await one.read("m")).state.events == 7
    await one.save("m")
    assert stored_state(db) == fold_of(db)


async def test_an_id_known_before_is_left_out_and_one_of_other_content_is_told(one: Worker) -> None:
    await one.create("m")
    await feed(one, events_of(0, 3, ids=True), "", "3")
    other = Event({"a": 9.0}, True, 1.0, "e1")
    fed = await feed(one, [*events_of(2, 2, ids=True), other], "3", "6")
    assert fed.offset == "6"
    assert set(fed.errors) == {2}
    assert fed.learned is not None
    assert [r is None for r in fed.learned.outcomes] == [True, False, True]
    assert (await one.read("m")).state.events == 4


async def test_a_lost_reply_is_found_out(one: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    await one.create("m")
    await one.open("m")
    whole = one.connection.share
    lost = 0

    async def losing(script: Any, *args: Any, **more: Any) -> Any:
        nonlocal lost
        reply = await whole(script, *args, **more)
        if script.name == "append" and not lost:
            lost += 1
            raise Unavailable("The reply got lost.")
        return reply

    monkeypatch.setattr(one.connection, "share", losing)
    fed = await feed(one, events_of(0, 4), "", "4")
    assert lost == 1
    assert fed == SourceAppendResult("4", None)
    assert (await one.read("m")).state.events == 4


async def test_two_readers_of_one_source_share_it(one: Worker, two: Worker) -> None:
    await one.create("m")

    async def reader(of: Worker) -> int:
        offset, taken = "", 0
        while int(offset or 0) < 200:
            at = int(offset or 0)
            fed = await feed(of, events_of(at, 5), offset, str(at + 5))
            taken += fed.learned is not None
            offset = fed.offset
        return taken

    taken = await asyncio.gather(reader(one), reader(two))
    assert sum(taken) == 40
    assert (await one.read("m")).state.events == 200


async def test_refused_events_among_many_do_not_keep_out_the_others(one: Worker) -> None:
    """Many go to the script as one, and are taken apart if one of them is refused."""
    await one.create("m")
    await feed(one, events_of(0, 4, ids=True), "", "4")
    mixed = events_of(2, 300, ids=True) + events_of(10, 3, ids=True) + events_of(900, 2)
    mixed[1] = Event({"a": -1.0}, True, 1.0, "e3")  # another content than before
    mixed[250] = Event({"a": -2.0}, True, 1.0, "e20")  # than in the same batch
    fed = await feed(one, mixed, "4", "309")
    assert fed.offset == "309"
    assert set(fed.errors) == {1, 250}
    assert {index: error.status for index, error in fed.errors.items()} == {1: 409, 250: 409}
    assert fed.learned is not None
    left_out = [n for n, outcome in enumerate(fed.learned.outcomes) if outcome is None]
    assert left_out == [0, 1, 250, 300, 301, 302]
    assert (await one.read("m")).state.events == 4 + 305 - 6
