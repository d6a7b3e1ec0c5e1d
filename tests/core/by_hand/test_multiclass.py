"""Multiclass rules against hand arithmetic."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import pytest

from hinged import (
    Auto,
    InvalidEvent,
    InvalidParameter,
    MulticlassAROW,
    MulticlassAveragedPerceptron,
    MulticlassDiscriminant,
    MulticlassHedge,
    MulticlassLogisticSGD,
    MulticlassPassiveAggressive,
    MulticlassPerceptron,
    MulticlassPocketPerceptron,
    OneVsRest,
    Perceptron,
)
from tests.core.by_hand.learned import learned


class TestMulticlass:
    @pytest.fixture
    def known(self) -> list[tuple[dict[str, float], str]]:
        return [({}, "A"), ({}, "B")]

    @pytest.mark.parametrize(
        ("mode", "C", "tau"),
        [("uncapped", 1.0, 0.02), ("I", 0.01, 0.01), ("II", 0.02, 0.01333333333333333)],
    )
    def test_passive_aggressive_divides_by_twice_the_norm(
        self, known: Any, mode: str, C: float, tau: float
    ) -> None:
        model = learned(MulticlassPassiveAggressive(C, mode, fit_intercept=False), known)
        assert model.classes == ["A", "B"]
        model.learn_one({"a": 3, "b": 4}, "A")
        assert dict(model.weights["A"]) == pytest.approx({"a": 3 * tau, "b": 4 * tau}, abs=1e-15)
        assert dict(model.weights["B"]) == pytest.approx({"a": -3 * tau, "b": -4 * tau}, abs=1e-15)
        scores = model.scores_one({"a": 3, "b": 4})
        assert scores["A"] - scores["B"] == pytest.approx(50 * tau, abs=1e-14)

    def test_passive_aggressive_counts_both_intercepts(self) -> None:
        model = MulticlassPassiveAggressive(mode="uncapped")
        model.learn_one({}, "A")
        model.learn_one({"a": 3, "b": 4}, "B")
        assert model.intercepts["B"] == pytest.approx(1 / 52, abs=1e-15)
        assert model.intercepts["A"] == pytest.approx(-1 / 52, abs=1e-15)

    def test_the_first_event_is_neither_right_nor_a_mistake(self, multiclass: Any) -> None:
        model = multiclass.clone()
        assert model.predict_one({"a": 1.0}) is None
        assert model.predict_proba_one({"a": 1.0}) == {}
        assert model.score_one({"a": 1.0}) == 0.0
        outcome = model.predict_learn_one({"a": 1.0}, "A")
        assert outcome[:3] == (None, 0.0, False)
        assert model.accounting.mistakes == 0
        inner = (getattr(model, name, None) for name in ("calibrated", "lifted"))
        alone = [model, *getattr(model, "experts", ()), *inner]
        at_once = (OneVsRest, MulticlassDiscriminant, Auto)
        assert outcome.updated is any(isinstance(one, at_once) for one in alone)
        assert model.predict_one({}) == "A"

    def test_perceptron_moves_two_classes(self) -> None:
        model = MulticlassPerceptron()
        learned(model, [({"x": 1.0}, "A"), ({"y": 1.0}, "B"), ({"x": 1.0, "y": 1.0}, "C")])
        # B beats nothing: tie with A at 0. C ties at 0 with both after B: s_A = -2, s_B = 2.
        assert model.intercepts == {"A": -1.0, "B": 0.0, "C": 1.0}
        assert {y: dict(w) for y, w in model.weights.items()} == {
            "A": {"y": -1.0},
            "B": {"y": 0.0, "x": -1.0},
            "C": {"x": 1.0, "y": 1.0},
        }

    def test_arow_sums_both_variances(self) -> None:
        model = MulticlassAROW(fit_intercept=False)
        learned(model, [({}, "A"), ({"a": 1.0}, "B")])
        # beta = 1 / (2 + 1); both move by 1/3 and keep 2/3 of their variance
        assert model.weights["B"]["a"] == pytest.approx(1 / 3, abs=1e-15)
        assert model.weights["A"]["a"] == pytest.approx(-1 / 3, abs=1e-15)
        state = model.get_state()
        assert state["vectors"]["variance/0"].get("a") == pytest.approx(2 / 3, abs=1e-15)

    def test_multiclass_logistic_by_hand(self, known: Any) -> None:
        model = learned(MulticlassLogisticSGD(fit_intercept=False), known)
        model.learn_one({"a": 2.0}, "A")  # both have 1/2: the gradients are -1 and 1
        assert model.weights["A"]["a"] == pytest.approx(0.3, abs=1e-8)
        assert model.weights["B"]["a"] == pytest.approx(-0.3, abs=1e-8)
        model.learn_one({"a": 1.0}, "B", 2.0)
        p = 1.0 / (1.0 + math.exp(-0.6))
        step = 0.3 / math.sqrt(1.0 + 4.0 * p * p) * 2.0 * p
        assert model.weights["A"]["a"] == pytest.approx(0.3 - step, abs=1e-8)
        assert model.weights["B"]["a"] == pytest.approx(step - 0.3, abs=1e-8)

    def test_multiclass_logistic_leaves_improbable_classes_where_they_are(self) -> None:
        start: dict[Any, float] = {"A": 0.0, "B": 0.0, "C": -6.0}  # C has 0.0012
        for least, moves in ((0.01, False), (0.001, True)):
            model = MulticlassLogisticSGD(least=least, initial_intercepts=start)
            more = model.growth_bytes({"a": 1.0}, "A")
            assert more == 2 * (128 + 1) * (2 + moves)
            model.learn_one({"a": 1.0}, "A")
            assert model.stored_bytes() == more
            assert (model.intercepts["C"] < -6.0) is moves
            model.learn_one({"a": 1.0}, "C")
            assert model.intercepts["C"] > -6.0

    def test_averaged_is_the_mean_after_each_event(self) -> None:
        events = [({"x": 1.0}, "A"), ({"y": 1.0}, "B"), ({"x": 1.0, "y": 1.0}, "C")] * 2
        raw, model = MulticlassPerceptron(), MulticlassAveragedPerceptron()
        totals: dict[Any, dict[Any, float]] = {}
        for x, y in events:
            raw.learn_one(x, y)
            model.learn_one(x, y)
            for label, weights in raw.weights.items():
                total = totals.setdefault(label, {})
                for name, value in {**weights, "b": raw.intercepts[label]}.items():
                    total[name] = total.get(name, 0.0) + value / 6
        for label, total in totals.items():
            assert model.intercepts[label] == pytest.approx(total.pop("b"), abs=1e-12)
            assert model.weights[label] == pytest.approx(total, abs=1e-12)

    def test_pocket_serves_the_longest_run(self) -> None:
        model = MulticlassPocketPerceptron(fit_intercept=False)
        learned(model, [({"a": 1.0}, "A"), ({"a": 1.0}, "B")] + [({"a": 1.0}, "B")] * 3)
        learned(model, [({"a": 1.0}, "A")])
        assert model.record == 3
        assert model.predict_one({"a": 1.0}) == "B"
        assert model.weights["B"]["a"] == 1.0

    def test_a_new_class_is_learned_at_first_sight(self, multiclass: Any) -> None:
        model = multiclass.clone()
        for i in range(50):
            model.learn_one({"x": 1.0 + i % 3, "y": float(i % 2)}, "AB"[i % 2])
        before = model.predict_proba_one({"z": 1.0})
        assert list(before) == ["A", "B"]
        mistakes = model.accounting.mistakes
        model.learn_one({"z": 1.0}, "C")
        assert model.accounting.mistakes == mistakes + 1
        after = model.predict_proba_one({"z": 1.0})
        assert list(after) == ["A", "B", "C"]
        for proba in (before, after):
            assert math.fsum(proba.values()) == pytest.approx(1.0, abs=1e-12)

    def test_ties_go_to_the_class_seen_first_also_after_a_reload(self, multiclass: Any) -> None:
        model = multiclass.clone()
        labels = ["Z", "M", "A", "Q"]
        for label in labels:
            model.learn_one({label: 1.0}, label, 1.0)
        other = multiclass.clone()
        other.set_state(model.get_state())
        assert other.classes == labels
        assert other.predict_one({"other": 0.0}) == model.predict_one({"other": 0.0})
        blank = multiclass.clone()
        for label in labels[:2]:
            blank.learn_one({}, label, 1.0)
        if not isinstance(blank, (OneVsRest, MulticlassHedge)) and not blank.fit_intercept:
            assert blank.predict_one({"other": 1.0}) == "Z"

    @pytest.mark.parametrize(
        ("first", "second"),
        [(1, True), (True, 1), (1, "1"), ("true", True), ("1", 1), (0, False)],
    )
    def test_labels_of_two_types_are_refused(
        self, multiclass: Any, first: Any, second: Any
    ) -> None:
        model = multiclass.clone()
        model.learn_one({"a": 1.0}, first)
        with pytest.raises(InvalidEvent, match="y must be of type"):
            model.learn_one({"a": 1.0}, second)
        assert model.classes == [first]
        assert type(model.classes[0]) is type(first)
        assert model.accounting.events == 1
        assert type(model.predict_one({"a": 1.0})) is type(first)

    @pytest.mark.parametrize("y", [None, math.nan, 1.0, 1.5, [1], {}, ("x", [1]), pd.NA, pd.NaT])
    def test_a_label_that_names_no_class_is_refused(self, multiclass: Any, y: Any) -> None:
        with pytest.raises(InvalidEvent, match="y must be a label"):
            multiclass.clone().learn_one({"a": 1.0}, y)

    def test_a_class_too_many_is_refused(self) -> None:
        capped = MulticlassPerceptron(max_classes=2)
        pools = MulticlassHedge(max_classes=2), MulticlassHedge([capped, MulticlassAROW()])
        for model in (capped.clone(), OneVsRest(max_classes=2), *pools):
            learned(model, [({"a": 1.0}, "A"), ({"a": 1.0}, "B")])
            with pytest.raises(InvalidEvent, match="all 2 are taken"):
                model.learn_one({"a": 1.0}, "C")
            assert model.classes == ["A", "B"]

    def test_letters(self, letter: list[tuple[dict[str, float], str]]) -> None:
        model = learned(MulticlassPerceptron(), letter)
        assert (model.accounting.mistakes, model.accounting.updates) == (
            11_109,
            11_119,
        )  # the first has no prediction


class TestOneVsRest:
    def test_each_class_learns_all_events_since_it_was_seen(self) -> None:
        model = learned(OneVsRest(), [({"a": 1.0}, "A"), ({"b": 1.0}, "B"), ({"a": 1.0}, "A")])
        one = learned(Perceptron(), [({"a": 1.0}, True), ({"b": 1.0}, False), ({"a": 1.0}, True)])
        two = learned(Perceptron(), [({"b": 1.0}, True), ({"a": 1.0}, False)])
        assert model.weights == {"A": one.weights, "B": two.weights}
        with pytest.raises(InvalidParameter):
            OneVsRest(MulticlassPerceptron())  # type: ignore[arg-type]
