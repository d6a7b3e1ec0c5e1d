"""FastAPI and River with the model kept in Redis: loaded, taught and stored back per event.

Nothing keeps two requests from overwriting each other's update: the durable
state costs this much even without being right. How many updates the stored model has
seen is kept beside it, so that the lost ones can be counted.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import random
from collections.abc import AsyncIterator
from typing import Any

import redis.asyncio
from fastapi import FastAPI
from river import linear_model

from tests.bench.peers.river_memory import Event, Outcome

WEIGHTS = 20_000
KEY = "bench:river"


@contextlib.asynccontextmanager
async def _lifespan(_: FastAPI) -> AsyncIterator[None]:
    model: Any = linear_model.Perceptron()
    rng = random.Random(1)
    for number in range(0, WEIGHTS, 20):
        x = {f"w{number + i}": rng.gauss(0, 1) for i in range(20)}
        model.learn_one(x, not model.predict_one(x))
    await store.set(KEY, pickle.dumps((model, 0)))
    yield
    await store.aclose()


store = redis.asyncio.Redis.from_url(os.environ.get("BENCH_REDIS_URL", "redis://127.0.0.1"))
app = FastAPI(lifespan=_lifespan)


@app.post("/learn")
async def learn(event: Event) -> Outcome:
    """Load the model, predict, learn, store the model."""
    stored: Any = await store.get(KEY)
    model, updates = pickle.loads(stored)
    y_pred = bool(model.predict_one(event.x))
    model.learn_one(event.x, event.y)
    await store.set(KEY, pickle.dumps((model, updates + 1)))
    return Outcome(y_pred=y_pred, mistake=y_pred != event.y)
