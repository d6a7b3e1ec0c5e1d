"""AutoScaler: dense numbers scaled, flags and sparse features left alone, in any event."""

import copy
import itertools
import json
import math
import pickle
import random
import sys
from collections.abc import Callable, Iterable
from statistics import fmean
from typing import Any

import pandas as pd
import pytest
from river import checks, compose, datasets, preprocessing

import hinged
from hinged import AutoScaler

Rows = list[tuple[dict[Any, float], bool]]


def after(events: Iterable[dict[Any, Any]]) -> AutoScaler:
    scaler = AutoScaler()
    for x in events:
        scaler.learn_one(x)
    return scaler


def accuracy(scaler: Any, learner: Any, rows: Rows) -> float:
    model = learner if scaler is None else compose.Pipeline(scaler, learner)
    right = 0
    for x, y in rows:
        right += model.predict_one(x) is y
        model.learn_one(x, y)
    return right / len(rows)


def test_by_hand() -> None:
    scaler = after({"a": v} for v in (0.5, 10.5, 2.5, 4.5, 6.5))
    # up to 8 values all count: mean 4.9, variance (19.36 + 31.36 + 5.76 + 0.16 + 2.56) / 5
    assert scaler.transform_one({"a": 7.9}) == {"a": pytest.approx(3.0 / math.sqrt(11.84))}
    assert scaler.transform_one({"a": 4.9}) == {"a": pytest.approx(0.0)}
    assert scaler.transform_one({"a": 99.0}) == {"a": math.sqrt(5.0)}
    for value in (100.5, 3.5, 5.5, 4.5):
        scaler.learn_one({"a": value})
    # of nine, 100.5 is far from the others: without it mean 38 / 8, variance 242 / 8 - 4.75^2
    assert scaler.transform_one({"a": 7.75}) == {"a": pytest.approx(3.0 / math.sqrt(7.6875))}
    for _ in range(64):
        scaler.learn_one({"a": 4.5})
    assert scaler.transform_one({"a": 99.0, "b": 3.0}) == {"a": 8.0, "b": 0.0}


@pytest.mark.parametrize("far", [[], [1e3], [-1e3], [1e3, -1e3]])
def test_the_moments_are_those_of_all_values_but_extremes_that_are_far(far: list[float]) -> None:
    r = random.Random(1)
    values = [r.gauss(50.0, 3.0) for _ in range(900)]
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))
    made = after({"a": v} for v in [*values, *far]).transform_one({"a": 57.0})
    assert made["a"] == pytest.approx((57.0 - mean) / deviation, rel=1e-12)


def test_old_values_fade() -> None:
    r = random.Random(2)
    scaler = after({"a": r.gauss(0.0, 1.0)} for _ in range(20_000))
    for _ in range(5_000):
        scaler.learn_one({"a": r.gauss(5.0, 2.0)})
    assert scaler.transform_one({"a": 5.0})["a"] == pytest.approx(0.0, abs=0.15)
    assert scaler.transform_one({"a": 7.0})["a"] == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("huge", [1e4, -1e4, 1e100, 1e308])
@pytest.mark.parametrize("position", [0, 1, 2, 3, 17, 500])
def test_one_huge_value_changes_no_other(huge: float, position: int) -> None:
    r = random.Random(3)
    values = [r.gauss(5.5, 1.0) for _ in range(600)]
    clean = after({"a": v} for v in values)
    spoiled = after({"a": v} for v in [*values[:position], huge, *values[position:]])
    for value in (2.5, 5.5, 8.0):
        expected = clean.transform_one({"a": value})["a"]
        assert spoiled.transform_one({"a": value})["a"] == pytest.approx(expected, abs=0.06)
    assert abs(spoiled.transform_one({"a": huge})["a"]) == 8.0


def phishing() -> Rows:
    return [(dict(x), bool(y)) for x, y in datasets.Phishing()]


