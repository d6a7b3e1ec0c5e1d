"""Claims of the catalogue about each learner, checked by numbers worked out by hand."""

import math
from collections import Counter
from typing import Any

import pytest
from pydantic import TypeAdapter

from hinged_service.model.learner_specs import OwnLearner
from hinged_service.river_support.learners import RiverLearner

Learned = list[tuple[dict[str, float], Any]]

_OWN: TypeAdapter[Any] = TypeAdapter(OwnLearner)
_RIVER: TypeAdapter[Any] = TypeAdapter(RiverLearner)
A: dict[str, float] = {"a": 1.0}


def own(spec: dict[str, Any], events: Learned) -> Any:
    """Return a learner of hinged after these events."""
    learner = _OWN.validate_python(spec).build(max_features=100)
    for x, y in events:
        learner.learn_one(x, y)
    return learner


def rivers(kind: str, events: Learned, **parameters: Any) -> Any:
    """Return a classifier of River after these events."""
    model = _RIVER.validate_python({"type": kind, **parameters}).river()
    for x, y in events:
        model.learn_one(x, y)
    return model


SCHEDULE = {"type": "inverse_scaling", "rate": 8.0, "power": 2.0}
RISING: Learned = [(A, True), (A, True), (A, False)]
BY_HAND: list[tuple[dict[str, Any], Learned, float, float]] = [
    # rate / t^2: an update of 8 at the first event, of 8 / 9 at the third
    ({"type": "perceptron", "learning_rate": SCHEDULE}, RISING, 8.0 - 8.0 / 9.0, 8.0 - 8.0 / 9.0),
    # a score of 2 is at most the margin of 2: one update more
    ({"type": "perceptron", "margin": 2.0}, [(A, True)] * 3, 2.0, 2.0),
    ({"type": "perceptron", "update_on": "mistake"}, [(A, False)], 0.0, 0.0),
    ({"type": "perceptron", "fit_intercept": False}, RISING, 0.0, 0.0),
    # 1, 1, 0: the mean is 2 / 3
    ({"type": "averaged_perceptron"}, RISING, 2.0 / 3.0, 2.0 / 3.0),
    # the first weights live through one event, the later ones through none
    ({"type": "pocket_perceptron"}, RISING, 1.0, 1.0),
    # x and the intercept: norm 2, loss 1
    ({"type": "passive_aggressive", "mode": "uncapped"}, [(A, True)], 0.5, 0.5),
    ({"type": "passive_aggressive", "mode": "I", "C": 0.1}, [(A, True)], 0.1, 0.1),
    ({"type": "passive_aggressive", "mode": "II", "C": 0.25}, [(A, True)], 0.25, 0.25),
    # the step of 9 is cut to 1 / 2, at which the score is the target
    ({"type": "linear_unit", "learning_rate": 9.0}, [(A, True)], 0.5, 0.5),
    ({"type": "linear_unit", "learning_rate": 9.0, "capped": False}, [(A, True)], 9.0, 9.0),
    ({"type": "hinge_sgd", "steps": "constant", "l2": 1.0}, [(A, True)] * 2, 0.51, 0.6),
    ({"type": "hinge_sgd", "steps": "constant", "l1": 0.5}, [(A, True)], 0.15, 0.3),
    (
        {"type": "hinge_sgd", "steps": "sqrt"},
        [(A, True)] * 2,
        0.3 + 0.3 / math.sqrt(2.0),
        0.3 + 0.3 / math.sqrt(2.0),
    ),
    # 1 / (l2 t) = 2, then the weight is shrunk by 1 - 1 / 2; a score of 4 teaches nothing
    (
        {"type": "hinge_sgd", "steps": "pegasos", "l2": 0.5, "project": False},
        [(A, True)] * 2,
        1.0,
        2.0,
    ),
    # (2, 2) is projected to (1, 1), of squared norm 1 / l2, and shrunk by 1 - 1 / 2
    ({"type": "hinge_sgd", "steps": "pegasos", "l2": 0.5}, [(A, True)] * 2, 0.5, 0.5),
    (
        {"type": "hinge_sgd"},
        [(A, True)] * 2,
        0.3 + 0.3 / math.sqrt(2.0),
        0.3 + 0.3 / math.sqrt(2.0),
    ),
    # the step is 1 over the variances of x and the intercept and r, 1 + 1 + 2
    ({"type": "arow", "r": 2.0}, [(A, True)], 0.25, 0.25),
    # the variances of 3/4 become 6/7, the next step half of 6/7 over their sum and r
    ({"type": "arow", "r": 2.0, "forgetting": 0.5}, [(A, True)] * 2, 0.25 + 3 / 26, 0.25 + 3 / 26),
    # a margin of 0 and a variance of 2: sqrt(2 * 2) / (2 * 2), unless C is smaller
    ({"type": "scw", "C": 9.0, "phi": 1.0}, [(A, True)], 0.5, 0.5),
    ({"type": "scw", "C": 0.2, "phi": 1.0}, [(A, True)], 0.2, 0.2),
    # a gradient of 1/2 over its root mean square
    (
        {"type": "logistic_sgd", "decay": 0.75},
        [(A, True)],
        0.005 / math.sqrt(0.0625 + 1e-8),
        0.005 / math.sqrt(0.0625 + 1e-8),
    ),
    (
        {"type": "logistic_sgd", "steps": "adagrad"},
        [(A, True)],
        0.005 / math.sqrt(0.25 + 1e-8),
        0.005 / math.sqrt(0.25 + 1e-8),
    ),
    ({"type": "logistic_sgd", "steps": "constant", "learning_rate": 0.5}, [(A, True)], 0.25, 0.25),
    # outcomes of 1/2 in sum, of 1 at most: 1/2 / (1/2 + 1)
    ({"type": "coin_betting"}, [(A, True)], 1 / 3, 1 / 3),
    # 1/2 over (1 + 1/2) / 0.5 + 1; less than l1 gives none; the intercept has no penalty
    (
        {"type": "ftrl_proximal", "learning_rate": 0.5, "beta": 1.0, "l2": 1.0},
        [(A, True)],
        1 / 8,
        1 / 6,
    ),
    (
        {"type": "ftrl_proximal", "learning_rate": 0.5, "beta": 1.0, "l1": 0.6},
        [(A, True)],
        0.0,
        1 / 6,
    ),
]


