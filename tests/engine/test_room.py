"""The numbers of a model stay within `max_bytes`, by state and event alone."""

import json
import random
from typing import Any

import pytest

from hinged_service.model.results import Rejection
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import restore_state, state_scalars
from hinged_service.wire.events import Event
from tests.river_support.learners import catalogue

MAX_BYTES = 20_000
STEPS: dict[str, list[dict[str, Any]]] = {
    "scaled": [{"type": "StandardScaler"}],
    "auto": [{"type": "AutoScaler"}],
    "robust": [{"type": "RobustScaler"}],
    "encoded": [{"type": "OneHotEncoder"}],
    "extended": [{"type": "PolynomialExtender"}, {"type": "MinMaxScaler"}],
    "two ways": [
        {
            "type": "Union",
            "branches": [[{"type": "StandardScaler"}], [{"type": "FeatureHasher"}]],
        }
    ],
}


def state_of(spec: dict[str, Any], max_bytes: int = MAX_BYTES) -> ModelState:
    return ModelState(ModelSpec.model_validate_json(json.dumps({**spec, "max_bytes": max_bytes})))


def again(state: ModelState, spec: dict[str, Any]) -> ModelState:
    """The same state in a process that loads it."""
    stored = json.loads(json.dumps(state_scalars(state)))
    vectors = {name: dict(vector.view()) for name, vector in state.vectors().items()}
    loaded = state_of(spec)
    restore_state(loaded, stored, vectors)
    return loaded


def stream(state: ModelState) -> list[Event]:
    """Events of names that are known, new, long, and not of ASCII."""
    r = random.Random(5)
    ys: list[Any] = [f"class {i}" for i in range(6)] if state.multiclass else [True, False]
    events = []
    for number in range(200):
        names = [f"n{r.randrange(number + 1)}" for _ in range(4)]
        names += [r.choice(["ö", "long"]) * r.randrange(60) + str(number)]
        x = {name: float(r.randrange(1, 4)) for name in names}
        events.append(Event(x=x, y=r.choice(ys), w=1.0))
    return events


def really_stored(state: ModelState) -> int:
    return sum(
        128 + len(str(name).encode())
        for vector in state.vectors().values()
        for name in vector.view()
    )


SPECS: dict[str, dict[str, Any]] = {
    kind: {"learner": catalogue.learner(kind)} for kind in catalogue.LEARNERS if kind != "curved"
}
SPECS |= {
    name: {"learner": {"type": "arow"}, "pipeline": steps, "metrics": ["accuracy"]}
    for name, steps in STEPS.items()
}


@pytest.mark.parametrize("name", SPECS)
def test_a_fold_fills_the_room_and_skips_what_does_not_fit(name: str) -> None:
    spec = SPECS[name]
    plain, loaded = state_of(spec), state_of(spec)
    results, others = [], []
    for number, event in enumerate(stream(plain)):
        results += plain.learn_all([event], frozenset(), f"{number}-1")
        others += loaded.learn_all([event], frozenset(), f"{number}-1")
        assert plain.stored_bytes() <= MAX_BYTES
        assert really_stored(plain) <= plain.stored_bytes()
        if number % 7 == 0:
            loaded = again(loaded, spec)
    assert repr(results) == repr(others)
    assert repr(state_scalars(plain)) == repr(state_scalars(loaded))
    skipped = [one for one in results if isinstance(one, Rejection)]
    assert plain.rejected == len(skipped) < 200
    assert all(one.field == "x" and str(MAX_BYTES) in one.reason for one in skipped)
    pipeline = plain.pipeline
    assert skipped or (pipeline is not None and pipeline.ignored)


def test_a_curved_learner_has_room_for_all_cosines_or_for_none() -> None:
    bytes_of_all = 2 * sum(128 + len(f"cos_{j}") for j in range(100))
    for room, rejected, stored in ((bytes_of_all - 1, 200, 0), (bytes_of_all, 0, bytes_of_all)):
        state = state_of({"learner": {"type": "curved"}}, room)
        events = stream(state)
        assert len(state.faults(events[:1])) == (rejected > 0)
        state.learn_all(events, frozenset(), "1-1")
        assert (state.rejected, state.stored_bytes()) == (rejected, stored)
        assert really_stored(state) == stored


@pytest.mark.parametrize("name", SPECS)
def test_with_plenty_of_room_nothing_is_skipped(name: str) -> None:
    state = state_of(SPECS[name], 2**30)
    events = stream(state)
    assert state.faults(events) == []
    assert Rejection not in map(type, state.learn_all(events, frozenset(), "1-1"))
    assert really_stored(state) <= state.stored_bytes()


@pytest.mark.parametrize("name", SPECS)
def test_an_event_that_the_door_takes_alone_the_fold_takes(name: str) -> None:
    state = state_of(SPECS[name])
    refused = 0
    for number, event in enumerate(stream(state)):
        faults = state.faults([event])
        (result,) = state.learn_all([event], frozenset(), f"{number}-1")
        assert [i for i, _ in faults] == ([0] if isinstance(result, Rejection) else [])
        refused += bool(faults)
    assert refused or state.pipeline is not None
