"""Entries of the index: of the name of a model, and of an alias."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import msgspec

from hinged_service.model.spec import ModelSpec
from hinged_service.model.start import NAME_PATTERN, Name
from hinged_service.wire.strict_model import StrictModel

__all__ = ["Alias", "IndexEntry"]

_ITS_OWN = ""
"""The stream in a spec that many models share: that of each model's entry."""
_SHARED_BYTES = 2**13


class _Stored(msgspec.Struct, forbid_unknown_fields=True):
    """An index entry as it is stored."""

    uid: str
    stream: Annotated[str, msgspec.Meta(pattern=NAME_PATTERN)]
    spec: dict[str, Any]
    base: str | None = None
    origin: str | None = None
    deleting: bool = False


@functools.lru_cache(maxsize=1_000)
def _shared(text: bytes) -> ModelSpec:
    """Return the spec shared by all models that differ only in the stream."""
    return ModelSpec.model_validate_json(text).model_copy(update={"stream": _ITS_OWN})


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """The entry of a model name in the index.

    Attributes
    ----------
    uid, stream
        The model's uid, the stream it follows.
    fold
        Its spec but for the stream, which is no part of the fold: one for all models alike.
    base
        The position at which the model starts; `None` until it is registered.
    origin
        The uid of the checkpoint it starts with.
    deleting
        True once its deletion has begun.

    """

    uid: str
    stream: str
    fold: ModelSpec
    base: str | None = None
    origin: str | None = None
    deleting: bool = False

    @property
    def spec(self) -> ModelSpec:
        """The whole spec."""
        if self.fold.stream == _ITS_OWN:
            return self.fold.model_copy(update={"stream": self.stream})
        return self.fold

    def dumps(self) -> str:
        """Return the entry as the index stores it."""
        spec = self.spec.model_dump(mode="json")
        rest = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "fold"}
        return json.dumps({"spec": spec, **rest}, sort_keys=True)

    @classmethod
    def loads(cls, text: str | bytes) -> IndexEntry:
        """Read an entry from the index; `ValueError` if it is none."""
        stored = msgspec.json.decode(text, type=_Stored)
        spec, stream = stored.spec, stored.stream
        if spec.get("stream") == stream and len(text) <= _SHARED_BYTES:
            fold = _shared(msgspec.json.encode({**spec, "stream": None}))
        else:
            fold = ModelSpec.model_validate_json(msgspec.json.encode(spec))
        return cls(stored.uid, stream, fold, stored.base, stored.origin, stored.deleting)

    def with_base(self, base: str) -> IndexEntry:
        """Return the entry of the registered model."""
        return replace(self, base=base)

    def as_deleting(self) -> IndexEntry:
        """Return the entry of a model whose deletion has begun."""
        return replace(self, deleting=True)


class Alias(StrictModel):
    """The entry of an alias in the index: the stream whose model it points to."""

    alias_on: Name

    def dumps(self) -> str:
        """Return the entry as the index stores it."""
        return json.dumps(self.model_dump(mode="json"))
