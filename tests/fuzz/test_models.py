"""Forged specs and events, over every kind of state: refused with a reason, or learned."""

import json
import random
from typing import Any

import pytest
from pydantic import ValidationError

import hinged
from hinged_service.engine import export
from hinged_service.errors import Malformed, TooLarge, Unprocessable
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.wire.decoding import completed, parse_events, parse_log
from tests.fuzz.forging import changed, try_each
from tests.fuzz.kinds import KINDS, event_of, exported
from tests.fuzz.test_imports import use

EVENTS = 20
ADDED: dict[str, Any] = {
    "max_features": 100,
    "max_bytes": 2**20,
    "retention": {"bytes": 2**20},
    "late_labels": {"wait_s": 60},
    "exclude": {"ids": ["a"]},
    "start": "log",
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_forged_spec_is_refused_or_of_a_model_that_works(kind: str) -> None:
    def check(source: random.Random) -> None:
        spec = changed({**ADDED, **KINDS[kind]}, source)
        try:
            made = ModelSpec.model_validate_json(json.dumps(spec))
        except ValidationError:
            return
        use(made, ModelState(made))

    try_each(12, kind, check)


@pytest.mark.parametrize("kind", KINDS)
def test_forged_events_are_refused_or_learned(kind: str) -> None:
    whole = exported(kind).encode()

    def check(source: random.Random) -> None:
        made = export.imported(whole)
        state, mixed = made.state, made.spec.accepts_non_numeric
        for number in range(EVENTS):
            event = event_of(made.spec, source.randrange(100))
            sent: Any = {"x": event.x, "y": event.y, "w": 2.0, "id": f"e{number}"}
            body = json.dumps(changed([sent, sent], source)).encode()
            learn(state, body, mixed, number)
        use(made.spec, state)

    try_each(2, kind, check)


def learn(state: ModelState, body: bytes, mixed: bool, number: int) -> None:
    """Do with a body of events what a learn call does, and predict its events."""
    try:
        events, payload, _ = parse_events(body, 10, mixed, state.takes_gathered)
    except (Malformed, TooLarge, Unprocessable):
        return
    if state.faults(events):
        return
    logged = completed(parse_log(b"[" + bytes(payload) + b"]"), {})
    state.learn_all(logged, frozenset(), f"2-{number}")
    for event in logged:
        if event is not None:
            try:
                answer = state.predict(event.x)
            except hinged.InvalidEvent:
                continue
            json.dumps(answer.score, allow_nan=False)
