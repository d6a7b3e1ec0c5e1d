"""A replica far behind its log goes on from a snapshot that is ahead, if that takes less."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engine import Event, event, fold_of, worker
from tests.support.redis_server import RedisServer

LONG = {f"n{i}": 1 / 3 for i in range(1_000)}
"""The features of an event of 23 kB, always the same."""


def long_event(number: int) -> Event:
    return event(number) | {"x": LONG | {"n0": float(number % 5)}}


@pytest.mark.parametrize("watched", [False, True])
async def test_it_goes_on_from_the_snapshot_unless_it_is_watched(
    own_server: RedisServer, watched: bool
) -> None:
    entries: list[Any] = []
    async with worker(own_server.url) as owner, worker(own_server.url) as other:
        await owner.create("m")
        await owner.learn("m", event(0))
        model = await other.read("m")
        before, position = model.replica, model.position
        if watched:
            model.watch(entries.append)
        for first in range(1, 100, 10):
            await owner.learn("m", *(long_event(first + i) for i in range(10)))
        assert model.position == position, "a worker folds only what it is asked for"
        await owner.save("m")
        await owner.learn("m", event(101))
        found = await other.state("m")
        assert (model.replica is before) is watched
        assert len(entries) == (11 if watched else 0)
        with own_server.client() as client:
            assert found == await owner.state("m") == fold_of(client)


async def test_it_folds_the_log_if_the_snapshot_is_not_ahead(own_server: RedisServer) -> None:
    async with worker(own_server.url) as owner, worker(own_server.url) as other:
        await owner.create("m")
        before = (await other.read("m")).replica
        for first in range(1, 100, 10):
            await owner.learn("m", *(long_event(first + i) for i in range(10)))
        assert await other.state("m") == await owner.state("m")
        assert (await other.read("m")).replica is before
