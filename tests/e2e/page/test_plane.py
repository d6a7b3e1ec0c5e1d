"""The picture of two features: corners are enough only for learners whose boundary is a line."""

from __future__ import annotations

import random
from typing import Any

import httpx
import pytest

import hinged
from tests.e2e.page.conftest import Open
from tests.river_support.learners import catalogue

BINARY: list[tuple[str, Any]] = [
    (kind, made)
    for kind, make in catalogue.WITNESSES.items()
    if isinstance(made := make(), (hinged.BinaryLinearClassifier, hinged.Hedge, hinged.Auto))
]


def bends(learner: Any) -> bool:
    """Return whether the score half way between two events is another than half of both."""
    chance = random.Random(3)
    points = [{"a": chance.gauss(0, 1), "b": chance.gauss(0, 1)} for _ in range(400)]
    for x in points:
        learner.learn_one(x, abs(x["a"]) < 0.7)
    for one, other in zip(points[::2], points[1::2], strict=True):
        middle = {name: (one[name] + other[name]) / 2 for name in one}
        half = (learner.score_one(one) + learner.score_one(other)) / 2
        if learner.score_one(middle) != pytest.approx(half, abs=1e-9):
            return True
    return False


def test_corners_are_taken_for_the_whole_only_of_what_is_a_plane(
    visit: Open, client: httpx.Client
) -> None:
    here = visit("#/")
    for kind, learner in BINARY:
        path = f"/v1/models/plane-{kind}"
        spec = {"learner": catalogue.learner(kind), "labels": [False, True]}
        client.put(path, json=spec).raise_for_status()
        straight = here.page.evaluate(
            "async (spec) => (await import('./page/features.js')).isAffine(spec)",
            client.get(path).json()["spec"],
        )
        assert not (straight and bends(learner)), kind
        assert straight or kind in ("auto", "hedge", "curved", "quadratic")
