"""FourierFeatures: the Gaussian kernel of the whole event, from hashes alone."""

import copy
import hashlib
import json
import math
import pickle
import random
import subprocess
import sys
from typing import Any

import pandas as pd
import pytest
from river import checks

import hinged
from hinged import FourierFeatures
from hinged.fourier_features import REMEMBERED


def learned(width: int = 1, **parameters: Any) -> FourierFeatures:
    made = FourierFeatures(**parameters)
    made.learn_one({f"f{i}": 1.0 for i in range(width)})
    return made


def by_hand(x: dict[str, float], n: int, bend: float, seed: int, width: int) -> list[float]:
    """The formula once more, from the bytes of the hash on."""

    def numbers(text: str, count: int) -> list[int]:
        digest = hashlib.shake_256(text.encode()).digest(2 * count)
        return [digest[2 * i] * 256 + digest[2 * i + 1] for i in range(count)]

    turns = [part / 65_536 for part in numbers(f"phases {seed}", n)]
    made = []
    for j in range(n):
        total = 2.0 * math.pi * turns[j]
        for name, value in x.items():
            parts = numbers(f"weights {seed} {name}", 8 * n)[8 * j : 8 * j + 8]
            even = sum((part + 0.5) / 65_536 - 0.5 for part in parts)  # variance 8 / 12
            total += value * math.sqrt(2.0 * bend / width) * even / math.sqrt(8.0 / 12.0)
        made.append(math.sqrt(2.0 / n) * math.cos(total))
    return made


def test_by_hand() -> None:
    made = learned(3, n_components=5, bend=1.5, seed=7, prefix="w")
    x = {"a": 1.25, "größe": -0.5}
    found = made.transform_one(x)
    assert list(found) == ["w_0", "w_1", "w_2", "w_3", "w_4"]
    assert list(found.values()) == pytest.approx(by_hand(x, 5, 1.5, 7, 3), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("distance", "width", "bend"), [(0.5, 1, 1.0), (1.0, 4, 2.0), (3.0, 2, 4)])
def test_the_products_sum_up_to_the_gaussian_kernel(
    distance: float, width: int, bend: float
) -> None:
    r = random.Random(1)
    n = 4_000
    made = learned(width, n_components=n, bend=bend)
    x = {f"f{i}": r.gauss(0.0, 1.0) for i in range(width)}
    step = [r.gauss(0.0, 1.0) for _ in range(width)]
    z = {
        name: value + distance * s / math.hypot(*step)
        for (name, value), s in zip(x.items(), step, strict=True)
    }
    left, right = made.transform_one(x), made.transform_one(z)
    kernel = math.fsum(value * right[name] for name, value in left.items())
    # a product has a variance below 1 over n: 4 standard errors
    assert kernel == pytest.approx(math.exp(-bend / width * distance**2), abs=4.0 / math.sqrt(n))


def test_the_weights_are_normal_and_those_of_two_names_independent() -> None:
    n = 4_000
    made = learned(1, n_components=n, bend=0.5)  # 2 gamma = 1

    def weights(name: str) -> list[float]:
        # the sine of a small angle around each phase
        low, high = (made.transform_one({name: step}) for step in (-1e-4, 1e-4))
        base = made.transform_one({})
        height = math.sqrt(2.0 / n)
        found = []
        for one in made.names:
            sine = math.sqrt(max(0.0, 1.0 - (base[one] / height) ** 2))
            if sine > 0.2:
                found.append(abs((high[one] - low[one]) / (2e-4 * height * sine)))
        return found

    a = weights("a")
    assert math.fsum(v * v for v in a) / len(a) == pytest.approx(1.0, abs=0.08)
    assert math.fsum(a) / len(a) == pytest.approx(math.sqrt(2.0 / math.pi), abs=0.05)
    assert math.fsum(v**4 for v in a) / len(a) == pytest.approx(3.0, abs=0.6)
    x, z = made.transform_one({"a": 9.0}), made.transform_one({"b": 9.0})
    assert math.fsum(v * z[name] for name, v in x.items()) == pytest.approx(0.0, abs=0.07)


def test_the_width_is_that_of_the_widest_event_learned() -> None:
    made = FourierFeatures(n_components=3, bend=2.0)
    x = {"a": 0.7}
    fresh = made.transform_one(x)
    made.learn_one({"a": 1.0, "b": None})
    assert made.transform_one(x) == fresh
    made.learn_one({"a": 1.0, "b": 1.0, "c": 0.0, "d": 2.0})
    wide = list(made.transform_one(x).values())
    assert wide == pytest.approx(by_hand(x, 3, 2.0, 0, 3), abs=1e-12)
    made.learn_one(x)
    made.transform_one({f"f{i}": 1.0 for i in range(50)})
    assert made.widest == 3


