"""Tensors of the Open Inference Protocol, read as events within the limits of all events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

import msgspec

from hinged_service.errors import Detail, TooLarge, Unprocessable
from hinged_service.wire.faults import (
    MAX_DETAILS,
    MAX_FEATURES,
    MAX_NAME,
    MAX_TEXT,
    MAX_VALUE,
    abbreviated,
)

__all__ = ["Datatype", "Tensor", "rows"]

_BITS: Final = (8, 16, 32, 64)
_RANGES: Final = {
    **{f"INT{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in _BITS},
    **{f"UINT{bits}": (0, 2**bits - 1) for bits in _BITS},
}

Datatype = Literal[
    "BOOL",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "FP16",
    "FP32",
    "FP64",
    "BYTES",
]
"""The protocol's datatypes."""


class Tensor(msgspec.Struct, gc=False):
    """An input.

    Parameters
    ----------
    name
        The feature, unless the columns have names.
    shape
        `[n]`, `[n, 1]` or `[n, k]`.
    datatype
        What the elements are; text is BYTES.
    data
        The elements row by row, flat or nested as in the shape.
    parameters
        `feature_names`: the names of the columns.

    """

    name: str
    shape: list[int]
    datatype: Datatype
    data: list[Any]
    parameters: dict[str, Any] | None = None


def rows(tensors: list[Tensor], max_events: int, mixed: bool) -> list[dict[str, Any]]:
    """Return the features of each event; unless `mixed`, true and false become 1 and 0.

    Raises
    ------
    Unprocessable
        Naming tensor and element.
    TooLarge
        For too many events.

    """
    if not tensors:
        raise _wrong("inputs", "must hold a tensor")
    counts = [_count(tensor, f"inputs[{i}]") for i, tensor in enumerate(tensors)]
    n = counts[0]
    for i, count in enumerate(counts):
        if count != n:
            raise _wrong(f"inputs[{i}].shape", f"must be of {n} events, as inputs[0]")
    if n > max_events:
        raise TooLarge(f"There are {n} events; send at most {max_events} in one call.")
    found: list[dict[str, Any]] = [{} for _ in range(n)]
    seen: set[str] = set()
    for i, tensor in enumerate(tensors):
        names = _names(tensor, f"inputs[{i}]")
        _check_names(names, seen, f"inputs[{i}]")
        elements = _elements(tensor, n, len(names), f"inputs[{i}].data")
        values = _values(elements, tensor.datatype, mixed, f"inputs[{i}].data")
        k = len(names)
        for row, x in enumerate(found):
            x.update(zip(names, values[row * k : (row + 1) * k], strict=True))
    return found


def _count(tensor: Tensor, at: str) -> int:
    if len(tensor.shape) not in (1, 2) or any(size < 0 for size in tensor.shape):
        raise _wrong(f"{at}.shape", "must be [n] or [n, 1] for a feature, [n, k] for k columns")
    return tensor.shape[0]


def _names(tensor: Tensor, at: str) -> list[str]:
    names = (tensor.parameters or {}).get("feature_names")
    columns = tensor.shape[1] if len(tensor.shape) == 2 else 1
    if names is None:
        if columns != 1:
            raise _wrong(
                f"{at}.parameters.feature_names", f"must name the {columns} columns of the tensor"
            )
        return [tensor.name]
    if isinstance(names, str):  # parameters of some clients are numbers and text only
        try:
            names = msgspec.json.decode(names)
        except msgspec.MsgspecError:
            names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _wrong(f"{at}.parameters.feature_names", "must be an array of names")
    if len(names) != columns:
        raise _wrong(
            f"{at}.parameters.feature_names", f"has {len(names)} names for {columns} columns"
        )
    return names


def _check_names(names: list[str], seen: set[str], at: str) -> None:
    for name in names:
        if name in seen:
            raise _wrong(at, f"names the feature {abbreviated(name)} a second time")
        if len(name) > MAX_NAME:
            raise _wrong(at, f"names {abbreviated(name)}, which is over {MAX_NAME} characters")
        seen.add(name)
    if len(seen) > MAX_FEATURES:
        raise _wrong("inputs", f"have more features than the {MAX_FEATURES} that are taken")


def _elements(tensor: Tensor, n: int, k: int, at: str) -> list[Any]:
    data = tensor.data
    if len(tensor.shape) == 2 and any(isinstance(row, list) for row in data):
        for index, row in enumerate(data):
            if not isinstance(row, list) or len(row) != k:
                raise _wrong(f"{at}[{index}]", f"must be an array of {k} elements")
        if len(data) != n:
            raise _wrong(at, f"must have {n} rows, not {len(data)}")
        return [element for row in data for element in row]
    if len(data) != n * k:
        raise _wrong(at, f"must have {n * k} elements as the shape says, not {len(data)}")
    return data


def _values(elements: list[Any], datatype: str, mixed: bool, at: str) -> list[Any]:
    read, expected = _reader(datatype, mixed)
    values = [read(element) if element is not None else _MISSING for element in elements]
    faults = list(_faults(elements, values, expected, mixed, at))
    if faults:
        some = "" if len(faults) <= MAX_DETAILS else f" ({MAX_DETAILS} of {len(faults)} shown)"
        raise Unprocessable(f"Nothing was predicted{some}.", faults[:MAX_DETAILS])
    return [None if value is _MISSING else value for value in values]


_MISSING: Final = object()
_REFUSED: Final = object()


def _faults(
    elements: list[Any], values: list[Any], expected: str, mixed: bool, at: str
) -> Iterator[Detail]:
    for index, value in enumerate(values):
        if value is _REFUSED or (value is _MISSING and not mixed):
            yield Detail(
                f"{at}[{index}]", f"must be {expected}, not {abbreviated(elements[index])}"
            )


def _reader(datatype: str, mixed: bool) -> tuple[Callable[[Any], Any], str]:
    if datatype == "BOOL":
        kind: type = bool if mixed else float
        return lambda e: kind(e) if isinstance(e, bool) else _REFUSED, "true or false"
    if datatype == "BYTES":
        if not mixed:
            return lambda _: _REFUSED, "a number: text needs a pipeline that takes it"
        return (
            lambda e: e if isinstance(e, str) and len(e) <= MAX_TEXT else _REFUSED,
            f"text of up to {MAX_TEXT} characters",
        )
    if datatype in _RANGES:
        low, high = _RANGES[datatype]

        def whole(e: Any) -> Any:
            return float(e) if type(e) is int and low <= e <= high else _REFUSED

        return whole, f"an integer from {low} to {high}"
    return _number, "a number between -1e100 and 1e100"


def _number(element: Any) -> Any:
    if type(element) not in (int, float) or not -MAX_VALUE <= element <= MAX_VALUE:
        return _REFUSED
    return float(element)


def _wrong(field: str, reason: str) -> Unprocessable:
    return Unprocessable("Nothing was predicted.", [Detail(field, reason)])
