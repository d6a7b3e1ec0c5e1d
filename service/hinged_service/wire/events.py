"""Types of events as they are posted and logged, with their bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from hinged_service.wire.faults import (
    MAX_FEATURES,
    MAX_NAME,
    MAX_TEXT,
    MAX_VALUE,
    abbreviated,
    no_number,
)

__all__ = [
    "Event",
    "Joined",
    "Json",
    "LateEvent",
    "MixedEvent",
    "MixedQuestion",
    "Question",
    "Value",
    "not_a_number",
]

Value = float | str | bool | None
"""A feature's value as a pipeline takes it; `None` is a missing one."""
Name = Annotated[str, Meta(max_length=MAX_NAME, description="A feature's name.")]
Number = Annotated[float, Meta(ge=-MAX_VALUE, le=MAX_VALUE)]
Text = Annotated[str, Meta(max_length=MAX_TEXT)]
Features = Annotated[
    dict[Name, Number],
    Meta(
        max_length=MAX_FEATURES,
        description="Feature names to finite numbers; what is absent counts as 0.",
        examples=[{"age": 0.4, "clicks": 3}],
    ),
]
MixedFeatures = Annotated[
    dict[Name, Number | Text | bool | None],
    Meta(
        max_length=MAX_FEATURES,
        description="Feature names to numbers, text, true or false, or null for a missing one: "
        "for models whose pipeline takes them.",
        examples=[{"text": "free entry", "hour": 3}],
    ),
]
EventId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_NAME,
        description="Names the event: it counts once, however often it is sent.",
    ),
]
Json = bytes | memoryview
"""JSON text, or a part of it that was not copied."""


class Event(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A labelled event.

    Attributes
    ----------
    x
        Feature names (at most 256 characters) to finite numbers of at most 1e100.
    y
        The label, of the model's label type.
    w
        Sample weight, finite, at least 0.
    id
        The event's own name; with it the event counts once.
    is_label
        Whether it is nothing but the label of an earlier prediction.

    """

    is_label: ClassVar[bool] = False

    x: Features
    y: Annotated[bool | int | float | str, Meta(description="The label.", examples=[True])]
    w: Annotated[float, Meta(ge=0.0, le=MAX_VALUE, description="Sample weight.")] = 1.0
    id: EventId | None = None


class Question(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """An event without its label.

    Attributes
    ----------
    x
        Feature names to finite numbers, as in `Event`.
    id
        Names the event whose label comes later, under the same id.

    """

    x: Features
    id: EventId | None = None


class MixedEvent(Event, gc=False):
    """An `Event` with features that are not all numbers, or missing (`None`)."""

    x: MixedFeatures  # type: ignore[assignment]


class LateEvent(Event, kw_only=True, gc=False):
    """A `MixedEvent` without `x` if it is the label of the prediction under its id."""

    x: MixedFeatures | UnsetType = UNSET  # type: ignore[assignment]

    @property
    def is_label(self) -> bool:  # type: ignore[override]
        """Whether it has no features."""
        return self.x is UNSET


class Joined(msgspec.Struct, gc=False):
    """A prediction that got its label, as an entry of the log has it.

    Attributes
    ----------
    at
        The time when it was first made, in ms since 1970, by the clock of Redis.
    served
        By model uid the label that was served first.
    x
        The features, where the label came without them.
    default
        Whether the label is the stream's default because none came.

    """

    at: float
    served: dict[str, bool | int | str | None]
    x: MixedFeatures | None = None
    default: bool = False


class MixedQuestion(Question, gc=False):
    """A `Question` with features that are not all numbers, or missing (`None`)."""

    x: MixedFeatures  # type: ignore[assignment]


def not_a_number(x: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return field and fault of the first feature that is no number, `None` if all are."""
    for name, value in x.items():
        if type(value) is not float:
            return f"x[{abbreviated(name)}]", no_number(value)
    return None
