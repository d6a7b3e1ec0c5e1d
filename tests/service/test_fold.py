"""A model as a fold: what its short ways come to is what the long ones do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hinged_service.events import Event, MixedEvent
from hinged_service.fold import Fold, Refused
from hinged_service.spec import ModelSpec

EVENTS: list[Event] = [
    Event({"a": 1.0}, True),
    Event({"a": -1.0, "b": 2.0}, False, 0.5),
    Event({"a": 1.0}, "spam"),
    Event({"a": 1.0}, 1.0),
    Event({"b": 1.0}, 0),
    Event({"b": 1.0}, 1, 0.0),
    Event({"a": 3.0}, True, 2.5),
    Event({"c": 1.0}, False),
]


def folded(spec: dict[str, Any], events: list[Any], together: bool) -> tuple[Fold, list[Any]]:
    """Fold events in as one entry, or with one that is skipped: then each goes by itself."""
    fold = Fold(ModelSpec.model_validate_json(json.dumps(spec)))
    if together:
        return fold, fold.learn_all(events, frozenset(), "1-0")
    results = fold.learn_all([*events, events[0]], frozenset({len(events)}), "1-0")
    assert results.pop() is None
    return fold, results


@pytest.mark.parametrize(
    "spec",
    [
        {"learner": {"type": "perceptron"}},
        {"learner": {"type": "passive_aggressive", "mode": "uncapped"}},
        {"learner": {"type": "perceptron"}, "labels": ["ham", "spam"]},
        {"learner": {"type": "multiclass_perceptron", "max_classes": 2}, "labels": "integers"},
    ],
)
@pytest.mark.parametrize("more", [[], [None], [MixedEvent({"a": "text"}, True)]])
def test_events_of_one_entry_are_folded_as_each_by_itself(
    spec: dict[str, Any], more: list[Any]
) -> None:
    events = [*EVENTS, *more]
    together, found = folded(spec, events, together=True)
    apart, expected = folded(spec, events, together=False)
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))
    assert together.scalars() == apart.scalars()
    assert {n: dict(v.view()) for n, v in together.vectors().items()} == {
        n: dict(v.view()) for n, v in apart.vectors().items()
    }
    assert any(isinstance(result, Refused) for result in found)
    assert together.events > 0
