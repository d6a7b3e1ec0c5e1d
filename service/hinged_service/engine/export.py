"""A model as one portable JSON document: its spec and all of its state, nothing that runs."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from pydantic import ValidationError

import hinged
from hinged_service.errors import Detail, Malformed, Unprocessable
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.model.state_check import try_out
from hinged_service.model.state_codec import restore_state, state_scalars
from hinged_service.store.checkpoints import Checkpoint
from hinged_service.store.snapshot import Loaded
from hinged_service.wire.codec import DamagedState, decode_name, encode_name
from hinged_service.wire.progress import OnProgress, Progress, no_progress

__all__ = [
    "Document",
    "document_bytes",
    "document_of",
    "exported",
    "exported_bytes",
    "imported",
]

_FORMAT = "hinged-model"
_VERSION = 1
_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
_PIECE_BYTES = 2**18
_PAIRS = 2_000
_PAIR_BYTES = 64
_PASSES = 4


def _versions() -> dict[str, Any]:
    river = ".".join(metadata.version("river").split(".")[:2])
    return {"format": _FORMAT, "version": _VERSION, "fold": hinged.FOLD_VERSION, "river": river}


@dataclass(frozen=True, slots=True)
class Document:
    """An imported model: its spec without the parts about a stream, and its state."""

    spec: ModelSpec
    state: ModelState


def exported(checkpoint: Checkpoint, loaded: Loaded) -> Iterator[bytes]:
    """Return the pieces of a checkpoint as a document, each made when it is needed.

    Raises
    ------
    DamagedState
        If there is no state.

    """
    if loaded.state is None:
        raise DamagedState("the checkpoint has no state")
    document = _document(
        checkpoint.model, checkpoint.created_ms, checkpoint.spec, loaded.state.scalars
    )
    return _pieces(document, loaded.vectors)


def document_of(name: str, spec: ModelSpec, state: ModelState, created_ms: int = 0) -> bytes:
    """Return a state as the document of a model of that name."""
    document = _document(name, created_ms, spec, state_scalars(state))
    vectors = {part: vector.view() for part, vector in state.vectors().items()}
    return b"".join(_pieces(document, vectors))


def _document(
    name: str, created_ms: int, spec: ModelSpec, scalars: dict[str, Any]
) -> dict[str, Any]:
    return {
        **_versions(),
        "model": name,
        "created_ms": created_ms,
        "spec": spec.model_dump(mode="json"),
        "scalars": scalars,
    }


def exported_bytes(loaded: Loaded) -> int:
    """Return about how many bytes the state of a checkpoint takes while it is sent."""
    return _PAIR_BYTES * sum(map(len, loaded.vectors.values()))


def document_bytes(loaded: Loaded) -> int:
    """Return about how many bytes the document of a checkpoint has: as its first weights have."""
    size = 0
    for vector in loaded.vectors.values():
        some = list(itertools.islice(vector.items(), _PAIRS))
        if some:
            size += len(_text(some)) * len(vector) // len(some)
    return size


def _pieces(
    document: dict[str, Any], vectors: Mapping[str, Mapping[Any, float]]
) -> Iterator[bytes]:
    """Yield the text that the digest is made of, and the digest in the end."""
    digest, parts, size = hashlib.sha256(), [], 0
    for text in _texts(document, vectors):
        part = text.encode()
        digest.update(part)
        parts.append(part)
        size += len(part)
        if size >= _PIECE_BYTES:
            yield b"".join(parts)
            parts, size = [], 0
    digest.update(b"}")
    yield b"".join(parts) + f',"digest":"{digest.hexdigest()}"}}'.encode()


def _texts(document: dict[str, Any], vectors: Mapping[str, Mapping[Any, float]]) -> Iterator[str]:
    """Yield the document as `_digest` reads it, but for the last bracket."""
    opening = "{"
    for key in sorted((*document, "vectors")):
        yield f"{opening}{_JSON.encode(key)}:"
        opening = ","
        if key != "vectors":
            yield from _JSON.iterencode(document[key])
            continue
        yield "{"
        for number, name in enumerate(sorted(vectors)):
            yield f"{',' if number else ''}{_JSON.encode(name)}:["
            pairs = iter(vectors[name].items())
            between = ""
            while some := list(itertools.islice(pairs, _PAIRS)):
                yield between + _text(some)
                between = ","
            yield "]"
        yield "}"


def _text(pairs: Iterable[tuple[Any, float]]) -> str:
    return _JSON.encode([[encode_name(feature), value] for feature, value in pairs])[1:-1]


def imported(body: bytes, on_progress: OnProgress = no_progress) -> Document:
    """Read a document; `on_progress` reports the bytes that are checked.

    Raises
    ------
    Malformed
        If it is not JSON.
    Unprocessable
        If it is no such document, of another version, or damaged.

    """

    def passed(passes: int) -> None:
        on_progress(Progress("check", len(body) * passes // _PASSES, len(body)))

    passed(0)
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Malformed("The document is not valid JSON. Import one that was exported.") from error
    try:
        passed(1)
        _refuse_halves(document)
        return _read(document, passed)
    except RecursionError as error:
        raise _refused("body", "is nested too deep") from error


def _read(document: Any, passed: Callable[[int], None]) -> Document:
    if not isinstance(document, dict) or document.get("format") != _FORMAT:
        raise _refused("format", "is not an exported model")
    for name, version in _versions().items():
        found = document.get(name)
        if name == "fold" and type(found) is int and 1 <= found < hinged.FOLD_VERSION:
            continue  # what an earlier version folded is read as it is, and goes on from there
        if found != version:
            raise _refused(name, f"is {found!r}, this service reads {version!r}"[:200])
    digest = document.pop("digest", None)
    if digest != _digest(document):
        raise _refused("digest", "does not match: the document is damaged")
    passed(2)
    try:
        spec = ModelSpec.model_validate_json(json.dumps(document.get("spec")))
        spec = spec.model_copy(update={"stream": None, "start": "now", "exclude": None})
        state = ModelState(spec)
        scalars, vectors = document["scalars"], _vectors(document["vectors"])
        restore_state(state, scalars, vectors)
        passed(3)
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


def _vectors(document: Any) -> dict[str, dict[Any, float]]:
    vectors: dict[str, dict[Any, float]] = {}
    for name, pairs in document.items():
        vectors[name] = {decode_name(field): float(value) for field, value in pairs}
        if len(vectors[name]) != len(pairs):
            raise ValueError(f"a name occurs twice in {name!r}")
    return vectors


def _digest(document: dict[str, Any]) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _refused(field: str, reason: str) -> Unprocessable:
    return Unprocessable("Nothing was imported: see errors.", [Detail(field, reason)])
