"""Perceptrons and their like against hand arithmetic."""

from __future__ import annotations

import math
from typing import Any

import pytest
from river import optim

from hinged import (
    AveragedPerceptron,
    InvalidEvent,
    InvalidParameter,
    LinearUnit,
    PassiveAggressive,
    Perceptron,
    PocketPerceptron,
    random_weights,
)
from tests.core.by_hand.learned import AND, learned


def passes_until_clean(model: Perceptron, limit: int = 50) -> int:
    for number in range(1, limit):
        before = model.accounting.updates
        learned(model, AND)
        if model.accounting.updates == before:
            return number
    raise AssertionError("never clean")


class TestPerceptron:
    def test_and(self) -> None:
        model = learned(Perceptron(), AND)
        assert (model.intercept, dict(model.weights)) == (0.0, {"x1": 1.0, "x2": 1.0})
        model = Perceptron()
        assert passes_until_clean(model) == 9
        assert (model.intercept, dict(model.weights)) == (-4.0, {"x1": 3.0, "x2": 2.0})
        assert model.accounting.updates == 18
        assert model.threshold == 4.0

    @pytest.mark.parametrize(
        ("positive", "end", "updates"),
        [(True, (-3.0, 2.0, 1.0), 11), (False, (-2.0, 2.0, 1.0), 10)],
    )
    def test_and_updating_on_mistakes_only(
        self, positive: bool, end: tuple[float, ...], updates: int
    ) -> None:
        model = Perceptron(update_on="mistake", label_at_zero=positive)
        assert model.predict_one({}) is positive
        assert passes_until_clean(model) == 6
        assert (model.intercept, model.weights["x1"], model.weights["x2"]) == end
        assert model.accounting.updates == updates == model.accounting.mistakes

    def test_margin_updates_at_exactly_the_margin(self) -> None:
        model = Perceptron(margin=2.0)
        learned(model, [({"a": 1}, True)] * 2)
        assert (model.weights["a"], model.intercept) == (2.0, 2.0)
        learned(model, [({"a": 1}, True)])
        assert (model.weights["a"], model.accounting.mistakes) == (2.0, 1)

    @pytest.mark.parametrize(
        ("power", "rates"), [(0.5, [1, 2**-0.5, 3**-0.5]), (1.0, [1, 0.5, 1 / 3])]
    )
    def test_schedules_count_from_one(self, power: float, rates: list[float]) -> None:
        model = Perceptron(optim.schedulers.InverseScaling(1.0, power), fit_intercept=False)
        for name, rate in zip("abc", rates, strict=True):
            model.learn_one({name: 1.0}, True, 0.0)
            model.learn_one({name: 1.0}, True)
            assert model.weights[name] == pytest.approx(rate, abs=1e-15)

    def test_starts_where_told(self) -> None:
        start = random_weights(["a", "b"], seed=3, scale=2.0)
        assert start == random_weights(["a", "b"], seed=3, scale=2.0)
        model = Perceptron(initial_weights=start, initial_intercept=0.5)
        assert model.score_one({"a": 1.0, "b": -1.0}) == start["a"] - start["b"] + 0.5
        model.learn_one({"a": 100.0}, start["a"] < 0)
        assert model.clone().weights == start

    @pytest.mark.parametrize(
        "params",
        [
            {"margin": -1.0},
            {"margin": math.nan},
            {"update_on": "never"},
            {"update_on": "mistake", "margin": 1.0},
            {"initial_intercept": 1.0, "fit_intercept": False},
            {"initial_intercept": math.inf},
            {"initial_weights": {"a": math.nan}},
            {"initial_weights": {"a": "1"}},
            {"label_at_zero": 1},
            {"max_features": 0},
            {"max_features": 1.5},
        ],
    )
    def test_refuses(self, params: dict[str, Any]) -> None:
        with pytest.raises(InvalidParameter):
            Perceptron(**params)


class TestAveraged:
    def test_four_events(self) -> None:
        events = [({"a": 1}, True), ({"a": 1}, True), ({"a": 1}, False), ({"a": 2}, True)]
        model = learned(AveragedPerceptron(), events)
        assert (dict(model.weights), model.score_one({})) == ({"a": 1.0}, 0.75)
        raw = model.get_state()
        assert (dict(raw["vectors"]["weights"].view()), model.intercept) == ({"a": 2.0}, 1.0)
        assert model.accounting.updates == 3
        assert model.accounting.hinge_loss == 5.0

    def test_three_events_of_two_features(self) -> None:
        events = [({"a": 1, "b": 2}, True), ({"a": -1}, True), ({"b": 1}, False)]
        model = learned(AveragedPerceptron(), events)
        assert model.weights == pytest.approx({"a": 1 / 3, "b": 5 / 3}, abs=1e-15)
        assert model.score_one({}) == pytest.approx(4 / 3, abs=1e-15)
        assert dict(model.get_state()["vectors"]["weights"].view()) == {"a": 0.0, "b": 1.0}
        assert (model.accounting.updates, model.accounting.hinge_loss) == (3, 7.0)

    def test_mistakes_are_those_of_the_average(self) -> None:
        # Raw (w, b) after each event: (1, 1), (0, 0), (0, 0). Before the third the average is 1/2.
        model = learned(AveragedPerceptron(), [({"a": 1}, True), ({"a": 1}, False)])
        outcome = model.predict_learn_one({"a": 1}, True)
        assert outcome == (True, 1.0, False, True, 1.0)
        assert model.accounting.mistakes == 2


