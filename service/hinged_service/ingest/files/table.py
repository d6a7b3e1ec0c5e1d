"""Tables: columns with a type each, rows that become events."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from hinged_service.ingest.files.cells import (
    all_numbers,
    as_bool,
    as_flag,
    as_number,
    as_text,
    as_weight,
    as_whole,
    event_id,
    label_like,
    map_label,
    number_id,
)
from hinged_service.ingest.files.numeric_rows import PlainRows, Role
from hinged_service.ingest.files.options import FileOptions, Kind
from hinged_service.ingest.files.record import BadRecord, FileError, json_bytes
from hinged_service.wire.faults import MAX_FEATURES, MAX_NAME, MAX_VALUE, abbreviated

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["Table", "check_header", "infer"]

_FEATURE: dict[Kind, Callable[[Any], Any]] = {
    "number": as_number,
    "bool": as_flag,
    "text": as_text,
}
_LABEL: dict[Kind, Callable[[Any], Any]] = {"number": as_whole, "bool": as_bool, "text": as_text}

# The names that pandas gives an index without one: as it writes Parquet, and as it reads CSV.
_PANDAS_INDEX = re.compile(r"__index_level_\d+__|Unnamed: \d+(\.\d+|_level_\d+)?")


class _Feature(NamedTuple):
    at: int
    name: str
    read: Callable[[Any], Any]


def check_header(names: Sequence[str], options: FileOptions) -> None:
    """Refuse a header that the options do not fit, or that names a feature twice or not at all."""
    twice = [abbreviated(name) for name, count in Counter(names).items() if count > 1]
    if twice:
        raise FileError(f"The header names {', '.join(twice)} more than once: rename one.")
    listed = ", ".join(names) if len(names) <= 30 else ", ".join(names[:30]) + ", …"
    if options.label is None:
        raise FileError(
            f"No label column is given. Name it with --label; the columns are: {listed}."
        )
    types = () if options.elsewhere else options.types
    asked = [options.label, options.id, options.weight, *types]
    unknown = [abbreviated(name) for name in asked if name is not None and name not in names]
    if unknown:
        raise FileError(f"There is no column {', '.join(unknown)}; the columns are: {listed}.")
    if options.types.get(options.label) == "ignore":
        raise FileError(f"The label {options.label} cannot be ignored.")
    for at, name in enumerate(names, 1):
        if not name and options.types.get(name) != "ignore":
            raise FileError(
                f"Column {at} has no name (a row index?): name it, or give the empty name the "
                "type ignore."
            )
        if _PANDAS_INDEX.fullmatch(name) and name not in asked:
            raise FileError(
                f"Column {at}, {name}, is the row index of a pandas table: give it the type "
                "ignore, or number or text to make it a feature."
            )
        if len(name) > MAX_NAME:
            raise FileError(
                f"Column {at}'s name is over {MAX_NAME} characters: {abbreviated(name)}."
            )


def infer(cells: Iterable[str], missing: frozenset[str]) -> Kind | None:
    """Return the narrowest type that all cells fit; `None` if all are missing."""
    filled = [cell for cell in cells if cell not in missing and not cell.isspace()]
    if filled and all_numbers(filled) is not None:
        return "number"
    kinds = set(map(_kind, set(filled)))
    if len(kinds) > 1:
        return "text"
    return kinds.pop() if kinds else None


def _kind(cell: str) -> Kind:
    with suppress(BadRecord):
        as_number(cell)
        return "number"
    with suppress(BadRecord):
        as_bool(cell)
        return "bool"
    return "text"


class Table:
    """Columns with their types and roles.

    Parameters
    ----------
    names, kinds
        Name and type of each column, in order.
    options
        Which are label, id and weight, and what stands for a missing value.
    text
        Whether all cells are text.
    id_limit
        A float id must be below it: as many whole numbers the type of the column distinguishes.

    Raises
    ------
    FileError
        If names and options do not fit together.
    """

    def __init__(
        self,
        names: Sequence[str],
        kinds: Sequence[Kind],
        options: FileOptions,
        text: bool,
        id_limit: int = 2**53,
    ) -> None:
        check_header(names, options)
        self._names = names
        self.kinds = dict(zip(names, kinds, strict=True))
        self._options = options
        self._missing = frozenset(options.missing)
        self._id_limit = id_limit
        roles = {options.label, options.id, options.weight}
        self._features = [
            _Feature(at, name, _FEATURE[kind])
            for at, (name, kind) in enumerate(self.kinds.items())
            if name not in roles and kind != "ignore"
        ]
        self._pick = self._plain_picker() if text else None
        self._picked = [feature.name for feature in self._features]
        self._label = names.index(str(options.label))
        self._id = None if options.id is None else names.index(options.id)
        self._weight = None if options.weight is None else names.index(options.weight)
        self._read_label = _LABEL[self.kinds[str(options.label)]]
        self._takes = options.takes if text and options.label not in options.types else None
        # Labels are few: text is read once. (In other tables True, 1 and 1.0 would mix.)
        self._label_of = lru_cache(1024)(self._fresh_label) if text else self._fresh_label

    def describe(self) -> str:
        """Describe the type of each column."""
        options, kinds = self._options, self.kinds
        parts = []
        for kind in ("number", "bool", "text"):
            names = [f.name for f in self._features if kinds[f.name] == kind]
            if names:
                meaning = " (true is 1, false is 0)" if kind == "bool" else ""
                parts.append(f"{', '.join(names)} as {kind}{meaning}")
        ignored = [name for name, kind in kinds.items() if kind == "ignore"]
        label_kind = kinds[str(options.label)]
        if options.labels:
            mapped = ", ".join(f"{text} as {label}" for text, label in options.labels.items())
        else:
            mapped = "whole number" if label_kind == "number" else label_kind
            mapped = mapped if self._takes is None else "as the model has it"
        texts = [
            f"reading {', '.join(parts) or 'no features'}",
            f"label: {options.label} ({mapped})",
        ]
        texts += [f"id: {options.id}"] if options.id is not None else []
        texts += [f"weight: {options.weight}"] if options.weight is not None else []
        texts += [f"ignoring: {', '.join(ignored)}"] if ignored else []
        return "; ".join(texts)

    def event(self, row: Sequence[Any]) -> dict[str, Any]:
        """Return a row as an event; a `BadRecord` names the column that does not fit.

        `row` has a value for each column: text, or what the format has; `None` is missing.
        """
        if len(row) != len(self._names):
            raise BadRecord(f"has {len(row)} cells where the header has {len(self._names)}")
        x: dict[str, Any] = {}
        at = self._label
        try:
            plain = all_numbers(self._pick(row)) if self._pick is not None else None
            if plain is not None:
                x = dict(zip(self._picked, plain, strict=True))
            else:
                for at, name, read in self._features:
                    cell = row[at]
                    if not self._is_missing(cell):
                        x[name] = read(cell)
            at = self._label
            event = {"x": x, "y": self._label_of(row[at])}
            if self._id is not None:
                at = self._id
                event["id"] = self._id_of(row[at])
            if self._weight is not None:
                at = self._weight
                if not self._is_missing(row[at]):
                    event["w"] = as_weight(row[at])
        except BadRecord as fault:
            raise BadRecord(f"column {self._names[at]} {fault}") from None
        if len(x) > MAX_FEATURES:
            raise BadRecord(f"has {len(x)} features; at most {MAX_FEATURES} are taken")
        return event

    @property
    def label(self) -> str:
        """Name of the label's column."""
        return self._names[self._label]

    @property
    def has_more(self) -> bool:
        """True if an event has more than features and a label."""
        return self._id is not None or self._weight is not None

    @property
    def numbers(self) -> list[str] | None:
        """Names of the features if all are numbers, at least one and no more than an event has."""
        if any(feature.read is not as_number for feature in self._features):
            return None
        return self._picked if 1 <= len(self._picked) <= MAX_FEATURES else None

    def rows_of(
        self, columns: Sequence[npt.NDArray[Any]], labels: Sequence[Any]
    ) -> list[dict[str, Any]] | None:
        """Return rows of numbers as events, from a column of each feature, none missing.

        `None` if one of them is none.
        """
        import numpy as np  # not to be loaded for the other formats

        values = np.empty((len(columns), len(labels)))
        for at, column in enumerate(columns):
            values[at] = column
        if not (values.min() >= -MAX_VALUE and values.max() <= MAX_VALUE):  # so not of NaN
            return None
        try:
            converted = list(map(self._label_of, labels))
        except BadRecord:
            return None
        rows = zip(values.T.tolist(), converted, strict=True)
        return [{"x": dict(zip(self._picked, row, strict=True)), "y": y} for row, y in rows]

    @property
    def row_bytes(self) -> int:
        """About how many bytes of JSON the event of a row of numbers is."""
        return json_bytes(dict.fromkeys(feature.name for feature in self._features))

    def plain_rows(self, delimiter: str, quote: str | None) -> PlainRows | None:
        """Return a reader for rows of plain numbers; `None` if there can be none."""
        if self._pick is None or self._weight is not None or len(self._features) > MAX_FEATURES:
            return None
        return PlainRows(
            len(self._names),
            [(feature.at, feature.name) for feature in self._features],
            Role(self._label, self._label_of),
            None if self._id is None else Role(self._id, self._id_of),
            delimiter,
            quote,
        )

    def _id_of(self, cell: Any) -> str:
        if self._is_missing(cell):
            return event_id("")
        if isinstance(cell, (float, Decimal)) or self.kinds[str(self._options.id)] == "number":
            return number_id(cell, self._id_limit)
        return event_id(as_text(cell))

    def _plain_picker(self) -> Callable[[Sequence[str]], tuple[str, ...]] | None:
        """Return a getter of the cells of a row that may be read together as numbers."""
        if len(self._features) < 2 or any(f.read is not as_number for f in self._features):
            return None
        if any(_kind(marker) == "number" for marker in self._missing):
            return None
        return itemgetter(*(feature.at for feature in self._features))

    def _is_missing(self, cell: Any) -> bool:
        return cell is None or (type(cell) is str and (cell in self._missing or cell.isspace()))

    def _fresh_label(self, cell: Any) -> Any:
        if self._is_missing(cell):
            raise BadRecord("is empty: there is no label")
        if self._options.labels:
            return map_label(self._options.labels, as_text(cell).strip())
        label = None if self._takes is None else label_like(cell, self._takes)
        label = self._read_label(cell) if label is None else label
        if isinstance(label, str) and len(label) > MAX_NAME:
            raise BadRecord(f"must be a label of at most {MAX_NAME} characters")
        return label
