"""The Lua scripts, as Redis gets them: read from `lua/`, their includes put in."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from importlib import resources

__all__ = ["Script", "load"]

_INCLUDE = re.compile(r"^--#include (\w+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Script:
    """One script: the name of its file, its whole text, the name under which Redis caches it.

    `by_sha` and `by_text` are the commands that run it.
    """

    name: str
    source: str
    sha: str
    by_sha: str = "EVALSHA"
    by_text: str = "EVAL"


def load(name: str, *, when_full: bool = False, reading: bool = False) -> Script:
    """Return the script `lua/<name>.lua`.

    One that runs when memory is full, or one that a user who may only read may run, if asked for.
    """
    source = _INCLUDE.sub(lambda match: _text(match[1]), _text(name))
    if when_full:
        source = source.replace("#!lua", "#!lua flags=allow-oom", 1)
    sha = hashlib.sha1(source.encode(), usedforsecurity=False).hexdigest()
    commands = ("EVALSHA_RO", "EVAL_RO") if reading else ("EVALSHA", "EVAL")
    return Script(name, source, sha, *commands)


def _text(name: str) -> str:
    return resources.files("hinged_service").joinpath("lua", f"{name}.lua").read_text("utf-8")
