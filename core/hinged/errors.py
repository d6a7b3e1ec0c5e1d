"""Exceptions of the learners, as one tree.

Every refusal is raised before anything of the learner has changed, so the
caller can mend the event and send it again.
"""

from __future__ import annotations

__all__ = ["HingedError", "InvalidEvent", "InvalidParameter", "InvalidState", "shown"]


class HingedError(ValueError):
    """Base of every error that `hinged` raises on purpose."""


class InvalidParameter(HingedError):
    """A constructor parameter breaks its condition; the message states it."""


class InvalidState(HingedError):
    """A saved state is damaged, of another learner, or of an unknown version."""


class InvalidEvent(HingedError):
    """An event that no learner may learn from.

    Parameters
    ----------
    field
        Where the fault is: `"x"`, `"y"`, `"w"`, or a feature as `"x['age']"`.
    reason
        What the value must be.

    """

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.field = field
        self.reason = reason

    def __reduce__(self) -> tuple[type[InvalidEvent], tuple[str, str]]:
        return type(self), (self.field, self.reason)


def shown(value: object) -> str:
    """Return a refused value as text for a message, cut to 40 characters."""
    try:
        text = repr(value)
    except ValueError:  # an integer too long to print
        text = f"a very long {type(value).__name__}"
    return text if len(text) <= 40 else text[:37] + "..."
