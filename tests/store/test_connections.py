"""The connections that scripts keep: none too many, none that is dead."""

import asyncio
import hashlib

import pytest
import redis

from hinged_service.errors import Unavailable
from hinged_service.settings import Settings
from hinged_service.store.connection import Connection
from hinged_service.store.scripts import Script, load
from tests.support.redis_server import RedisServer


def settings_for(server: RedisServer, connections: int) -> Settings:
    return Settings(redis_url=server.url, redis_connections=connections)


@pytest.mark.parametrize("stop", ["stop", "kill"])
async def test_the_first_script_after_a_restart_of_redis_runs(
    own_server: RedisServer, stop: str
) -> None:
    connection = Connection(own_server.url, settings_for(own_server, 4))
    await asyncio.gather(*(connection.check_writable() for _ in range(4)))
    await asyncio.to_thread(getattr(own_server, stop))
    await asyncio.to_thread(own_server.start)
    for _ in range(4):
        await connection.check_writable()
    await connection.aclose()


@pytest.mark.parametrize("connections", [1, 2, 3])
async def test_scripts_leave_connections_to_other_commands(
    own_server: RedisServer, own_db: redis.Redis, connections: int
) -> None:
    connection = Connection(own_server.url, settings_for(own_server, connections))
    for _ in range(2):
        await asyncio.gather(*(connection.check_writable() for _ in range(8)))
        await asyncio.gather(*(connection.hget("no hash", "f") for _ in range(8)))
    await connection.aclose()
    assert len(own_db.client_list()) == 1


async def test_an_error_of_a_script_leaves_the_connection_usable(own_server: RedisServer) -> None:
    source = "return redis.error_reply('on purpose')"
    wrong = Script("wrong", source, hashlib.sha1(source.encode()).hexdigest())

    connection = Connection(own_server.url, settings_for(own_server, 2))
    for _ in range(3):
        with pytest.raises(Unavailable, match="on purpose"):
            await connection.run(wrong, ["no key"])
        await connection.check_writable()
    await connection.aclose()


async def test_after_its_end_nothing_is_opened(
    own_server: RedisServer, own_db: redis.Redis
) -> None:
    connection = Connection(own_server.url, settings_for(own_server, 4))
    await connection.check_writable()
    script = load("check_writable")
    under_way = [
        asyncio.ensure_future(connection.share(script, ["no key"])),
        *(asyncio.ensure_future(connection.hget("no hash", "f")) for _ in range(3)),
    ]
    await asyncio.sleep(0)  # they begin to connect
    await connection.aclose()
    for task in under_way:
        with pytest.raises(Unavailable):
            await task
    for ask in (connection.share(script, ["no key"]), connection.hget("no hash", "f")):
        with pytest.raises(Unavailable):
            await ask
    assert len(own_db.client_list()) == 1