@pytest.mark.parametrize(("spec", "events", "weight", "intercept"), BY_HAND)
def test_a_binary_rule(
    spec: dict[str, Any], events: Learned, weight: float, intercept: float
) -> None:
    learner = own(spec, events)
    assert learner.weights.get("a", 0.0) == pytest.approx(weight, abs=1e-12)
    assert 0.0 - learner.threshold == pytest.approx(intercept, abs=1e-12)


def test_a_hedge_takes_trust_from_the_wrong_and_spreads_a_share() -> None:
    experts = [{"type": "perceptron"}, {"type": "perceptron", "label_at_zero": True}]
    spec = {"type": "hedge", "models": experts, "learning_rate": math.log(3.0), "share": 0.2}
    learner = _OWN.validate_python({**spec, "models": tuple(experts)}).build(max_features=100)
    learner.learn_one(A, True)  # the first says false
    assert learner.trust == pytest.approx([0.8 / 4 + 0.1, 0.8 * 3 / 4 + 0.1], abs=1e-12)


def test_both_classes_move_half_as_far_in_multiclass_passive_aggressive() -> None:
    events: Learned = [({}, "A"), ({}, "B"), ({"a": 3.0, "b": 4.0}, "B")]
    spec = {"type": "multiclass_passive_aggressive", "mode": "uncapped", "fit_intercept": False}
    learner = own(spec, events)  # the norm is 25
    assert dict(learner.weights["B"]) == pytest.approx({"a": 0.06, "b": 0.08}, abs=1e-12)
    assert dict(learner.weights["A"]) == pytest.approx({"a": -0.06, "b": -0.08}, abs=1e-12)


MULTICLASS: list[tuple[dict[str, Any], int, float]] = [
    ({"type": "multiclass_perceptron"}, 1, 1.0),
    # 0, 0, 1
    ({"type": "multiclass_averaged_perceptron"}, 1, 1.0 / 3.0),
    # the last weights were right three times
    ({"type": "multiclass_pocket_perceptron"}, 4, 1.0),
    # the step is 1 over the variances of both classes and r, 1 + 1 + 1
    ({"type": "multiclass_arow"}, 1, 1.0 / 3.0),
]


@pytest.mark.parametrize(("spec", "times", "weight"), MULTICLASS)
def test_a_multiclass_rule(spec: dict[str, Any], times: int, weight: float) -> None:
    events: Learned = [({}, "A"), ({}, "B"), *[(A, "B")] * times]
    learner = own({**spec, "fit_intercept": False}, events)
    assert learner.weights["B"]["a"] == pytest.approx(weight, abs=1e-12)
    assert learner.weights["A"]["a"] == pytest.approx(-weight, abs=1e-12)


def test_one_against_the_rest_has_a_binary_rule_for_each_class() -> None:
    rule = {"type": "passive_aggressive", "C": 0.25}
    learner = own({"type": "one_vs_rest", "learner": rule}, [(A, "A"), ({"b": 1.0}, "B")])
    assert dict(learner.weights["A"]) == {"a": 0.25, "b": -0.25}
    assert dict(learner.weights["B"]) == {"b": 0.25}


