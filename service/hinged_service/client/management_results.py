"""What the calls about checkpoints, streams and aliases return."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

__all__ = [
    "AliasInfo",
    "Checkpoint",
    "Follower",
    "Promoted",
    "StreamInfo",
    "StreamListed",
    "Upgraded",
]


class Checkpoint(msgspec.Struct, frozen=True):
    """A model's state at one moment, kept.

    Parameters
    ----------
    uid
        Names it for good.
    model
        The model that it is of, by the name it had.
    spec
        That model's spec.
    created_ms
        When it was made, in milliseconds since 1970.
    events, mistakes
        Of the model until then.
    name
        A name for people, unique on the stream.
    position
        Its place in the stream's log; `None` if it was imported.
    judged
        Events that count in accuracy, `1 - mistakes / judged`; `None` of an old checkpoint.

    """

    uid: str
    model: str
    spec: dict[str, Any]
    created_ms: int
    events: int
    mistakes: int
    name: str | None = None
    position: str | None = None
    judged: int | None = None


class StreamListed(msgspec.Struct, frozen=True):
    """A stream as the list shows it.

    Parameters
    ----------
    stream
        Its name.
    models
        The models that follow it.
    aliases
        The aliases that mean one of them.

    """

    stream: str
    models: tuple[str, ...]
    aliases: tuple[str, ...]


class Follower(msgspec.Struct, frozen=True):
    """A model of a stream, as it compares to the others.

    Parameters
    ----------
    name
        The model.
    aliases
        Aliases that mean it.
    learner
        The type of its learner.
    position
        The place in the log up to which it has learned.
    events, mistakes, accuracy
        Since it began; accuracy is `1 - mistakes / judged`.
    judged
        Events that count in it: of weight above 0, and with a prediction.
    metrics
        Its progressive metrics by name.
    drifts
        Drifts detected.
    problem
        Why it cannot be served at the moment; then the rest is `None`.

    """

    name: str
    aliases: tuple[str, ...]
    learner: str
    position: str | None = None
    events: int | None = None
    mistakes: int | None = None
    accuracy: float | None = None
    metrics: dict[str, Any] = {}
    drifts: int | None = None
    problem: str | None = None
    judged: int | None = None


class StreamInfo(msgspec.Struct, frozen=True):
    """A stream and its models side by side.

    Parameters
    ----------
    stream
        Its name.
    aliases
        The model that each alias means; `None` if that was lost.
    models
        The most accurate first.

    """

    stream: str
    aliases: dict[str, str | None]
    models: tuple[Follower, ...]


class AliasInfo(msgspec.Struct, frozen=True):
    """An alias and the model that it means.

    Parameters
    ----------
    alias
        Its name.
    stream
        The stream of its models.
    model
        The model that it means; `None` if that was lost.

    """

    alias: str
    stream: str
    model: str | None


class Promoted(msgspec.Struct, frozen=True):
    """What became of a promotion.

    Parameters
    ----------
    became
        `"ok"`: done. `"moved"`: nothing was done, the alias meant another model
        than the caller thought. `"made"`: that decision was carried out before.
    model
        The model that the alias means now.

    """

    became: Literal["ok", "moved", "made"]
    model: str | None


class Upgraded(msgspec.Struct, frozen=True):
    """A model that the version of the service which answered folds.

    Parameters
    ----------
    position
        Where in the log it went on.
    fold
        What decides the arithmetic from there on.
    before
        What decided it before; the same if nothing changed.

    """

    position: str
    fold: str
    before: str
