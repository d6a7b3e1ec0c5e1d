"""Every learner and transformer in a fleet: each event once, everywhere the same, as by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import hinged
from hinged_service.model.state import ModelState
from tests.river_support.learners import catalogue
from tests.river_support.learners.fleet import Fleet, counted, logged
from tests.support.engine import leaked_keys
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

EVENTS = 200
NAME, STREAM = "m", "s"

Check = Callable[[ModelState, list[dict[str, Any]]], None]


@pytest.fixture(scope="module")
def proxy(server: RedisServer) -> Iterator[Proxy]:
    made = Proxy(server.port)
    made.start()
    yield made
    made.stop()


def drill(
    server: RedisServer,
    proxy: Proxy,
    events: list[dict[str, Any]],
    check: Check,
    seed: int,
    **spec: Any,
) -> None:
    """Send the events to a fleet; check what all agree on against a witness."""
    mixed = "pipeline" in spec

    async def run() -> None:
        fleet = Fleet(proxy, NAME, mixed, seed)
        try:
            await fleet.workers[0].create(NAME, stream=STREAM, **spec)
            await fleet.send_all(server, events)
            with server.client() as client:
                fold = await fleet.check(client, events, STREAM)
                log = logged(client, STREAM)
                check(fold, [e for _, written, skip in log for e in counted(written, skip)])
                assert leaked_keys(client, STREAM) == []
        finally:
            await fleet.stop()
        assert len(fleet.dead) == len(fleet.workers)

    with server.client() as client:
        client.flushall()
    asyncio.run(run())


def same_learner(learner: Any, witness: Any) -> None:
    """Check that two learners of `hinged` have the same state, to the bit."""
    found, wanted = learner.get_state(), witness.get_state()
    assert found["scalars"] == wanted["scalars"]
    assert found.get("classes") == wanted.get("classes")
    assert found["vectors"].keys() == wanted["vectors"].keys()
    for name, vector in wanted["vectors"].items():
        assert dict(found["vectors"][name].view()) == dict(vector.view()), name


@pytest.mark.parametrize("kind", catalogue.LEARNERS)
def test_every_learner_in_a_fleet(server: RedisServer, proxy: Proxy, kind: str) -> None:
    witness = catalogue.WITNESSES[kind]()
    several = hasattr(hinged, type(witness).__name__) and not isinstance(
        witness, (hinged.BinaryLinearClassifier, hinged.Hedge)
    )
    several = several or getattr(witness, "_multiclass", False)

    def check(fold: ModelState, events: list[dict[str, Any]]) -> None:
        for event in events:
            witness.learn_one(event["x"], event["y"])
        if isinstance(witness, hinged.LinearClassifier):
            same_learner(fold.learner, witness)
            return
        for event in events[:25]:
            found = fold.predict(event["x"])
            if kind == "OneVsOneClassifier":  # River gives it no probabilities
                best = [label for label, p in found.proba.items() if p == max(found.proba.values())]
                assert witness.predict_one(event["x"]) in best  # its own order of ties is a set's
                assert found.y in best
                continue
            wanted = witness.predict_proba_one(event["x"])
            as_text = {y if isinstance(y, str) else str(y).lower(): p for y, p in wanted.items()}
            assert found.proba == pytest.approx(as_text, rel=1e-9, abs=1e-12)

    events = catalogue.points(EVENTS, several)
    drill(server, proxy, events, check, len(kind), learner=catalogue.learner(kind))


@pytest.mark.parametrize("kind", catalogue.TRANSFORMERS)
def test_every_transformer_in_a_fleet(server: RedisServer, proxy: Proxy, kind: str) -> None:
    def check(fold: ModelState, events: list[dict[str, Any]]) -> None:
        if kind not in catalogue.RIVERS:
            return
        witness = catalogue.RIVERS[kind]() | hinged.Perceptron()
        for event in events:
            witness.learn_one(event["x"], event["y"])
        if kind in catalogue.NEARLY:
            weights = {str(n): v for n, v in witness[-1].weights.items()}
            learner: Any = fold.learner
            assert dict(learner.weights) == pytest.approx(weights, rel=1e-9, abs=1e-12)
            return
        same_learner(fold.learner, witness[-1])

    spec = {"learner": {"type": "perceptron"}, "pipeline": catalogue.steps(kind)}
    drill(server, proxy, catalogue.fed(kind, EVENTS), check, len(kind), **spec)
