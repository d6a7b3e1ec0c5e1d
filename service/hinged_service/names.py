"""How long a feature's name may be, checked beside the decoder.

A decoder that bounds the keys of an object makes each of them anew and counts its characters,
which is a quarter of its time; without bounds it keeps the keys it has seen. The text itself
tells quicker that none can be too long: a name has no more characters than there are bytes
between two of its quotation marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

__all__ = ["MAX_NAME", "are_short", "check_names"]

MAX_NAME = 256


def are_short(text: bytes) -> bool:
    """Tell whether no name can be longer than `MAX_NAME`, so closely stand quotation marks.

    Parameters
    ----------
    text
        JSON. (30 features: 0.2 µs, where a look at every name takes 1.)

    """
    if b"\\" in text:  # it may hide a quotation mark
        return False
    last_quote, at, end = text.rfind, 0, len(text) - MAX_NAME
    while at < end:
        at = last_quote(b'"', at, at + MAX_NAME + 1) + 1
        if at == 0:
            return False
    return True


def check_names(features: Iterable[Mapping[str, Any]]) -> None:
    """Look at every name: for what `are_short` leaves in doubt.

    Raises
    ------
    msgspec.ValidationError
        If a name has more than `MAX_NAME` characters.

    """
    if any(x and max(map(len, x)) > MAX_NAME for x in features):
        raise msgspec.ValidationError(f"Expected names of at most {MAX_NAME} characters")
