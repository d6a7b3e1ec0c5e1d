"""Reading on in a group while the batch before is fed: only what really follows it."""

from __future__ import annotations

import asyncio

import redis

from hinged_service.ingest.redis_stream_client import ForeignStream
from tests.support.redis_server import RedisServer


def test_only_what_follows_is_returned(redis_url: str, shared_server: RedisServer) -> None:
    async def run(client: redis.Redis) -> None:
        mine = ForeignStream(redis_url, "s", "g", "mine")
        other = ForeignStream(redis_url, "s", "g", "other")
        try:
            await mine.create_group("0-0")
            for number in range(1, 8):
                client.xadd("s", {"n": number}, id=f"{number}-0")
            assert [i for i, _ in await mine.new(2, 1)] == ["1-0", "2-0"]
            read = await mine.following([], "2-0", 2)
            assert read == [("3-0", {b"n": b"3"}), ("4-0", {b"n": b"4"})]
            assert len(await mine.pending("0-0", "+", 9)) == 4
            assert await mine.following(["1-0", "2-0"], "2-0", 1) == []  # 3-0 still waits
            assert [one.id for one in await mine.pending("0-0", "+", 9)] == ["3-0", "4-0", "5-0"]
            assert [i for i, _ in await other.new(1, 1)] == ["6-0"]
            assert await mine.following(["3-0", "4-0", "5-0"], "5-0", 5) == []  # 6-0 is another's
            await other.done(["6-0"])
            client.xadd("s", {"n": 8}, id="8-0")
            assert await mine.following(["7-0"], "5-0", 5) == []  # 6-0 was not fed
            await mine.done(["8-0"])
            assert await mine.following([], "8-0", 5) == []  # the end
        finally:
            await mine.aclose()
            await other.aclose()

    with shared_server.client() as client:
        asyncio.run(run(client))
