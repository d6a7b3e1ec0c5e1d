"""Stored states that were tampered with: taken whole or refused whole, by one kind of error."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import hinged
from hinged_service.engine import export
from hinged_service.errors import Malformed, Unprocessable
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import restore_state, state_scalars
from hinged_service.store.checkpoints import Checkpoint
from hinged_service.store.snapshot import Loaded
from hinged_service.wire.codec import (
    DamagedState,
    OtherVersion,
    decode_field,
    decode_name,
    decode_state,
    decode_value,
    decode_weights,
    encode_field,
    encode_name,
    encode_state,
    place,
)
from hinged_service.wire.events import Event, MixedEvent
from hinged_service.wire.position import Mark, Position
from tests.fuzz.budget import tries
from tests.fuzz.damage import PIECES, damaged_bytes, damaged_json, text_of

SPECS: dict[str, dict[str, Any]] = {
    "perceptron": {"learner": {"type": "perceptron"}},
    "averaged": {"learner": {"type": "averaged_perceptron"}, "labels": ["ham", "spam"]},
    "arow": {"learner": {"type": "arow"}, "metrics": ["accuracy", "roc_auc"]},
    "classes": {
        "learner": {"type": "multiclass_perceptron", "max_classes": 5},
        "metrics": ["f1", "confusion_matrix"],
    },
    "hedge": {"learner": {"type": "hedge"}},
    "mixed": {
        "learner": {"type": "perceptron"},
        "pipeline": [{"type": "OneHotEncoder"}, {"type": "StandardScaler"}],
        "drift": {"detector": {"type": "ADWIN"}},
    },
    "river": {
        "learner": {"type": "GaussianNB"},
        "pipeline": [{"type": "StandardScaler"}],
    },
    "tree": {"learner": {"type": "HoeffdingTreeClassifier", "grace_period": 5}},
}
POSITION = Position("123-4", "ab" * 20)


def labels_of(name: str) -> list[Any]:
    return ["ham", "spam"] if name == "averaged" else ["a", "b", "c"]


def fold_of(name: str) -> ModelState:
    """Return a model that has learned a little."""
    spec = ModelSpec.model_validate_json(json.dumps(SPECS[name]))
    fold = ModelState(spec)
    events: list[Event | None] = []
    for n in range(12):
        x: dict[str, Any] = {"a": 0.1 * n - 0.5, f"n{n % 5}": 1.0 + n / 3}
        y: Any = n % 3 == 0
        if fold.answers.target(y) is None:
            y = labels_of(name)[n % len(labels_of(name))]
        if name == "mixed":
            events.append(MixedEvent(x | {"word": f"w{n % 2}"}, y))
        else:
            events.append(Event(x, y))
    fold.learn_all(events, frozenset(), "1-1")
    return fold


def state_of(fold: ModelState) -> dict[str, Any]:
    """Return all that is stored of a model, as JSON has it."""
    vectors = {
        name: [[encode_name(k), v] for k, v in vector.view().items()]
        for name, vector in fold.vectors().items()
    }
    state: dict[str, Any] = json.loads(
        json.dumps({"scalars": state_scalars(fold), "vectors": vectors}, allow_nan=False)
    )
    return state


@pytest.mark.parametrize("name", SPECS)
def test_a_damaged_state_is_refused_or_is_a_state(name: str) -> None:
    spec = ModelSpec.model_validate_json(json.dumps(SPECS[name]))
    whole = state_of(fold_of(name))
    question: dict[str, Any] = {"a": 0.5, "n1": 2.0}

    @given(state=damaged_json([whole]))
    @tries(80)
    def try_out(state: Any) -> None:
        fold = ModelState(spec)
        try:
            vectors = {
                kind: {decode_name(str(k)): decode_value(str(v)) for k, v in pairs}
                for kind, pairs in state["vectors"].items()
            }
        except (DamagedState, TypeError, ValueError, LookupError, AttributeError):
            return
        try:
            restore_state(fold, state["scalars"], vectors)
        except (hinged.InvalidState, DamagedState):
            return
        except KeyError:
            assert "scalars" not in state
            return
        again = state_of(fold)
        other = ModelState(spec)
        restore_state(
            other,
            again["scalars"],
            {
                kind: {decode_name(k): v for k, v in pairs}
                for kind, pairs in again["vectors"].items()
            },
        )
        assert state_of(other) == again
        assert math.isfinite(fold.predict(dict(question)).score)

    try_out()


def same(one: Any, other: Any) -> bool:
    """Return whether two documents are the same text, NaN and the sign of zero included."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def test_an_exported_model_that_was_damaged_is_refused_or_is_a_model() -> None:
    documents = []
    for name in SPECS:
        fold = fold_of(name)
        state = decode_state(encode_state(POSITION, state_scalars(fold), {}, [Mark("1-1", 1, 1)]))
        vectors = {kind: dict(vector.view()) for kind, vector in fold.vectors().items()}
        spec = ModelSpec.model_validate_json(json.dumps(SPECS[name]))
        checkpoint = Checkpoint(uid="u", model="m", spec=spec, created_ms=1, events=12, mistakes=3)
        loaded = Loaded(position=POSITION, state=state, vectors=vectors)
        documents.append(json.loads(b"".join(export.exported(checkpoint, loaded))))

    @given(document=damaged_json(documents), sealed=st.booleans())
    @tries(80)
    def try_out(document: Any, sealed: bool) -> None:
        whole = any(same(document, one) for one in documents)
        if sealed and isinstance(document, dict):  # an attacker can compute a digest too
            document.pop("digest", None)
            text = json.dumps(document, sort_keys=True, separators=(",", ":"))
            document["digest"] = hashlib.sha256(text.encode()).hexdigest()
        try:
            made = export.imported(text_of(document))
        except (Malformed, Unprocessable):
            return
        assert sealed or whole, "damage was taken"
        assert json.dumps(state_scalars(made.state), allow_nan=False)

    try_out()


