"""Errors of Redis in the service's terms."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from redis import exceptions

from hinged_service.errors import Refused, Unavailable
from hinged_service.store.transport.availability import Answering
from hinged_service.store.transport.connection_pool import NoPrimary, mendable, refused
from hinged_service.wire.codec import DamagedState

__all__ = ["OF_DATA", "OF_SERVER", "lost_part", "translated"]

_SILENT = "Redis does not answer."
_LOADING = "Redis is still loading its data."
_NO_WRITES = "Redis takes no writes: {}."
_REFUSED = "Redis refuses the user or the password of the configured address: {}."
_BUSY = "Redis is busy with a script or a module: {}."
_ELSEWHERE = "Redis redirects to another node: for a cluster, use a redis+cluster:// address."
_CLUSTER = "Redis cannot serve that part of its keys now: {}."
_OTHER = "Redis did not carry out a command: {}."

OF_SERVER: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "LOADING": ("loading", _LOADING),
        "NOAUTH": ("refused", _REFUSED),
        "WRONGPASS": ("refused", _REFUSED),
        "NOPERM": ("refused", _REFUSED),
        "DENIED": ("refused", _REFUSED),  # protected mode: strangers are not let in
        "OOM": ("no_writes", _NO_WRITES),
        "MISCONF": ("no_writes", _NO_WRITES),
        "READONLY": ("no_writes", _NO_WRITES),
        "NOREPLICAS": ("no_writes", _NO_WRITES),
        "BUSY": ("busy", _BUSY),
        "UNKILLABLE": ("busy", _BUSY),  # this and the next answer callers that stop a script
        "NOTBUSY": ("busy", _BUSY),
        "NOSCRIPT": ("server", _OTHER),  # the text is sent then; only that may be refused again
        "EXECABORT": ("server", _OTHER),  # hinged sends no MULTI; a proxy before Redis may
        "UNBLOCKED": ("server", _OTHER),
        "NOPROTO": ("server", _OTHER),
        "MASTERDOWN": ("cluster", _CLUSTER),
        "NOMASTERLINK": ("cluster", _CLUSTER),
        "REDIRECT": ("cluster", _CLUSTER),  # of Valkey 8, during a failover
        "CLUSTERDOWN": ("cluster", _CLUSTER),
        "TRYAGAIN": ("cluster", _CLUSTER),
        "CROSSSLOT": ("cluster", _CLUSTER),  # a script's keys share a slot; a proxy may part them
        "MOVED": ("cluster", _ELSEWHERE),
        "ASK": ("cluster", _ELSEWHERE),
        "IOERR": ("server", _OTHER),  # of MIGRATE, as the next
        "BUSYKEY": ("server", _OTHER),
        "INPROG": ("server", _OTHER),  # of Sentinel, as the three after it
        "NOGOODSLAVE": ("server", _OTHER),
        "NOGOODPRIMARY": ("server", _OTHER),
        "NOQUORUM": ("server", _OTHER),
        "BUSYGROUP": ("server", _OTHER),  # of consumer groups, as the next
        "NOGROUP": ("server", _OTHER),
    }
)
"""First words of error replies that are about the server: kind of failure, text for people.

They are those of Redis 7 and 8 and of Valkey 7.2 to 9. A word that is not listed is of the server
too: a model is never given up for it.
"""

OF_DATA: Final = frozenset({"WRONGTYPE", "INVALIDOBJ"})
"""First words of error replies that are about what is stored, and so of one stream or model."""

_WORDS: tuple[tuple[type[Exception], str], ...] = (
    (exceptions.MovedError, "MOVED"),
    (exceptions.AskError, "ASK"),
    (exceptions.TryAgainError, "TRYAGAIN"),
    (exceptions.ClusterDownError, "CLUSTERDOWN"),
    (exceptions.ClusterCrossSlotError, "CROSSSLOT"),
    (exceptions.MasterDownError, "MASTERDOWN"),
    (exceptions.OutOfMemoryError, "OOM"),
    (exceptions.ReadOnlyError, "READONLY"),
    (exceptions.NoScriptError, "NOSCRIPT"),
    (exceptions.ExecAbortError, "EXECABORT"),
    (exceptions.BusyLoadingError, "LOADING"),
)
"""Prefixes that redis-py removes from an error text, by its class of errors."""

_LOST = "STREAMLOST"
"""Word of the service's own scripts where a stream lacks its log or its meta."""

_IN_A_SCRIPT = "user_script:"
_KILLED = "Script killed by user"
_OF_ARGUMENTS = ("Invalid stream ID", "value is not an integer", "no such key")


@contextlib.contextmanager
def translated(answering: Answering) -> Iterator[None]:
    """Raise `Unavailable` for errors that may pass with the same command, and count them.

    It is `Refused` if the user has not the right, or the password is wrong.
    """
    try:
        yield
    except Exception as error:
        found = _kind(error)
        if found is not None:
            failed = answering.failed(*found)
            if refused(error):
                raise Refused(failed.detail, retry_after_s=failed.retry_after_s) from error
            raise failed from error
        if part := lost_part(error):
            raise Unavailable(
                f"Redis lost the {part} of the stream: restore Redis from a backup, or delete the "
                "model and create it again.",
                retry_after_s=60,
            ) from error
        if isinstance(error, exceptions.ResponseError) and _word(error) in OF_DATA:
            raise DamagedState("a stored key is of another type") from error
        raise


def lost_part(error: Exception) -> str:
    """Return the part of a stream that a script missed, `log` or `meta`; empty if none."""
    words = str(error).split(" ", 2)
    return words[1] if words[0] == _LOST else ""


def _kind(error: Exception) -> tuple[str, str] | None:
    """Return the kind and the text of a failure of the server; `None` if it is none."""
    reason = mendable(error)
    if reason:
        return "refused", reason
    if isinstance(error, NoPrimary):
        return "connection", str(error)
    if isinstance(error, TimeoutError | exceptions.TimeoutError):
        return "timeout", _SILENT
    if isinstance(error, exceptions.ResponseError | exceptions.BusyLoadingError):
        return _kind_of_reply(_word(error), str(error).rstrip("."))
    if isinstance(error, exceptions.ConnectionError | OSError):
        return "connection", _SILENT
    if isinstance(error, RuntimeError) and "handler is closed" in str(error):
        return "connection", _SILENT  # uvloop's word for writing to a connection just cut
    return None


def _kind_of_reply(word: str, text: str) -> tuple[str, str] | None:
    """Return kind and text of an error reply; `None` if stored data or the command is at fault.

    An error without a word of its own is of the data if a script ran into it, or an argument,
    since what is stored is what the arguments are made from.
    """
    if word in OF_DATA or word == _LOST:
        return None
    if word in OF_SERVER:
        kind, message = OF_SERVER[word]
        return kind, message.format(text)
    if _KILLED in text:
        return "busy", _BUSY.format(text)
    if _IN_A_SCRIPT in text or any(part in text for part in _OF_ARGUMENTS):
        return None
    if "operation not permitted" in text:
        return "refused", _REFUSED.format(text)
    return "server", _OTHER.format(text)


def _word(error: Exception) -> str:
    """Return the first word of an error reply as the server sent it."""
    for kind, word in _WORDS:
        if isinstance(error, kind):
            return word
    return str(error).split(" ", 1)[0]