def test_neither_the_order_of_events_nor_of_names_matters() -> None:
    r = random.Random(2)
    events = [{f"f{i}": r.gauss(0.0, 1.0) for i in r.sample(range(40), 8)} for _ in range(60)]
    one, other = learned(8, n_components=50), learned(8, n_components=50)
    forward = [one.transform_one(x) for x in events]
    backward = [other.transform_one(x) for x in reversed(events)]
    assert forward == backward[::-1]
    for x, made in zip(events, forward, strict=True):
        assert one.transform_one(dict(reversed(x.items()))) == made


def test_no_process_has_other_numbers() -> None:
    code = (
        "from hinged import FourierFeatures\n"
        "print(FourierFeatures(4, seed=1).transform_one({'a': 1.5, 'b': -2.0}))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {f"{FourierFeatures(4, seed=1).transform_one({'a': 1.5, 'b': -2.0})}\n"}


def test_another_seed_gives_other_cosines() -> None:
    x = {"a": 1.0}
    made = [tuple(learned(seed=seed).transform_one(x).values()) for seed in range(5)]
    assert len(set(made)) == 5


def test_what_is_remembered_of_names_is_bounded_and_changes_nothing() -> None:
    made = learned(n_components=1_000)
    before = pickle.dumps(made)
    first = made.transform_one({"a": 1.0})
    for i in range(200):
        made.transform_one({f"never learned {i}": 1.0})
    weights: dict[Any, Any] = vars(made)["_weights"]
    assert sum(map(len, weights.values())) <= REMEMBERED
    assert made.transform_one({"a": 1.0}) == first
    assert pickle.dumps(made) == before


HOSTILE = [0.0, 5e-324, -5e-324, 1e-310, 1e16, 1e100, sys.float_info.max, -sys.float_info.max]


@pytest.mark.parametrize("bend", [1e-300, 2.0, 1e6, 1e300])
def test_hostile_values_give_finite_features(bend: float) -> None:
    made = FourierFeatures(n_components=20, bend=bend)
    for value in HOSTILE:
        x: dict[str, Any] = {f"f{i}": value for i in range(30)}
        made.learn_one(x)
        found = made.transform_one({**x, "g": None, "h": math.nan})
        assert all(abs(v) <= math.sqrt(0.1) for v in found.values())
        assert len(found) == 20


def test_a_refused_event_changes_nothing() -> None:
    made = FourierFeatures()
    for wrong in ("red", math.inf):
        for call in (made.learn_one, made.transform_one):
            with pytest.raises(hinged.InvalidEvent, match="x\\['b'\\]"):
                call({"a": 1.0, "b": wrong})  # type: ignore[dict-item]
    assert made.widest == 0


@pytest.mark.parametrize(
    "wrong",
    [
        *({"n_components": 0}, {"n_components": 1.5}, {"n_components": None}, {"bend": 0.0}),
        *({"bend": math.inf}, {"seed": 1.5}, {"prefix": 3}),
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(hinged.InvalidParameter):
        FourierFeatures(**wrong)


def test_state_pickle_copy_and_clone() -> None:
    made = learned(7, n_components=5, bend=0.5, seed=2, prefix="p")
    again = FourierFeatures(5, 0.5, 2, "p")
    again.set_state(json.loads(json.dumps(made.get_state())))
    x = {"a": 1.5, "b": 2.0}
    for one in (again, pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert one.transform_one(x) == made.transform_one(x)
        assert one.get_state() == made.get_state()
    clone = made.clone()
    assert (clone.n_components, clone.bend, clone.seed, clone.prefix) == (5, 0.5, 2, "p")
    assert clone.widest == 0
    for widest in (-1, 1.5, None, "7"):
        with pytest.raises(hinged.InvalidState):
            again.set_state({**made.get_state(), "widest": widest})


def test_frames_give_what_single_events_give() -> None:
    frame = pd.DataFrame({"a": [0.5, 1.5, math.nan], "b": [1.0, 2.0, 3.0]})
    rows = [{"a": 0.5, "b": 1.0}, {"a": 1.5, "b": 2.0}, {"b": 3.0}]
    made = FourierFeatures(n_components=4)
    made.learn_many(frame)
    assert made.widest == 2
    found = made.transform_many(frame)
    assert [dict(row) for _, row in found.iterrows()] == [made.transform_one(x) for x in rows]


def test_rivers_checks() -> None:
    found = list(checks.yield_checks(FourierFeatures()))
    assert len(found) > 8
    for check in found:
        check(FourierFeatures(n_components=7))
