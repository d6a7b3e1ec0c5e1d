"""Encodings of text: byte order marks of UTF-8, and encodings that are refused.

One rule for every door: byte order marks of UTF-8 in front of a JSON text or a file are passed
over (RFC 8259, 8.1); UTF-16 and UTF-32 are refused by their name.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["other_encoding", "without_marks"]

_MARKS: Final = re.compile(rb"(?:[ \t\r\n]*\xef\xbb\xbf)*")
_OTHER_MARKS: Final = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_ZEROS: Final[dict[tuple[bool, ...], str]] = {
    (False, True, True, True): "UTF-32",
    (True, True, True, False): "UTF-32",
    (False, True, False, True): "UTF-16",
    (True, False, True, False): "UTF-16",
}


def without_marks(text: bytes) -> bytes:
    """Return text without the byte order marks of UTF-8 in front of it."""
    found = _MARKS.match(text)
    return text if found is None else text[found.end() :]


def other_encoding(text: bytes) -> str | None:
    """Return the name of the encoding of a text that is not UTF-8, if its beginning shows it.

    Its byte order mark does, or else where the zeros are, as long as it begins with ASCII.
    """
    for mark, name in _OTHER_MARKS.items():
        if text.startswith(mark):
            return name
    return _ZEROS.get(tuple(byte == 0 for byte in text[:4]))
