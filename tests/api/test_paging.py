"""Replies of bounded size: what does not fit comes in pages, each entry once."""

from typing import Any

import pytest
import redis

from hinged import Outcome
from tests.support.engine import Event, Script, connected, event, fold_of, worker


@pytest.mark.parametrize("appends", [1, 2, 7, 100])
async def test_a_worker_that_gets_small_replies_loses_and_doubles_nothing(
    redis_url: str, db: redis.Redis, appends: int
) -> None:
    """Its own entry comes last, with its outcome, whether it is paged or not."""
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
            assert await slow.state("m") == fold_of(db)
            first, _, last = learned.outcomes
            assert isinstance(first, Outcome)
            assert isinstance(last, Outcome)
            # what it was told is what the fold did at that place
            before = fold_of(db, upto=_before(db, learned.position.id))
            assert fold_of(db)["mistakes"] == (before["mistakes"] + first.mistake + last.mistake)


def _before(client: Any, entry_id: str) -> str:
    found: Any = client.xrevrange("hinged:{m}:log", f"({entry_id}", count=1)
    before: str = found[0][0]
    return before


async def test_duplicates_alone_are_answered_at_a_place_that_the_replica_has_reached(
    redis_url: str,
) -> None:
    async with worker(redis_url) as fast, worker(redis_url, reply_bytes=1024) as slow:
        await fast.create("m")
        await slow.open("m")
        for n in range(60):
            await fast.learn("m", event(n))
        learned = await slow.learn("m", event(3), event(59))
        assert learned.outcomes == [None, None]
        assert (await slow.registry.open("m")).position == learned.position


async def test_pages_are_bounded_also_after_many_small_entries(redis_url: str) -> None:
    """A long row of small entries must not make the next reply swallow as many large ones."""
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
            page = await script.log.catch_up(position, limit)
            largest = max(largest, sum(len(e.payload or b"") for e in page.entries))
            assert page.entries, "every page makes progress"
            seen += len(page.entries)
            position = page.entries[-1].position
            if not page.more:
                break
        assert seen == 400
        assert position == script.end
        assert largest < limit + 16 * 80_000


async def test_a_long_way_back_is_folded_in_pages_by_a_cold_worker(
    redis_url: str, db: redis.Redis
) -> None:
    async with worker(redis_url) as fast:
        await fast.create("m")
        for n in range(300):
            await fast.learn("m", event(n), event(n + 1000))
    async with worker(redis_url, reply_bytes=1024, snapshot_every_events=50) as cold:
        assert await cold.state("m") == fold_of(db)
        await cold.save("m")
