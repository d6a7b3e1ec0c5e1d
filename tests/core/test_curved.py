"""Curved: a learner of random Fourier features, alone and in a hedge."""

import json
import math
import random
from typing import Any

import pytest
from river import compose, datasets

import hinged
from hinged import AROW, AutoScaler, Curved, FourierFeatures, Hedge, PassiveAggressive, Perceptron

Rows = list[tuple[dict[Any, float], bool]]


def bananas() -> Rows:
    source: Any = datasets.Bananas
    return [(dict(x), bool(y)) for x, y in source()]


def xor(n: int = 1_500) -> Rows:
    r = random.Random(1)
    rows = []
    for _ in range(n):
        x = {"a": r.gauss(0.0, 1.0), "b": r.gauss(0.0, 1.0)}
        rows.append((x, (x["a"] > 0.0) is (x["b"] > 0.0)))
    return rows


def accuracy(model: Any, rows: Rows) -> float:
    right = 0
    for x, y in rows:
        right += model.predict_one(x) is y
        model.learn_one(x, y)
    return right / len(rows)


@pytest.mark.parametrize("rule", [Perceptron(), PassiveAggressive(mode="II"), AROW(r=0.1)])
def test_it_is_the_learner_behind_fourier_features(rule: Any) -> None:
    model = Curved(rule, n_components=30, bend=1.5, seed=4)
    features, plain = FourierFeatures(30, 1.5, 4), rule.clone()
    for x, y in xor(200):
        features_before = features.transform_one(x)
        assert model.predict_proba_one(x) == plain.predict_proba_one(features_before)
        assert model.explain_one(x) == plain.explain_one(features_before)
        features.learn_one(x)
        outcome = plain.predict_learn_one(features.transform_one(x), y, 0.5 if y else 1.0)
        assert model.predict_learn_one(x, y, 0.5 if y else 1.0) == outcome
    assert dict(model.weights) == dict(plain.weights)
    assert (model.threshold, model.clock) == (plain.threshold, plain.clock)
    assert model.accounting.mistakes == plain.accounting.mistakes > 0
    assert rule.clock == 0


def test_it_learns_xor_which_no_linear_learner_does() -> None:
    assert accuracy(AROW(), xor()) < 0.6
    assert accuracy(Curved(), xor()) > 0.9


def test_bananas() -> None:
    rows = bananas()
    assert accuracy(compose.Pipeline(AutoScaler(), Hedge()), rows) < 0.7
    assert accuracy(compose.Pipeline(AutoScaler(), Hedge(curved=True)), rows) > 0.885


def test_a_hedge_takes_it_as_an_expert_and_restores_it_bit_for_bit() -> None:
    model = Hedge([Perceptron(), Curved(PassiveAggressive(), n_components=20)], curved=True)
    assert [type(e).__name__ for e in model.experts] == ["Perceptron", *["Curved"] * 3]
    rows = xor(300)
    for x, y in rows[:150]:
        model.learn_one(x, y)
    again = model.clone()
    saved = model.get_state()
    vectors = {n: json.loads(json.dumps(dict(v.view()))) for n, v in saved["vectors"].items()}
    again.set_state({**json.loads(json.dumps({**saved, "vectors": {}})), "vectors": vectors})
    for x, y in rows[150:]:
        assert again.predict_learn_one(x, y) == model.predict_learn_one(x, y)
    assert sum(model.trust[1:]) > 0.9
    assert again.trust == model.trust


def test_wide_and_empty_events_move_the_intercept_alone() -> None:
    model = Curved(max_width=3)
    model.learn_one({f"f{i}": 1.0 for i in range(4)}, True)
    model.learn_one({}, True)
    assert (len(model.weights), model.features.widest) == (0, 0)
    assert model.score_one({f"f{i}": 9.0 for i in range(4)}) == model.score_one({}) > 0.0
    model.learn_one({f"f{i}": 1.0 for i in range(3)}, False)
    assert (len(model.weights), model.features.widest) == (100, 3)


def test_bytes_do_not_depend_on_the_names_of_events() -> None:
    model = Curved()
    x = {f"f{i}": 1.0 for i in range(9)}
    expected = 2 * sum(128 + len(f"cos_{j}") for j in range(100))
    assert model.growth_bytes(x, True) == expected <= 9 * 128 * model.numbers_per_name
    model.learn_one(x, True)
    assert model.stored_bytes() == expected
    assert model.growth_bytes({"new": 1.0}, True) == 0


def test_a_refused_event_changes_nothing() -> None:
    model = Curved()
    model.learn_one({"a": 1.0}, True)
    before = repr(model.get_state()["scalars"])
    wide = {"a": 1.0, "b": 2.0}
    for x, y, w in (({**wide, "c": math.inf}, True, 1.0), (wide, 2, 1.0), (wide, True, -1.0)):
        with pytest.raises(hinged.InvalidEvent):
            model.learn_one(x, y, w)
    assert repr(model.get_state()["scalars"]) == before
    model.learn_one(wide, True, 0.0)
    assert model.features.widest == 1


@pytest.mark.parametrize(
    "wrong", [{"learner": Curved()}, {"learner": Hedge()}, {"max_width": 0}, {"max_width": None}]
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(hinged.InvalidParameter):
        Curved(**wrong)


@pytest.mark.parametrize("widest", [None, -1, 1.5])
def test_a_damaged_state_is_refused_and_changes_nothing(widest: Any) -> None:
    model = Curved(n_components=5)
    model.learn_one({"a": 1.0}, True)
    saved = model.get_state()
    with pytest.raises(hinged.InvalidState):
        model.set_state({**saved, "scalars": {**saved["scalars"], "widest": widest}})
    with pytest.raises(hinged.InvalidState):
        model.set_state({**saved, "scalars": {**saved["scalars"], "widest": 9, "other": 1}})
    assert model.features.widest == 1