def hyperplane(n: int = 1_500) -> Rows:
    r = random.Random(4)
    weights = [r.gauss(0.0, 1.0) for _ in range(8)]
    rows = []
    for _ in range(n):
        x = [r.random() * 3.0**i for i in range(8)]
        score = sum(w * (v / 3.0**i - 0.5) for i, (w, v) in enumerate(zip(weights, x, strict=True)))
        rows.append(({f"f{i}": v for i, v in enumerate(x)}, score > 0.0))
    return rows


def breast_cancer() -> Rows:
    loaded: Any = pytest.importorskip("sklearn.datasets").load_breast_cancer()
    order = list(range(len(loaded.target)))
    random.Random(1).shuffle(order)
    names = list(map(str, loaded.feature_names))
    return [
        (dict(zip(names, map(float, loaded.data[i]), strict=True)), bool(loaded.target[i]))
        for i in order
    ]


LEARNERS: dict[str, Callable[[], Any]] = {
    "perceptron": hinged.Perceptron,
    "passive-aggressive": hinged.PassiveAggressive,
    "arow": hinged.AROW,
}


@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
def test_one_accepted_1e4_does_not_spoil_the_next_thousand_events(make: Any) -> None:
    rows = hyperplane()
    x, y = rows[450]
    spoiled = [*rows[:450], ({**x, "f0": 1e4}, y), *rows[451:]]
    assert accuracy(AutoScaler(), make(), spoiled) > accuracy(AutoScaler(), make(), rows) - 0.01


@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
@pytest.mark.parametrize("rows", [phishing, hyperplane, breast_cancer])
def test_not_worse_than_the_standard_scaler(make: Any, rows: Callable[[], Rows]) -> None:
    """In the mean of three orders: one order tells little of a perceptron."""
    stream, chance, lead = rows(), random.Random(5), []
    for _ in range(3):
        ours = accuracy(AutoScaler(), make(), stream)
        lead.append(ours - accuracy(preprocessing.StandardScaler(), make(), stream))
        chance.shuffle(stream)
    assert fmean(lead) > -0.01


def test_breast_cancer_needs_no_scaler_of_ones_own() -> None:
    rows = breast_cancer()
    assert accuracy(None, hinged.AROW(), rows) < 0.84
    assert accuracy(AutoScaler(), hinged.AROW(), rows) > 0.955


def test_flags_and_sparse_counts_are_left_alone_exactly() -> None:
    r = random.Random(5)
    scaler = AutoScaler()
    for _ in range(3_000):
        words = {f"w{int(r.paretovariate(0.05))}": float(r.choice([1, 1, 2, 8])) for _ in range(9)}
        x = {**words, "flag": float(r.random() < 0.5), "one": 1.0, "none": 0.0}
        scaler.learn_one(x)
        assert scaler.transform_one(x) == x


def test_flags_are_left_alone_in_any_order_of_values() -> None:
    for values in itertools.product((0.0, 1.0), repeat=4):
        scaler = after({"a": v} for v in values * 8)
        assert [scaler.transform_one({"a": v})["a"] for v in (0.0, 1.0)] == [0.0, 1.0]


def test_a_flag_stays_one_with_one_other_value_but_not_with_two() -> None:
    scaler = after({"a": float(i % 2)} for i in range(100))
    scaler.learn_one({"a": 1e4})
    assert [scaler.transform_one({"a": v})["a"] for v in (0.0, 1.0, 1e4)] == [0.0, 1.0, 16.0]
    scaler.learn_one({"a": 2.0})
    assert scaler.transform_one({"a": 0.0})["a"] == pytest.approx(-1.0, abs=0.2)


def test_a_feature_of_every_event_is_scaled_with_its_first_value_that_is_no_small_number() -> None:
    scaler = after([{"a": 1.0}, {"a": 0.0}])
    assert scaler.transform_one({"a": 0.0}) == {"a": 0.0}
    scaler.learn_one({"a": 0.5})
    # mean 0.5, variance (0.25 + 0.25 + 0) / 3
    assert scaler.transform_one({"a": 1.0}) == {"a": pytest.approx(0.5 / math.sqrt(1 / 6))}
    later = after([{"b": 1.0}, {"b": 1.0, "a": 0.5}])
    assert later.transform_one({"a": 0.5}) == {"a": 0.5}


