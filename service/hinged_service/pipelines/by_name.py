"""A stage that keeps one record per feature name, for at most so many names."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeVar

import hinged
from hinged_service.pipelines.stage import Stage, StepSpec
from hinged_service.pipelines.state_checks import items, text

__all__ = ["ByName"]

Record = TypeVar("Record")


class ByName(Stage, Generic[Record]):
    """Base of the scalers.

    A name has a record from the first event learned with it. One without a record,
    because no event had it or because the limit leaves none for it, becomes 0; the
    latter is counted.
    """

    learns = True
    added = ()
    numbers = 2
    """Size of a record, in numbers of a learner."""

    def __init__(self, spec: StepSpec, max_features: int) -> None:
        super().__init__(spec, max_features)
        self._records: dict[str, Record] = {}

    @abstractmethod
    def _fresh(self) -> Record:
        """Return the record of a name not seen before."""

    @abstractmethod
    def _dump(self, record: Record) -> list[Any]:
        """Return a record as JSON-like data."""

    @abstractmethod
    def _load(self, data: list[Any]) -> Record:
        """Return the record that `_dump` gave, checked."""

    def _admit(self, name: str) -> Record | None:
        """Return a new record for `name`; `None`, counted, if there is no room."""
        full = len(self._records) >= self._max_features
        if full or not self._byte_limit.admit((name,), self.numbers):
            self._ignored += 1
            return None
        record = self._records[name] = self._fresh()
        return record

    def get_state(self) -> list[Any]:
        """Return `[name, ...record]` for each name, in the order they were learned."""
        return [[name, *self._dump(record)] for name, record in self._records.items()]

    def set_state(self, data: Any) -> None:
        """Restore the state that `get_state` returned."""
        for entry in items(data, "the names"):
            name, *record = items(entry, "a name with its record") or [None]
            if text(name, "a name") in self._records:
                raise hinged.InvalidState(f"{name!r} appears twice")
            self._records[name] = self._load(record)
            self._byte_limit.restore((name,), self.numbers)
        if len(self._records) > self._max_features:
            raise hinged.InvalidState(f"there are {len(self._records)} names, too many")
