"""Counts of a model are the same at every door: accuracy, mistakes, losses, overflows."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cli.conftest import Run
from tests.support.ingest import up_to_date
from tests.support.service import Service
from tests.telemetry.reading import scrape

ROLLING = {"type": "rolling", "metric": "accuracy", "window": 100}
METRICS = ["accuracy", ROLLING]

WEIGHTLESS = [  # wrong; then three of weight 0, of which one would be right and two wrong
    {"x": {"a": 1}, "y": True},
    {"x": {"a": 1}, "y": True, "w": 0},
    {"x": {"a": 1}, "y": False, "w": 0},
    {"x": {"a": 2}, "y": False, "w": 0},
]
FIRST = [  # no class is known, then right, wrong, wrong: the last two are classes of their own
    {"x": {"a": 1}, "y": "A"},
    {"x": {"a": 1}, "y": "A"},
    {"x": {"a": 1}, "y": "B"},
    {"x": {"a": -1}, "y": "C"},
]

# learn true: the six experts, trusted alike, score these, and half is the base rate's, 1.5 of 2
EXPERTS = [1.0, 0.2, 0.2, 0.01 / math.sqrt(0.00025 + 1e-8), 0.06, 0.2]  # 1 has no square
TOLD = 0.5 / (1.0 + math.exp(-sum(EXPERTS) / 6.0)) + 0.5 * 1.5 / 2.0
POOLED = math.log(TOLD / (1.0 - TOLD))


@pytest.mark.parametrize(
    ("spec", "events", "judged", "mistakes"),
    [
        ({"learner": {"type": "perceptron"}}, WEIGHTLESS, 1, 1),
        ({"learner": {"type": "hedge"}}, WEIGHTLESS, 1, 1),
        ({"learner": {"type": "LogisticRegression"}}, WEIGHTLESS, 1, 1),
        ({"learner": {"type": "multiclass_perceptron"}}, FIRST, 3, 2),
        ({"learner": {"type": "GaussianNB"}}, FIRST, 3, 2),
        ({"learner": {"type": "one_vs_rest", "learner": {"type": "perceptron"}}}, FIRST, 3, 2),
    ],
    ids=["perceptron", "hedge", "river", "multiclass", "river multiclass", "one against the rest"],
)
def test_accuracy_is_one_number_at_every_door(
    client: httpx.Client,
    service: Service,
    run: Run,
    name: str,
    tmp_path: Path,
    spec: dict[str, Any],
    events: list[dict[str, Any]],
    judged: int,
    mistakes: int,
) -> None:
    accuracy = (judged - mistakes) / judged  # to the last digit, as River's metric has it
    lines = "\n".join(map(json.dumps, events))
    named = {door: f"{name}-{door}" for door in ("array", "lines", "file", "verb")}
    for model in named.values():
        body = {**spec, "metrics": METRICS}
        client.put(f"/v1/models/{model}", json=body).raise_for_status()

    answers = client.post(f"/v1/models/{named['array']}/learn", json=events).json()
    assert sum(answer["mistake"] for answer in answers) == mistakes
    summary = client.post(
        f"/v1/models/{named['lines']}/learn?results=summary",
        content=lines,
        headers={"content-type": "application/x-ndjson"},
    ).json()
    file = tmp_path / "events.ndjson"
    file.write_text(lines)
    ingest = "ingest", "file", str(file), "--model", named["file"], "--json"
    read_back = json.loads(run(*ingest, HINGED_REDIS_URL=service.settings.redis_url).out)
    for found in (summary, read_back):
        assert found["learned"] == len(events)
        assert (found["judged"], found["mistakes"]) == (judged, mistakes)
        assert found["accuracy"] == accuracy
    output = run("learn", named["verb"], stdin=lines).out
    assert f"{1 - mistakes / judged:.2%}" in output

    for model in named.values():
        whole = up_to_date(service.settings.redis_url, model)
        info = client.get(f"/v1/models/{model}", params=whole).json()
        assert info["events"] == len(events)
        assert (info["judged"], info["mistakes"]) == (judged, mistakes)
        assert info["accuracy"] == accuracy
        assert info["metrics"] == {"accuracy": accuracy, "rolling_accuracy_100": accuracy}
        (follower,) = client.get(f"/v1/streams/{model}").json()["models"]
        assert (follower["judged"], follower["accuracy"]) == (judged, accuracy)
        assert f"{1 - mistakes / judged:.2%}" in run("show", model).out
        made = client.post(f"/v1/models/{model}/checkpoints", json={}).json()
        assert (made["judged"], made["mistakes"]) == (judged, mistakes)
        counted = scrape(client)
        assert counted.value("hinged_judged_total", model=model) == judged
        assert counted.value("hinged_mistakes_total", model=model) == mistakes


@pytest.mark.parametrize(
    ("spec", "first", "later", "losses"),
    [
        # learn true: w = b = 1, so the score is 2, and 3 what it loses where the label is false
        ({"learner": {"type": "perceptron"}}, [True], False, 3.0),
        ({"learner": {"type": "averaged_perceptron"}}, [True], False, 3.0),
        # scaled, the only value ever seen is 0: only the intercept moved
        (
            {"learner": {"type": "perceptron"}, "pipeline": [{"type": "StandardScaler"}]},
            [True],
            False,
            2.0,
        ),
        ({"learner": {"type": "hedge"}}, [True], False, 1.0 + POOLED),
        # B beats A by 2 - (-2)
        ({"learner": {"type": "multiclass_perceptron"}}, ["A", "B"], "A", 5.0),
        # a class that is not known scores 0, and B 2
        ({"learner": {"type": "multiclass_perceptron"}}, ["A", "B"], "C", 3.0),
        # A moved by the first event to (1, 1) and back to (0, 0) by the second; B stands at (1, 1)
        (
            {"learner": {"type": "one_vs_rest", "learner": {"type": "perceptron"}}},
            ["A", "B"],
            "A",
            3.0,
        ),
    ],
)
def test_a_frozen_model_loses_what_its_scores_say(
    client: httpx.Client,
    name: str,
    spec: dict[str, Any],
    first: list[Any],
    later: Any,
    losses: float,
) -> None:
    path = f"/v1/models/{name}"
    client.put(path, json=spec).raise_for_status()
    for y in first:
        client.post(f"{path}/learn", json={"x": {"a": 1}, "y": y}).raise_for_status()
    client.post(f"{path}/freeze").raise_for_status()
    before = client.get(path).json()
    events = [{"x": {"a": 1}, "y": later}] * 5 + [{"x": {"a": 1}, "y": later, "w": 0}]
    *judged, weightless = client.post(f"{path}/learn", json=events).json()
    assert [(a["mistake"], a["updated"]) for a in judged] == [(True, False)] * 5
    assert [a["hinge_loss"] for a in judged] == pytest.approx([losses] * 5)
    assert (weightless["mistake"], weightless["hinge_loss"]) == (False, 0.0)
    after = client.get(path).json()
    assert after["mistakes"] - before["mistakes"] == 5
    assert after["hinge_loss"] - before["hinge_loss"] == pytest.approx(5 * losses)
    assert after["updates"] == before["updates"]


def test_overflows_are_told_at_every_door(client: httpx.Client, run: Run, name: str) -> None:
    path = f"/v1/models/{name}"
    learner = {"type": "linear_unit", "learning_rate": 0.1, "capped": False}
    client.put(path, json={"learner": learner}).raise_for_status()
    client.post(f"{path}/learn", json=[{"x": {"a": 10}, "y": True}] * 400).raise_for_status()
    info = client.get(path).json()
    assert (info["updates"], info["overflows"]) == (322, 78)
    assert scrape(client).value("hinged_overflows_total", model=name) == 78
    assert "78" in run("show", name).out
    with client.stream("GET", f"{path}/live") as feed:
        lines = (line for line in feed.iter_lines() if line.startswith("data:"))
        read_back = next(
            one for one in map(json.loads, (line[5:] for line in lines)) if "updates" in one
        )
    assert (read_back["updates"], read_back["overflows"]) == (322, 78)