def test_a_feature_that_is_missing_sometimes_is_scaled() -> None:
    r = random.Random(6)
    scaler = after(
        {"a": r.gauss(900.0, 5.0), "b": r.gauss(900.0, 5.0)} if i % 3 else {"b": None}
        for i in range(600)
    )
    made = scaler.transform_one({"a": 900.0, "b": math.nan})
    assert made == {"a": pytest.approx(0.0, abs=0.2)}  # what is missing stays absent


def test_a_feature_that_comes_later_is_scaled_after_16_values_and_never_large_before() -> None:
    scaler = after({"b": 1.0} for _ in range(50))
    for i in range(16):
        scaler.learn_one({"b": 1.0, "a": 1_000.0 + i % 5})
        assert abs(scaler.transform_one({"a": 1_000.0 + i % 5})["a"]) < 2.5
    assert scaler.transform_one({"a": 1_002.0})["a"] == pytest.approx(0.0, abs=0.2)


def test_a_sparse_feature_of_large_values_is_divided_but_not_centred() -> None:
    scaler = after(({"a": 500.0 + i, "b": 0.0} if i % 10 == 0 else {"b": 0.0}) for i in range(900))
    made = scaler.transform_one({"a": 1_000.0})
    assert made["a"] == pytest.approx(1.0, abs=0.1)


def test_a_dense_feature_that_becomes_rare_is_sparse() -> None:
    scaler = after({"a": 3.5 + i % 2, "b": 1.0} for i in range(100))
    assert scaler.transform_one({"a": 3.5})["a"] < -0.9
    for _ in range(310):
        scaler.learn_one({"b": 1.0})
    scaler.learn_one({"a": 3.5})
    assert scaler.transform_one({"a": 3.5})["a"] == 3.5


@pytest.mark.parametrize("value", [7.5, -1e-300, 1e100, 123.0])
def test_a_constant_is_0(value: float) -> None:
    scaler = after({"a": value} for _ in range(40))
    assert scaler.transform_one({"a": value})["a"] == 0.0
    assert scaler.transform_one({"a": 0.25})["a"] == 0.0


def test_whole_numbers_are_scaled_as_numbers_even_if_they_are_codes() -> None:
    scaler = after({"code": float(i % 5)} for i in range(500))
    made = [scaler.transform_one({"code": float(v)})["code"] for v in range(5)]
    assert made == pytest.approx([(v - 2) / math.sqrt(2.0) for v in range(5)], abs=0.01)


HOSTILE = [0.0, -0.0, 1.0, 5e-324, -5e-324, 1e-200, 1e200, sys.float_info.max, -sys.float_info.max]


def test_hostile_values_give_finite_features() -> None:
    r = random.Random(7)
    scaler = AutoScaler()
    for _ in range(3_000):
        x = {f"f{i}": r.choice(HOSTILE) for i in range(4)}
        scaler.learn_one(x)
        for v in HOSTILE:
            made = scaler.transform_one(dict.fromkeys(x, v))
            assert all(abs(value) <= 1e101 for value in made.values())
    again = AutoScaler()
    again.set_state(json.loads(json.dumps(scaler.get_state(), allow_nan=False)))
    assert again.get_state() == scaler.get_state()


def test_a_refused_event_changes_nothing() -> None:
    scaler = after([{"a": 1.5}])
    before = scaler.get_state()
    for wrong in ("red", math.inf, 1j):
        with pytest.raises(hinged.InvalidEvent, match="x\\['b'\\]"):
            scaler.learn_one({"a": 2.5, "b": wrong})  # type: ignore[dict-item]
        with pytest.raises(hinged.InvalidEvent, match="x\\['b'\\]"):
            scaler.transform_one({"b": wrong})  # type: ignore[dict-item]
    with pytest.raises(hinged.InvalidEvent):
        scaler.learn_many(pd.DataFrame({"a": [1.0, math.inf]}))
    assert scaler.get_state() == before


