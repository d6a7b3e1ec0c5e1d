"""Results of folding events into a model: outcomes, rejections, detections."""

from __future__ import annotations

from typing import NamedTuple

import hinged
from hinged_service.river_support.learners import Label

__all__ = ["KEPT_DETECTIONS", "Detection", "Late", "Rejection", "Result"]

KEPT_DETECTIONS = 20
"""Detections kept: the last ones."""


class Rejection(NamedTuple):
    """An event in the log that the model could not take."""

    field: str
    """The event's field at fault."""
    reason: str
    """The condition that must hold there."""


class Late(NamedTuple):
    """A prediction that an event is the label of."""

    at_ms: float | None
    """Time of the prediction in ms since 1970; `None` if its label is only the default."""
    served: bool
    """True if this model served it."""
    y: Label | None
    """The label that it served then."""


class Detection(NamedTuple):
    """A drift that the model's detector found."""

    entry: str
    """Id of the log entry."""
    number: int
    """Number of the event within it."""
    events: int
    """Events of the model up to and including that one."""


Result = hinged.Outcome | Rejection | None
"""Outcome of an event; why the model could not take it; `None` if it did not count."""
