"""Digests of events, which distinguish a repeated event from another one under its id."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from hinged.kernel import packed_features
from hinged_service.wire.events import Event

__all__ = ["features_digest", "label_digest", "mark"]

_PACK = msgspec.msgpack.Encoder(order="deterministic")


def mark(index: int, event: Event) -> tuple[int, int, str, str]:
    """Return the mark of an event with an id, for the append script.

    Parameters
    ----------
    index
        The event's index among its caller's.

    Returns
    -------
    The index; 1 for the label of a prediction, else 0; the id; digests of features
    and label, or the digest of the label and its JSON. Digests cover the parsed
    values: neither white space nor the order of the features matters. A label that
    may be written otherwise, as 1 for true, has both digests.

    """
    name = event.id or ""
    label = _label_digests(event.y, event.w)
    if event.is_label:
        parts = {"id": name, "y": event.y} | ({} if event.w == 1.0 else {"w": event.w})
        return index, 1, name, label + msgspec.json.encode(parts).decode()
    return index, 0, name, features_digest(event.x) + label


def features_digest(x: Mapping[str, Any]) -> str:
    """Return 14 hex digits that distinguish the features of two events."""
    return _digest_of(packed_features(x) or _PACK.encode(dict(x)))


def label_digest(y: Any) -> str:
    """Return 14 hex digits that distinguish the labels of two events of weight 1."""
    return _digest((y, 1.0))


@lru_cache(1024, typed=True)
def _label_digests(y: Any, w: float) -> str:
    digest = _digest((y, w))
    if type(y) is bool:
        return digest + _digest((int(y), w))
    return digest + _digest((bool(y), w)) if type(y) is int and y in (0, 1) else digest


def _digest(value: Any) -> str:
    return _digest_of(_PACK.encode(value))


def _digest_of(packed: bytes) -> str:
    return hashlib.sha1(packed, usedforsecurity=False).hexdigest()[:14]
