"""JSON and bytes that were good once: parts are lost, doubled, swapped or of another kind."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import strategies as st

__all__ = ["damaged_bytes", "damaged_json"]

ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e308, 2**53 + 1, 2**63, 2**64, 10**30, 10**400),
    *("", "0", "1e5", "nan", "inf", "é", "\x00json:", "\x00json:[1]", "\ud800", "x" * 300),
    *([], {}, [[]], [None], {"": None}, float("nan"), float("inf"), -float("inf")),
]
PIECES = [
    *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\x00", b"\xff", b"\xed\xa0\x80", b" "),
    *(b"\n", b"\r\n", b"\r", b"\t", b"\xef\xbb\xbf", b"\xff\xfe", b"|", b"#", b"'", b"\xc3\xa9"),
    *(b"1", b"-", b"0", b".", b"e", b"E+", b"1e400", b"1e999", b"NaN", b"Infinity", b"null"),
    *(b"true", b'"y":true', b'"x":{}', b'"w":2', b'"id":"e1"', b"\\ud800", b"01", b"-0", b"1E5"),
    *(b"9007199254740993", b"9" * 400, b"9" * 5000, b"1_0", b"0x1", b"[" * 2000, b'{"x":' * 1200),
]


def _places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all parts of a document, itself left out."""
    keys: Any = ()
    if isinstance(value, dict):
        keys = value
    elif isinstance(value, list):
        keys = range(len(value))
    found: list[tuple[Any, ...]] = []
    for key in keys:
        found.append((*at, key))
        found += _places(value[key], (*at, key))
    return found


def _at(document: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        document = document[key]
    return document


@st.composite
def damaged_json(draw: st.DrawFn, documents: list[Any]) -> Any:
    """Draw one of the documents with up to three parts damaged, and maybe none."""
    document = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(0, 3))):
        places = _places(document)
        if not places:
            break
        *path, key = draw(st.sampled_from(places))
        parent = _at(document, tuple(path))
        how = draw(st.sampled_from(["odd", "lost", "other", "doubled", "named", "more"]))
        if how == "odd":
            parent[key] = copy.deepcopy(draw(st.sampled_from(ODD)))
        elif how == "more" and type(parent[key]) in (int, float):
            parent[key] += 1
        elif how == "lost":
            del parent[key]
        elif how == "other":
            parent[key] = copy.deepcopy(_at(document, draw(st.sampled_from(places))))
        elif isinstance(parent, list):
            parent.insert(key, copy.deepcopy(parent[key]))
        elif how == "named":
            parent[draw(st.sampled_from(["", "a", "0", "weights", "weights/7", "7/weights"]))] = (
                parent.pop(key)
            )
    return document


@st.composite
def damaged_bytes(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """Draw a seed with some of its bytes lost, replaced or moved, or no seed at all."""
    body = bytearray(draw(st.sampled_from([*seeds, *seeds, b""])))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(body)))
        length = draw(st.sampled_from([0, 1, 2, 5]))
        what = draw(st.sampled_from(PIECES) | st.binary(max_size=8) | st.sampled_from(seeds))
        body[at : at + length] = what
    return bytes(body)


def text_of(document: Any) -> bytes:
    """Return a document as JSON, what JSON does not know included."""
    return json.dumps(document).encode()