def test_logistic_regression_steps_by_the_residual() -> None:
    model = rivers("LogisticRegression", [({"a": 2.0}, True)])  # 0.01 (1 - 1 / 2) x
    assert (dict(model.weights), model.intercept) == ({"a": 0.01}, 0.005)
    assert rivers("LogisticRegression", [(A, True)], intercept_lr=0.0).intercept == 0.0
    model = rivers("LogisticRegression", [(A, True)] * 2, l2=1.0)
    residual = 1.0 - 1.0 / (1.0 + math.exp(-0.005 - 0.005))
    assert model.weights["a"] == pytest.approx(0.99 * 0.005 + 0.01 * residual, abs=1e-12)


def test_rivers_passive_aggressive_leaves_the_intercept_out_of_the_norm() -> None:
    model = rivers("PAClassifier", [({"a": 2.0}, True)])  # 1 / 4, though both move
    assert (dict(model.weights), model.intercept) == ({"a": 0.5}, 0.25)
    model = rivers("PAClassifier", [({"a": 2.0}, True)], mode=2, C=0.5)  # 1 / (4 + 1)
    assert (dict(model.weights), model.intercept) == ({"a": 0.4}, 0.2)
    model = rivers("PAClassifier", [(A, True)], C=0.1, learn_intercept=False)
    assert (dict(model.weights), model.intercept) == ({"a": 0.1}, 0.0)


def test_alma_asks_for_a_margin_that_alpha_lowers() -> None:
    quarter: dict[str, float] = {"a": 0.25}
    model = rivers("ALMAClassifier", [(quarter, True)] * 2, alpha=0.5, B=1.0, C=1.0)
    # steps of 1 and 1 / sqrt(2); the margin of the second event is 1 / 16 < 1 / (2 sqrt(2))
    assert model.w["a"] == pytest.approx(0.25 * (1.0 + 1.0 / math.sqrt(2.0)), abs=1e-12)
    model = rivers("ALMAClassifier", [(quarter, True)] * 2, alpha=0.92, B=1.0, C=1.0)
    assert model.w["a"] == 0.25  # 1 / 16 > 0.08 / sqrt(2)
    assert dict(rivers("ALMAClassifier", [(A, True), (A, False)], alpha=1.0).w) == {}


def test_softmax_regression_has_no_intercepts() -> None:
    model = rivers("SoftmaxRegression", [(A, "p")] * 3 + [({"b": 1.0}, "q")])
    assert model.predict_proba_one({}) == {"p": 0.5, "q": 0.5}


def test_the_naive_bayes_family() -> None:
    pair: Learned = [({"a": 3.0}, "p"), ({"b": 1.0}, "q")]
    # P(a | p) = (3 + 1) / (3 + 2), P(a | q) = (0 + 1) / (1 + 2)
    wanted = {"p": 12.0 / 17.0, "q": 5.0 / 17.0}
    assert rivers("MultinomialNB", pair).predict_proba_one(A) == pytest.approx(wanted, abs=1e-9)
    # not in q is 1 over 1 / 3, not in p is 1 over 4 / 5
    assert rivers("ComplementNB", pair).predict_proba_one(A) == pytest.approx(wanted, abs=1e-9)
    there = rivers("BernoulliNB", [({"a": 3.0}, "p"), (A, "q")], true_threshold=2.0)
    # (1 + 1) / (1 + 2) against (0 + 1) / (1 + 2)
    assert there.predict_proba_one({"a": 2.5})["p"] == pytest.approx(2.0 / 3.0, abs=1e-8)
    assert there.predict_proba_one({"a": 2.0})["p"] == pytest.approx(1.0 / 3.0, abs=1e-8)
    assert there.predict_proba_one({})["p"] == pytest.approx(1.0 / 3.0, abs=1e-8)
    values: Learned = [
        ({"a": v, "b": 9.0 * v}, y) for y, v in zip("ppqq", (0, 1, 4, 5), strict=True)
    ]
    normal = rivers("GaussianNB", values)
    assert normal.predict_proba_one({}) == pytest.approx({"p": 0.5, "q": 0.5}, abs=1e-9)
    # both variances are 1 / 4, of all values: log odds 2 (4.5 - a)^2 - 2 (a - 0.5)^2
    odds = math.exp(2.0 * (4.5 - 2.4) ** 2 - 2.0 * (2.4 - 0.5) ** 2)
    assert normal.predict_proba_one({"a": 2.4})["p"] == pytest.approx(odds / (1 + odds), abs=1e-6)


def test_bagging_draws_how_often_a_member_learns_from_a_poisson_law() -> None:
    spec = {"type": "MultinomialNB"}
    bag = rivers("BaggingClassifier", [(A, "p")], model=spec, n_models=50, seed=1)
    draws = Counter(int(member.class_counts["p"]) for member in bag)
    assert 10 <= draws[0] <= 27  # 50 / e = 18 of them
    assert 10 <= draws[1] <= 27
    assert max(draws) >= 2
