"""Documents with a right digest and forged content: refused, or a model that works."""

import contextlib
import hashlib
import json
from typing import Any

import pytest

import hinged
from hinged_service.engine import export
from hinged_service.engine.top_weights import largest
from hinged_service.errors import ServiceError
from hinged_service.model.inspection import (
    explain_event,
    feature_count,
    recent_accuracy,
    weights_of,
)
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import restore_state, state_scalars
from tests.fuzz.forging import changed, try_each
from tests.fuzz.kinds import KINDS, event_of, exported


def sealed(document: dict[str, Any]) -> bytes:
    """Return the document with the digest that it must have."""
    document = {name: value for name, value in document.items() if name != "digest"}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({**document, "digest": digest}).encode()


def use(spec: ModelSpec, state: ModelState) -> None:
    """Do with a model what its callers may; only what they are told is refused."""
    for n in range(60, 66):
        event = event_of(spec, n)
        if not state.faults([event]):
            state.predict(event.x)
        with contextlib.suppress(hinged.InvalidEvent):
            explain_event(state, event.x, None)
        state.learn_all([event], frozenset(), f"1-{n}")
    weights = weights_of(state, None)
    if weights is not None:
        json.dumps(largest(weights, None), allow_nan=False)
        for vector in weights.get("classes", weights.get("experts", [weights])):
            vector = weights["classes"][vector] if isinstance(vector, str) else vector
            assert all(type(name) is str for name in vector["weights"])
    feature_count(state), recent_accuracy(state)
    if state.metrics is not None:
        json.dumps(state.metrics.report(), allow_nan=False)
    saved = json.loads(json.dumps(state_scalars(state), allow_nan=False))
    vectors = {name: dict(vector.view()) for name, vector in state.vectors().items()}
    restore_state(ModelState(spec), saved, vectors)


def check(body: bytes) -> bool:
    """Import a document and use the model; return whether it was taken."""
    try:
        made = export.imported(body)
    except ServiceError:
        return False
    use(made.spec, made.state)
    return True


@pytest.mark.parametrize("kind", ["MultinomialNB", "ComplementNB", "BernoulliNB", "GaussianNB"])
def test_a_count_that_is_not_finite_is_refused(kind: str) -> None:
    whole = json.loads(exported(kind))
    rows = whole["scalars"]["learner"]["scalars"]["model"]["rows"]
    counters = [row for row in rows if row[0] == "Counter" and row[2]]
    assert check(sealed(whole))
    assert counters
    for counts in (row[2] for row in counters):
        for value in ("inf", "-inf", "nan"):
            counts[-1], before = {"float": value}, counts[-1]
            assert not check(sealed(whole))
            counts[-1] = before


@pytest.mark.parametrize("kind", KINDS)
def test_a_forged_document_is_refused_or_a_model_that_works(kind: str) -> None:
    whole = json.loads(exported(kind))
    assert check(sealed(whole))
    try_each(12, kind, lambda source: check(sealed(changed(whole, source, "scalars", "vectors"))))
