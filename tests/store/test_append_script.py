"""The append script: one batch, one entry, one answer, however often and late it is sent."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import redis

from hinged_service.errors import Unavailable
from hinged_service.store.log import EventLog
from hinged_service.wire.position import Position
from tests.support.engine import Script, connected, event, everything
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer


def on_stream(url: str, test: Callable[[Script], Awaitable[None]]) -> None:
    async def run() -> None:
        async with connected(url) as connection:
            script = Script(connection)
            await script.register()
            await test(script)

    asyncio.run(run())


def test_a_resent_batch_gets_its_first_answer_and_writes_nothing(
    redis_url: str, shared_server: RedisServer
) -> None:
    clash = event(1, y="other")

    async def test(script: Script) -> None:
        await script.append([event(1), event(2)], sequence=1)
        first = await script.append([event(2), event(3)], [clash, event(9)], [event(4)], sequence=2)
        with shared_server.client() as client:
            before = everything(client)
            again = await script.append(
                [event(2), event(3)], [clash, event(9)], [event(4)], sequence=2
            )
            assert everything(client) == before
        assert (first.kind, again.kind) == ("ok", "replay")
        assert again.position == first.position
        assert again.skip == first.skip == {0, 2, 3}
        assert again.refused == first.refused == {1: (0, 0)}

    on_stream(redis_url, test)


def test_a_batch_is_replayed_also_where_the_position_is_not_known_any_more(redis_url: str) -> None:
    async def test(script: Script) -> None:
        first = await script.append([event(1)], sequence=1)
        nowhere = Position("1-1", "0" * 40)
        again = await script.append([event(1)], sequence=1, position=nowhere)
        assert (again.kind, again.position) == ("replay", first.position)

    on_stream(redis_url, test)


def test_an_abandoned_batch_that_arrives_late_is_refused_and_learns_nothing(
    redis_url: str, shared_server: RedisServer
) -> None:
    async def test(script: Script) -> None:
        await script.append([event(1)], sequence=1)
        await script.append([event(3)], sequence=3)
        with shared_server.client() as client:
            before = everything(client)
            late = await script.append([event(2, id=None)], sequence=2)
            assert late.kind == "stale"
            assert everything(client) == before
        other = await script.append([event(2)], sequence=2, producer="q")
        assert other.kind == "ok"

    on_stream(redis_url, test)


def test_a_lost_reply_is_made_good_by_sending_the_batch_again(
    redis_url: str, proxy: Proxy, db: redis.Redis
) -> None:

    async def test(script: Script) -> None:
        await script.append([event(1)], sequence=1)
        proxy.drop_replies = 1
        with pytest.raises(Unavailable):
            await script.append([event(1), event(2)], sequence=2)
        assert proxy.dropped == 1
        again = await script.append([event(1), event(2)], sequence=2)
        assert again.kind == "replay"
        assert again.skip == {0}
        assert db.xlen(script.keys.log) == 3

    on_stream(proxy.url, test)


def test_one_callers_refused_array_neither_sinks_its_mates_nor_uses_up_their_ids(
    redis_url: str,
) -> None:
    async def test(script: Script) -> None:
        await script.append([event(1)], sequence=1)
        fresh, clash = event(2), event(1, y="other")
        reply = await script.append([fresh, clash], [fresh], [event(3)], sequence=2)
        assert reply.refused == {0: (1, 0)}
        assert reply.skip == {0, 1}
        again = await script.append([fresh], sequence=3)
        assert again.skip == {0}
        assert not again.appended

    on_stream(redis_url, test)


def test_an_id_of_a_refused_array_may_come_with_other_content_in_the_same_batch(
    redis_url: str,
) -> None:
    async def test(script: Script) -> None:
        await script.append([event(1)], sequence=1)
        mine, yours = event(2), event(2, y="other")
        reply = await script.append([mine, event(1, y="other")], [yours], [mine], sequence=2)
        assert reply.refused == {0: (1, 0), 2: (0, 0)}
        assert reply.skip == {0, 1, 3}

    on_stream(redis_url, test)


def test_duplicates_count_once_within_an_array_and_across_the_callers_of_a_batch(
    redis_url: str,
) -> None:
    async def test(script: Script) -> None:
        one, two = event(1), event(2)
        reply = await script.append([one, one, two], [two, one], [event(3)], sequence=1)
        assert reply.refused == {}
        assert reply.skip == {1, 3, 4}

    on_stream(redis_url, test)


def test_one_id_with_two_contents_in_one_array_is_refused(redis_url: str) -> None:
    async def test(script: Script) -> None:
        reply = await script.append([event(1), event(1, y="other")], [event(2)], sequence=1)
        assert reply.refused == {0: (1, 0)}
        assert reply.skip == {0, 1}
        assert (await script.append([event(1, y="other")], sequence=2)).skip == frozenset()

    on_stream(redis_url, test)


def test_long_arrays_are_checked_as_wholes(redis_url: str) -> None:
    """The script looks ids up in chunks of a thousand."""

    async def test(script: Script) -> None:
        many = [event(n) for n in range(2_500)]
        first = await script.append([*many, many[0], many[999], many[1_000]], sequence=1)
        assert first.skip == {2_500, 2_501, 2_502}
        more = [event(n) for n in range(2_400, 2_600)]
        assert (await script.append(more, sequence=2)).skip == set(range(100))
        clash = [*(event(n) for n in range(3_000, 5_500)), event(2_599, y="other")]
        refused = await script.append(clash, [event(3_000)], sequence=3)
        assert refused.refused == {0: (2_500, 0)}
        assert refused.skip == set(range(2_501))

    on_stream(redis_url, test)


def test_a_batch_of_nothing_new_leaves_no_entry(redis_url: str, db: redis.Redis) -> None:
    async def test(script: Script) -> None:
        first = await script.append([event(1)], sequence=1)
        second = await script.append([event(1)], [event(1, y="other")], sequence=2)
        assert (second.appended, second.position) == (False, first.position)
        assert db.xlen(script.keys.log) == 2

    on_stream(redis_url, test)


@pytest.mark.parametrize("case", ["lost", "gone"])
def test_a_refused_append_writes_nothing(redis_url: str, db: redis.Redis, case: str) -> None:
    async def test(script: Script) -> None:
        await script.append([event(1)], sequence=1)
        position = None
        if case == "lost":
            position = Position(script.end.id, "0" * 40)
        else:
            script.log = EventLog(script.connection, script.keys.model("somebody-else"))
        before = everything(db)
        reply = await script.append([event(2)], sequence=2, position=position)
        assert reply.kind == case
        assert everything(db) == before

    on_stream(redis_url, test)


def test_the_last_1024_producers_are_remembered_and_the_oldest_goes(
    redis_url: str, db: redis.Redis
) -> None:
    async def test(script: Script) -> None:
        for n in range(2):
            await script.append([event(n)], producer=f"p{n}", sequence=1)
        await asyncio.sleep(0.005)  # the records are told apart by milliseconds
        for n in range(2, 1_024):
            await script.append([event(n)], producer=f"p{n}", sequence=1)
        renewed = await script.append([event(5_000)], producer="p0", sequence=2)
        newcomer = await script.append([event(5_001)], producer="new", sequence=1)
        assert (renewed.kind, newcomer.kind) == ("ok", "ok")
        assert db.hlen(script.keys.producers) == 1_024
        for name, sequence in (("p0", 2), ("p2", 1), ("p1023", 1), ("new", 1)):
            assert (await script.append([event(1)], producer=name, sequence=sequence)).kind == (
                "replay"
            ), name
        # p1 made room: its batch is not known any more, only its ids are
        assert (await script.append([event(1)], producer="p1", sequence=1)).kind == "ok"

    on_stream(redis_url, test)


def test_ids_may_be_any_text(redis_url: str) -> None:
    async def test(script: Script) -> None:
        odd = ["0", "ms", "é\u0000\n", "😀", " ", "generation", "1e5", "x" * 256]
        batch = [event(n, id=name) for n, name in enumerate(odd)]
        assert (await script.append(batch, sequence=1)).skip == frozenset()
        assert (await script.append(batch, sequence=2)).skip == set(range(len(odd)))

    on_stream(redis_url, test)
