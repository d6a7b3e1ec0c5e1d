"""No prediction changes a model, and no event that is refused does."""

import hashlib
import pickle
from typing import Any

import pytest

import hinged
from hinged_service.pipelines import Pipeline
from tests.pipelines.streams import CATALOGUE, Event, of_catalogue, pipeline, step, union


def state_hash(ours: Pipeline) -> str:
    """Return a hash of every object that the pipeline holds, Rust ones included."""
    return hashlib.sha256(pickle.dumps(ours._chain)).hexdigest()


def unseen(x: Event) -> Event:
    """Return the event with texts, or else a feature, that was never seen."""
    strange = {n: "never seen" if isinstance(v, str) else v for n, v in x.items()}
    return strange if strange != x else {**x, "never seen": 1.5}


@pytest.mark.parametrize("name", CATALOGUE)
def test_transforming_changes_nothing(name: str) -> None:
    ours, events = of_catalogue(name)
    for x in events[:50]:
        ours.transform_one(x)
        before, kept = state_hash(ours), dict(x)
        strange = unseen(x)
        first = ours.transform_one(strange)
        ours.origins(strange)
        assert ours.transform_one(strange) == first
        assert state_hash(ours) == before
        assert x == kept
        ours.learn_transform_one(x)
        assert x == kept


def test_the_hash_sees_what_is_learned() -> None:
    for name in CATALOGUE:
        ours, events = of_catalogue(name)
        before = state_hash(ours)
        ours.learn_transform_one(events[0])
        assert (state_hash(ours) != before) == ours.learns, name


def imputer(**statistics: str) -> dict[str, Any]:
    return step(
        "StatImputer", imputers=[{"feature": f, "statistic": s} for f, s in statistics.items()]
    )


REFUSED_LATE: dict[str, tuple[list[Any], Event]] = {
    "by a later scaler": ([imputer(a="Mean"), "StandardScaler"], {"a": 2.0, "b": "text"}),
    "by the learner": ([imputer(a="Mode")], {"a": "red"}),
    "by a second branch": (
        [union([step("TFIDF", on="a")], [step("StandardScaler")])],
        {"a": "some text"},
    ),
    "for too many products": (
        ["StandardScaler", step("PolynomialExtender", degree=2)],
        {f"f{i}": 1.0 for i in range(200)},
    ),
    "by text after a statistic": (
        [imputer(a="Mode", b="Mean"), "OneHotEncoder"],
        {"a": "red", "b": "text"},
    ),
    "for a number among numbers": (["StandardScaler", step("BagOfWords", on="a")], {"a": 1.0}),
}


@pytest.mark.parametrize("name", REFUSED_LATE)
def test_a_refused_event_changes_nothing(name: str) -> None:
    specs, x = REFUSED_LATE[name]
    ours = pipeline(*specs)
    before = state_hash(ours)
    with pytest.raises(hinged.InvalidEvent):
        ours.transform_one(x)
    with pytest.raises(hinged.InvalidEvent):
        ours.learn_transform_one(x)
    assert state_hash(ours) == before
