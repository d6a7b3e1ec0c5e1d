"""The guards of the scripts, to be taken out one at a time: then some test must fail."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from hinged_service.store import followers, log, snapshot_writer
from hinged_service.store.scripts import Script

Place = tuple[Any, str]

APPEND: Place = (log, "_APPEND")
CATCH_UP: Place = (log, "_CATCH_UP")
CHANGES: Place = (snapshot_writer, "_CHANGES")
FULL: Place = (snapshot_writer, "_FULL")
HOLD: Place = (followers, "_HOLD")
ALL_LOG = (APPEND, CATCH_UP, CHANGES, FULL)

GUARDS: dict[str, tuple[tuple[Place, ...], dict[str, str]]] = {
    "the chain is compared": (
        ALL_LOG,
        {
            "return chain == last_chain": "return true",
            "return #found > 0 and field_of(found[1][2], 'chain') == chain": "return #found > 0",
        },
    ),
    "the position must be in the log": (
        ALL_LOG,
        {"return #found > 0 and field_of": "return #found == 0 or field_of"},
    ),
    "a snapshot's base is not beyond the stored one": (
        (CHANGES,),
        {"if compare(stored, ARGV[2]) < 0 then return {'full'} end": ""},
    ),
    "a snapshot is newer than the stored one": (
        (CHANGES, FULL),
        {"then return {'stored', stored} end": "then end"},
    ),
    "a snapshot is of a follower": (
        (CHANGES, FULL),
        {"if not stored then return {'gone'} end": "stored = stored or '0-0 -'"},
    ),
    "a batch is of a follower": (
        (APPEND,),
        {"if not stored then return {'gone'} end": "stored = stored or '0-0 -'"},
    ),
    "ids that were seen do not count": (
        (APPEND,),
        {
            "local before = found[k] or accepted[id] or mine[id]": "local before = nil",
        },
    ),
    "ids of the generation before are looked up": (
        (APPEND,),
        {"local has_previous --": "local has_previous = false --"},
    ),
    "ids within a batch are compared": (
        (APPEND,),
        {"found[k] or accepted[id] or mine[id]": "found[k]"},
    ),
    "a refused caller's ids stay free": (
        (APPEND,),
        {"mine[id] = digest": "mine[id] = digest accepted[id] = digest"},
    ),
    "the same batch gets its first answer": (
        (APPEND,),
        {"if r[1] == sequence then": "if false then"},
    ),
    "a late batch is refused": (
        (APPEND,),
        {"if r[1] > sequence then return {'stale'} end": ""},
    ),
    "a full snapshot is counted": (
        (FULL,),
        {"return {'incomplete'}": ""},
    ),
    "a trim waits for all followers": (
        (CHANGES, FULL),
        {"if compare(position, wanted) < 0 and": "if false and"},
    ),
    "a hold is respected": (
        (CHANGES, FULL),
        {"then return {'later'} end": "then end"},
    ),
    "a hold is not renewed": (
        (HOLD,),
        {"if not hold or words(hold) ~= position then": "if true then"},
    ),
    "the reply is bounded": (
        (APPEND, CATCH_UP),
        {"local full = bytes >= limit": "local full = false"},
    ),
}
"""Guard -> the scripts that have it, and how their text is changed to have it no more."""


def take_out(guard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process use scripts without the guard."""
    places, changes = GUARDS[guard]
    for module, name in places:
        script: Script = getattr(module, name)
        source = script.source
        for before, after in changes.items():
            assert before in source, f"{script.name} does not say {before!r} any more"
            source = source.replace(before, after)
        sha = hashlib.sha1(source.encode()).hexdigest()
        monkeypatch.setattr(module, name, Script(script.name, source, sha))
