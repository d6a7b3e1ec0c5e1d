"""Rows of plain numbers: from the bytes of a line to an event and its JSON, nothing in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from hinged_service.events import Event
from hinged_service.files.record import BadRecord

__all__ = ["PlainRows", "Role"]

_KEPT_LABELS = 1024

_decode = msgspec.json.Decoder(Event).decode_lines
_encode = msgspec.json.encode


class Role(NamedTuple):
    """A column that is no feature, and what reads its cells; a `BadRecord` refuses one."""

    at: int
    read: Callable[[str], Any]


class PlainRows:
    """Rows of which every feature is a number as JSON writes one.

    Such a cell goes into the JSON as it stands, and what is logged is what is learned. (30
    columns: 6 µs a row instead of 15 by `csv`, `float` and an encoder.) All other rows are left
    to those.

    Parameters
    ----------
    columns
        How many cells a row has.
    features
        Place and name of each feature, at least two.
    label, id
        The other columns that are read; without an id `None`.
    delimiter, quote
        What separates cells; what makes them more than plain text, if anything does.

    """

    def __init__(
        self,
        columns: int,
        features: Sequence[tuple[int, str]],
        label: Role,
        id: Role | None,  # noqa: A002 - as in the options
        delimiter: str,
        quote: str | None,
    ) -> None:
        self._columns = columns
        self._names = [name for _, name in features]
        self._pick = itemgetter(*(at for at, _ in features))
        self._label, self._id = label, id
        self._delimiter = delimiter.encode()
        self._quote = b"\0" if quote is None else quote.encode()
        self._labels: dict[bytes, bytes] = {}
        keys = [b",%b:" % _encode(name) for name in self._names]
        # key, cell, key, cell, …: the cells' places are filled for each row
        self._parts = [part for key in keys for part in (key, b"")]
        self._parts[0] = b'{"x":{' + keys[0][1:]
        self._parts += [b'},"y":', b"", *((b',"id":', b"") if id is not None else ()), b"}"]

    def read(self, lines: Sequence[bytes]) -> tuple[list[Event], list[bytes]] | None:
        """Return the events of some lines and their JSON; `None` if one of them is not plain."""
        whole = b"".join(lines)
        # Without quotation marks no cell can be more to JSON than one value.
        if not whole.isascii() or b'"' in whole or self._quote in whole:
            return None
        whole = whole.replace(b"\r\n", b"\n")
        if b"\r" in whole:
            return None
        rows = [line.split(self._delimiter) for line in whole.removesuffix(b"\n").split(b"\n")]
        if set(map(len, rows)) != {self._columns}:
            return None
        try:
            texts = self._texts(rows)
            told = b"\n".join(texts)
            if b":-0," in told or b":-0}" in told:  # to JSON a whole number, which has no sign
                return None
            events = _decode(told)
        except (msgspec.MsgspecError, BadRecord):
            return None
        return (events, texts) if len(events) == len(lines) else None

    def _texts(self, rows: Sequence[Sequence[bytes]]) -> list[bytes]:
        pick, parts, label, named = self._pick, self._parts, self._label.at, self._id
        cells, told = slice(1, 2 * len(self._names), 2), 2 * len(self._names) + 1
        texts = []
        for row in rows:
            parts[cells] = pick(row)
            cell = row[label]
            parts[told] = self._labels.get(cell) or self._label_of(cell)
            if named is not None:
                parts[-2] = _encode(named.read(row[named.at].decode()))
            texts.append(b"".join(parts))
        return texts

    def _label_of(self, cell: bytes) -> bytes:
        if len(self._labels) == _KEPT_LABELS:
            self._labels.clear()
        self._labels[cell] = text = _encode(self._label.read(cell.decode()))
        return text