@given(body=damaged_bytes([b'{"format":"hinged-model","version":1}']))
@tries(200)
def test_no_bytes_are_an_exported_model(body: bytes) -> None:
    with pytest.raises((Malformed, Unprocessable)):
        export.imported(body)


FIELDS = encode_state(POSITION, {"a": 1, "b": [0.1, None]}, {"weights": 2}, [Mark("1-1", 2, 3)])
ODD_TEXTS = st.sampled_from([piece.decode(errors="replace") for piece in PIECES]) | st.text()


@given(
    changes=st.dictionaries(
        st.sampled_from(sorted(FIELDS)) | st.text(max_size=5),
        ODD_TEXTS
        | damaged_json([json.loads(FIELDS[n]) for n in ("scalars", "sizes", "marks")]).map(
            lambda document: json.dumps(document)
        ),
        max_size=3,
    ),
    lost=st.sets(st.sampled_from(sorted(FIELDS)), max_size=2),
    sealed=st.booleans(),
)
@tries(80)
def test_a_state_hash_is_whole_or_damaged(
    changes: dict[str, str], lost: set[str], sealed: bool
) -> None:
    fields = {name: text for name, text in (FIELDS | changes).items() if name not in lost}
    if sealed:
        rest = {name: text for name, text in fields.items() if name != "digest"}
        text = json.dumps(sorted(rest.items()))
        fields["digest"] = hashlib.sha1(text.encode()).hexdigest()
    try:
        state = decode_state(fields)
    except (DamagedState, OtherVersion):
        return
    assert sealed or fields == FIELDS, "damage was taken"
    json.dumps(state.scalars, allow_nan=False)
    again = decode_state(encode_state(state.position, state.scalars, state.sizes, state.marks))
    assert replace(again, fold=state.fold) == state


ODD_NAMES = ODD_TEXTS | ODD_TEXTS.map(lambda text: f"\x00json:{text}")


@given(text=ODD_NAMES)
@tries(80)
def test_a_field_is_of_a_class_or_damaged(text: str) -> None:
    try:
        tag, name = decode_field(text)
    except DamagedState:
        return
    assert decode_field(encode_field(tag, name)) == (tag, name)


@given(pairs=st.lists(st.tuples(ODD_NAMES, ODD_TEXTS | st.floats().map(repr)), max_size=4))
@example(pairs=[("a", "nan"), ("a", "1.0")])
@tries(150)
def test_weights_read_together_are_those_read_one_by_one(pairs: list[tuple[str, str]]) -> None:
    try:
        alone = {decode_name(name): decode_value(text) for name, text in pairs}
    except DamagedState:
        with pytest.raises(DamagedState):
            decode_weights(pairs)
    else:
        assert repr(decode_weights(pairs)) == repr(alone)


@given(vector=st.text("weights/vec0123456789é²", max_size=12), classes=st.lists(st.integers()))
@tries(200)
def test_a_vector_has_a_place_or_is_damage(vector: str, classes: list[int]) -> None:
    for learner in ({}, {"classes": classes}, {"classes": None}, {"classes": "ab"}):
        try:
            kind, tag = place(vector, learner)
        except DamagedState:
            continue
        assert kind
        assert tag is None or isinstance(tag, (int, str))