def test_predictions_change_nothing() -> None:
    scaler = after([{"a": 1.5}, {"a": 2.5}])
    before = pickle.dumps(scaler)
    scaler.transform_one({"a": 9.0, "never seen": 1.0})
    assert pickle.dumps(scaler) == before


@pytest.mark.parametrize("cut", [0, 1, 2, 3, 200])
def test_a_restored_one_goes_on_bit_for_bit(cut: int) -> None:
    rows = [x for x, _ in phishing()[:300]] + [x for x, _ in hyperplane(100)]
    whole = after(rows)
    first = after(rows[:cut])
    restored, pickled = AutoScaler(), pickle.loads(pickle.dumps(first))
    restored.set_state(json.loads(json.dumps(first.get_state())))
    for one in (restored, pickled, copy.deepcopy(first)):
        for x in rows[cut:]:
            one.learn_one(x)
        assert one.get_state() == whole.get_state()
        assert one.stored_bytes() == whole.stored_bytes() > 8 * 128


def test_a_clone_is_fresh() -> None:
    scaler = AutoScaler(max_features=3)
    scaler.learn_one({"a": 1.0})
    clone = scaler.clone()
    assert (clone.max_features, clone.events) == (3, 0)


def test_names_beyond_the_cap_are_0_and_counted() -> None:
    scaler = AutoScaler(max_features=1)
    scaler.learn_one({"a": 1.0, "b": 1.0})
    assert scaler.transform_one({"b": 1.0, "a": 1.0}) == {"b": 0.0, "a": 1.0}
    assert scaler.ignored == 1
    with pytest.raises(hinged.InvalidParameter):
        AutoScaler(max_features=0)


def test_frames_give_what_single_events_give() -> None:
    rows = [x for x, _ in hyperplane(40)]
    rows[7]["f2"] = math.nan
    frame = pd.DataFrame(rows)
    single, whole = AutoScaler(), AutoScaler()
    for x in rows:
        single.learn_one(x)
    whole.learn_many(frame)
    assert whole.get_state() == single.get_state()
    made = whole.transform_many(frame)
    assert list(made.columns) == list(frame.columns)
    for i, x in enumerate(rows):
        row = {name: v for name, v in made.iloc[i].items() if not math.isnan(v)}
        assert row == single.transform_one(x)


GOOD: list[Any] = [3, 1, 3, True, 2.0, 1.0, 1.0, 3.0]


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        *(
            (0, 0),
            (0, 6),
            (0, 2.0),
            (0, True),
            (1, 0),
            (1, 9),
            (2, 4),
            (2, -1),
            (3, 1),
            (4, math.nan),
        ),
        *((4, 1), (4, 1e101), (5, -1.0), (5, math.inf), (6, 4.0), (7, 1e101), (7, "3")),
    ],
)
def test_a_damaged_record_is_refused(place: int, wrong: Any) -> None:
    scaler = AutoScaler()
    state = {"version": 1, "type": "AutoScaler", "events": 5, "ignored": 0, "records": {"a": GOOD}}
    scaler.set_state(state)
    before = scaler.get_state()
    assert before == state
    bad = [*GOOD[:place], wrong, *GOOD[place + 1 :]]
    refused: list[Any] = [{"a": bad}, {"a": GOOD[:-1]}, {"a": None}, [], None]
    for records in refused:
        with pytest.raises(hinged.InvalidState):
            scaler.set_state({**state, "records": records})
    assert scaler.get_state() == before


def test_rivers_checks() -> None:
    found = list(checks.yield_checks(AutoScaler()))
    assert len(found) > 8
    for check in found:
        check(AutoScaler())
