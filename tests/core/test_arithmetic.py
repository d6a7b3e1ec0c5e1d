"""The arithmetic is the written one: the same bits everywhere, in Python and compiled."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

import hinged
from hinged import arithmetic
from hinged.kernel import norm_of

# Computed once; every Python, platform and compiler must give these bits.
NORMS = [
    ([0.1] * 10, "0x1.43d1362484910p-2"),
    ([5e-324] * 3, "0x0.0000000000002p-1022"),
    ([1e-200, 3e-200], "0x1.35d5244b69495p-663"),
    ([1e200, -1e200], "0x1.d8f9811335b57p+664"),
]
SCORES = {
    "Perceptron": ("-0x1.4c34a5499fc0ep+2", "0x1.11f799ec1ab72p+8"),
    "AveragedPerceptron": ("-0x1.a20daa3352ac0p-2", "0x1.11f799ec1ab72p+8"),
    "PocketPerceptron": ("0x1.c9985dc446b0ap+2", "0x1.11f799ec1ab72p+8"),
    "PassiveAggressive": ("0x1.a41c9d7a0a54ap-3", "0x1.037ebf38f4a89p+6"),
    "LinearUnit": ("0x1.fe57443a93706p-3", "0x1.d3479092b9cc6p+5"),
    "HingeSGD": ("0x1.6177885423dddp-1", "0x1.15c1e3f4e2bd5p+6"),
    "AROW": ("0x1.7acbcd9e48c5cp-2", "0x1.02b1f9411332cp+6"),
    "SCW": ("0x1.d3d534fc6463ap-2", "0x1.0806fb0936817p+6"),
}


def stream() -> list[tuple[dict[str, float], bool]]:
    rows = []
    for i in range(60):
        names = [f"f{(i * 7 + j * j) % 23}" for j in range(6)]
        values = [((i * 7919 + j * 104_729) % 2001 - 1000) / 333.0 for j in range(len(names))]
        rows.append((dict(zip(names, values, strict=True)), (i * i) % 7 < 3))
    return rows


@pytest.mark.parametrize(("values", "expected"), NORMS)
def test_golden_norms(values: list[float], expected: str) -> None:
    assert arithmetic.norm(values).hex() == expected


@pytest.mark.parametrize("name", SCORES)
def test_golden_scores(name: str) -> None:
    model = getattr(hinged, name)()
    for x, y in stream():
        model.learn_one(x, y)
    score = model.score_one(stream()[3][0])
    assert (score.hex(), model.accounting.hinge_loss.hex()) == SCORES[name]


def exact_norm(values: list[float]) -> float:
    square = sum(Fraction(v) ** 2 for v in values)
    scale = 2**1200
    return float(Fraction(math.isqrt(int(square * scale**2)), scale))


@pytest.mark.parametrize("size", [1e-320, 1e-200, 1e-130, 1.0, 1e130, 1e200, 1e307])
def test_a_norm_is_right_at_every_size(size: float) -> None:
    chance = random.Random(1)
    for count in range(1, 20):
        values = [chance.uniform(-size, size) for _ in range(count)]
        found = arithmetic.norm(values)
        assert found == pytest.approx(exact_norm(values), rel=1e-14, abs=1e-323)
        assert norm_of(dict(enumerate(values))) == found


def test_hostile_norms() -> None:
    for values, expected in (
        ([], 0.0),
        ([0.0, -0.0], 0.0),
        ([math.inf, 1.0], math.inf),
        ([-math.inf, 5e-324], math.inf),
        ([1.7e308, 1.7e308], math.inf),
        ([5e-324], 5e-324),
        ([1e308, 1e-308], 1e308),
        ([3, 4], 5.0),
        ([True, False], 1.0),
        ([2**600, 2**600], math.ldexp(math.sqrt(2.0), 600)),
    ):
        assert arithmetic.norm(values) == expected
        assert norm_of(dict(enumerate(values))) == expected
    assert math.isnan(arithmetic.norm([math.nan, math.inf]))
    assert math.isnan(norm_of({"a": math.nan}))
