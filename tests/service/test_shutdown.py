"""A worker that is told to stop does so, whatever it was doing."""

from __future__ import annotations

import asyncio
import itertools
import random

import pytest

from hinged_service import host as host_module
from hinged_service.host import Host
from hinged_service.settings import Settings
from hinged_service.spec import ModelSpec, PerceptronSpec
from hinged_service.store.connection import Connection


def test_a_host_stops_in_the_middle_of_its_housekeeping(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_module, "_SWEEP_EVERY", 1)
    settings = Settings(redis_url=redis_url).model_copy(update={"housekeeping_ms": 0})

    async def start_and_stop(times: int) -> None:
        connection = Connection(redis_url, settings)
        chance = random.Random(1)
        for n in range(times):
            host = Host(connection, settings)
            if n == 0:
                spec = ModelSpec(learner=PerceptronSpec(type="perceptron"))
                await host.create("m", spec)
            host.start()
            await asyncio.sleep(chance.uniform(0, 0.003))
            await asyncio.wait_for(host.aclose(), 5)
        await connection.aclose()

    asyncio.run(start_and_stop(400))


def test_a_host_stops_twice_and_without_having_started(redis_url: str) -> None:
    async def stop() -> None:
        settings = Settings(redis_url=redis_url)
        connection = Connection(redis_url, settings)
        for start in (False, True):
            host = Host(connection, settings)
            if start:
                host.start()
            for _ in itertools.repeat(None, 2):
                await asyncio.wait_for(host.aclose(), 5)
        await connection.aclose()

    asyncio.run(stop())
