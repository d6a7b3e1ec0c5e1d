"""Each rule against hand arithmetic."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterable
from typing import Any

import pandas as pd
import pytest
from river import optim

from hinged import (
    AROW,
    INTERCEPT,
    SCW,
    Auto,
    AveragedPerceptron,
    CoinBetting,
    FTRLProximal,
    Hedge,
    HingeSGD,
    InvalidEvent,
    InvalidParameter,
    InvalidState,
    LinearClassifier,
    LinearUnit,
    LogisticSGD,
    MulticlassAROW,
    MulticlassAveragedPerceptron,
    MulticlassHedge,
    MulticlassLogisticSGD,
    MulticlassPassiveAggressive,
    MulticlassPerceptron,
    MulticlassPocketPerceptron,
    OneVsRest,
    PassiveAggressive,
    Perceptron,
    PocketPerceptron,
    random_weights,
)
from hinged.base_rate import BaseRate
from hinged.checks import plain_state
from hinged.multiclass_hedge import default_multiclass_pool
from hinged.temperature import Temperature

AND = [({"x1": a, "x2": b}, a == b == 1) for a in (0, 1) for b in (0, 1)]


def learned(model: Any, events: Iterable[tuple[Any, ...]]) -> Any:
    for event in events:
        model.learn_one(*event)
    return model


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


class TestHingeSGD:
    def test_l2_shrinks_then_adds(self) -> None:
        model = HingeSGD(0.1, "constant", l2=0.5)
        for w, b in ((0.1, 0.1), (0.195, 0.2), (0.28525, 0.3)):
            model.learn_one({"a": 1}, True)
            assert (model.weights["a"], model.intercept) == pytest.approx((w, b), abs=1e-15)

    def test_absent_features_shrink_too(self) -> None:
        model = learned(
            HingeSGD(0.1, "constant", l2=0.5),
            [({"a": 1}, True), ({"b": 1}, True), ({"b": 1}, True)],
        )
        assert model.weights == pytest.approx({"a": 0.09025, "b": 0.195}, abs=1e-15)

    def test_l1_reaches_exactly_zero(self) -> None:
        model = learned(HingeSGD(0.1, "constant", l1=0.4), [({"a": 1}, True)])
        for left in (0.06, 0.02, 0.0, 0.0):
            assert model.weights["a"] == pytest.approx(left, abs=1e-15)
            assert model.score_one({"a": 1}) - model.intercept == pytest.approx(left, abs=1e-15)
            model.learn_one({"b": 1}, True)
        assert model.weights["a"] == 0.0

    def test_pegasos_forgets_its_start_and_divides_by_nothing(self) -> None:
        model = HingeSGD(steps="pegasos", l2=0.5, fit_intercept=False, project=False)
        model.learn_one({"a": 1.0}, True)  # factor 0, step 2
        assert model.weights["a"] == 2.0
        model.learn_one({"b": 1.0}, True)  # factor 1/2, step 1
        assert model.weights == {"a": 1.0, "b": 1.0}

    def test_pegasos_projects_onto_the_ball(self) -> None:
        model = HingeSGD(steps="pegasos", l2=0.5, fit_intercept=False)
        model.learn_one({"a": 1.0}, True)  # 2, scaled to the radius, the root of 2
        assert model.weights["a"] == pytest.approx(2**0.5, abs=1e-15)
        model.learn_one({"b": 1.0}, True)  # halved; a step of 1: the squared norm is 3 / 2
        assert model.weights == pytest.approx({"a": 0.5**0.5, "b": 1.0}, abs=1e-15)
        model = learned(HingeSGD(steps="pegasos", l2=0.5), [({"a": 2.0}, True)])
        # (4, 2), of squared norm 20, is scaled by 1 / sqrt(10)
        assert model.weights["a"] == pytest.approx(4 / 10**0.5, abs=1e-15)
        assert model.intercept == pytest.approx(2 / 10**0.5, abs=1e-15)

    @pytest.mark.parametrize("seed", range(3))
    def test_pegasos_nears_the_largest_margin_of_and(self, seed: int) -> None:
        model = HingeSGD(steps="pegasos", l2=1e-3)
        rows, shuffle = list(AND), random.Random(seed).shuffle
        for _ in range(10_000):
            shuffle(rows)
            learned(model, rows)
        norm = math.hypot(*model.weights.values())
        margin = min((1 if y else -1) * model.score_one(dict(x)) / norm for x, y in AND)
        # the widest line is x1 + x2 = 3 / 2, at 1 / sqrt(8) = 0.3536
        assert 0.348 < margin < 8**-0.5

    def test_pegasos_goes_on_from_a_state_without_its_norm(self) -> None:
        rows = [({"a": 1.0, "b": -2.0}, True), ({"a": 0.5}, False), ({"b": 1.0}, True)] * 5
        model = learned(HingeSGD(steps="pegasos", l2=0.1), rows)
        state = model.get_state()
        old = {**state, "scalars": {**state["scalars"], "intercept_squares": 0.0}}
        other = HingeSGD(steps="pegasos", l2=0.1)
        other.set_state(old)
        learned(other, rows)
        learned(model, rows)
        assert dict(other.weights) == pytest.approx(dict(model.weights), rel=1e-12)
        assert other.intercept == pytest.approx(model.intercept, rel=1e-12)

    def test_a_factor_of_zero_drops_every_weight(self) -> None:
        model = HingeSGD(3.0, "constant", l2=0.5, fit_intercept=False)
        learned(model, [({"a": 1.0}, True), ({"b": 1.0}, True)])
        assert model.weights.get("a", 0.0) == 0.0
        assert model.weights["b"] == 3.0

    def test_sqrt_steps(self) -> None:
        model = HingeSGD(1.0, "sqrt", fit_intercept=False)
        learned(model, [({"a": 1.0}, True), ({"b": 1.0}, True)])
        assert model.weights == pytest.approx({"a": 1.0, "b": 2**-0.5}, abs=1e-15)

    def test_adagrad_steps_are_per_feature(self) -> None:
        model = HingeSGD(0.3, fit_intercept=False)
        learned(model, [({"a": 2.0}, True), ({"a": 1.0, "b": -5.0}, True)])
        # 0.3 * 2 / 2, then 0.3 * 1 / sqrt(5) and 0.3 * -5 / 5
        assert model.weights == pytest.approx({"a": 0.3 + 0.3 / 5**0.5, "b": -0.3}, abs=1e-15)

    def test_adagrad_counts_the_sample_weight_in_its_squares(self) -> None:
        model = learned(HingeSGD(0.3, fit_intercept=False), [({"a": 2.0}, True, 4.0)])
        assert model.weights == pytest.approx({"a": 0.3}, abs=1e-15)  # 0.3 / 8 * 4 * 2
        learned(model, [({"a": 1.0}, False, 0.5)])
        # G = 64 + 1 / 4, a step of -0.3 / sqrt(G) / 2
        assert model.weights == pytest.approx({"a": 0.3 - 0.15 / 64.25**0.5}, abs=1e-15)
        model = learned(HingeSGD(0.3), [({}, True, 46.0), ({}, False)])
        assert model.intercept == pytest.approx(0.3 - 0.3 / (46**2 + 1) ** 0.5, abs=1e-15)

    @pytest.mark.parametrize("w", [64.0, 2.0**-30])
    def test_adagrad_with_one_weight_for_all_is_adagrad_without(self, w: float) -> None:
        chance = random.Random(2)
        plain, weighted = HingeSGD(), HingeSGD()
        for _ in range(200):
            x = {name: chance.gauss(0.0, 1.0) for name in "abc"}
            y = x["a"] + chance.gauss(0.0, 1.0) > 0.5
            assert weighted.predict_learn_one(x, y, w) == plain.predict_learn_one(x, y)
        assert (dict(weighted.weights), weighted.intercept) == (
            dict(plain.weights),
            plain.intercept,
        )

    @pytest.mark.parametrize("params", [{}, {"l1": 1e-4, "l2": 1e-3}])
    def test_adagrad_learns_a_rare_class_of_large_weight(self, params: dict[str, Any]) -> None:
        chance = random.Random(1)
        model, wrong, rare_wrong = HingeSGD(**params), 0, 0
        for i in range(4_000):
            y = chance.random() < 1 / 47
            x = {f"f{j}": chance.gauss(0.8 if y else -0.8, 1.0) for j in range(8)}
            x |= {f"word{chance.randrange(200)}": 1.0}
            if i >= 2_000 and model.predict_one(x) is not y:
                wrong += 1
                rare_wrong += y
            model.learn_one(x, y, 46.0 if y else 1.0)
        # the best line, at the sum of the features, is wrong about one in 100 of each class
        assert wrong < 40
        assert rare_wrong <= 3

    def test_adagrad_leaves_out_a_sample_weight_beyond_its_squares(self) -> None:
        model = learned(HingeSGD(), [({"a": 1.0}, True), ({"a": -1.0}, True, 1e200)])
        assert (dict(model.weights), model.accounting.overflows) == ({"a": 0.3}, 1)
        model = learned(HingeSGD(), [({"a": 1.0}, True, 1e-200)])
        assert model.score_one({"a": 1.0}) == 0.0

    def test_updates_at_margin_one_and_not_above(self) -> None:
        model = learned(HingeSGD(1.0, "constant", fit_intercept=False), [({"a": 1.0}, True)] * 3)
        assert (model.weights["a"], model.accounting.updates) == (2.0, 2)

    def test_no_penalty_is_the_plain_learner(self) -> None:
        events = [({"a": 1.0, "b": -2.0}, True), ({"a": 0.5}, False), ({"b": 1.0}, True)]
        for steps in ("constant", "sqrt", "adagrad"):
            model = learned(HingeSGD(0.1, steps, l1=0.0, l2=0.0), events)
            nearly = learned(HingeSGD(0.1, steps, l1=1e-18, l2=1e-18), events)
            assert nearly.weights == pytest.approx(dict(model.weights), abs=1e-15)

    @pytest.mark.parametrize(
        "params",
        [
            {"steps": "pegasos"},
            {"steps": "other"},
            {"l1": -0.1},
            {"l2": math.nan},
            {"l2": "0.1"},
            {"learning_rate": 0},
            {"learning_rate": optim.schedulers.Constant(0.1)},
        ],
    )
    def test_refuses(self, params: dict[str, Any]) -> None:
        with pytest.raises(InvalidParameter):
            HingeSGD(**params)


class TestAROW:
    def test_two_events(self) -> None:
        model = AROW(r=1.0, fit_intercept=False)
        model.learn_one({"a": 1.0}, True)  # beta = 1/2, w = 1/2, S = 1/2
        assert model.weights["a"] == 0.5
        model.learn_one({"a": 1.0, "b": 2.0}, False)
        # m = -1/2, beta = 1 / (1/2 + 4 + 1) = 2/11
        # w_a = 1/2 - 3/2 * 2/11 * 1/2, w_b = -3/2 * 2/11 * 2
        assert model.weights == pytest.approx({"a": 0.5 - 3 / 22, "b": -6 / 11}, abs=1e-15)
        variance = model.get_state()["vectors"]["variance"]
        assert variance.get("a") == pytest.approx(0.5 - 2 / 11 / 4, abs=1e-15)
        assert variance.get("b") == pytest.approx(1 - 2 / 11 * 4, abs=1e-15)

    def test_the_intercept_is_a_feature(self) -> None:
        model = learned(AROW(), [({"a": 1.0}, True), ({"a": 1.0}, False)])
        plain = learned(
            AROW(fit_intercept=False), [({"a": 1.0, "1": 1.0}, True), ({"a": 1.0, "1": 1.0}, False)]
        )
        assert (model.weights["a"], model.intercept) == (plain.weights["a"], plain.weights["1"])

    def test_sample_weights_divide_r(self) -> None:
        assert dict(learned(AROW(r=1.0), [({"a": 1.0}, True, 4.0)]).weights) == dict(
            learned(AROW(r=0.25), [({"a": 1.0}, True)]).weights
        )

    def test_forgetting_takes_variances_back_towards_one(self) -> None:
        model = AROW(fit_intercept=False, forgetting=0.5)
        for weight, variance in ((0.5, 2 / 3), (0.7, 4 / 7)):
            # S = 1/2, 1/S = (2 + 1) / 2; then beta = 3/5, w + 1/2 * 3/5 * 2/3,
            # S = 2/3 - 3/5 * 4/9 = 2/5, 1/S = (5/2 + 1) / 2
            model.learn_one({"a": 1.0}, True)
            assert model.weights["a"] == pytest.approx(weight, abs=1e-15)
            left = model.get_state()["vectors"]["variance"].get("a")
            assert left == pytest.approx(variance, abs=1e-15)
            assert model.score_one({"b": 1.0}) == 0.0
        for bad in (1.0, 1.5, -0.1, math.nan, "0.1", None, True):
            with pytest.raises(InvalidParameter, match="forgetting"):
                AROW(forgetting=bad)  # type: ignore[arg-type]
            with pytest.raises(InvalidParameter, match="forgetting"):
                model.mutate({"forgetting": bad})
        model.mutate({"forgetting": 0.25})
        assert model.forgetting == 0.25

    def test_forgetting_follows_a_turn(self) -> None:
        chance = random.Random(4)
        steady, forgetful = AROW(), AROW(forgetting=0.01)
        for i in range(4_000):
            x = {name: chance.gauss(0.0, 1.0) for name in "abcd"}
            y = (x["a"] + x["b"] if i < 2_000 else x["a"] - x["b"]) > 0.0
            steady.learn_one(x, y)
            forgetful.learn_one(x, y)
        assert forgetful.accounting.mistakes < 0.5 * steady.accounting.mistakes


class TestSCW:
    def test_the_margin_is_met_in_standard_deviations(self) -> None:
        model = learned(SCW(9.0, 1.0, fit_intercept=False), [({"a": 1.0}, True)])
        # v = 1, m = 0: alpha = sqrt(2) / 2, u = 1/2, beta = 1/2
        assert model.weights["a"] == pytest.approx(0.5**0.5, abs=1e-15)
        assert model.get_state()["vectors"]["variance"].get("a") == pytest.approx(0.5, abs=1e-15)
        learned(model, [({"a": 2.0}, True)])  # 2 sqrt(1/2) = sqrt(4 / 2): met already
        assert model.accounting.updates == 1
        for phi in (0.5, 1.0, 2.5):
            model = SCW(1e9, phi, fit_intercept=False)
            for x, y in ((3.0, True), (0.5, False), (2.0, True), (1.0, False)):
                learned(model, [({"a": x}, y)])
                spread = x * model.get_state()["vectors"]["variance"].get("a") ** 0.5
                margin = model.score_one({"a": x}) * (1.0 if y else -1.0)
                assert margin >= phi * spread - 1e-12

    def test_the_sample_weight_scales_the_cap(self) -> None:
        x = {"a": 1.0, "b": -2.0}
        weighted = learned(SCW(0.1), [(x, True, 2.0), (x, False, 0.5)])
        bolder = learned(SCW(0.2), [(x, True)])
        assert learned(SCW(0.1), [(x, True, 2.0)]).weights == bolder.weights
        assert weighted.accounting.updates == 2

    def test_an_event_without_variance_teaches_nothing(self) -> None:
        model = learned(SCW(fit_intercept=False), [({}, True), ({"a": 1e-200}, True)])
        assert (dict(model.weights), model.accounting.updates) == ({}, 0)
        assert model.accounting.overflows == 0


class TestLogisticSGD:
    def test_rms_steps(self) -> None:
        model = learned(LogisticSGD(0.1, decay=0.75), [({"a": 2.0}, True)])
        # gradients of -1 and -1/2, mean squares of 1/4 and 1/16
        assert model.weights["a"] == pytest.approx(0.1 / (0.25 + 1e-8) ** 0.5, abs=1e-15)
        assert model.intercept == pytest.approx(0.05 / (0.0625 + 1e-8) ** 0.5, abs=1e-15)

    def test_a_steady_sample_weight_counts_in_the_squares_too(self) -> None:
        events = [({"a": 1.0, "b": -2.0}, True), ({"a": 0.5}, False), ({"b": 1.0}, True)]
        for steps, same in (("rms", True), ("adagrad", True), ("constant", False)):
            plain = learned(LogisticSGD(0.1, steps), events)
            heavy = learned(LogisticSGD(0.1, steps), [(*event, 8.0) for event in events])
            close = heavy.weights == pytest.approx(dict(plain.weights), rel=1e-3)
            assert close is same

    def test_a_feature_of_zero_is_as_good_as_absent(self) -> None:
        for kind in (LogisticSGD, CoinBetting, FTRLProximal):
            zeros = learned(kind(), [({"a": 1.0}, True), *[({"a": 0.0, "b": 1.0}, False)] * 3])
            bare = learned(kind(), [({"a": 1.0}, True), *[({"b": 1.0}, False)] * 3])
            assert dict(zeros.weights) == dict(bare.weights)
            x = {"a": -1.0}
            assert zeros.predict_learn_one(x, True) == bare.predict_learn_one(x, True)
            assert zeros.score_one(x) == bare.score_one(x)

    @pytest.mark.parametrize("params", [{"steps": "sqrt"}, {"decay": 1.0}, {"decay": -0.1}])
    def test_refuses(self, params: dict[str, Any]) -> None:
        with pytest.raises(InvalidParameter, match=next(iter(params))):
            LogisticSGD(**params)


class TestCoinBetting:
    def test_two_events(self) -> None:
        model = learned(CoinBetting(fit_intercept=False), [({"a": 2.0}, True)])
        # an outcome of 1 of 2 at most: 1 / (1 + 2) of a wealth of 1, over 2
        assert model.weights["a"] == pytest.approx(1 / 6, abs=1e-15)
        learned(model, [({"a": 2.0}, True)])
        c = 2.0 / (1.0 + math.exp(1 / 3))
        assert model.weights["a"] == pytest.approx(
            (1 + c) / (1 + c + 2) * (1 + c / 6) / 2, abs=1e-15
        )

    def test_it_bets_from_the_initial_weight(self) -> None:
        model = CoinBetting(fit_intercept=False, initial_weights={"a": 1.0, "b": -1.0})
        learned(model, [({"a": 2.0}, True)])
        c = 2.0 / (1.0 + math.exp(2.0))
        after = {"a": 1.0 + c / (c + 2.0) / 2.0, "b": -1.0}
        assert model.weights == pytest.approx(after, abs=1e-15)
        learned(model, [({"b": 0.0}, True)])
        assert model.weights == pytest.approx(after, abs=1e-15)

    def test_the_scale_of_a_feature_does_not_matter(self) -> None:
        chance = random.Random(3)
        plain, scaled = CoinBetting(), CoinBetting()
        for _ in range(300):
            x = {name: chance.gauss(0.0, 1.0) for name in "abc"}
            other = {"a": 2.0**20 * x["a"], "b": x["b"], "c": 2.0**-20 * x["c"]}
            y = x["a"] + 2.0 * x["b"] + chance.gauss(0.0, 1.0) > 0.5
            assert scaled.predict_learn_one(other, y) == plain.predict_learn_one(x, y)


class TestFTRLProximal:
    def test_penalties_pull_towards_the_initial_weights(self) -> None:
        start = {"a": 1.0, "b": -1.0}
        model = FTRLProximal(0.5, 1.0, 0.2, 3.0, fit_intercept=False, initial_weights=start)
        learned(model, [({"a": 2.0}, True), ({"b": 0.25}, False)])
        g = 2.0 / (1.0 + math.exp(2.0))  # 0.238: beyond l1; that of b is below 0.125
        after = {"a": 1.0 + (g - 0.2) / ((1.0 + g) / 0.5 + 3.0), "b": -1.0}
        assert model.weights == pytest.approx(after, abs=1e-15)

    def test_l1_leaves_useless_weights_at_zero_where_all_features_are_present(self) -> None:
        chance = random.Random(1)
        names = [f"f{i}" for i in range(50)]
        true = {name: chance.gauss(0.0, 1.0) for name in names[:5]}
        model, dense = FTRLProximal(l1=25.0), FTRLProximal()
        for _ in range(5_000):
            x = {name: chance.gauss(0.0, 1.0) for name in names}
            y = sum(weight * x[name] for name, weight in true.items()) > 0.0
            model.learn_one(x, y)
            dense.learn_one(x, y)
        zeros = [name for name, weight in model.weights.items() if weight == 0.0]
        assert len(zeros) >= 39
        assert not true.keys() & set(zeros)
        assert model.accounting.mistakes < (1 - 0.956) * 5_000
        assert model.accounting.mistakes < dense.accounting.mistakes
        assert 0.0 not in dense.weights.values()


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
        alone = [model, *getattr(model, "experts", ()), getattr(model, "calibrated", None)]
        at_once = (OneVsRest, Auto)
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


class TestHedge:
    def test_trust_by_hand(self) -> None:
        steady = Perceptron(initial_weights={"a": 1.0}, fit_intercept=False)
        other = Perceptron(initial_weights={"a": -1.0}, fit_intercept=False)
        model = Hedge([steady, other], learning_rate=math.log(2.0), share=0.1)
        outcome = model.predict_learn_one({"a": 1.0}, True)
        assert outcome == (False, 0.0, True, True, 1.0)
        # 1/2 against 1/4: 2/3 and 1/3; then 0.9 of each and 0.05 more
        assert model.trust == pytest.approx([0.65, 0.35], abs=1e-15)

    def test_the_pool_by_hand(self) -> None:
        experts = [Perceptron(initial_weights={"a": w}, fit_intercept=False) for w in (1.0, -3.0)]
        model = Hedge(experts, learning_rate=math.log(2.0), share=0.1)
        x = {"a": 1.0}
        p = 1.0 / (1.0 + math.e)  # half of each: -1
        q = 0.5 * p + 0.5 * 0.5  # and half of the base rate, which is 1/2
        assert model.predict_proba_one(x)[True] == pytest.approx(q)
        score = math.log(q / (1.0 - q))
        wanted: Any = (False, pytest.approx(score), True, True, pytest.approx(1.0 - score))
        assert model.predict_learn_one(x, True) == wanted
        base = 0.999 * 0.5 / (p + 0.5) + 0.0005
        assert model.base_rate.trust == pytest.approx(base)
        assert model.trust == pytest.approx([0.65, 0.35])
        # the second moves to -2; each temperature did one step by hand
        scales = []
        for z in (1.0, -3.0, -1.0):
            p = 1.0 / (1.0 + math.exp(-z))
            step = (p - 1.0) * z / (p * (1.0 - p) * z * z + 0.01)
            scales.append(math.exp(-max(-1.0, min(1.0, step))))
        first, second, pooled = scales
        pool = 0.65 * first * 1.0 + 0.35 * second * -2.0
        p = 1.0 / (1.0 + math.exp(-pooled * pool))
        q = (1.0 - base) * p + base * 1.5 / 2.0
        assert p > 0.5
        score = math.log(q / (1.0 - q))
        assert model.score_one(x) == pytest.approx(score)
        assert model.predict_one(x) is True
        share = score / pool
        assert model.explain_one(x) == pytest.approx(
            {"expert 0": 0.65 * first * share, "expert 1": 0.35 * second * -2.0 * share}
        )

    def test_the_base_rate_changes_no_label(self) -> None:
        model = Hedge([Perceptron(initial_weights={"a": -0.1})])
        model.base_rate = BaseRate(positives=99.5, negatives=0.5, trust=0.9)
        q = 0.1 / (1.0 + math.exp(-2.0)) + 0.9 * 0.995
        assert model.base_rate.mixed(2.0) == pytest.approx(math.log(q / (1.0 - q)))
        assert model.base_rate.mixed(-2.0) == -1e-9
        assert model.base_rate.mixed(0.0) == 0.0
        assert model.base_rate.mixed(-1e-12) == -1e-12
        assert model.predict_one({"a": 1.0}) is False
        assert model.predict_proba_one({"a": 1.0})[True] == pytest.approx(0.5)
        assert model.explain_one({"a": 1.0})["expert 0"] == model.score_one({"a": 1.0})

    def test_its_log_loss_is_never_much_above_that_of_the_base_rate(self) -> None:
        chance, model, loss = random.Random(4), Hedge(), 0.0
        labels = [chance.random() < 0.3 for _ in range(1_500)]
        for y in labels:
            x = {name: chance.gauss(0.0, 1.0) for name in "abcd"}  # tells nothing
            loss -= math.log(model.predict_proba_one(x)[y])
            model.learn_one(x, y)
        share = sum(labels) / 1_500
        best = -share * math.log(share) - (1.0 - share) * math.log(1.0 - share)
        assert loss / 1_500 < best + 0.006  # the pool alone: 0.014

    def test_an_expert_that_is_sure_counts_more_than_two_that_are_not(self) -> None:
        pool = [Perceptron(initial_weights={"a": w}) for w in (0.1, 0.1, -3.0)]
        assert Hedge(pool).predict_one({"a": 1.0}) is False

    def test_its_probabilities_are_those_of_the_labels(self) -> None:
        model, chance, loss = Hedge(), random.Random(4), 0.0
        for number in range(4_000):
            x = {name: chance.gauss(0.0, 1.0) for name in "abc"}
            p = 1.0 / (1.0 + math.exp(-(2.0 * x["a"] - x["b"])))
            if number >= 2_000:
                said = model.predict_proba_one(x)[True]
                loss += p * math.log(p / said) + (1.0 - p) * math.log((1.0 - p) / (1.0 - said))
            model.learn_one(x, chance.random() < p)
        assert loss / 2_000 < 0.03  # nats beyond those of the true probabilities

    def test_a_state_without_temperatures_starts_them(self) -> None:
        model = learned(Hedge(), [({"a": 1.0}, True), ({"a": 2.0}, False)])
        saved = model.get_state()
        new = ("log_s", "curv", "base")
        old = {n: v for n, v in saved["scalars"].items() if not n.startswith(new[:2])}
        again = Hedge()
        again.set_state({**saved, "scalars": old})
        assert again.base_rate.scalars() == model.base_rate.scalars()
        old = {n: v for n, v in old.items() if not n.startswith(new)}
        again.set_state({**saved, "scalars": old})
        assert again.trust == model.trust
        assert [t.scalars() for t in again.temperatures] == [Temperature().scalars()] * 7
        assert again.base_rate.scalars() == BaseRate().scalars()
        broken = {n: v for n, v in saved["scalars"].items() if n != "curvature_6"}
        with pytest.raises(InvalidState):
            again.set_state({**saved, "scalars": broken})
        for name, value in (("trust", 0.0), ("trust", 1.0), ("positives", 0.4), ("negatives", 0.0)):
            with pytest.raises(InvalidState):
                again.set_state({**saved, "scalars": {**saved["scalars"], f"base_{name}": value}})

    def test_one_saved_with_the_first_default_pool_keeps_its_experts(self) -> None:
        first = [
            Perceptron(), AveragedPerceptron(), PassiveAggressive(),
            AROW(), HingeSGD(), LinearUnit(),
        ]  # fmt: skip
        events = [({"a": 1.0, "b": -2.0}, True), ({"a": 2.0}, False), ({"b": 1.0}, False)]
        model, again = learned(Hedge(first), events), Hedge()
        again.set_state(model.get_state())
        assert [type(one) for one in again.experts] == [type(one) for one in first]
        assert again.numbers_per_name == model.numbers_per_name
        for x, y in events:
            assert again.predict_learn_one(x, y) == model.predict_learn_one(x, y)
        assert again.trust == model.trust
        later = Hedge()
        later.set_state(again.get_state())
        assert later.score_one({"a": 1.0}) == model.score_one({"a": 1.0})
        again.set_state(learned(Hedge(), events).get_state())
        assert [type(one) for one in again.experts] == [type(one) for one in Hedge().experts]
        for other in (Hedge([AROW()]), Hedge(first[::-1])):
            with pytest.raises(InvalidState):
                other.set_state(model.get_state())

    def test_prototypes_are_never_touched(self) -> None:
        prototype = Perceptron()
        model = learned(Hedge([prototype]), [({"a": 1.0}, True)])
        assert dict(prototype.weights) == {}
        assert dict(model.experts[0].weights) == {"a": 1.0}
        assert dict(model.clone().experts[0].weights) == {}

    def test_uncapped_experts_want_whole_weights(self) -> None:
        model = Hedge([Perceptron(), PassiveAggressive(mode="uncapped")])
        with pytest.raises(InvalidEvent, match="w must be 0 or 1"):
            model.learn_one({"a": 1.0}, True, 0.5)
        assert model.experts[0].accounting.events == 0

    def test_an_experts_label_at_zero_is_its_own(self) -> None:
        model = Hedge([Perceptron(label_at_zero=True), Perceptron()], share=0.0)
        model.learn_one({"a": 1.0}, True)  # both score 0: the first is right
        assert model.trust[0] > 0.5 > model.trust[1]

    @pytest.mark.parametrize(
        "params",
        [{"models": []}, {"share": 1.0}, {"share": -0.1}, {"learning_rate": 0.0}, {"models": [1]}],
    )
    def test_refuses(self, params: dict[str, Any]) -> None:
        with pytest.raises(InvalidParameter):
            Hedge(**params)


class TestMulticlassHedge:
    def test_trust_and_pool_by_hand(self) -> None:
        plain, biased = MulticlassPerceptron(fit_intercept=False), MulticlassPerceptron()
        model = MulticlassHedge([plain, biased], learning_rate=math.log(2.0), share=0.1)
        learned(model, [({"a": 1.0}, "A"), ({"a": 1.0}, "B")])
        assert model.trust == [0.5, 0.5]  # one class only, then both wrong
        assert [temperature.scale for temperature in model.temperatures] == [1.0] * 3
        # without features the first scores 0 and 0, the second -1 and 1: half of -2 and 0
        odds = math.exp(-1.0)
        assert model.predict_proba_one({}) == pytest.approx(
            {"A": odds / (1.0 + odds), "B": 1.0 / (1.0 + odds)}, abs=1e-15
        )
        assert model.score_one({}) == pytest.approx(-math.log(1.0 + odds), abs=1e-15)
        assert model.explain_one({}, "A") == pytest.approx(
            {"expert 0": 0.0, "expert 1": -1.0, INTERCEPT: -math.log(1.0 + odds)}, abs=1e-15
        )
        outcome = model.predict_learn_one({}, "B")
        assert (outcome.y_pred, outcome.mistake, outcome.hinge_loss) == ("B", False, 0.0)
        # the first says A, the class seen first: 1/4 against 1/2
        assert model.trust == pytest.approx([0.35, 0.65], abs=1e-15)

    def test_equals_its_formulas_over_experts_that_learn_alone(
        self, letter: list[tuple[dict[str, float], str]]
    ) -> None:
        model = MulticlassHedge()
        alone = [expert.clone() for expert in model.experts]
        trust, temperatures = [0.2] * 5, [Temperature() for _ in range(6)]
        for x, y in letter[:600]:
            scores = [expert.scores_one(x) for expert in alone]
            shares = [t.log_shares(s) for t, s in zip(temperatures, scores, strict=False)]
            pooled = {
                c: math.fsum(v * share[c] for v, share in zip(trust, shares, strict=True))
                for c in scores[0]
            }
            final = temperatures[5].log_shares(pooled)
            total = math.fsum(map(math.exp, final.values()))
            expected = {c: math.exp(z) / total for c, z in final.items()}
            assert model.predict_proba_one(x) == pytest.approx(expected, rel=1e-9)
            for temperature, share in zip(temperatures, [*shares, final], strict=True):
                temperature.learn_class(share, y)
            if scores[0]:
                wrong = [max(s, key=s.__getitem__) != y for s in scores]
                left = [v * math.exp(-0.1 * bad) for v, bad in zip(trust, wrong, strict=True)]
                trust = [0.999 * v / math.fsum(left) + 0.0002 for v in left]
            for expert in alone:
                expert.learn_one(x, y)
            model.learn_one(x, y)
        assert model.trust == pytest.approx(trust, rel=1e-9)
        assert [plain_state(e) for e in model.experts] == [plain_state(e) for e in alone]

    def test_prototypes_are_never_touched(self) -> None:
        prototype = MulticlassPerceptron()
        model = learned(MulticlassHedge([prototype]), [({"a": 1.0}, "A"), ({"a": 1.0}, "B")])
        assert prototype.classes == []
        assert model.experts[0].classes == ["A", "B"]
        assert model.clone().experts[0].classes == []

    def test_uncapped_experts_want_whole_weights(self) -> None:
        uncapped = MulticlassPassiveAggressive(mode="uncapped")
        model = MulticlassHedge([MulticlassPerceptron(), uncapped])
        with pytest.raises(InvalidEvent, match="w must be 0 or 1"):
            model.learn_one({"a": 1.0}, "A", 0.5)
        assert model.experts[0].accounting.events == 0

    @pytest.mark.parametrize(
        "params",
        [
            *({"models": []}, {"models": [1]}, {"models": [Perceptron()]}),
            *({"share": 1.0}, {"share": -0.1}, {"learning_rate": 0.0}, {"max_classes": 0}),
        ],
    )
    def test_refuses(self, params: dict[str, Any]) -> None:
        with pytest.raises(InvalidParameter):
            MulticlassHedge(**params)

    def test_a_thousand_classes_take_room_by_the_event(self) -> None:
        """Two classes move per event: what is stored follows the events alone."""
        model = MulticlassHedge()
        chance = random.Random(5)
        before = 0
        for number in range(1_000):
            x = {f"n{chance.randrange(5_000)}": 1.0 for _ in range(5)}
            most = model.growth_bytes(x, f"c{number}")
            model.learn_one(x, f"c{number}")
            stored = model.stored_bytes()
            assert stored <= before + most
            before = stored
        assert len(model.classes) == 1_000
        assert before <= 1_000 * 5 * model.numbers_per_name * (128 + 5)
        with pytest.raises(InvalidEvent, match="all 1000 are taken"):
            model.learn_one({"n0": 1.0}, "one more")


def test_weight_zero_moves_nothing(learner: LinearClassifier) -> None:
    labels = ["A", "B"] if learner._multiclass else [True, False]
    events = [({"a": 1.0, "b": -0.5}, labels[0]), ({"a": -1.0}, labels[1]), ({"b": 2.0}, labels[0])]
    model, spaced = learner.clone(), learner.clone()
    for x, y in events:
        spaced.learn_one({"a": 7.0, "c": 1.0}, labels[1], 0.0)
        assert spaced.predict_learn_one(x, y) == model.predict_learn_one(x, y)
    assert spaced.accounting.events == 6
    left: Any = model.get_state()
    right: Any = spaced.get_state()
    assert {n: dict(v.view()) for n, v in left["vectors"].items()} == {
        n: dict(v.view()) for n, v in right["vectors"].items()
    }
    assert left["scalars"]["clock"] == right["scalars"]["clock"] == 3


@pytest.mark.parametrize(
    ("model", "name"),
    [
        *((kind(), "learning_rate") for kind in (AveragedPerceptron, PocketPerceptron, LinearUnit)),
        *((kind(), "learning_rate") for kind in (HingeSGD, MulticlassPerceptron, Hedge)),
        (MulticlassHedge(), "learning_rate"),
        *((kind(), "C") for kind in (PassiveAggressive, MulticlassPassiveAggressive, SCW)),
        *((kind(), "learning_rate") for kind in (LogisticSGD, FTRLProximal)),
        (SCW(), "phi"),
        *((kind(), "r") for kind in (AROW, MulticlassAROW)),
    ],
    ids=lambda v: v if isinstance(v, str) else type(v).__name__,
)
def test_strengths_must_be_positive_and_may_change(model: Any, name: str) -> None:
    for bad in (0, -1, math.nan, math.inf, "0.1", None, True):
        with pytest.raises(InvalidParameter, match=f"0 < {name}"):
            type(model)(**{name: bad})
        with pytest.raises(InvalidParameter, match=f"0 < {name}"):
            model.mutate({name: bad})
    model.mutate({name: 0.125})
    assert getattr(model, name) == 0.125


def test_a_full_learner_ignores_new_names_and_counts_them() -> None:
    for kind in (Perceptron, AROW, HingeSGD, SCW, LogisticSGD, CoinBetting, FTRLProximal):
        model: Any = kind(max_features=3)
        for i in range(10):
            model.learn_one({f"user_{i}": 1.0, "known": 0.5}, i % 2 == 0)
        assert len(model.weights) == 3
        assert set(model.weights) == {"known", "user_0", "user_1"}
        assert model.accounting.ignored > 0
        model.predict_one({"user_9": 1.0})
        assert len(model.weights) == 3
    small = Perceptron(max_features=3)
    pair, one = Hedge([small, small]), OneVsRest(small)
    pair.learn_one({f"user_{i}": 1.0 for i in range(5)}, True)
    one.learn_one({f"user_{i}": 1.0 for i in range(5)}, "A")
    assert (pair.accounting.ignored, one.accounting.ignored) == (4, 2)
    many = MulticlassPerceptron(max_features=3)
    for i in range(10):
        many.learn_one({f"user_{i}": 1.0, "known": 0.5}, "AB"[i % 2])
    assert len({name for weights in many.weights.values() for name in weights}) == 3


@pytest.mark.parametrize("far", [3.0, 1e200])
def test_features_without_room_do_not_count_in_the_step(far: float) -> None:
    x, ignored = {"a": 1.0, "b": far, "c": -4.0}, 2
    for mode, margin in (("uncapped", 1.0), ("I", 1.0), ("II", 40 / 41)):
        model: Any = learned(PassiveAggressive(10.0, mode, max_features=1), [(x, True)])
        # tau = 1 / 2, in II 1 / (2 + 1 / 20), times a squared norm of 2
        assert model.score_one(x) == pytest.approx(margin, abs=1e-15)
        assert dict(model.weights) == pytest.approx({"a": margin / 2}, abs=1e-15)
        assert model.accounting.ignored == ignored
        model = learned(
            MulticlassPassiveAggressive(10.0, mode, max_features=1), [(x, "A"), (x, "B")]
        )
        scores = model.scores_one(x)
        # II: tau = 1 / (4 + 1 / 20), and both scores move by 2 tau
        margin = 80 / 81 if mode == "II" else 1.0
        assert scores["B"] - scores["A"] == pytest.approx(margin, abs=1e-15)
    model = learned(LinearUnit(5.0, max_features=1), [(x, False)])
    assert model.score_one(x) == -1.0
    bare = PassiveAggressive(mode="uncapped", fit_intercept=False, max_features=1)
    learned(bare, [({"a": 2.0, "b": far}, True), ({"b": far}, True)])
    assert (dict(bare.weights), bare.accounting.updates) == ({"a": 0.5}, 1)


CAPPED: list[Any] = [
    *(kind for kind in (Perceptron, AveragedPerceptron, PocketPerceptron, LinearUnit, AROW)),
    *(functools.partial(PassiveAggressive, mode=mode) for mode in ("uncapped", "I", "II")),
    *(kind for kind in (SCW, LogisticSGD, CoinBetting, FTRLProximal)),
    functools.partial(AROW, forgetting=0.1),
    functools.partial(LogisticSGD, 0.1, "constant"),
    functools.partial(Perceptron, margin=0.5),
    functools.partial(LinearUnit, 5.0, fit_intercept=False),
    HingeSGD,
    functools.partial(HingeSGD, l1=0.001, l2=0.01),
    functools.partial(HingeSGD, 0.1, "sqrt", l2=0.1),
    functools.partial(HingeSGD, steps="pegasos", l1=0.001, l2=0.1),
    MulticlassPerceptron,
    MulticlassAveragedPerceptron,
    MulticlassPocketPerceptron,
    MulticlassAROW,
    MulticlassLogisticSGD,
    *(
        functools.partial(MulticlassPassiveAggressive, mode=mode)
        for mode in ("uncapped", "I", "II")
    ),
    lambda max_features=None: OneVsRest(PassiveAggressive(max_features=max_features)),
    lambda max_features=None: Hedge(
        [AROW(max_features=max_features), PassiveAggressive(max_features=max_features)]
    ),
    lambda max_features=None: MulticlassHedge(default_multiclass_pool(max_features=max_features)),
]


@pytest.mark.parametrize("make", CAPPED, ids=range(len(CAPPED)))
def test_a_full_learner_learns_as_if_there_were_no_other_features(make: Any) -> None:
    full, free = make(max_features=2), make()
    labels = ["A", "B"] if full._multiclass else [True, False]
    chance = random.Random(7)
    for i in range(60):
        kept = {"a": chance.gauss(0.0, 1.0), "b": chance.gauss(0.0, 1.0)}
        others = {f"user_{i}": 7.0, "c": chance.gauss(0.0, 9.0)} if i > 3 else {}
        y = labels[kept["a"] + chance.gauss(0.0, 0.5) > 0.0]
        got, expected = (
            full.predict_learn_one({**kept, **others}, y),
            free.predict_learn_one(kept, y),
        )
        assert got == expected
    left, right = full.get_state()["vectors"], free.get_state()["vectors"]
    assert {n: dict(v.view()) for n, v in left.items()} == {
        n: dict(v.view()) for n, v in right.items()
    }
    assert full.accounting.ignored > 0 == free.accounting.ignored
