"""Reads of a follower: the log by plain commands as by the script, a snapshot that moves."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import redis

from hinged_service.store.connection import Connection
from hinged_service.store.keys import StreamKeys
from hinged_service.store.log import EventLog
from hinged_service.store.log_reader import LogReader
from hinged_service.store.log_types import Entry
from hinged_service.store.snapshot_reader import load_snapshot
from hinged_service.wire.position import Position
from tests.support.engine import Worker, event, fold_of, settings, worker
from tests.support.plain_fold import model_uid


async def test_plain_commands_read_what_the_script_reads(redis_url: str) -> None:
    client: Any = redis.Redis.from_url(redis_url, decode_responses=True)
    async with worker(redis_url) as one:
        await one.create("m")
        for n in range(0, 40, 2):
            await one.learn("m", event(n), event(n + 1))
        await (await one.registry.open("m")).commands.append({"do": "freeze"})
        await one.learn("m", event(99))
        connection = Connection(redis_url, settings(redis_url), notes=False)
        try:
            keys = StreamKeys("m").model(model_uid(client, "m"))
            await _compare(connection, keys, client)
            client.xadd(
                keys.on.log, {"events": "[]", "from": "x", "chain": "0", "bytes": 0, "count": 0}
            )
            await one.learn("m", event(100))
            await _compare(connection, keys, client)
        finally:
            await connection.aclose()


async def _compare(connection: Connection, keys: Any, client: Any) -> None:
    """Read the log from each of its positions in both ways."""
    found = client.xrange(keys.on.log)
    for entry_id, fields in found:
        position = Position(entry_id, fields["chain"])
        reader, at = LogReader(connection, keys), position
        entries: list[Entry] = []
        while True:
            reply = await reader.catch_up(at, 2**12)
            entries += reply.entries
            if reply.kind != "ok" or not reply.more:
                break
            at = entries[-1].position
        expected = await EventLog(connection, keys).catch_up(position, 2**22)
        assert (reply.kind, list(entries)) == (expected.kind, list(expected.entries))
    elsewhere = Position(found[-1][0], "1" * 40)
    assert (await LogReader(connection, keys).catch_up(elsewhere, 2**12)).kind == "lost"


async def test_a_snapshot_that_moves_all_the_time_is_read_of_one_moment(redis_url: str) -> None:
    client: Any = redis.Redis.from_url(redis_url, decode_responses=True)
    async with worker(redis_url, snapshot_every_events=1) as one:
        await one.create("m")
        await one.learn("m", *({"x": {f"n{i}": 1.0}, "y": i % 2 == 0} for i in range(300)))
        keys = StreamKeys("m").model(model_uid(client, "m"))
        base = client.xrange(keys.on.log)[0]
        busy = asyncio.create_task(_go_on_learning(one))
        connection = Connection(redis_url, settings(redis_url), notes=False)
        try:
            moved_from = client.hget(keys.on.followers, keys.uid)
            loaded = await load_snapshot(connection, keys, f"{base[0]}.{base[1]['chain']}", 1, 1000)
            assert client.hget(keys.on.followers, keys.uid) != moved_from
        finally:
            busy.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await busy
            await connection.aclose()
        expected = fold_of(client, "m", upto=loaded.position.id)
        found = {name: value.hex() for name, value in loaded.vectors["weights"].items()}
        assert found == expected["weights"]
        assert not [field for field in client.hkeys(keys.on.meta) if field.startswith("hold:")]


async def _go_on_learning(one: Worker) -> None:
    n = 0
    while True:
        n += 1
        await one.learn("m", {"x": {f"n{n % 300}": 1.0, "b": 0.5}, "y": n % 3 == 0})
