"""Replies of bounded size: what does not fit comes in pages, each entry once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hinged import Outcome
from hinged_service.store import log
from tests.support.engine import Event, Script, connected, event, fold_of, worker
from tests.support.redis_server import RedisServer


@pytest.mark.parametrize("appends", [1, 2, 7, 100])
def test_a_worker_that_gets_small_replies_loses_and_doubles_nothing(
    redis_url: str, shared_server: RedisServer, appends: int
) -> None:
    """Its own entry comes last, with its outcome, whether it is paged or not."""

    async def run() -> None:
        async with worker(redis_url) as fast, worker(redis_url, reply_bytes=1024) as slow:
            await fast.create("m")
            await slow.learn("m", event(10**6))
            number = 0
            for turn in range(6):
                for _ in range(appends):
                    number += 1
                    await fast.learn("m", event(number))
                mine = [event(10**6 + 2 * turn + 1), event(number), event(10**6 + 2 * turn + 2)]
                learned = await slow.learn("m", *mine)
                assert [outcome is None for outcome in learned.outcomes] == [False, True, False]
                with shared_server.client() as client:
                    assert await slow.state("m") == fold_of(client)
                    first, _, last = learned.outcomes
                    assert isinstance(first, Outcome)
                    assert isinstance(last, Outcome)
                    # what it was told is what the fold did at that place
                    before = fold_of(client, upto=_before(client, learned.position.id))
                    assert fold_of(client)["mistakes"] == (
                        before["mistakes"] + first.mistake + last.mistake
                    )

    asyncio.run(run())


def _before(client: Any, entry_id: str) -> str:
    found: Any = client.xrevrange("hinged:{m}:log", f"({entry_id}", count=1)
    before: str = found[0][0]
    return before


def test_duplicates_alone_are_answered_at_a_place_that_the_replica_has_reached(
    redis_url: str,
) -> None:
    async def run() -> None:
        async with worker(redis_url) as fast, worker(redis_url, reply_bytes=1024) as slow:
            await fast.create("m")
            await slow.open("m")
            for n in range(60):
                await fast.learn("m", event(n))
            learned = await slow.learn("m", event(3), event(59))
            assert learned.outcomes == [None, None]
            assert (await slow.registry.open("m")).position == learned.position

    asyncio.run(run())


def test_pages_are_bounded_also_after_many_small_entries(redis_url: str) -> None:
    """A long row of small entries must not make the next reply swallow as many large ones."""

    async def run() -> None:
        async with connected(redis_url) as connection:
            script = Script(connection)
            start = await script.register()
            number = 0

            async def put(event_: Event) -> None:
                nonlocal number
                number += 1
                await script.append([event_], sequence=number)

            for n in range(300):
                await put(event(n))
            large = {f"n{i}": 1.0 for i in range(6_000)}
            for n in range(100):
                await put({"x": large, "y": n})
            limit, largest, position, seen = 100_000, 0, start, 0
            while True:
                page = await log.catch_up(connection, script.keys, "m", position, limit)
                largest = max(largest, sum(len(e.payload or b"") for e in page.entries))
                assert page.entries, "every page makes progress"
                seen += len(page.entries)
                position = page.entries[-1].position
                if not page.more:
                    break
            assert seen == 400
            assert position == script.end
            assert largest < limit + 16 * 80_000

    asyncio.run(run())


def test_a_long_way_back_is_folded_in_pages_by_a_cold_worker(
    redis_url: str, shared_server: RedisServer
) -> None:
    async def run() -> None:
        async with worker(redis_url) as fast:
            await fast.create("m")
            for n in range(300):
                await fast.learn("m", event(n), event(n + 1000))
        async with worker(redis_url, reply_bytes=1024, snapshot_every_events=50) as cold:
            with shared_server.client() as client:
                assert await cold.state("m") == fold_of(client)
                await cold.save("m")

    asyncio.run(run())
