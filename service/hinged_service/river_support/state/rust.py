"""The parts of River that are written in Rust: their fields, checked, instead of their bytes.

River gives and takes their state as bytes, and takes them on trust: damaged ones
load silently, or panic, then or at the next call, and a panic is no `Exception`.
So the bytes are taken apart here, in River 0.26's layout (little-endian, without
padding): what follows from the constructor's arguments must be as in a fresh
object, and only the rest is stored. Reading checks these numbers and packs them
into a fresh object's bytes.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

from river._river_rust.drift import AdaptiveWindowing
from river._river_rust.stats import (
    RsEWMean,
    RsEWVar,
    RsIQR,
    RsKurtosis,
    RsPeakToPeak,
    RsQuantile,
    RsRollingIQR,
    RsRollingQuantile,
    RsSkew,
)

from hinged_service.wire.codec import DamagedState

__all__ = ["RUST", "has_data", "rust_from", "rust_state"]

MAX_WINDOW = 1_000_000
MAX_BUCKETS = 1_000
_QUANTILE = "21dB?"
_QUANTILE_FIELDS = range(6, 23)


class RustObject(Protocol):
    """An object of one of these types."""

    def __getstate__(self) -> bytes: ...

    def __setstate__(self, state: bytes) -> None: ...


class _Fixed(NamedTuple):
    """A type whose state has one length: its constructor, and the kinds of the arguments.

    `layout` is the state as `struct` writes it, with the places of the `arguments` and of
    the `fields`, which do not follow from them; `sound` accepts a state that can be reached.
    """

    make: Callable[..., RustObject]
    kinds: tuple[type, ...]
    layout: str
    arguments: tuple[int, ...]
    fields: tuple[int, ...]
    sound: Callable[[Sequence[Any]], bool]


def _sound_quantile(state: Sequence[Any]) -> bool:
    count, full = state[21:]
    ranks = state[11:16]
    return (
        0 <= count <= 5
        and (count == 5 or not full)
        and all(a < b for a, b in pairwise(ranks))
        and ranks[0] >= 1.0
        and ranks[4] < 2.0**53
    )


_FIXED: dict[str, _Fixed] = {
    "RsEWMean": _Fixed(RsEWMean, (float,), "3d?d", (1,), (0, 3), lambda state: True),
    "RsEWVar": _Fixed(RsEWVar, (float,), "3d?3d?2d", (1,), (0, 3, 4, 7), lambda state: True),
    "RsPeakToPeak": _Fixed(RsPeakToPeak, (), "2d", (), (0, 1), lambda state: True),
    "RsKurtosis": _Fixed(
        RsKurtosis, (bool,), "?7d?", (0,), tuple(range(1, 8)), lambda state: state[7] >= 0.0
    ),
    "RsSkew": _Fixed(RsSkew, (bool,), "7d??", (7,), tuple(range(7)), lambda state: state[6] >= 0.0),
    "RsQuantile": _Fixed(
        RsQuantile, (float,), _QUANTILE, (0,), tuple(_QUANTILE_FIELDS), _sound_quantile
    ),
    "RsIQR": _Fixed(
        RsIQR,
        (float, float),
        _QUANTILE * 2 + "2d",
        (46, 47),
        (*_QUANTILE_FIELDS, *(23 + place for place in _QUANTILE_FIELDS)),
        lambda state: _sound_quantile(state[:23]) and _sound_quantile(state[23:46]),
    ),
}

_ROLLING: dict[str, tuple[Callable[..., RustObject], int]] = {
    "RsRollingQuantile": (RsRollingQuantile, 1),
    "RsRollingIQR": (RsRollingIQR, 2),
}
"""Constructors, with the number of quantiles before the size of the window."""

_ADWIN_HEAD = "<dIQdd4d4IQ"
_ADWIN_FIELDS = ("total", "variance", "width", "total_width")
_ADWIN_COUNTS = ("n_buckets", "max_n_buckets", "tick", "n_detections")

RUST: dict[type, str] = {
    AdaptiveWindowing: "AdaptiveWindowing",
    RsRollingQuantile: "RsRollingQuantile",
    RsRollingIQR: "RsRollingIQR",
    **{kind.make: name for name, kind in _FIXED.items() if isinstance(kind.make, type)},
}
"""The types, with the names under which they are stored."""


def rust_state(value: RustObject) -> list[Any]:
    """Return the arguments and the fields of an object of one of these types.

    Raises
    ------
    DamagedState
        If it is not in a state that can be stored: one with NaN in it, for
        example, or one of another version of River.

    """
    name, state = RUST[type(value)], bytes(value.__getstate__())
    try:
        if name in _FIXED:
            encoded = _fixed_fields(_FIXED[name], state)
        elif isinstance(value, AdaptiveWindowing):
            encoded = _adwin_fields(value.__getnewargs__(), state)
        else:
            encoded = _rolling_fields(_ROLLING[name][1], state)
    except struct.error as error:
        raise DamagedState(f"the layout of {name} is not known") from error
    if bytes(rust_from(name, encoded).__getstate__()) != state:
        raise DamagedState(f"the layout of {name} is not known")
    return encoded


def rust_from(name: str, encoded: object) -> RustObject:
    """Return the object that `rust_state` described, or raise `DamagedState`."""
    match encoded:
        case [list(arguments), list(fields)]:
            pass
        case _:
            raise DamagedState(f"a stored {name} is damaged")
    if name in _FIXED:
        value, state = _fixed(_FIXED[name], name, arguments, fields)
    elif name in _ROLLING:
        value, state = _rolling(name, arguments, fields)
    else:
        value, state = _adwin(arguments, fields)
    value.__setstate__(state)
    return value


def has_data(value: RustObject) -> bool:
    """Return whether an object of one of these types has been updated."""
    return bytes(value.__getstate__()) != bytes(_fresh(value).__getstate__())


def _fresh(value: RustObject) -> RustObject:
    arguments = rust_state(value)[0]
    name = RUST[type(value)]
    return (_FIXED[name].make if name in _FIXED else _ROLLING[name][0])(*arguments)


def _fixed_fields(kind: _Fixed, state: bytes) -> list[Any]:
    numbers = struct.unpack(f"<{kind.layout}", state)
    return [[numbers[i] for i in kind.arguments], [numbers[i] for i in kind.fields]]


def _fixed(
    kind: _Fixed, name: str, arguments: list[Any], fields: list[Any]
) -> tuple[RustObject, bytes]:
    _check(name, arguments, kind.kinds)
    if kind.make in (RsQuantile, RsIQR):
        _check_orders(name, arguments)
    value = _made(kind.make, name, arguments)
    numbers = list(struct.unpack(f"<{kind.layout}", bytes(value.__getstate__())))
    _check(name, fields, tuple(type(numbers[place]) for place in kind.fields))
    for place, number in zip(kind.fields, fields, strict=True):
        numbers[place] = number
    if not kind.sound(numbers):
        raise DamagedState(f"a stored {name} is damaged")
    return value, struct.pack(f"<{kind.layout}", *numbers)


def _rolling_fields(quantiles: int, state: bytes) -> list[Any]:
    (count,) = struct.unpack_from("<Q", state)
    ordered = list(struct.unpack_from(f"<{count}d", state, 8))
    window = list(struct.unpack_from(f"<Q{count}d", state, 8 + 8 * count))[1:]
    arguments = list(struct.unpack_from(f"<{quantiles}dQ", state, len(state) - 8 * quantiles - 8))
    return [arguments, [ordered, window]]


def _rolling(name: str, arguments: list[Any], fields: list[Any]) -> tuple[RustObject, bytes]:
    make, quantiles = _ROLLING[name]
    _check(name, arguments, (float,) * quantiles + (int,))
    _check_orders(name, arguments[:-1])
    size = arguments[-1]
    if not 0 < size <= MAX_WINDOW:
        raise DamagedState(f"the window of a stored {name} is damaged")
    match fields:
        case [list(ordered), list(window)] if len(window) <= size:
            pass
        case _:
            raise DamagedState(f"the window of a stored {name} is damaged")
    for values in (ordered, window):
        _check(name, values, (float,) * len(window))
    if Counter(ordered) != Counter(window) or ordered != sorted(ordered):
        raise DamagedState(f"the window of a stored {name} is damaged")
    value = _made(make, name, arguments)
    count = len(window)
    head = struct.pack(f"<Q{count}dQ{count}d", count, *ordered, count, *window)
    return value, head + bytes(value.__getstate__())[16:]


def _adwin_fields(arguments: Sequence[Any], state: bytes) -> list[Any]:
    head = struct.unpack_from(_ADWIN_HEAD, state)
    offset, buckets = struct.calcsize(_ADWIN_HEAD), []
    for _ in range(head[-1]):
        _, used, room = struct.unpack_from("<3Q", state, offset)
        totals = struct.unpack_from(f"<{room}d", state, offset + 24)
        variances = struct.unpack_from(f"<{room}d", state, offset + 32 + 8 * room)
        buckets.append([used, list(totals), list(variances)])
        offset += 32 + 16 * room
    return [list(arguments), [list(head[5:9]), list(head[9:13]), buckets]]


def _adwin(arguments: list[Any], fields: list[Any]) -> tuple[RustObject, bytes]:
    name = "AdaptiveWindowing"
    _check(name, arguments, (float, int, int, int, int))
    delta, clock, most, least, grace = arguments
    if not (
        0.0 < delta <= 1.0
        and 0 < most <= MAX_BUCKETS
        and 0 < clock < 2**31
        and 0 <= least < 2**31
        and 0 <= grace < 2**31
    ):
        raise DamagedState("the parameters of a stored ADWIN are damaged")
    match fields:
        case [list(sums), list(counts), list(buckets)] if 0 < len(buckets) <= 64:
            pass
        case _:
            raise DamagedState("a stored ADWIN is damaged")
    _check(name, sums, (float,) * 4)
    _check(name, counts, (int,) * 4)
    packed, width = b"", 0
    for row, bucket in enumerate(buckets):
        match bucket:
            case [int(used), list(totals), list(variances)] if 0 <= used <= most:
                pass
            case _:
                raise DamagedState("a bucket of a stored ADWIN is damaged")
        for values in (totals, variances):
            _check(name, values, (float,) * (most + 1))
        width += used << row
        layout = f"<3Q{most + 1}dQ{most + 1}d"
        packed += struct.pack(layout, most, used, most + 1, *totals, most + 1, *variances)
    if width != sums[2] or not all(0 <= count < 2**31 for count in counts):
        raise DamagedState("the counts of a stored ADWIN are damaged")
    value = _made(AdaptiveWindowing, name, arguments)
    state = bytes(value.__getstate__())
    kept_fields = struct.unpack_from(_ADWIN_HEAD, state)[:5]
    head = struct.pack(_ADWIN_HEAD, *kept_fields, *sums, *counts, len(buckets))
    return value, head + packed + state[-28:]


def _made(make: Callable[..., RustObject], name: str, arguments: list[Any]) -> RustObject:
    try:
        return make(*arguments)
    except (ValueError, TypeError, OverflowError) as error:
        raise DamagedState(f"the parameters of a stored {name} are damaged") from error


def _check_orders(name: str, orders: list[float]) -> None:
    """Refuse orders of quantiles at which the constructor or an update would panic."""
    if not all(0.0 <= order <= 1.0 for order in orders) or sorted(set(orders)) != orders:
        raise DamagedState(f"the orders of a stored {name} are damaged")


def _check(name: str, values: list[Any], kinds: tuple[type, ...]) -> None:
    if len(values) != len(kinds) or any(
        type(value) is not kind for value, kind in zip(values, kinds, strict=True)
    ):
        raise DamagedState(f"a stored {name} is damaged")
    if not all(math.isfinite(value) for value in values if type(value) is float):
        raise DamagedState(f"a stored {name} holds what is not finite")
