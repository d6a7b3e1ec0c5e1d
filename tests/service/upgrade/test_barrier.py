"""An upgrade hands a model over to another version: nobody folds across it by the wrong one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hinged_service.errors import SetAside
from tests.service.upgrade.versions import NEW, OLD, Plain, Versioned
from tests.support.engine import event, stored_position, stored_state
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.usefixtures("versions")


@contextlib.asynccontextmanager
async def both(url: str, **changes: Any) -> AsyncIterator[tuple[Versioned, Versioned]]:
    """Give a worker of each version and kill both in the end."""
    old, new = Versioned(OLD, url, **changes), Versioned(NEW, url, **changes)
    try:
        yield old, new
    finally:
        await old.kill()
        await new.kill()


async def _learn(one: Versioned, first: int, last: int, name: str = "m") -> None:
    for n in range(first, last):
        await one.learn(name, event(n))


def test_a_model_is_handed_over_from_its_snapshot_on(
    redis_url: str, shared_server: RedisServer
) -> None:
    async def run() -> None:
        async with both(redis_url) as (old, new):
            await old.create("m")
            await _learn(old, 0, 20)
            await old.save("m")
            await _learn(old, 20, 30)
            with pytest.raises(SetAside, match=f"{OLD}.*{NEW}.*hinged upgrade"):
                await new.read("m")
            with shared_server.client() as client:
                position = stored_position(client)
                before = Plain(client, "m", OLD)
                assert await old.state("m") == before.state()
                done = await new.upgrade("m")
                assert (done.position.id, done.fold, done.before) == (position, NEW, OLD)
                with pytest.raises(SetAside, match=f"{NEW}.*{OLD}"):
                    await old.learn("m", event(30))
                await _learn(new, 30, 40)
                plain = Plain(client, "m", OLD)
                assert plain.upgrades == 1
                assert plain.counted == [f"e{n}" for n in range(40)]
                assert plain.state(position) == before.state(position)
                assert plain.state() != before.state()
                assert await new.state("m") == plain.state()
                await new.save("m")
                assert stored_state(client) == plain.state()

    asyncio.run(run())
