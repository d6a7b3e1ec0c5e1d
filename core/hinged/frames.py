"""Frames as rows of features, through narwhals, and answers in the caller's own kind.

The functions that need Narwhals and NumPy import them: without frames, as in the service, a
process starts in half of the time.
"""

from __future__ import annotations

import sys
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
    """Return names, values and truth values as bytes of a plain numeric frame.

    The values are rows or columns in memory, as the frame has them. `None` stands for a
    frame to be looked at row by row: no rows or columns, nulls, values that are not finite
    machine numbers, labels that are not truth values.
    """
    import numpy as np

    if isinstance(y, np.ma.MaskedArray):  # as an array it would have no nulls
        return None
    labels = np.asarray(y)
    if labels.dtype.kind != "b":
        return None
    names, values = _pandas_table(X) or _columns_table(X) or ([], None)
    if values is None or not names or labels.shape != values.shape[:1] or not len(labels):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum()
    if not (np.isfinite(total) or np.isfinite(values).all()):
        return None
    return names, values, np.ascontiguousarray(labels).view(np.uint8)


def _pandas_table(X: Frame) -> tuple[list[Any], npt.NDArray[Any]] | None:
    """Return names and values of a frame of pandas that holds numbers of NumPy in one block.

    Narwhals takes a third of the time of a table of 1,000 rows, and its columns several times
    as long as the block.
    """
    import numpy as np

    pandas = sys.modules.get("pandas")
    if pandas is None or type(X) is not pandas.DataFrame or not X.columns.is_unique:
        return None
    kinds = set(X.dtypes.to_numpy())
    if not all(isinstance(kind, np.dtype) and kind.kind in "fiu" for kind in kinds):
        return None
    values = _numbers(X.to_numpy())
    return None if values is None else (list(X.columns), values)


def _columns_table(X: Frame) -> tuple[list[Any], npt.NDArray[Any]] | None:
    """Return names and values of a frame of numbers, column by column."""
    import numpy as np

    wrapped = _frame(X)
    names = list(wrapped.columns)
    values = np.empty((len(names), len(wrapped)))
    for number, name in enumerate(names):
        column = wrapped.get_column(name)
        array = None if column.null_count() else _numbers(column.to_numpy())
        if array is None:
            return None
        values[number] = array
    return names, values.T


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
    """Return a series of any library as a list of plain Python values."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InvalidEvent(field, f"must be a series, not {shown(values)}")
    if hasattr(values, "columns"):
        raise InvalidEvent(field, f"must be a series, not a {type(values).__name__} of columns")
    return [plain(value) for value in values]
