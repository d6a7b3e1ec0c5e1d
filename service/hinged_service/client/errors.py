"""Errors of a call: one tree, a class per answer, each text with the next step."""

from __future__ import annotations

from collections.abc import Iterable

from hinged_service.wire.responses import Fault

__all__ = [
    "BadAnswer",
    "Busy",
    "ClientError",
    "Conflict",
    "Expired",
    "Fault",
    "Invalid",
    "Malformed",
    "NotAllowed",
    "NotFound",
    "TooLarge",
    "Unavailable",
    "Unreachable",
    "WrongMediaType",
    "error_class",
]


class ClientError(Exception):
    """Base of all errors of the client.

    Parameters
    ----------
    detail
        The event and the next step, in the words of the service.
    status
        The HTTP status; `None` if there was no answer.
    errors
        The single faults, at most 20.
    retry_after_s
        Seconds until the same may be sent again, if the service sends it.
    logged
        Whether the events are in the log all the same, their ids used up.
    event_ids
        The ids under which the events of the failed call were sent, those that
        the client made included. Sent again under these, they still count once.

    """

    def __init__(
        self,
        detail: str,
        *,
        status: int | None = None,
        errors: Iterable[Fault] = (),
        retry_after_s: float | None = None,
        logged: bool = False,
        event_ids: tuple[str, ...] = (),
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.status = status
        self.errors = tuple(errors)
        self.retry_after_s = retry_after_s
        self.logged = logged
        self.event_ids = event_ids

    def __str__(self) -> str:
        return " ".join([self.detail, *(f"{f.field} {f.reason}." for f in self.errors)])


class Malformed(ClientError):
    """400: the body is not the JSON it claims to be."""


class NotAllowed(ClientError):
    """401 or 403: something in front of the service wants another key."""


class NotFound(ClientError):
    """404: there is no such model, class or address."""


class Conflict(ClientError):
    """409: the request contradicts the present state."""


class Expired(ClientError):
    """410: it was there, but its time is over."""


class TooLarge(ClientError):
    """413: more bytes or events than the service takes in one call."""


class WrongMediaType(ClientError):
    """415: the service does not read this type of body."""


class Invalid(ClientError, ValueError):
    """422, or refused before it was sent (`status` is `None`): `errors` names the fields.

    With `logged` the events are in the log and count, though the model could not
    take some. Otherwise nothing of the call was taken.
    """


class Busy(ClientError):
    """429: the model, the worker or the API key's rate has no room; nothing was taken."""


class Unavailable(ClientError):
    """502, 503 or 504: Redis or the service does not answer; it may have counted or not.

    Or 408: the service did not get all of the call in time; then it has not counted.
    """


class Unreachable(ClientError):
    """No answer: no connection, a lost one, or not in time."""


class BadAnswer(ClientError):
    """An answer that this client cannot read; the address may not be that of the service."""


_BY_STATUS: dict[int, type[ClientError]] = {
    400: Malformed,
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    408: Unavailable,
    409: Conflict,
    410: Expired,
    413: TooLarge,
    415: WrongMediaType,
    422: Invalid,
    429: Busy,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def error_class(status: int) -> type[ClientError]:
    """Return the class of errors for a status."""
    return _BY_STATUS.get(status, ClientError)
