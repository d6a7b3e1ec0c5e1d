"""Rows of plain numbers: from the bytes of a line to an event and its JSON, nothing in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from hinged_service.events import MAX_VALUE
from hinged_service.files.record import BadRecord

__all__ = ["PlainRows", "Role"]

_KEPT_LABELS = 1024

_Number = Annotated[float, Meta(ge=-MAX_VALUE, le=MAX_VALUE)]
_decode = msgspec.json.Decoder(list[list[_Number]]).decode
_encode = msgspec.json.encode


class Role(NamedTuple):
    """A column that is no feature, and what reads its cells; a `BadRecord` refuses one."""

    at: int
    read: Callable[[str], Any]


class PlainRows:
    """Rows of which every feature is a number as JSON writes one.

    A cell that is such a number goes into the JSON as it stands, many rows in one go. (30
    columns: 4 µs a row instead of 11 by `csv`, `float` and an encoder.) All others are left to
    those.

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
        self._labels: dict[bytes, tuple[Any, bytes]] = {}
        keys = [b",%b:" % _encode(name) for name in self._names]
        # key, cell, key, cell, …: the cells' places are filled for each row
        self._parts = [part for key in keys for part in (key, b"")]
        self._parts[0] = b'{"x":{' + keys[0][1:]
        self._parts += [b'},"y":', b"", *((b',"id":', b"") if id is not None else ()), b"}"]

    def read(self, lines: Sequence[bytes]) -> tuple[list[dict[str, Any]], list[bytes]] | None:
        """Return the events of some lines and their JSON; `None` if one of them is not plain."""
        whole = b"".join(lines)
        if not whole.isascii() or self._quote in whole:
            return None
        whole = whole.replace(b"\r\n", b"\n")
        if b"\r" in whole:
            return None
        rows = [line.split(self._delimiter) for line in whole.removesuffix(b"\n").split(b"\n")]
        if set(map(len, rows)) != {self._columns}:
            return None
        picked = list(map(self._pick, rows))
        numbers = b"[[%b,0]]" % b",0],[".join(map(b",".join, picked))
        if b"-0," in numbers:  # to JSON a whole number, which has no sign
            return None
        try:
            values = _decode(numbers)
            if len(values) != len(lines) or set(map(len, values)) != {len(self._names) + 1}:
                return None
            labels = [self._label_of(row[self._label.at]) for row in rows]
            ids = self._ids_of(rows)
        except (msgspec.MsgspecError, BadRecord):
            return None
        events: list[dict[str, Any]] = [
            {"x": dict(zip(self._names, row, strict=False)), "y": y}  # without the 0 at its end
            for row, (y, _) in zip(values, labels, strict=True)
        ]
        for event, name in zip(events, ids, strict=False):
            event["id"] = name
        return events, self._texts(picked, labels, ids)

    def _label_of(self, cell: bytes) -> tuple[Any, bytes]:
        found = self._labels.get(cell)
        if found is None:
            y = self._label.read(cell.decode())
            if len(self._labels) == _KEPT_LABELS:
                self._labels.clear()
            self._labels[cell] = found = y, _encode(y)
        return found

    def _ids_of(self, rows: Sequence[Sequence[bytes]]) -> list[str]:
        if self._id is None:
            return []
        return [self._id.read(row[self._id.at].decode()) for row in rows]

    def _texts(
        self,
        picked: Sequence[Sequence[bytes]],
        labels: Sequence[tuple[Any, bytes]],
        ids: Sequence[str],
    ) -> list[bytes]:
        parts, cells, label = self._parts, slice(1, 2 * len(self._names), 2), -4 if ids else -2
        texts = []
        for number, row in enumerate(picked):
            parts[cells] = row
            parts[label] = labels[number][1]
            if ids:
                parts[-2] = _encode(ids[number])
            texts.append(b"".join(parts))
        return texts
