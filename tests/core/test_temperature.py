"""The online temperature: hand arithmetic, the best scale in hindsight, numbers of any size."""

from __future__ import annotations

import itertools
import math
import random
import sys

import pytest

from hinged.errors import InvalidState
from hinged.temperature import LIMIT, Temperature

HUGE = sys.float_info.max


def test_two_events_by_hand() -> None:
    temperature = Temperature()
    assert temperature.log_odds(2.0) == 2.0
    temperature.learn(2.0, False)
    p = 1.0 / (1.0 + math.exp(-2.0))
    first = 4.0 * p * (1.0 - p)  # the curvature 0.42; the gradient 1.76: a step of more than 1
    assert temperature.curvature == pytest.approx(first)
    assert temperature.log_scale == -1.0
    z = temperature.log_odds(2.0)
    assert z == pytest.approx(2.0 / math.e)
    temperature.learn(z, True, 0.5)
    p = 1.0 / (1.0 + math.exp(-z))
    second = 0.998 * first + 0.5 * p * (1.0 - p) * z * z
    assert temperature.curvature == pytest.approx(second)
    assert temperature.log_scale == pytest.approx(-1.0 + 0.5 * (1.0 - p) * z / (second + 0.01))


def test_two_classes_are_the_binary_form() -> None:
    chance = random.Random(1)
    one, other = Temperature(), Temperature()
    for _ in range(500):
        score = chance.gauss(0.0, 3.0)
        positive = chance.random() < 1.0 / (1.0 + math.exp(-0.5 * score))
        one.learn(one.log_odds(score), positive)
        z = other.log_shares({"no": 0.0, "yes": score})
        other.learn_class(z, "yes" if positive else "no")
        assert other.log_scale == pytest.approx(one.log_scale, abs=1e-9)
    assert one.scale == pytest.approx(0.5, rel=0.3)


@pytest.mark.parametrize("factor", [1e-3, 1.0, 40.0, 1e6])
def test_it_finds_the_scale_of_three_classes(factor: float) -> None:
    chance = random.Random(2)
    temperature, loss, best = Temperature(), 0.0, 0.0
    for number in range(4000):
        true = [chance.gauss(0.0, 1.5) for _ in range(3)]
        odds = [math.exp(v) for v in true]
        label = chance.choices("abc", odds)[0]
        z = temperature.log_shares({y: factor * v for y, v in zip("abc", true, strict=True)})
        if number >= 1000:
            loss += math.log(math.fsum(map(math.exp, z.values()))) - z[label]
            best -= math.log(odds["abc".index(label)] / math.fsum(odds))
        temperature.learn_class(z, label)
    assert loss / 3000 == pytest.approx(best / 3000, abs=0.005)


def test_numbers_of_any_size_stay_finite() -> None:
    scores = [0.0, -0.0, 5e-324, 1e-200, 1.0, 1e200, HUGE, -HUGE, -1.0]
    temperature = Temperature()
    chance = random.Random(3)
    for a, b in itertools.islice(itertools.cycle(itertools.product(scores, scores)), 2000):
        w = chance.choice([1.0, 5e-324, HUGE, 0.5])
        z = temperature.log_odds(a)
        assert -LIMIT <= z <= LIMIT
        temperature.learn(z, chance.random() < 0.5, w)
        shares = temperature.log_shares({0: a, 1: b, 2: 0.0})
        assert all(-LIMIT <= value <= 0.0 for value in shares.values())
        temperature.learn_class(shares, chance.randrange(4), w)
        assert math.isfinite(temperature.curvature)
        assert -700.0 <= temperature.log_scale <= 20.0
        assert 0.0 < temperature.scale < math.inf


def test_scalars_restore_it() -> None:
    one = Temperature()
    for i in range(50):
        one.learn(one.log_odds(5.0), i % 3 > 0)
    saved = one.scalars("_1")
    assert saved.keys() == Temperature.kinds("_1").keys()
    again = Temperature.restored(saved, "_1")
    assert (again.scalars(), again.scale) == (one.scalars(), one.scale)
    with pytest.raises(InvalidState, match="log_scale_1"):
        Temperature.restored({**saved, "log_scale_1": 21.0}, "_1")
