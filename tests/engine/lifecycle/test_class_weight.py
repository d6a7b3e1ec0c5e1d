"""Balanced classes as part of a model: the same on every worker, saved, exported and reset."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

import hinged
from hinged_service.engine import export
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import state_scalars
from tests.support.checks import check_problem
from tests.support.engine import Worker, event, worker
from tests.support.shared_service import NewModel

SPECS: dict[str, dict[str, Any]] = {
    "binary": {"learner": {"type": "logistic_sgd", "steps": "constant", "learning_rate": 0.1}},
    "named": {"learner": {"type": "arow"}, "labels": ["no", "yes"], "metrics": ["accuracy"]},
    "scaled": {"learner": {"type": "perceptron"}, "pipeline": [{"type": "StandardScaler"}]},
    "classes": {"learner": {"type": "multiclass_arow"}},
    "river": {"learner": {"type": "LogisticRegression"}},
}


def given(name: str, n: int) -> dict[str, Any]:
    rare = n % 5 == 0
    if name == "classes":
        return event(n, y="rare" if rare else "ab"[n % 2])
    return event(n, y=("yes" if rare else "no") if name == "named" else rare)


def state_of(state: ModelState) -> Any:
    return state_scalars(state), {name: dict(part.view()) for name, part in state.vectors().items()}


def untimed(state: ModelState) -> Any:
    """Return what `state_of` does but for the times of the entries of the log."""
    scalars, vectors = state_of(state)
    del scalars["history"]["points"]["at_ms"]
    return scalars, vectors


def counted(state: ModelState) -> int:
    assert state.balance is not None
    return state.balance.events


@pytest.mark.parametrize("name", SPECS)
def test_the_counts_go_where_the_model_goes(redis_url: str, name: str) -> None:
    async def learn(one: Worker, *numbers: int) -> None:
        await one.learn("m", *(given(name, n) for n in numbers))

    async def run() -> None:
        spec = {**SPECS[name], "class_weight": "balanced"}
        async with worker(redis_url) as one, worker(redis_url) as two:
            await one.create("m", **spec)
            await learn(one, *range(20))
            await learn(two, *range(20, 33))
            await one.save("m")
            live_model = await one.read("m")
            made = await live_model.checkpoints.make("then")
            body = b"".join(export.exported(made, await live_model.checkpoints.read(made)))
            await learn(one, *range(33, 60))
            here = (await one.read("m")).state
            assert counted(here) == 60
            async with worker(redis_url) as cold:
                assert state_of((await cold.read("m")).state) == state_of(here)
            assert state_of((await two.read("m")).state) == state_of(here)
            await one.lifecycle.create_imported("far", export.imported(body))
            assert counted((await one.read("far")).state) == 33
            await one.learn("far", *(given(name, n) for n in range(33, 60)))
            assert untimed((await one.read("far")).state) == untimed(here)
            await live_model.commands.append({"do": "reset"})
            assert counted((await two.read("m")).state) == 0

    asyncio.run(run())


def test_the_sample_weight_by_hand(client: httpx.Client, new_model: NewModel) -> None:
    learner = {"type": "linear_unit", "learning_rate": 0.25, "capped": False}
    path = new_model(learner=learner, class_weight="balanced", labels=[-1, 1])
    by_hand = hinged.LinearUnit(0.25, capped=False)
    # n / (k n_y), the event counted; a weight of 0 does not count
    rows = [(-1, 1.0, 1.0), (-1, 1.0, 1.0), (1, 0.0, 0.0), (1, 1.0, 3 / 2), (-1, 2.0, 2 * 4 / 6)]
    for number, (y, w, balanced) in enumerate(rows):
        x = {"a": 1.0 + number}
        client.post(f"{path}/learn", json={"x": x, "y": y, "w": w}).raise_for_status()
        by_hand.learn_one(x, y == 1, balanced)
        served = client.get(f"{path}/weights").json()
        assert served["weights"] == pytest.approx(dict(by_hand.weights), abs=1e-12)
    assert client.get(path).json()["spec"]["class_weight"] == "balanced"


def test_a_frozen_model_does_not_count(client: httpx.Client, new_model: NewModel) -> None:
    paths = [new_model(learner={"type": "perceptron"}, class_weight="balanced") for _ in range(2)]
    for path in paths:
        learn = {"x": {"a": 1.0}, "y": False}
        client.post(f"{path}/learn", json=learn).raise_for_status()
    client.post(f"{paths[0]}/freeze").raise_for_status()
    client.post(f"{paths[0]}/learn", json=[{"x": {"a": 1.0}, "y": True}] * 5).raise_for_status()
    client.post(f"{paths[0]}/unfreeze").raise_for_status()
    weights = []
    for path in paths:
        client.post(f"{path}/learn", json=[{"x": {"b": 3.0}, "y": True}] * 2).raise_for_status()
        weights.append(client.get(f"{path}/weights").json()["weights"])
    assert weights[0] == weights[1]


@pytest.mark.parametrize(
    "learner",
    [
        {"type": "passive_aggressive", "mode": "uncapped"},
        {"type": "hedge", "models": [{"type": "passive_aggressive", "mode": "uncapped"}]},
        {"type": "multiclass_passive_aggressive", "mode": "uncapped"},
    ],
)
def test_a_learner_without_weights_cannot_be_balanced(
    client: httpx.Client, learner: dict[str, Any]
) -> None:
    spec = {"learner": learner, "class_weight": "balanced"}
    problem = check_problem(client.put("/v1/models/unbalanced", json=spec), 422)
    assert [error["field"] for error in problem["errors"]] == ["class_weight"]
    assert client.get("/v1/models/unbalanced").status_code == 404
    other = {"learner": {"type": "perceptron"}, "class_weight": "inverse"}
    problem = check_problem(client.put("/v1/models/unbalanced", json=other), 422)
    assert [error["field"] for error in problem["errors"]] == ["class_weight"]
