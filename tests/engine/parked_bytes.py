"""A program that prints the bytes that a parked model takes, and as how many it counts.

`python -m … URL KIND`: the address of Redis, and the kind of model of `SPECS`.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import sys
import tracemalloc

from tests.engine.test_opening import SPECS, label
from tests.engine.test_parked import idle
from tests.support.engine import until, worker

MANY = 40


async def measured(url: str, kind: str) -> tuple[float, float]:
    """Return the bytes per model, taken and counted."""
    async with worker(url, max_replicas=1) as one:
        tracemalloc.start()
        for model in (f"m{n}" for n in range(MANY)):
            await one.create(model, **SPECS[kind])
            for k in range(12):
                names = {f"{model}-{i % 50}": 1.0 + i for i in range(k * 20, k * 20 + 20)}
                await one.learn(model, {"x": names, "y": label(kind, k)})
            live_model = await one.registry.open(model)
            await until(functools.partial(idle, live_model), 30)
            del live_model
        await one.create("other")
        await one.registry.open("other")
        parked = one.registry._parked
        assert len(parked._models) == MANY
        gc.collect()
        before, counted = tracemalloc.get_traced_memory()[0], parked._bytes
        parked._models.clear()
        gc.collect()
        taken = before - tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return taken / MANY, counted / MANY


if __name__ == "__main__":
    print(*asyncio.run(measured(*sys.argv[1:])))
