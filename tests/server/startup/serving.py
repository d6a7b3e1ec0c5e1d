"""Serves models in a fresh process, and prints which modules that imported, and where.

`python -m tests.server.startup.serving URL`: JSON of `small`, the heavy modules that are there
once hinged's own learners have been served, and `in_loop`, the modules of River and of what it
takes along that were then imported by the thread of the event loop.
"""

import asyncio
import json
import sys
import threading
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import httpx
from fastapi import FastAPI

from hinged_service.app import create_app
from hinged_service.settings import Settings

HEAVY = ("scipy", "sklearn", "pandas", "numpy")
X = {"a": 1.0, "b": -2.0}
OWN: dict[str, dict[str, Any]] = {
    "perceptron": {"learner": {"type": "perceptron"}},
    "many": {"learner": {"type": "multiclass_arow"}, "labels": "integers"},
    "scaled": {"learner": {"type": "arow"}, "pipeline": [{"type": "StandardScaler"}]},
}
RIVER: dict[str, dict[str, Any]] = {
    "schedule": {
        "learner": {"type": "perceptron", "learning_rate": {"type": "inverse_scaling", "rate": 1.0}}
    },
    "robust": {"learner": {"type": "perceptron"}, "pipeline": [{"type": "RobustScaler"}]},
    "metrics": {"learner": {"type": "perceptron"}, "metrics": ["accuracy", "mcc", "f1"]},
    "logistic": {"learner": {"type": "LogisticRegression"}},
    "bayes": {"learner": {"type": "GaussianNB"}, "labels": "integers"},
    "hashed": {"learner": {"type": "perceptron"}, "pipeline": [{"type": "FeatureHasher"}]},
    "drift": {"learner": {"type": "perceptron"}, "drift": {"detector": {"type": "ADWIN"}}},
    "bagged": {
        "learner": {
            "type": "BaggingClassifier",
            "model": {"type": "HoeffdingTreeClassifier", "max_leaves": 3},
            "seed": 1,
        },
        "labels": "integers",
    },
}


class _Watch(MetaPathFinder):
    """Notes the modules that are imported by the thread in which it was made."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self.seen: list[str] = []

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if threading.get_ident() == self._thread and name.partition(".")[0] in ("river", *HEAVY):
            self.seen.append(name)
        return None


async def serve(app: FastAPI, client: httpx.AsyncClient, specs: dict[str, dict[str, Any]]) -> None:
    """Make models, ask and teach them, and look at all that there is to see."""
    for name, spec in specs.items():
        path = f"/v1/models/{name}"
        assert (await client.put(path, json=spec)).status_code == 201
        for y in (True, False, True):
            event = {"x": X, "y": int(y) if "labels" in spec else y}
            answer = await client.post(f"{path}/learn", json=event)
            assert answer.status_code == 200, answer.text
        assert (await client.post(f"{path}/predict", json={"x": X})).status_code == 200
        assert (await client.post(f"{path}/checkpoints", json={})).status_code == 201
        for page in (path, f"{path}/weights", "/metrics", "/"):
            assert (await client.get(page)).status_code in (200, 409), page
        await app.state.registry.live(name).save()


async def main(url: str) -> dict[str, list[str]]:
    app = create_app(Settings(redis_url=url))
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://hinged") as client,
    ):
        await serve(app, client, OWN)
        small = [name for name in HEAVY if name in sys.modules]
        watch = _Watch()
        sys.meta_path.insert(0, watch)
        await serve(app, client, RIVER)
        sys.meta_path.remove(watch)
    return {"small": small, "in_loop": watch.seen}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(sys.argv[1]))))
