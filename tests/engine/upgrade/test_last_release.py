"""The release before: this version serves its models, goes on learning and rolls them back."""

from __future__ import annotations

import io
import random
import shutil
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

import hinged
from tests.river_support.learners.side_by_side import (
    MODELS,
    NUMBERS,
    NUMERIC,
    STREAM,
    TWO,
    is_numbers,
    made_events,
)
from tests.support.forked_worker import ForkedWorker
from tests.support.redis_server import RedisServer
from tests.support.worker import Worker

RELEASE = "10f4b3844b78567ef91ac22b4ae94734f13f7f88"
"""The last state before this one that others have run; its tag once there is one."""
ROOT = Path(__file__).parents[3]
QUESTIONS = [{"x": {"a": a / 2, "b": b}} for a in range(-3, 4) for b in range(-2, 3)]
LATE: dict[str, Any] = {"x": {"a": 1.0, "b": 2.0}, "id": "late"}
EVENTS = made_events(random.Random(11), 500)
ITS_LEARNERS: dict[str, dict[str, Any]] = {
    "pocket": {"type": "pocket_perceptron"},
    "linear-unit": {"type": "linear_unit"},
    "adagrad": {"type": "hinge_sgd"},
    "pegasos": {"type": "hinge_sgd", "steps": "pegasos", "l2": 0.01},
    "pegasos-l1": {"type": "hinge_sgd", "steps": "pegasos", "l2": 0.01, "l1": 0.001},
    "hedge-of-two": {
        "type": "hedge",
        "models": [{"type": "arow"}, {"type": "hinge_sgd", "steps": "pegasos", "l2": 0.1}],
    },
    "perceptrons": {"type": "multiclass_perceptron"},
    "averaged": {"type": "multiclass_averaged_perceptron"},
    "pockets": {"type": "multiclass_pocket_perceptron"},
    "aggressive": {"type": "multiclass_passive_aggressive"},
    "one-vs-rest": {"type": "one_vs_rest", "learner": {"type": "arow"}},
}
"""Learners of the release that no model of `MODELS` has."""
ALL: dict[str, dict[str, Any]] = {
    **MODELS,
    **{
        name: {"learner": learner, "pipeline": [NUMBERS], **TWO}
        for name, learner in ITS_LEARNERS.items()
    },
    "full-arow": {"learner": {"type": "arow"}, "pipeline": [NUMBERS], "max_features": 1},
}
POOLED = {"hedge", "hedge-of-two"}
"""Models that score otherwise since fold version 3, from the same experts and trust."""


class Release(Worker):
    """A worker that runs the sources of the release."""

    def __init__(self, redis_url: str, sources: Path) -> None:
        super().__init__(redis_url, snapshot_every_events=150)
        self._environment["PYTHONPATH"] = f"{sources / 'core'}:{sources / 'service'}"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of the release, out of the history of this repository."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("there is no git history here, so no release before")
    found = subprocess.run(
        [git, "-C", ROOT, "archive", RELEASE, "core", "service"], capture_output=True
    )
    if found.returncode:
        pytest.skip(f"{RELEASE[:7]} is not in the git history here, which may be shallow")
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def post(client: httpx.Client, path: str, body: Any = None) -> Any:
    """Return the answer to a call that must succeed."""
    answer = client.post(f"/v1/models/{path}", json=body)
    assert answer.is_success, answer.text
    return answer.json()


def seen(client: httpx.Client, name: str, at_least: str) -> dict[str, Any]:
    """Return what a model counts at a position or later, and what it says to the questions."""
    path = f"/v1/models/{name}?at_least={at_least}"
    while (answer := client.get(path)).status_code == 503:  # so many models take their time
        time.sleep(0.1)
    model = answer.raise_for_status().json()
    predicted = post(client, f"{name}/predict?at_least={at_least}", QUESTIONS)
    return {
        "counts": [model[key] for key in ("events", "mistakes", "rejected")],
        "labels": [one["y"] for one in predicted],
        "scores": [one["score"] for one in predicted],
    }


def same(client: httpx.Client, name: str, at_least: str, before: dict[str, Any]) -> None:
    """Check that a model is as it was seen before."""
    if name in POOLED:
        assert seen(client, name, at_least)["counts"] == before["counts"]
        return
    scores = pytest.approx(before["scores"], rel=1e-9, abs=1e-12)
    assert seen(client, name, at_least) == before | {"scores": scores}, name


@pytest.mark.parametrize("ending", ["stopped", "killed"])
def test_its_models_are_served_learned_and_rolled_back(
    own_server: RedisServer, sources: Path, ending: str
) -> None:
    old, new = Release(own_server.url, sources), ForkedWorker(own_server.url)
    old.start()
    try:
        with httpx.Client(base_url=old.url, timeout=60, verify=False) as client:
            for name, spec in ALL.items():
                made = client.put(f"/v1/models/{name}", json={"stream": STREAM, **spec})
                assert made.status_code == 201, made.text
            end = post(client, "text/learn", EVENTS[:200])[-1]["position"]
            checkpoints = {}
            for name in ALL:
                checkpoints[name] = seen(client, name, end)
                post(client, f"{name}/checkpoints", {"name": f"then-{name}"})
            end = post(client, "text/learn", EVENTS[200:400])[-1]["position"]
            post(client, "text/predict", LATE)
            last = {name: seen(client, name, end) for name in ALL}
        if ending == "stopped":
            old.stop()
    finally:
        old.kill()
    plain = hinged.Perceptron()
    for event in [*filter(is_numbers, EVENTS), LATE | {"y": True}]:
        plain.learn_one({k: float(v) for k, v in event["x"].items()}, event["y"])
    new.start()
    try:
        with httpx.Client(base_url=new.url, timeout=60, verify=False) as client:
            refused = client.post("/v1/models/text/learn", json=EVENTS[:1])
            assert refused.status_code == 503
            assert "hinged upgrade" in refused.json()["detail"]
            for name in ALL:
                same(client, name, post(client, f"{name}/upgrade")["position"], last[name])
            answers = post(client, "text/learn", EVENTS[390:])
            assert [one["duplicate"] for one in answers] == [True] * 10 + [False] * 100
            late = post(client, "text/learn", {"id": LATE["id"], "y": True})
            assert not late["duplicate"]
            for name in ALL:
                taken = sum(name not in NUMERIC or is_numbers(event) for event in EVENTS) + 1
                assert seen(client, name, late["position"])["counts"][0] == taken, name
            learned = client.get("/v1/models/numeric/weights").json()["weights"]
            assert learned == pytest.approx(plain.weights, rel=1e-9)
            for name in ALL:
                back = post(client, f"{name}/restore", {"checkpoint": f"then-{name}"})
                same(client, name, back["position"], checkpoints[name])
            post(client, "text/learn", made_events(random.Random(12), 501)[500:])
    finally:
        new.kill()
