"""Rules of gradient descent against hand arithmetic."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
from river import optim

from hinged import (
    CoinBetting,
    FTRLProximal,
    HingeSGD,
    InvalidParameter,
    LogisticSGD,
)
from tests.core.by_hand.learned import AND, learned


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

    def test_pegasos_keeps_the_norm_that_it_starts_with(self) -> None:
        start = {"a": 3.0, "b": 4.0}
        model = HingeSGD(steps="pegasos", l2=1e-3, initial_weights=start, initial_intercept=12.0)
        assert model.intercept_squares == 169.0
        learned(model, [({"a": 5.0}, True)])  # the margin is above 1: shrunk by 1 - 1 / 1
        assert (model.intercept_squares, model.intercept) == (0.0, 0.0)

    def test_pegasos_goes_on_alike_from_a_norm_that_rounding_made_0(self) -> None:
        model = HingeSGD(steps="pegasos", l2=0.1)
        learned(model, [({"a": 1e200}, True, 5e-324), ({"b": 6.4e160, "a": 1e200}, False, 5e-324)])
        assert model.intercept_squares == 0.0 < abs(model.weights["b"])
        other = HingeSGD(steps="pegasos", l2=0.1)
        other.set_state(model.get_state())
        assert other.intercept_squares == 0.0

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
