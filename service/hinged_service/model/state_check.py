"""Check of a state from outside: it must predict, explain, learn and be storable."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import hinged
from hinged_service.errors import Detail, Unprocessable
from hinged_service.model.inspection import explain_event, feature_count, weights_of
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import restore_state, state_scalars
from hinged_service.wire.events import Event, MixedEvent

__all__ = ["check_kind", "try_out"]

_NAMES = 20
_LABELS = 3
_VALUES = (1.0, 0.0, 2.0)
_MOST = 2**53
"""A count beyond it did not come from counting, and would soon be too large to be stored."""

_FAULTS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def try_out(spec: ModelSpec, scalars: dict[str, Any], vectors: dict[str, dict[Any, float]]) -> None:
    """Predict, explain, learn, show and store with a copy of a state that can be restored.

    Raises
    ------
    hinged.InvalidState
        It cannot: its parts do not go together.

    """
    state = ModelState(spec)
    scalars = json.loads(json.dumps(scalars))  # copies: a state keeps what it gets
    restore_state(state, scalars, {part: dict(vector) for part, vector in vectors.items()})
    if any(count > _MOST for count in _counts(scalars, state)):
        raise hinged.InvalidState("a count is too large")
    try:
        _use(spec, state, list(_names(scalars, vectors)))
        stored = json.loads(json.dumps(state_scalars(state), allow_nan=False))
        kept = {part: dict(vector.view()) for part, vector in state.vectors().items()}
        restore_state(ModelState(spec), stored, kept)
    except hinged.InvalidState:
        raise
    except _FAULTS as error:
        raise hinged.InvalidState(f"its parts do not go together: {error}"[:200]) from error


def check_kind(
    spec: ModelSpec, other: ModelSpec, scalars: dict[str, Any], vectors: Mapping[str, Any]
) -> None:
    """Check that a model of a spec can start with the state of a model of another one.

    Raises
    ------
    Unprocessable
        It cannot: they are of different kinds.

    """
    reason = "its labels differ" if spec.labels != other.labels else ""
    try:
        restore_state(ModelState(spec), scalars, dict(vectors))
    except hinged.InvalidState as error:
        reason = reason or str(error)
    if reason:
        raise Unprocessable(
            "Nothing was done: see errors.",
            [Detail("start", f"is of another kind of model: {reason}"[:300])],
        )


def _counts(scalars: Mapping[str, Any], state: ModelState) -> Iterator[int]:
    yield from scalars["counts"].values()
    account = state.learner.accounting
    yield from (account.events, account.mistakes, account.updates, account.overflows)
    yield account.ignored
    if state.balance is not None:
        yield state.balance.events


def _use(spec: ModelSpec, state: ModelState, names: list[str]) -> None:
    kind = MixedEvent if spec.accepts_non_numeric else Event
    for number, (y, value) in enumerate(itertools.product(_labels(spec, state), _VALUES)):
        event = kind(dict.fromkeys(names, value), y)
        if not state.faults([event]):
            state.predict(event.x)
            explain_event(state, event.x, None)
        state.learn_all([event], frozenset(), f"1-{number}")
    feature_count(state)
    weights = weights_of(state, None)
    report = None if state.metrics is None else state.metrics.report()
    json.dumps([weights, report], allow_nan=False)


def _labels(spec: ModelSpec, state: ModelState) -> list[Any]:
    labels: list[Any] = list(state.answers.classes())
    if not labels and spec.multiclass:
        labels = ["a"] if spec.labels is None else [0]
    return labels[:_LABELS] or [False, True]


def _names(scalars: Mapping[str, Any], vectors: Mapping[str, Mapping[Any, float]]) -> Iterator[str]:
    """Return some names of features that the state knows."""
    for found in (scalars["learner"].get("scalars", {}).get("names", ()), *vectors.values()):
        yield from itertools.islice((name for name in found if isinstance(name, str)), _NAMES)
