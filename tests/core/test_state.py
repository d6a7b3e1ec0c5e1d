"""State that goes out and comes back is the same learner; damaged state is refused whole."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from river import datasets

from hinged import (
    Auto,
    Calibrated,
    Hedge,
    HingeSGD,
    InvalidState,
    LinearClassifier,
    MulticlassAveragedPerceptron,
    MulticlassHedge,
    OneVsRest,
    Perceptron,
    WeightVector,
)
from hinged.checks import plain_state
from hinged.lifted import Lifted


def trained(events: int = 200) -> Perceptron:
    model = Perceptron(learning_rate=0.1)
    for x, y in datasets.Phishing().take(events):
        model.learn_one(x, y)
    return model


def through_text(model: Perceptron | HingeSGD) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(json.dumps(plain_state(model)))
    return loaded


def test_two_learners_never_share_a_vector() -> None:
    model = trained()
    other = Perceptron()
    other.set_state(model.get_state())
    before = dict(other.weights)
    model.learn_one({"new": 1.0}, not model.predict_one({"new": 1.0}))
    assert dict(other.weights) == before


def damaged() -> list[Any]:
    good = through_text(trained(20))

    def scalars(**changes: Any) -> dict[str, Any]:
        return {**good, "scalars": {**good["scalars"], **changes}}

    def weights(values: Any) -> dict[str, Any]:
        return {**good, "vectors": {"weights": values}}

    return [
        *(None, [], {}, {**good, "version": 2}, {**good, "version": True}),
        *({**good, "type": "Other"}, {**good, "scalars": None}, {**good, "vectors": None}),
        *({**good, "scalars": {}}, {**good, "vectors": {}}),
        {**good, "vectors": {**good["vectors"], 3: {}}},
        *(scalars(events=-1), scalars(events=1.0), scalars(events=True), scalars(events="1")),
        *(scalars(hinge_loss=-0.5), scalars(hinge_loss=math.inf), scalars(unknown=1)),
        *(scalars(intercept=v) for v in (math.nan, math.inf, None, "0", 10**400)),
        *(weights([]), weights(None), weights({"a": 1}), weights({"a": "1.0"})),
        *(weights({"a": True}), weights({"a": None})),
        *(weights({"a": weight}) for weight in (math.nan, math.inf, -math.inf)),
    ]


@pytest.mark.parametrize("number", range(len(damaged())))
def test_damaged_state_changes_nothing(number: int) -> None:
    model = trained(50)
    before = through_text(model)
    with pytest.raises(InvalidState):
        model.set_state(damaged()[number])
    assert through_text(model) == before


def test_only_names_of_updates_that_happened_are_noted() -> None:
    model = Perceptron()
    model.learn_one({"early": 1.0}, True)
    weights = model.get_state()["vectors"]["weights"]
    assert weights.changed_count() == 0
    weights.track()
    model.learn_one({"early": 1.0, "right": 1.0}, True)
    assert weights.changed_count() == 0
    model.predict_one({"read": 1.0})
    model.learn_one({"ignored": 1.0}, False, w=0.0)
    model.learn_one({"early": 1e200}, False)
    model.learn_one({"early": -1.7e308, "late": 1.0}, False)
    model.learn_one({"late": 1.0, "x": 1e308}, True, w=2.0)
    assert model.accounting.overflows == 1
    assert weights.changed_count() == 2
    assert weights.take_changed() == {"early", "late"}
    assert weights.take_changed() == set()
    weights.put_back_changed(["late"])
    assert weights.take_changed() == {"late"}


def test_reading_never_inserts() -> None:
    model = Perceptron()
    model.learn_one({"a": 1.0}, True)
    for name in ("b", "c"):
        model.score_one({name: 1.0})
        model.predict_proba_one({name: 1.0})
        assert model.weights.get(name) is None
        assert model.get_state()["vectors"]["weights"].get(name) == 0.0
    assert dict(model.weights) == {"a": 1.0}
    with pytest.raises(TypeError):
        model.weights["a"] = 2.0  # type: ignore[index]


def test_a_vector_that_is_not_tracked_notes_nothing() -> None:
    vector = WeightVector()
    vector.add({"a": 1.0}, 1.0)
    vector.put_back_changed(["a"])
    assert vector.changed_count() == 0
    assert vector.take_changed() == set()
    assert "a" in vector
    assert len(vector) == 1


def rows_for(learner: LinearClassifier, n: int) -> list[tuple[dict[Any, Any], Any]]:
    kind: Any = datasets.ImageSegments if learner._multiclass else datasets.Phishing
    data = kind()
    return list(data.take(n))


@pytest.mark.parametrize("marks", [{}, {"f1": 0.0}, {"f0": -1e9, "f1": -1e9}])
def test_shrunk_weights_come_with_marks_of_the_past(marks: dict[str, float]) -> None:
    model = HingeSGD(steps="constant", l2=0.1)
    for y in (True, False):
        model.learn_one({"f0": 1.0, "f1": 2.0}, y)
    good = through_text(model)
    with pytest.raises(InvalidState, match="shrink_marks"):
        model.set_state({**good, "vectors": {**good["vectors"], "shrink_marks": marks}})
    assert through_text(model) == good
    model.set_state(good)
    assert model.score_one({"f0": 1.0}) != 0.0


def test_exported_weights_give_the_served_scores(learner: LinearClassifier) -> None:
    if isinstance(learner, (Auto, Calibrated, Hedge, MulticlassHedge)):  # no weights of their own
        return
    model: Any = learner.clone()
    for x, y in rows_for(learner, 1_000):
        model.learn_one(x, y)
    for x, _ in rows_for(learner, 50):
        if isinstance(learner, OneVsRest):
            scores, weights = model.scores_one(x), model.weights
            pairs = [(scores[c], weights[c], -m.threshold) for c, m in model._parts.items()]
        elif model._multiclass:
            scores, weights, intercepts = model.scores_one(x), model.weights, model.intercepts
            pairs = [(scores[c], weights[c], intercepts[c]) for c in model.classes]
        else:
            pairs = [(model.score_one(x), model.weights, -model.threshold)]
        seen: Any = model._lift(x) if isinstance(model, Lifted) else x
        for score, weights, intercept in pairs:
            exported = json.loads(json.dumps(list(weights.items())))
            again = math.fsum(value * seen.get(name, 0.0) for name, value in exported)
            assert again + intercept == pytest.approx(score, rel=1e-9, abs=1e-9)


def test_names_of_a_new_class_are_noted_also_those_dropped_again() -> None:
    dropping = HingeSGD(1.0, "constant", l2=1.0)  # every event drops all weights before it
    model = OneVsRest(dropping)
    model.learn_one({"a": 1.0}, "A")
    model.track()
    for name in ("b", "c"):
        model.learn_one({name: 1.0}, "B")
    vectors = model.get_state()["vectors"]
    assert dict(vectors["1/weights"].view()).keys() == {"c"}
    assert vectors["1/weights"].take_changed() == {"b", "c"}
    many = MulticlassAveragedPerceptron()
    many.track()
    many.learn_one({"a": 1.0}, "A")
    many.learn_one({"b": 1.0}, "B")
    changed = {n: v.take_changed() for n, v in many.get_state()["vectors"].items()}
    names = ("weights/0", "weights/1", "sums/0", "sums/1")
    assert changed == {name: {"b"} for name in names}
