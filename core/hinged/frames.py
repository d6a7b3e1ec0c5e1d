"""Frames as rows of features, through narwhals, and answers in the caller's own kind.

The functions that need Narwhals and NumPy import them: without frames, as in the service, a
process starts in half of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Number
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from hinged.errors import InvalidEvent, shown
from hinged.events import Label, finite_features, plain
from hinged.vector import Features, Numbers

if TYPE_CHECKING:
    import narwhals as nw
    import numpy.typing as npt

__all__ = [
    "Frame",
    "Series",
    "checked_rows",
    "each_row",
    "frame",
    "labels",
    "numbers",
    "rows",
    "table",
]

Frame: TypeAlias = Any
"""A frame in memory that narwhals knows; those of pandas, Polars and PyArrow share no type."""
Series: TypeAlias = Any
"""A series of such a library, an array of NumPy or a list."""
Value = TypeVar("Value")
Checked = TypeVar("Checked")


def rows(X: Frame) -> Iterator[Features]:
    """Yield the rows of a frame as dictionaries in column order; nulls are left out."""
    import narwhals as nw

    wrapped = _frame(X)
    names = list(wrapped.columns)
    series = [wrapped.get_column(name) for name in names]
    columns = [column.to_list() for column in series]
    if any(column.null_count() for column in series):
        missing = (None, getattr(nw.get_native_namespace(wrapped), "NA", None))
        for values in zip(*columns, strict=True):
            yield {
                name: value
                for name, value in zip(names, values, strict=True)
                if value is not missing[0] and value is not missing[1]
            }
    elif names:
        for values in zip(*columns, strict=True):
            yield dict(zip(names, values, strict=True))
    else:
        yield from ({} for _ in range(len(wrapped)))


def checked_rows(
    X: Frame,
    y: Series,
    w: float | Series,
    check_labels: Callable[[list[Any]], None],
    check_weight: Callable[[object], float],
) -> list[tuple[Numbers, Any, Any]]:
    """Return all rows with labels and weights; `InvalidEvent` names row and field of a fault."""
    features = list(rows(X))
    labels = _values("y", y)
    w = plain(w)
    weights = [w] * len(features) if _is_scalar(w) else _values("w", w)
    for field, values in (("y", labels), ("w", weights)):
        if len(values) != len(features):
            raise InvalidEvent(field, f"must have {len(features)} rows, not {len(values)}")
    checked = each_row(features, finite_features)
    check_labels(labels)
    each_row(weights, check_weight)
    return list(zip(checked, labels, weights, strict=True))


def table(X: Frame, y: Series) -> tuple[list[Any], npt.NDArray[Any], npt.NDArray[Any]] | None:
    """Return names, values and binary targets of a plain numeric frame.

    `None` stands for a frame to be looked at row by row: no rows or columns, nulls,
    values that are not finite machine numbers, labels that are not truth values.
    """
    import numpy as np

    wrapped = _frame(X)
    names = list(wrapped.columns)
    if isinstance(y, np.ma.MaskedArray):  # as an array it would have no nulls
        return None
    labels = np.asarray(y)
    if not names or labels.dtype.kind != "b" or labels.shape != (len(wrapped),) or not len(wrapped):
        return None
    values = None
    if wrapped.implementation.is_pandas():  # column by column its table takes several times as long
        native = wrapped.to_native()
        if all(isinstance(one, np.dtype) and one.kind in "fiu" for one in set(native.dtypes)):
            values = _numbers(native.to_numpy())
    if values is None:
        values = np.empty((len(wrapped), len(names)))
        for number, name in enumerate(names):
            column = wrapped.get_column(name)
            array = None if column.null_count() else _numbers(column.to_numpy())
            if array is None:
                return None
            values[:, number] = array
    if not np.isfinite(values).all():
        return None
    return names, np.ascontiguousarray(values), np.where(labels, 1.0, -1.0)


def _numbers(array: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Return an array of machine numbers as floats, `None` for any other."""
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        return None
    return array.astype(float, copy=False)


def each_row(values: Iterable[Value], check: Callable[[Value], Checked]) -> list[Checked]:
    """Return `check` of every value; an `InvalidEvent` of it names the row, counted from 0."""
    checked: list[Checked] = []
    try:
        for value in values:
            checked.append(check(value))  # noqa: PERF401
    except InvalidEvent as error:
        raise InvalidEvent(f"row {len(checked)}: {error.field}", error.reason) from None
    return checked


def labels(values: list[Any], like: Frame, boolean: bool) -> Series:
    """Return labels of one type, or `None`, as a series of the kind of `like`, its index kept."""
    import narwhals as nw

    wrapped = _frame(like)
    if wrapped.implementation.is_pandas_like():
        pandas = nw.get_native_namespace(wrapped)
        dtype = bool if boolean else object
        return pandas.Series(values, index=like.index, name="y_pred", dtype=dtype)
    kind = nw.Boolean() if boolean else None
    return nw.new_series("y_pred", values, kind, backend=wrapped.implementation).to_native()


def numbers(values: list[float], like: Frame) -> Series:
    """Return outputs as a series of the kind of `like`, its index kept."""
    import narwhals as nw

    wrapped = _frame(like)
    if wrapped.implementation.is_pandas_like():
        pandas = nw.get_native_namespace(wrapped)
        return pandas.Series(values, index=like.index, name="y_pred", dtype=float)
    series = nw.new_series("y_pred", values, nw.Float64(), backend=wrapped.implementation)
    return series.to_native()


def frame(columns: dict[Label, list[float]], like: Frame) -> Frame:
    """Return `columns` as a frame of the kind of `like`; names are text except in pandas."""
    import narwhals as nw

    wrapped = _frame(like)
    if wrapped.implementation.is_pandas_like():
        return type(like)(columns, index=like.index, dtype=float)
    named = {str(name): values for name, values in columns.items()}
    schema = {name: nw.Float64() for name in named}
    return nw.from_dict(named, schema, backend=wrapped.implementation).to_native()


def _frame(X: Frame) -> nw.DataFrame[Any]:
    import narwhals as nw
    from narwhals.exceptions import DuplicateError

    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        raise InvalidEvent("X", f"must be a frame in memory, not {type(X).__name__}") from None
    except DuplicateError:
        raise InvalidEvent("X", "must not hold two columns of one name") from None


def _is_scalar(w: object) -> bool:
    return isinstance(w, (Number, str, bytes)) or w is None or getattr(w, "ndim", None) == 0


def _values(field: str, values: Series) -> list[Any]:
    """Return a series as a list of plain Python values, of whatever library it is."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InvalidEvent(field, f"must be a series, not {shown(values)}")
    if hasattr(values, "columns"):
        raise InvalidEvent(field, f"must be a series, not a {type(values).__name__} of columns")
    return [plain(value) for value in values]
