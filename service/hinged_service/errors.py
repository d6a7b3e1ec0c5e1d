"""The errors of the service: each class owns one HTTP status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

__all__ = [
    "Busy",
    "Conflict",
    "Detail",
    "Expired",
    "Forbidden",
    "GoneWithEvents",
    "Malformed",
    "ModelGone",
    "NotFound",
    "Refused",
    "ServiceError",
    "SetAside",
    "StartupError",
    "TooLarge",
    "TooSlow",
    "Unauthorized",
    "Unavailable",
    "Unprocessable",
    "WrongMediaType",
]


class StartupError(Exception):
    """The service cannot start; the message states the remedy."""


@dataclass(frozen=True, slots=True)
class Detail:
    """One fault of a request.

    Attributes
    ----------
    field
        The path of the value: `"y"`, `"x['age']"`, `"[3].x['age']"`.
    reason
        The condition that must hold there.

    """

    field: str
    reason: str


class ServiceError(Exception):
    """Base of all errors that become a problem document (RFC 9457).

    Parameters
    ----------
    detail
        What happened and what to do next.
    errors
        The single faults, with their fields.
    retry_after_s
        Whole seconds after which the same request may be sent again.
    logged
        Whether events of the request are in the log all the same, their ids used up.

    """

    status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal error"

    def __init__(
        self,
        detail: str,
        errors: list[Detail] | None = None,
        retry_after_s: int | None = None,
        logged: bool = False,
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = errors or []
        self.retry_after_s = retry_after_s
        self.logged = logged


class Malformed(ServiceError):
    """The body is not the JSON it claims to be."""

    status = 400
    title = "Malformed request"


class Unauthorized(ServiceError):
    """No API key, or one that is not in the list."""

    status = 401
    title = "Unauthorized"


class Forbidden(ServiceError):
    """The API key does not allow this call."""

    status = 403
    title = "Forbidden"


class NotFound(ServiceError):
    """No such model."""

    status = 404
    title = "Not found"


class TooSlow(ServiceError):
    """The body did not come in time; nothing of it was taken."""

    status = 408
    title = "Request timeout"


class Conflict(ServiceError):
    """The request contradicts existing data."""

    status = 409
    title = "Conflict"


class Expired(ServiceError):
    """The label came after the prediction was given up."""

    status = 410
    title = "Gone"


class TooLarge(ServiceError):
    """The body or the array is longer than the service takes."""

    status = 413
    title = "Too large"


class WrongMediaType(ServiceError):
    """The body is of a type the service does not read."""

    status = 415
    title = "Unsupported media type"


class Unprocessable(ServiceError):
    """Well-formed, but not an event or a spec."""

    status = 422
    title = "Unprocessable content"


class Busy(ServiceError):
    """A queue, the worker or the key's rate is full; nothing was taken."""

    status = 429
    title = "Too many requests"


class Unavailable(ServiceError):
    """Redis did not answer in time. Repeating with the same event ids is safe."""

    status = 503
    title = "Service unavailable"


class Refused(Unavailable):
    """Redis refuses the user, its password, or a command that this user may not run."""


class SetAside(ServiceError):
    """One model cannot be folded here; the reason is in the detail."""

    status = 503
    title = "Model set aside"


class ModelGone(ServiceError):
    """The model was deleted (and perhaps created again) while it was being used."""

    status = 404
    title = "Model gone"

    def __init__(
        self, detail: str = "The model was deleted. Create it again, or use another one."
    ) -> None:
        super().__init__(detail)


class GoneWithEvents(NotFound):
    """The model was deleted when its log may have had events without an id already.

    They are not sent again: other models may follow the stream.
    """

    title = "Model gone"

    def __init__(self) -> None:
        super().__init__(
            "The model was deleted while it learned. Its stream may have the events: if you send "
            "them again, other models may learn those without an id twice."
        )
