"""Rules with a confidence for each weight against hand arithmetic."""

from __future__ import annotations

import math
import random

import pytest

from hinged import (
    AROW,
    SCW,
    InvalidParameter,
)
from tests.core.by_hand.learned import learned


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