class TestPocket:
    def test_keeps_the_longest_run(self) -> None:
        model = PocketPerceptron(fit_intercept=False)
        learned(model, [({"a": 1}, True)] * 4)
        assert (dict(model.weights), model.record) == ({"a": 1.0}, 0)
        learned(model, [({"a": 1}, False)])
        assert (dict(model.weights), model.record) == ({"a": 1.0}, 3)
        learned(model, [({"a": 1}, False)])
        assert (dict(model.weights), model.record) == ({"a": 1.0}, 3)
        learned(model, [({"a": 1}, False)] * 3)
        assert (dict(model.weights), model.record) == ({"a": 1.0}, 3)
        learned(model, [({"a": 1}, False)])
        assert (dict(model.weights), model.record) == ({"a": -1.0}, 3)
        assert model.accounting.updates == 3


class TestPassiveAggressive:
    def test_uncapped_reaches_margin_one(self) -> None:
        model = learned(
            PassiveAggressive(mode="uncapped", fit_intercept=False), [({"a": 3, "b": 4}, True)]
        )
        assert model.weights == pytest.approx({"a": 0.12, "b": 0.16}, abs=1e-15)
        model = learned(PassiveAggressive(mode="uncapped"), [({"a": 3, "b": 4}, False)])
        assert model.score_one({"a": 3, "b": 4}) == pytest.approx(-1.0, abs=1e-15)
        assert model.intercept == pytest.approx(-1 / 26, abs=1e-15)

    def test_caps(self) -> None:
        x = {"a": 3, "b": 4}
        one = learned(PassiveAggressive(C=0.01, mode="I", fit_intercept=False), [(x, True)])
        assert one.weights == pytest.approx({"a": 0.03, "b": 0.04}, abs=1e-16)
        two = learned(PassiveAggressive(C=0.02, mode="II", fit_intercept=False), [(x, True)])
        assert two.weights == pytest.approx({"a": 0.06, "b": 0.08}, abs=1e-16)

    def test_sample_weights_scale_the_cap(self) -> None:
        x = {"a": 3, "b": 4}
        for mode in ("I", "II"):
            weighted = learned(PassiveAggressive(C=0.01, mode=mode), [(x, True, 2.0)])
            bolder = learned(PassiveAggressive(C=0.02, mode=mode), [(x, True)])
            assert weighted.weights == bolder.weights
        model = PassiveAggressive(mode="uncapped")
        with pytest.raises(InvalidEvent, match="w must be 0 or 1"):
            model.learn_one(x, True, 0.5)
        assert model.accounting.events == 0

    def test_an_unusable_norm_never_divides(self) -> None:
        events = [({"a": 1e-200}, True), ({}, True), ({"a": 0.0}, True)]
        for mode, after in (("uncapped", 0.0), ("I", 0.0), ("II", 2e-200)):
            model = PassiveAggressive(mode=mode, fit_intercept=False)
            learned(model, events)
            assert model.weights.get("a", 0.0) == pytest.approx(after, rel=1e-12, abs=0.0)
            assert model.accounting.hinge_loss == 3.0
            learned(model, [({"a": 1}, True)])
            assert model.weights["a"] == pytest.approx(2 / 3 if mode == "II" else 1.0, abs=1e-12)
        for mode, intercept in (("uncapped", 1.0), ("I", 1.0), ("II", 2 / 3)):
            model = learned(PassiveAggressive(mode=mode), [({}, True)])
            assert model.intercept == pytest.approx(intercept, abs=1e-15)


class TestLinearUnit:
    def test_textbook_step(self) -> None:
        model = learned(LinearUnit(0.1, capped=False), [({"a": 2.0}, True), ({"a": 1.0}, False)])
        # w = 0.1 * 1 * 2 = 0.2, b = 0.1; then the error is -1 - 0.3 = -1.3
        assert (model.weights["a"], model.intercept) == pytest.approx((0.07, -0.03), abs=1e-15)

    def test_the_cap_meets_the_target(self) -> None:
        model = learned(LinearUnit(5.0), [({"a": 3.0, "b": 4.0}, True)])
        assert model.score_one({"a": 3.0, "b": 4.0}) == pytest.approx(1.0, abs=1e-15)
        assert model.intercept == pytest.approx(1 / 26, abs=1e-15)

    def test_it_moves_back_when_the_score_is_too_high(self) -> None:
        model = learned(LinearUnit(0.5, capped=False, fit_intercept=False), [({"a": 2.0}, True)])
        assert model.weights["a"] == 1.0
        outcome = model.predict_learn_one({"a": 2.0}, True)
        assert outcome == (True, 2.0, False, True, 0.0)
        assert model.weights["a"] == 0.0
