"""Entries of many events: learned to the same state as one by one."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import state_scalars
from hinged_service.wire.decoding import completed, parse_log

LEARNERS: list[dict[str, Any]] = [
    {"learner": {"type": "perceptron"}},
    {"learner": {"type": "arow"}, "labels": ["ham", "spam"]},
    {"learner": {"type": "hinge_sgd"}, "max_features": 12},
    {"learner": {"type": "passive_aggressive"}, "max_bytes": 65_536},
    {"learner": {"type": "perceptron"}, "exclude": {"ids": ["e7", "e90"]}},
    {"learner": {"type": "perceptron"}, "calibrate": True},
    {"learner": {"type": "perceptron"}, "metrics": ["accuracy", "log_loss"]},
    {"learner": {"type": "perceptron"}, "drift": {"detector": {"type": "DDM"}, "action": "reset"}},
    {"learner": {"type": "perceptron"}, "pipeline": [{"type": "StandardScaler"}]},
    {"learner": {"type": "perceptron"}, "class_weight": "balanced"},
]


def entry(draw: random.Random, labels: list[Any], number: int) -> bytes:
    """Return an entry of events, of which some are refused and some weigh nothing."""
    events: list[dict[str, Any]] = []
    for i in range(draw.randrange(1, 60)):
        names = draw.sample(range(30 + 20 * number), 4)
        x = {f"n{name}{'x' * (name % 50)}": draw.gauss(0, 1) for name in names}
        y = draw.choice([*labels * 5, "unknown"])
        w: dict[str, Any] = draw.choice([{}, {}, {}, {"w": 2.0}, {"w": 0}, {"w": 1e90}])
        events.append({"x": x, "y": y, "id": f"e{number * 60 + i}", **w})
    return json.dumps(events).encode()


@pytest.mark.parametrize("parts", LEARNERS, ids=str)
def test_an_entry_is_learned_as_its_events_one_by_one(parts: dict[str, Any]) -> None:
    spec = ModelSpec.model_validate_json(json.dumps(parts))
    together, alone = ModelState(spec), ModelState(spec)
    draw = random.Random(1)
    for number in range(40):
        payload = entry(draw, parts.get("labels", [True, False]), number)
        events = completed(parse_log(payload, together.takes_gathered), {})
        skip = frozenset({3}) if number % 7 == 0 else frozenset()
        found = together.learn_all(events, skip, f"{number + 1}-1")
        expected = []
        for i, event in enumerate(events):
            expected += alone.learn_all([event], skip & {i}, f"{number + 1}-1", first=i)
        assert repr(found) == repr(expected)
        assert repr(state_scalars(together)) == repr(state_scalars(alone))
    vectors = together.vectors(), alone.vectors()
    assert {n: list(v.view().items()) for n, v in vectors[0].items()} == {
        n: list(v.view().items()) for n, v in vectors[1].items()
    }
    assert together.rejected > 0
    assert together.events > 100
