"""Rows of plain numbers: from the bytes of a line to an event and its JSON, nothing in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from hinged.kernel import read_events
from hinged_service.ingest.files.record import BadRecord
from hinged_service.wire.events import Event

__all__ = ["PlainRows", "Role"]

_KEPT_LABELS = 1024

_decode = msgspec.json.Decoder(Event).decode_lines
_encode = msgspec.json.encode


class Role(NamedTuple):
    """A column that is no feature, and a reader of its cells; a `BadRecord` refuses one."""

    at: int
    read: Callable[[str], Any]


class PlainRows:
    """Rows whose features are all numbers as JSON writes them.

    Such a cell goes into the JSON as it stands, and what is logged is what is learned. (30
    columns: 6 µs a row instead of 15 by `csv`, `float` and an encoder.) All other rows are left
    to those. `features` are place and name of each, at least two; no name is too long.
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
        others = (label.at,) if id is None else (label.at, id.at)
        places = (*(at for at, _ in features), *others)
        in_order = places == tuple(range(columns))
        self._pick: Callable[[list[bytes]], Any] = tuple if in_order else itemgetter(*places)
        self._label, self._id = label, id
        self._delimiter = delimiter.encode()
        self._quote = b"\0" if quote is None else quote.encode()
        self._labels: dict[bytes, bytes] = {}
        keys = [_encode(name).replace(b"%", b"%%") for _, name in features]
        cells = b",".join([key + b":%b" for key in keys])
        self._form = b'{"x":{%b},"y":%%b%b}' % (cells, b"" if id is None else b',"id":%b')

    def read(self, lines: Sequence[bytes]) -> tuple[list[Event], list[bytes]] | None:
        """Return the events of some lines and their JSON; `None` if one of them is not plain."""
        whole = b"".join(lines)
        # Without quotation marks no cell can be more to JSON than one value.
        if not whole.isascii() or b'"' in whole or self._quote in whole:
            return None
        end = b"\r\n" if lines[0].endswith(b"\r\n") else b"\n"
        parts = whole.removesuffix(end).split(end)
        rest = b"".join(parts)
        if b"\r" in rest or b"\n" in rest:  # lines of both ends
            return None
        rows = [line.split(self._delimiter) for line in parts]
        if set(map(len, rows)) != {self._columns}:
            return None
        try:
            texts = self._texts(rows)
            events = read_events(texts, Event, True) or _decode(b"\n".join(texts))
        except (msgspec.MsgspecError, BadRecord):
            return None
        return (events, texts) if len(events) == len(lines) else None

    def _texts(self, rows: Sequence[list[bytes]]) -> list[bytes]:
        form, pick, labels = self._form, self._pick, self._labels
        at, named = self._label.at, self._id
        texts = []
        for row in rows:
            if named is not None:
                row[named.at] = _encode(named.read(row[named.at].decode()))
            row[at] = labels.get(row[at]) or self._label_of(row[at])
            texts.append(form % pick(row))
        return texts

    def _label_of(self, cell: bytes) -> bytes:
        if len(self._labels) == _KEPT_LABELS:
            self._labels.clear()
        self._labels[cell] = text = _encode(self._label.read(cell.decode()))
        return text
