"""Cells of Arrow columns as values: a closed list of types, read without pandas.

pyarrow's own conversion imports pandas for nanoseconds, and fails for a whole column at the
first cell that Python has no value for. So moments are written from their integers here, and a
column at fault is read again cell by cell.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hinged_service.ingest.files.options import Kind

__all__ = ["Cells", "cells_of", "natural_kind"]

_EPOCH = datetime(1970, 1, 1)
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_NANOS = 10**9

_Read = Callable[[Any], list[Any]]


class Cells:
    """The cells of a column.

    `read` returns the values of an array that is whole, `None` where one is missing; `raw` is the
    type of its bytes if it is text, which may be no UTF-8.
    """

    def __init__(self, arrow: Any, read: _Read, raw: Any | None = None) -> None:
        self._arrow = arrow
        self._read = read
        self._raw = raw

    def values(self, column: Any) -> tuple[list[Any], dict[int, str]]:
        """Return a value for each cell, and why there is none, by the place of the cell.

        `validate()` holds of the column; its values need not be right.
        """
        try:
            column.validate(full=True)  # pyarrow trusts the offsets and texts of any writer
            if self._arrow.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            return self._read(column), {}
        except (self._arrow.ArrowException, ValueError, ArithmeticError):
            pass
        values: list[Any] = []
        faults: dict[int, str] = {}
        for at in range(len(column)):
            value = None
            try:
                value = self._cell(column.slice(at, 1))
            except self._arrow.ArrowException as error:
                faults[at] = f"cannot be read: {str(error).rstrip('.')}"
            except UnicodeDecodeError:
                faults[at] = "is not UTF-8"
            except (OverflowError, ValueError):
                faults[at] = "is outside of the years 1 to 9999"
            except ArithmeticError:
                faults[at] = "is not a readable number"
            values.append(value)
        return values, faults

    def _cell(self, one: Any) -> Any:
        """Return the value of an array of one cell."""
        if self._arrow.types.is_dictionary(one.type):
            (index,) = one.indices.to_pylist()
            if index is None:
                return None
            if not 0 <= index < len(one.dictionary):
                raise self._arrow.ArrowInvalid(f"its dictionary has no entry {index}")
            one = one.dictionary.slice(index, 1)
        if self._raw is None:
            one.validate(full=True)
            return self._read(one)[0]
        one = one.cast(self._raw)
        one.validate(full=True)
        return _decoded(one)[0]


def natural_kind(arrow: Any, kind: Any) -> Kind | None:
    """Return how a column of this type is read where nothing is declared; `None`: not at all."""
    types = arrow.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind):
        return "bool"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if _raw_type(arrow, kind) is not None:
        return "text"
    return "number" if types.is_null(kind) else None


def cells_of(arrow: Any, kind: Any, declared: Kind) -> Cells | None:
    """Return the reader of a column of Arrow type `kind` as `declared`; `None` if there is none.

    Where `declared` is text, NaN is a missing value.
    """
    types = arrow.types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if declared == "text" and types.is_floating(kind):
        return Cells(arrow, _without_nan)
    if natural_kind(arrow, kind) is not None:
        return Cells(arrow, _plain, _raw_type(arrow, kind))
    if (
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_binary_view(kind)
        or types.is_fixed_size_binary(kind)
    ):
        return Cells(arrow, _decoded)
    text_of = _text_reader(types, kind) if declared == "text" else None
    return None if text_of is None else Cells(arrow, text_of)


def _raw_type(arrow: Any, kind: Any) -> Any | None:
    """Return the type of the bytes of a type of text; `None` for other types."""
    types = arrow.types
    if types.is_string(kind):
        return arrow.binary()
    if types.is_large_string(kind):
        return arrow.large_binary()
    return arrow.binary_view() if types.is_string_view(kind) else None


def _plain(column: Any) -> list[Any]:
    return column.to_pylist()  # type: ignore[no-any-return]


def _without_nan(column: Any) -> list[Any]:
    return [None if cell != cell else cell for cell in column.to_pylist()]


def _decoded(column: Any) -> list[str | None]:
    return [None if cell is None else cell.decode() for cell in column.to_pylist()]


def _as_text(column: Any) -> list[str | None]:
    return [None if cell is None else str(cell) for cell in column.to_pylist()]


def _text_reader(types: Any, kind: Any) -> _Read | None:
    """Return the reader of a type, neither number nor text itself, whose cells become text."""
    if types.is_date32(kind):
        return _each(_date_of_days)
    if types.is_date64(kind):
        return _each(lambda cell: _date_of_days(cell // 86_400_000))
    if types.is_time(kind):
        return _each(_time_format(kind.unit))
    if types.is_timestamp(kind):
        try:
            zone = None if kind.tz is None else _zone(kind.tz)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return None
        return _each(_timestamp_format(kind.unit, zone))
    extensions = ("arrow.uuid", "arrow.json")
    return _as_text if getattr(kind, "extension_name", None) in extensions else None


def _each(text_of: Callable[[int], str]) -> _Read:
    def read(column: Any) -> list[str | None]:
        integers = column.view(f"int{column.type.bit_width}").to_pylist()
        return [None if cell is None else text_of(cell) for cell in integers]

    return read


def _zone(name: str) -> tzinfo | None:
    if name == "UTC":  # needs no database
        return UTC
    try:
        return datetime.strptime(name, "%z").tzinfo
    except ValueError:
        return ZoneInfo(name)


def _date_of_days(days: int) -> str:
    return (_EPOCH + timedelta(days=days)).date().isoformat()


def _time_format(unit: str) -> Callable[[int], str]:
    per_second = _PER_SECOND[unit]

    def text_of(cell: int) -> str:
        seconds, rest = divmod(cell, per_second)
        time = (_EPOCH + timedelta(seconds=seconds)).time()
        return time.isoformat() + _fraction(rest * (_NANOS // per_second))

    return text_of


def _timestamp_format(unit: str, zone: tzinfo | None) -> Callable[[int], str]:
    per_second = _PER_SECOND[unit]

    def text_of(cell: int) -> str:
        seconds, rest = divmod(cell, per_second)
        moment = _EPOCH + timedelta(seconds=seconds)
        if zone is not None:
            moment = moment.replace(tzinfo=UTC).astimezone(zone)
        text = moment.isoformat(" ")  # of which 19 characters go to the seconds
        return text[:19] + _fraction(rest * (_NANOS // per_second)) + text[19:]

    return text_of


def _fraction(nanos: int) -> str:
    """Return a fraction of a second as Python and pandas write it: 0, 6 or 9 digits."""
    if not nanos:
        return ""
    digits = f".{nanos:09}"
    return digits if nanos % 1000 else digits[:7]
