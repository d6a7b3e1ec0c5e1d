"""JSON documents with parts changed at random, by a seed, and a bound on the time they take."""

from __future__ import annotations

import contextlib
import copy
import json
import random
import resource
import signal
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from tests.fuzz.budget import ASKED, SEED

__all__ = ["LONGEST_S", "ODD", "changed", "forge", "in_time", "try_each"]

LONGEST_S = 1.0
_MOST_KB = 100_000
_MOST_SHOWN = 5
ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 7, 0.5, -0.5, -0.0, 1e-300, 1e100, 1e308, -1e308),
    *(10**6, 10**9, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, 10**300, 10**400),
    *("", "a", "0", "p", "nan", "\x00json:[1]", "\x00json:1", "\x00json:null", "\x00json:[[]]"),
    *("\ud800", "é", "x" * 300, {"a": 1}, float("nan"), float("inf"), [[]], [None]),
    *([], [0], [1], [5], [10**6], ["list", []], {}, {"": None}, {"float": "nan"}),
    *({"float": "inf"}, {"tuple": []}, {"numpy": ["int8", 1]}, {"call": "dict"}),
    {"partial": [{"call": "set"}, [1], {}]},
]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        for key in holder if isinstance(holder, dict) else range(len(holder)):
            yield holder, key
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])


def forge(document: Any, source: random.Random) -> None:
    """Change one part: a number, a reference, a name, a size, or what stands there at all."""
    found = list(_places(document))
    if not found:
        return
    holder, key = source.choice(found)
    value = holder[key]
    match source.randrange(8):
        case 0 | 1:
            holder[key] = copy.deepcopy(source.choice(ODD))
        case 2:
            other, place = source.choice(found)
            holder[key] = copy.deepcopy(other[place])
        case 3:
            del holder[key]
        case 4 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(value))
        case 5 if isinstance(holder, dict):
            holder[source.choice(["", "a", "0"])] = holder.pop(key)
        case _:
            holder[key] = _near(value, source)


def _near(value: Any, source: random.Random) -> Any:
    """Return a value of the same kind: another number, text or reference."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        factor = source.choice([-1, 0, 2, 10, 10**6, 10**12])
        return source.choice([value * factor, value + 1, value - 1, [value]])
    if isinstance(value, str):
        return source.choice(["\x00json:" + json.dumps([value]), value[::-1]])
    if isinstance(value, list) and len(value) == 1 and type(value[0]) is int:
        return [value[0] + source.choice([-2, -1, 1, 2, 3, 10])]
    return value


def changed(document: Any, source: random.Random, *parts: str) -> Any:
    """Return a copy of a document with up to three changes, to some parts of it if they are named.

    A part that is replaced as a whole stays as it was.
    """
    made = copy.deepcopy(document)
    for _ in range(source.choice([1, 1, 1, 2, 3])):
        forge({name: made[name] for name in parts} if parts else made, source)
    return made


class TooLong(BaseException):
    """A call took longer than it may."""


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    """Bound what is done within; by this process's time, for others are busy, too."""

    def stop(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def try_each(usual: int, kind: str, check: Callable[[random.Random], object]) -> None:
    """Check as many random cases of a kind as are asked for, in bounded time and memory.

    Of those that fail the seeds are told: `check(random.Random(seed))` does it again.
    """
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    failed: list[str] = []
    for number in range(ASKED or usual):
        seed = f"{SEED} {kind} {number}"
        try:
            with in_time():
                check(random.Random(seed))
        except (Exception, TooLong):
            failed.append(f"{seed!r}: {traceback.format_exc(limit=-4)}")
            if len(failed) == _MOST_SHOWN:
                break
    assert not failed, "\n".join(failed)
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    assert grown_kb < _MOST_KB
