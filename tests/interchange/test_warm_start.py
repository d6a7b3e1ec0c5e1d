"""Models that River or scikit-learn has trained go on in the service from where they stood."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import joblib
import numpy as np
import pandas as pd
import pytest
import river
from river import compose, linear_model, multiclass, naive_bayes, preprocessing  # noqa: F401
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

import hinged
from hinged_service.client import Client
from hinged_service.interchange.river_model import ExportedModel
from hinged_service.interchange.warm_start import NotImportable, document_from
from tests.cli.conftest import run_hinged
from tests.support.service import Service

Start = Callable[..., str]
RIVER: Any = river  # parts of it have no types
_names = itertools.count()
DICE = np.random.default_rng(7)
ROWS = DICE.normal([40, -2], [12, 0.5], (200, 2))
FRAME = pd.DataFrame(ROWS, columns=["age", "slope"])
EVENTS = FRAME.to_dict("records")
SIDES = (ROWS[:, 0] - 40 + 10 * ROWS[:, 1] > -20).tolist()
KINDS = ["low" if a < 30 else "mid" if a < 45 else "high" for a in ROWS[:, 0]]


@pytest.fixture
def start(service: Service, tmp_path: Path) -> Start:
    """Pickle a model, take it over, and return its path."""

    def take(model: object, origin: Any, dump: Any = pickle.dump, **more: Any) -> str:
        file, name = tmp_path / "trained", f"warm-{next(_names)}"
        with file.open("wb") as out:
            dump(model, out)
        with Client(service.url) as caller:
            caller.import_model(name, document_from(str(file), origin, name, **more))
        return f"/v1/models/{name}"

    return take


def answers(client: httpx.Client, path: str) -> list[dict[str, Any]]:
    answer = client.post(f"{path}/predict", json=[{"x": x} for x in EVENTS])
    assert answer.is_success, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


def test_a_river_pipeline_goes_on(client: httpx.Client, start: Start) -> None:
    model: Any = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    for x, y in zip(EVENTS, SIDES, strict=True):
        model.learn_one(x, y)
    path = start(model, "river", labels=["no", "yes"])
    for x, answer in zip(EVENTS, answers(client, path), strict=True):
        assert answer["y"] == ("yes" if model.predict_one(x) else "no")
        assert answer["proba"]["yes"] == pytest.approx(model.predict_proba_one(x)[True], abs=1e-9)
    learned = client.post(f"{path}/learn", json={"x": EVENTS[0], "y": "no"}).json()
    assert learned["updated"]
    info = client.get(path).json()
    assert info["spec"]["learner"]["type"] == "logistic_sgd"
    assert info["events"] == 1


def test_river_for_several_labels(client: httpx.Client, start: Start) -> None:
    model: Any = multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
    for x, y in zip(EVENTS, KINDS, strict=True):
        model.learn_one({"age": x["age"] / 40}, y)
    path = start(model, "river")
    for age in (10.0, 29.0, 44.0, 80.0):
        answer = client.post(f"{path}/predict", json={"x": {"age": age / 40}}).json()
        for y, member in model.classifiers.items():
            score = member.weights["age"] * age / 40 + member.intercept
            info = client.get(f"{path}/weights", params={"class": y}).json()["classes"][y]
            found = info["weights"].get("age", 0.0) * age / 40 + info["intercept"]
            assert found == pytest.approx(score, abs=1e-12)
        assert answer["y"] == model.predict_one({"age": age / 40})


def test_scikit_learn_for_two_and_more_labels(client: httpx.Client, start: Start) -> None:
    two = make_pipeline(StandardScaler(), MinMaxScaler(), Perceptron())
    two.fit(FRAME, np.array(SIDES))
    path = start(two, "sklearn", joblib.dump)
    for answer, y, score in zip(
        answers(client, path), two.predict(FRAME), two.decision_function(FRAME), strict=True
    ):
        assert (answer["y"], answer["score"]) == (y, pytest.approx(score, rel=1e-9, abs=1e-9))

    many = make_pipeline(DictVectorizer(sparse=False), StandardScaler(), LogisticRegression())
    many.fit(EVENTS, KINDS)
    path = start(many, "sklearn")
    best = many.decision_function(EVENTS).max(axis=1)
    for answer, y, score in zip(answers(client, path), many.predict(EVENTS), best, strict=True):
        assert (answer["y"], answer["score"]) == (y, pytest.approx(score, rel=1e-9, abs=1e-9))
    event = {"x": EVENTS[0], "y": "a fourth"}
    assert client.post(f"{path}/learn", json=event).json()["mistake"]


def test_an_exported_classifier_comes_back_whole(
    client: httpx.Client, service: Service, start: Start
) -> None:
    path = f"/v1/models/warm-{next(_names)}"
    client.put(path, json={"learner": {"type": "auto"}}).raise_for_status()
    learned = [{"x": x, "y": y} for x, y in zip(EVENTS, KINDS, strict=True)]
    client.post(f"{path}/learn", json=learned).raise_for_status()
    with Client(service.url) as caller:
        name = path.rsplit("/", 1)[1]
        model = ExportedModel(caller.export_checkpoint(name, caller.make_checkpoint(name).uid))
    model.learn_one(EVENTS[0], "low")
    with pytest.raises(NotImportable, match="own learner"):
        start(model, "river", labels=["a", "b"])
    again = start(model, "river")
    client.post(f"{path}/learn", json={"x": EVENTS[0], "y": "low"}).raise_for_status()
    for a, b in zip(answers(client, path), answers(client, again), strict=True):
        assert (a["y"], a["score"], a["proba"]) == (b["y"], b["score"], b["proba"])


def test_the_learners_of_this_package(client: httpx.Client, start: Start) -> None:
    model: Any = hinged.AutoScaler() | hinged.AROW()
    for x, y in zip(EVENTS, SIDES, strict=True):
        model.learn_one(x, y)
    path = start(model, "river")
    for x, answer in zip(EVENTS[:20], answers(client, path), strict=False):
        assert answer["score"] == pytest.approx(
            model["AROW"].score_one(model["AutoScaler"].transform_one(x))
        )


@pytest.mark.parametrize(
    ("model", "origin", "message"),
    [
        (
            compose.Pipeline(RIVER.naive_bayes.GaussianNB()),
            "river",
            "GaussianNB is not a linear model",
        ),
        (
            RIVER.preprocessing.Normalizer() | linear_model.LogisticRegression(),
            "river",
            "step Normalizer",
        ),
        (RIVER.linear_model.ALMAClassifier(), "river", "is not a linear model"),
        (hinged.MulticlassDiscriminant(), "river", "MulticlassDiscriminant is not a linear model"),
        (make_pipeline(Normalizer(), Perceptron()).fit(FRAME, SIDES), "sklearn", "step Normalizer"),
        (LogisticRegression(), "sklearn", "is not a fitted linear classifier"),
        ({"not": "a model"}, "sklearn", "dict is not a fitted linear classifier"),
    ],
)
def test_a_model_that_cannot_be_taken_over_is_named(
    start: Start, model: object, origin: str, message: str
) -> None:
    with pytest.raises(NotImportable, match=message):
        start(model, origin)


def test_the_command_makes_the_model_or_says_why_not(service: Service, tmp_path: Path) -> None:
    file, name = tmp_path / "model.pkl", f"warm-{next(_names)}"
    file.write_bytes(pickle.dumps(Perceptron().fit(FRAME, SIDES)))
    options = "--from", "sklearn", "--learner", "passive_aggressive", "--set", "C=0.5"
    made = run_hinged("import", name, str(file), *options, "--json", HINGED_URL=service.url)
    assert made.json()["spec"]["learner"]["C"] == 0.5
    file.write_bytes(b"no pickle")
    bad = run_hinged("import", "other", str(file), "--from", "river", HINGED_URL=service.url)
    assert (bad.code, "cannot be unpickled" in bad.err) == (1, True)
