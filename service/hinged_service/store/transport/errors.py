"""Errors of Redis in the service's terms."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from redis import exceptions

from hinged_service.store.transport.availability import Answering
from hinged_service.store.transport.pool import NoPrimary, mendable
from hinged_service.wire.codec import DamagedState

__all__ = ["translated"]

_SILENT = "Redis does not answer."
_NO_WRITES = "Redis takes no writes: {}."
_REFUSALS = {"OOM", "MISCONF", "NOREPLICAS", "BUSY"}
_PASSING: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    ((exceptions.BusyLoadingError,), "loading", "Redis is still loading its data."),
    ((NoPrimary,), "connection", "{}"),
    ((TimeoutError, exceptions.TimeoutError), "timeout", _SILENT),
    ((exceptions.ConnectionError, OSError), "connection", _SILENT),
    (
        (exceptions.AskError,),  # and MOVED
        "cluster",
        "Redis sends on to another node: is HINGED_REDIS_URL a redis+cluster:// address?",
    ),
    (
        (exceptions.TryAgainError, exceptions.ClusterDownError),
        "cluster",
        "Redis cannot serve that part of its keys now: {}.",
    ),
    ((exceptions.OutOfMemoryError, exceptions.ReadOnlyError), "no_writes", _NO_WRITES),
)


@contextlib.contextmanager
def translated(answering: Answering) -> Iterator[None]:
    """Raise `Unavailable` for what may end without a change of the command, and count it."""
    try:
        yield
    except Exception as error:
        found = _kind(error)
        if found is not None:
            raise answering.failed(*found) from error
        if isinstance(error, exceptions.ResponseError) and str(error).startswith("WRONGTYPE"):
            raise DamagedState("a stored key is of another type") from error
        raise


def _kind(error: Exception) -> tuple[str, str] | None:
    told = mendable(error)
    if told:
        return "refused", told
    for kinds, kind, text in _PASSING:
        if isinstance(error, kinds):
            return kind, text.format(str(error).rstrip("."))
    if isinstance(error, exceptions.ResponseError) and str(error).split(" ", 1)[0] in _REFUSALS:
        return "no_writes", _NO_WRITES.format(str(error).rstrip("."))
    if isinstance(error, RuntimeError) and "handler is closed" in str(error):
        return "connection", _SILENT  # uvloop's word for writing to a connection just cut
    return None
