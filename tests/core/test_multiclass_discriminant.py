"""MulticlassDiscriminant: by hand, beside the arithmetic of a whole table, and its limits."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import hinged
from hinged import INTERCEPT, MulticlassDiscriminant, MulticlassHedge

Rows = list[tuple[dict[str, float], str]]


def rows(n: int = 200) -> Rows:
    """Rows of three classes about some centres."""
    r = random.Random(3)
    centres = {"A": (0.0, 1.0), "B": (1.5, -1.0), "C": (-2.0, 0.0)}
    labels = [r.choice("ABC") for _ in range(n)]
    return [({f"f{i}": r.gauss(c, 1.0) for i, c in enumerate(centres[y])}, y) for y in labels]


def test_by_hand() -> None:
    model = MulticlassDiscriminant()
    assert model.predict_learn_one({"a": 4.0}, "A").updated  # without a rival
    # the mean goes from 0 to 4 / 2; q = (4 - 0) (4 - 2) = 8, v = (1 + 8) / (1 + 1)
    assert model.weights == {"A": {"a": pytest.approx(2.0 / 4.5)}}
    model.learn_one({"a": -1.0, "b": 1.0}, "B")
    # means of B: -1 / 2 and 1 / 2, q = 1 / 2 each; v = 9.5 / 3 of a, 1.5 / 3 of b
    scores = model.scores_one({"a": 1.0, "b": 2.0})
    assert scores["A"] == pytest.approx(2.0 * (1.0 - 1.0) * 3.0 / 9.5, abs=1e-15)
    assert scores["B"] == pytest.approx(-0.5 * 1.25 * 3.0 / 9.5 + 0.5 * 1.75 * 2.0)
    assert model.intercepts["B"] == pytest.approx(-0.125 * 3.0 / 9.5 - 0.125 * 2.0)
    # an event is judged by the features that it has
    assert model.scores_one({"b": 2.0}) == {"A": 0.0, "B": pytest.approx(0.5 * 1.75 * 2.0)}
    assert model.explain_one({"b": 2.0}, "B") == {"b": 2.0, INTERCEPT: pytest.approx(-0.25)}


def test_it_is_the_arithmetic_of_the_whole_table() -> None:
    """Means and squares of a table that has an event of zeros for each class."""
    model, seen = MulticlassDiscriminant(), rows()
    for x, y in seen:
        model.learn_one(x, y)
    values = np.array([list(x.values()) for x, _ in seen])
    labels = np.array([y for _, y in seen])
    of_class = {y: np.vstack([values[labels == y], [0.0, 0.0]]) for y in model.classes}
    squares = sum(((v - v.mean(0)) ** 2).sum(0) for v in of_class.values())
    variance = (1.0 + squares) / (1.0 + len(seen))
    for x, _ in rows(20):
        z = np.array(list(x.values()))
        expected = {}
        for label, v in of_class.items():
            gain = z**2 - (z - v.mean(0)) ** 2
            expected[label] = pytest.approx((0.5 * gain / variance).sum(), abs=1e-12)
        assert model.scores_one(x) == expected
    for label, v in of_class.items():
        assert model.weights[label]["f0"] == pytest.approx((v.mean(0) / variance)[0])


def test_a_weight_counts_as_so_many_events() -> None:
    heavy, often = MulticlassDiscriminant(), MulticlassDiscriminant()
    for i, (x, y) in enumerate(rows(50)):
        times = 1 + i % 3
        heavy.learn_one(x, y, float(times))
        for _ in range(times):
            often.learn_one(x, y)
    for x, _ in rows(5):
        assert heavy.scores_one(x) == pytest.approx(often.scores_one(x))


def test_contributions_sum_to_the_score() -> None:
    model = MulticlassDiscriminant()
    for x, y in rows(50):
        model.learn_one(x, y)
    for x in ({"f0": 0.5, "f1": -1.0}, {"f1": 2.0}, {"never": 3.0}, {}):
        for label, score in model.scores_one(x).items():
            assert sum(model.explain_one(x, label).values()) == pytest.approx(score)


def test_what_is_beyond_the_floats_is_left_out() -> None:
    model = MulticlassDiscriminant()
    for number, value in enumerate((1e300, -1e300, 1e100, 1e-300, 5.0)):
        model.learn_one({"a": value}, "AB"[number % 2], 1e100 if number == 2 else 1.0)
        assert all(map(math.isfinite, model.scores_one({"a": value, "b": 1e308}).values()))
    assert model.accounting.overflows == 2
    assert model.accounting.updates == 3


def test_room_is_for_the_class_of_an_event() -> None:
    model = MulticlassDiscriminant(max_features=1)
    grown = model.growth_bytes({"a": 1.0, "b": 1.0}, "A")
    model.learn_one({"a": 1.0, "b": 1.0}, "A")
    assert model.stored_bytes() == grown == 2 * (128 + len("a"))
    assert model.accounting.ignored == 1
    assert model.numbers_per_name == 2
    assert model.weights["A"].keys() == {"a"}


def test_a_hostile_state_gives_no_score_that_is_not_finite() -> None:
    model = MulticlassDiscriminant()
    for x, y in rows(5):
        model.learn_one(x, y)
    saved = model.get_state()
    saved["vectors"]["squares/0"].put({"f0": -1.0 - 1e6})
    model.set_state(saved)
    assert all(map(math.isfinite, model.scores_one({"f0": 1.0, "f1": 1.0}).values()))
    saved["scalars"]["intercept/0"] = -1.0
    with pytest.raises(hinged.InvalidState, match="intercept/0"):
        model.set_state(saved)


def test_it_is_an_expert_of_the_default_pool() -> None:
    assert [type(one) for one in MulticlassHedge().experts][2] is MulticlassDiscriminant
