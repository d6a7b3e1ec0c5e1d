"""Reader of events: there is none in Python, where a decoder makes the objects anyway."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

__all__ = ["packed_features", "read_events", "sent_text"]

T = TypeVar("T")


def read_events(
    texts: bytes | list[bytes], kind: Callable[..., T], labelled: bool
) -> list[T] | None:
    """Return the events of JSON that is plain, `None` if any of it is not.

    It is plain if each event is an object of the fields x, y, w and id, in any order, without
    names that stand twice, escapes, text or marks among the values, or labels that are no truth
    values, integers or text. Bounds are those of the service: 10,000 names of 256 characters,
    numbers up to 1e100. Nothing is plain to this version, which leaves all to a decoder.

    Parameters
    ----------
    texts
        One array of events, or texts of one event each.
    kind
        Makes an event of the features, the label, and if they stand there weight and id. The
        features are a mapping, no dictionary, which the kernel takes without looking up names;
        they keep what was read together with them in memory.
    labelled
        Whether events have labels; without these, `kind` is given features and id.

    """
    return None


def packed_features(x: Mapping[str, Any]) -> bytes | None:
    """Return features as MessagePack, sorted by the bytes of their names, each value a double.

    It is `None` for features that are not of `read_events`, thus always in this version.
    """
    return None


def sent_text(x: Mapping[str, Any], text: bytes) -> bytes | None:
    """Return the JSON of features exactly as in the text that they were read from.

    It is `None` for features that are not of `read_events`, thus always in this version.
    """
    return None
