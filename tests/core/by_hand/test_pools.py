"""Pools of experts against hand arithmetic."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from hinged import (
    AROW,
    INTERCEPT,
    AveragedPerceptron,
    Hedge,
    HingeSGD,
    InvalidEvent,
    InvalidParameter,
    InvalidState,
    LinearUnit,
    MulticlassHedge,
    MulticlassPassiveAggressive,
    MulticlassPerceptron,
    PassiveAggressive,
    Perceptron,
)
from hinged.base_rate import BaseRate
from hinged.checks import plain_state
from hinged.temperature import Temperature
from tests.core.by_hand.learned import learned


class TestHedge:
    @pytest.mark.parametrize("models", [Perceptron(), iter([Perceptron()]), 2])
    def test_models_that_are_no_list(self, models: Any) -> None:
        with pytest.raises(InvalidParameter, match="models must be a list of learners"):
            Hedge(models)

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
            *({"models": MulticlassPerceptron()}, {"models": iter([MulticlassPerceptron()])}),
            *({"share": 1.0}, {"share": -0.1}, {"learning_rate": 0.0}, {"max_classes": 0}),
        ],
    )
    def test_refuses(self, params: dict[str, Any]) -> None:
        with pytest.raises(InvalidParameter):
            MulticlassHedge(**params)

    def test_many_classes_take_room_by_the_event(self) -> None:
        """Two classes move per event: what is stored follows the events alone."""
        model = MulticlassHedge(max_classes=200)
        chance = random.Random(5)
        before = 0
        for number in range(200):
            x = {f"n{chance.randrange(5_000)}": 1.0 for _ in range(5)}
            most = model.growth_bytes(x, f"c{number}")
            model.learn_one(x, f"c{number}")
            stored = model.stored_bytes()
            assert stored <= before + most
            before = stored
        assert len(model.classes) == 200
        assert before <= 200 * 5 * model.numbers_per_name * (128 + 5)
        with pytest.raises(InvalidEvent, match="all 200 are taken"):
            model.learn_one({"n0": 1.0}, "one more")
