"""A wait for a stream without new entries, on any kind of Redis."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from hinged_service.ingest.redis_stream_client import ForeignStream
from tests.support.cluster import Cluster
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer, server_binaries
from tests.support.sentinel import SentinelTrio
from tests.support.tls import TlsServer, speaks_tls

KEY = "idle"
LONGER_MS = 5_500
"""The client's own time-out, which would end the read, is five seconds."""


@pytest.fixture
def holders(
    own_server: RedisServer, trio: SentinelTrio, cluster: Cluster, tmp_path: Path
) -> Iterator[list[RedisServer]]:
    """The server that holds the stream, of each topology."""
    found = [own_server, trio.servers[0], cluster.primary_of(KEY)]
    binary = server_binaries().get("redis")
    if binary is None or not speaks_tls(binary):
        yield found
        return
    tls = TlsServer(tmp_path / "tls", binary)
    tls.start()
    yield [*found, tls]
    tls.kill()


@pytest.mark.slow
async def test_a_read_may_wait_for_longer_than_a_client_does(holders: list[RedisServer]) -> None:
    await asyncio.gather(*(_idle_then_read(holder) for holder in holders))


async def _idle_then_read(holder: RedisServer) -> None:
    stream = ForeignStream(holder.url, KEY, "g", "c")
    try:
        await stream.create_group("$")
        assert await stream.new(1, LONGER_MS) == []
        waiting = asyncio.create_task(stream.new(1, 60_000))
        await asyncio.to_thread(_until_blocked, holder)
        with holder.client() as client:
            sent = client.xadd(KEY, {"a": "1"})
        assert await asyncio.wait_for(waiting, 30) == [(sent, {b"a": b"1"})]
        await stream.done([str(sent)])
        assert await stream.pending("0-0", "+", 10) == []
    finally:
        await stream.aclose()
        with holder.client() as client:
            client.delete(KEY)


def _until_blocked(holder: RedisServer) -> None:
    with holder.client() as client:
        wait_until(lambda: client.info("clients")["blocked_clients"] >= 1, 30)
