"""Conversion of Kafka values to records of a model. Pure functions."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from hinged_service.ingest.files.cells import number_id
from hinged_service.ingest.files.record import BadRecord
from hinged_service.ingest.records import Fault, Raw
from hinged_service.wire.encodings import other_encoding, without_marks
from hinged_service.wire.faults import DECODE_ERRORS

__all__ = ["KEY", "Binary", "Shape"]

KEY = "key"
"""The name by which `--id` means the record's key."""

_MAGIC = 0
_HEADER_BYTES = 5
_BEGIN_NUMBERS = frozenset(b"%c" % byte for byte in b"-0123456789")
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.encode


class Binary(Fault):
    """A value of a registered schema that is not JSON."""


@dataclass(frozen=True)
class Shape:
    """The form of values: events, or flat objects.

    A value that begins with Confluent's five bytes (zero, schema id) is read without them if
    JSON follows, as JSON Schema serializers write it. No registry is asked: JSON needs no schema.

    Parameters
    ----------
    label, weight
        Fields of label and sample weight in flat objects, whose other fields are the features.
        Without `label` values are events, as `POST learn` takes them.
    id
        Field of the event's id in flat objects; `"key"` is the record's key in either.
    """

    label: str | None = None
    id: str | None = None
    weight: str | None = None

    def raw(self, place: str, key: bytes | None, value: bytes) -> Raw:
        """Return a record with the place `place` as sources give it."""
        if value[:1] == bytes([_MAGIC]):
            schema = int.from_bytes(value[1:_HEADER_BYTES], "big")
            rest = without_marks(value[_HEADER_BYTES:])
            if rest.lstrip()[:1] == b"{":
                value = rest
            elif other_encoding(value) is None:  # as text it begins with a zero too
                return Raw(place, _binary(schema))
        name = None
        if self.id == KEY:
            found = _name(key)
            if isinstance(found, Fault):
                return Raw(place, found)
            name = found
        try:
            return Raw(place, value if self.label is None else self._event(value), name)
        except BadRecord as fault:
            return Raw(place, Fault(f"field {self.id}", str(fault)))

    def _event(self, value: bytes) -> bytes:
        """Return a flat object as an event, number by number as written.

        Other JSON is returned as it is: reading it as an event raises what is wrong.
        """
        try:
            fields = _decode(without_marks(value))
        except DECODE_ERRORS:
            return value
        named = {"y": self.label, "w": self.weight, "id": None if self.id == KEY else self.id}
        parts = []
        for part, field in named.items():
            if field is not None and field in fields:
                text = bytes(fields.pop(field))
                parts.append(b'"%s":%s' % (part.encode(), _quoted(text) if part == "id" else text))
        x = b",".join(_encode(name) + b":" + bytes(text) for name, text in fields.items())
        return b"{" + b",".join([b'"x":{' + x + b"}", *parts]) + b"}"


def _binary(schema: int) -> Binary:
    return Binary(
        "",
        f"is of registered schema {schema} and not JSON, but Avro or Protobuf, it seems: of "
        "Confluent's formats only JSON Schema is read",
    )


def _name(key: bytes | None) -> str | Fault:
    if key is None:
        return Fault("key", "is missing, and --id key names events by it")
    try:
        return key.decode()
    except UnicodeDecodeError:
        return Fault("key", "is not UTF-8 text, and --id key names events by it")


def _quoted(text: bytes) -> bytes:
    """Return an id that is a whole number as text; a `BadRecord` refuses other numbers."""
    return _encode(number_id(text.decode())) if text[:1] in _BEGIN_NUMBERS else text
