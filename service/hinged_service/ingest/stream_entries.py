"""Entries of a foreign stream as records: JSON in one field, or the fields as features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hinged_service.ingest.files.cells import as_number, label_like
from hinged_service.ingest.files.record import BadRecord
from hinged_service.ingest.records import Fault, Lot, Raw
from hinged_service.model.state import ModelState

__all__ = ["Reading"]


@dataclass(frozen=True)
class Reading:
    """The way from an entry to an event.

    Parameters
    ----------
    event
        The field that holds the event as JSON; `None` if the fields are the features.
    id
        The field that holds the event's id, if any does.
    label, weight, text
        Without `event`: the fields of label and sample weight, and the features that are text. All
        others are decimal numbers.
    labels_only
        Without `event`: whether other fields are not looked at.
    """

    event: str | None = "event"
    id: str | None = "id"
    label: str | None = None
    weight: str | None = None
    text: frozenset[str] = frozenset()
    labels_only: bool = False

    def all(
        self, entries: Sequence[tuple[str, dict[bytes, bytes]]], state: ModelState
    ) -> Lot | list[Raw]:
        """Return entries as records of the model `state`: as columns if each holds JSON."""

        def each() -> list[Raw]:
            return [self.raw(entry_id, fields, state) for entry_id, fields in entries]

        if self.event is None:
            return each()
        key, id_key = self.event.encode(), (self.id or "").encode()
        texts = [fields.get(key) for _, fields in entries]
        named = [fields.get(id_key) for _, fields in entries] if self.id is not None else []
        try:
            names = [None if name is None else name.decode() for name in named]
        except UnicodeDecodeError:
            return each()
        places = [entry_id for entry_id, _ in entries]
        return each() if None in texts else Lot(places, texts, None, each, names)

    def raw(self, entry_id: str, fields: dict[bytes, bytes], state: ModelState) -> Raw:
        """Return an entry as a record of the model `state`."""
        try:
            name = None
            if self.id is not None and (found := fields.get(self.id.encode())) is not None:
                name = found.decode()
            if self.event is None:
                return Raw(entry_id, self._flat(fields, state), name)
        except UnicodeDecodeError:
            return Raw(entry_id, Fault("", "is not UTF-8"))
        except BadRecord as fault:
            return Raw(entry_id, Fault("", str(fault)))
        body = fields.get(self.event.encode())
        return Raw(
            entry_id,
            Fault(self.event, "is not a field of the entry") if body is None else body,
            name,
        )

    def _flat(self, fields: dict[bytes, bytes], state: ModelState) -> dict[str, Any]:
        x: dict[str, Any] = {}
        event: dict[str, Any] = {"x": x}
        for key, value in fields.items():
            name, cell = key.decode(), value.decode()
            if name == self.label:
                event["y"] = _label(cell, state)
            elif name == self.weight:
                event["w"] = _number(name, cell)
            elif name != self.id and not self.labels_only:
                x[name] = cell if name in self.text else _number(name, cell)
        if "y" not in event:
            raise BadRecord(f"field {self.label}, the label, is missing")
        return event


def _number(name: str, cell: str) -> float:
    try:
        return as_number(cell)
    except BadRecord as fault:
        raise BadRecord(f"field {name} {fault}") from None


def _label(cell: str, state: ModelState) -> bool | int | str:
    """Return the label of the model that is written like this, if there is one."""
    label = label_like(cell, lambda y: state.answers.target(y) is not None)
    return cell if label is None else label
