"""A model as one portable JSON document: its spec and all of its state, nothing that runs."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from pydantic import ValidationError

import hinged
from hinged_service.errors import Detail, Malformed, Unprocessable
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import restore_state
from hinged_service.model.trial import try_out
from hinged_service.store.checkpoints import Checkpoint
from hinged_service.store.snapshot import Loaded
from hinged_service.wire.codec import DamagedState, decode_name, encode_name

__all__ = ["Document", "exported", "imported"]

_FORMAT = "hinged-model"
_VERSION = 1


def _versions() -> dict[str, Any]:
    river = ".".join(metadata.version("river").split(".")[:2])
    return {"format": _FORMAT, "version": _VERSION, "fold": hinged.FOLD_VERSION, "river": river}


@dataclass(frozen=True, slots=True)
class Document:
    """An imported model: its spec, without what ties it to a stream, and its state."""

    spec: ModelSpec
    state: ModelState


def exported(checkpoint: Checkpoint, loaded: Loaded) -> bytes:
    """Return a checkpoint as a document.

    Raises
    ------
    DamagedState
        If there is no state.

    """
    if loaded.state is None:
        raise DamagedState("the checkpoint has no state")
    document = {
        **_versions(),
        "model": checkpoint.model,
        "created_ms": checkpoint.created_ms,
        "spec": checkpoint.spec.model_dump(mode="json"),
        "scalars": loaded.state.scalars,
        "vectors": {
            name: [[encode_name(feature), value] for feature, value in values.items()]
            for name, values in loaded.vectors.items()
        },
    }
    return json.dumps({**document, "digest": _digest(document)}, allow_nan=False).encode()


def imported(body: bytes) -> Document:
    """Read a document.

    Raises
    ------
    Malformed
        If it is not JSON.
    Unprocessable
        If it is no such document, of another version, or damaged.

    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed("The body is not valid JSON.") from error
    try:
        _refuse_halves(document)
        return _read(document)
    except RecursionError as error:
        raise _refused("body", "is nested too deep") from error


def _read(document: Any) -> Document:
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise _refused("format", "is not an exported model")
    for name, version in _versions().items():
        given = document.get(name)
        if name == "fold" and type(given) is int and 1 <= given < hinged.FOLD_VERSION:
            continue  # what an earlier version folded is read as it is, and goes on from there
        if given != version:
            raise _refused(name, f"is {given!r}, this service reads {version!r}"[:200])
    digest = document.pop("digest", None)
    if digest != _digest(document):
        raise _refused("digest", "does not match: the document is damaged")
    try:
        spec = ModelSpec.model_validate_json(json.dumps(document.get("spec")))
        spec = spec.model_copy(update={"stream": None, "start": "now", "exclude": None})
        state = ModelState(spec)
        scalars, vectors = document["scalars"], _vectors(document["vectors"])
        restore_state(state, scalars, vectors)
        try_out(spec, scalars, vectors)
    except ValidationError as error:
        raise _refused("spec", str(error).splitlines()[0]) from None
    except (
        *(hinged.InvalidState, DamagedState),
        *(AttributeError, KeyError, OverflowError, TypeError, ValueError),
    ) as error:
        raise _refused("scalars", f"is not the state of such a model: {error}"[:200]) from None
    return Document(spec, state)


def _refuse_halves(document: Any) -> None:
    """Refuse halves of characters (lone surrogates): no store and no answer can hold them."""
    if not isinstance(document, dict):
        return  # refused for that
    for name, value in document.items():
        try:
            json.dumps({name: value}, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            field = name.encode(errors="replace").decode()[:100]
            raise _refused(field, "holds half a character (a lone surrogate)") from None


def _vectors(given: Any) -> dict[str, dict[Any, float]]:
    vectors: dict[str, dict[Any, float]] = {}
    for name, pairs in given.items():
        vectors[name] = {decode_name(field): float(value) for field, value in pairs}
        if len(vectors[name]) != len(pairs):
            raise ValueError(f"a name stands twice in {name!r}")
    return vectors


def _digest(document: dict[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _refused(field: str, reason: str) -> Unprocessable:
    return Unprocessable("Nothing was imported: see errors.", [Detail(field, reason)])
