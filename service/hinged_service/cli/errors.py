"""Errors of the commands: a message with the next step, and an exit code."""

from __future__ import annotations

from typing import Final

import httpx
import typer

from hinged_service.cli.output import printable
from hinged_service.client import (
    BadAnswer,
    Busy,
    ClientError,
    Conflict,
    Expired,
    Invalid,
    Malformed,
    NotAllowed,
    NotFound,
    TooLarge,
    Unavailable,
    Unreachable,
    WrongMediaType,
)

__all__ = ["ABOUT_CODES", "CONFLICT", "report"]

FAILED: Final = 1
NOT_FOUND: Final = 3
CONFLICT: Final = 4
REFUSED: Final = 5
AWAY: Final = 6
NOT_ALLOWED: Final = 7

ABOUT_CODES: Final = (
    "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 in conflict with what is there, "
    "5 refused as wrong, 6 the service is unavailable or busy (try again), 7 not allowed, 8 of "
    "`serve` and `ingest`: acknowledged events are not on disk, as it is full; of `ingest` 1 "
    "also if more records were bad than `--max-bad` allows, 130 and 143 if a signal stopped it. "
    "Results go to standard output, errors to standard error; `--output json` and `--output csv` "
    "are for scripts."
)

_CODES: Final[dict[type[ClientError], int]] = {
    NotFound: NOT_FOUND,
    Expired: NOT_FOUND,
    Conflict: CONFLICT,
    Invalid: REFUSED,
    Malformed: REFUSED,
    TooLarge: REFUSED,
    WrongMediaType: REFUSED,
    Unreachable: AWAY,
    Unavailable: AWAY,
    Busy: AWAY,
    NotAllowed: NOT_ALLOWED,
}


def report(error: ClientError, url: str) -> int:
    """Report the failure at the address `url` on standard error; return the exit code."""
    lines = [_what(error, url)]
    lines += [f"  {fault.field}: {fault.reason}" for fault in error.errors]
    if error.logged:
        lines.append("The events are in the log nevertheless, and their ids are used.")
    hint = _hint(error, url)
    if hint:
        lines.append(hint)
    for line in lines:
        typer.echo(printable(line), err=True)
    return _CODES.get(type(error), FAILED)


def _what(error: ClientError, url: str) -> str:
    if isinstance(error, Unreachable):
        if isinstance(error.__cause__, httpx.TimeoutException):
            return f"The service at {url} did not answer in time."
        return f"No service answers at {url} ({error.__cause__})."
    if isinstance(error, BadAnswer):
        return f"The server at {url} does not seem to be hinged: {error.detail}"
    return error.detail.replace(": see errors", "")  # they follow


def _hint(error: ClientError, url: str) -> str:
    if isinstance(error, Unreachable) and isinstance(error.__cause__, httpx.ConnectError):
        return "Start one with `hinged serve`, or name another with --url or HINGED_URL."
    if isinstance(error, (Unreachable, Unavailable, Busy)):
        if len(error.event_ids) == 1:
            return (
                "The event may have counted. It is safe to send it again with "
                f"--id {error.event_ids[0]}."
            )
        return "Try again."
    if isinstance(error, NotFound):
        return "List existing names: `hinged models`, `aliases` or `checkpoints MODEL`."
    if isinstance(error, NotAllowed):
        return "Give the right key with --api-key or HINGED_API_KEY."
    if isinstance(error, BadAnswer):
        return f"Is {url} the right address? Name another with --url or HINGED_URL."
    return ""
