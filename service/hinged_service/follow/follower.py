"""A classifier of River whose model is learned in the service and held in this process."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from math import inf
from types import TracebackType
from typing import Any, Literal, Self

from river import base

import hinged
from hinged import frames
from hinged_service.client.events import Event, encode_event, present
from hinged_service.errors import Conflict, Unavailable
from hinged_service.follow.background import Background
from hinged_service.follow.read_only_model import SharedReplica, as_sent, made_of
from hinged_service.model.inspection import explain_event
from hinged_service.model.predictor import label_text
from hinged_service.settings import Settings
from hinged_service.wire.position import Position
from hinged_service.wire.responses import Label

__all__ = ["AsyncFollower", "Follower", "follow", "follow_async"]


class _Answers(base.Classifier):
    """The answers of a replica; any thread may ask."""

    def __init__(
        self,
        url: str,
        name: str,
        *,
        max_staleness_ms: int = 100,
        open_timeout_s: float = 30.0,
        hold: bool = False,
        **settings: Any,
    ) -> None:
        if not max_staleness_ms >= 1:
            raise ValueError(f"max_staleness_ms must be at least 1, not {max_staleness_ms}")
        chosen = Settings(redis_url=url, max_staleness_ms=max_staleness_ms, **settings)
        self._name = name
        self._open_timeout_s = open_timeout_s
        self._background = Background(chosen, name, hold)

    def predict_one(  # type: ignore[override] # River's further arguments cost a dictionary a call
        self, x: Mapping[Any, Any]
    ) -> Label | None:
        """Return the label of `x`; `None` while a multiclass model knows no class.

        Raises
        ------
        hinged.InvalidEvent
            Naming the feature that the model does not take.
        ServiceError
            The model was deleted, or its state failed and is being loaded.

        """
        tail = self._background.tail
        if tail is not None:  # the sign of the score, if that is all, and of one state
            replica = tail.replica
            turn = replica.turn
            try:
                score = replica.score(x)
            except Exception:  # noqa: BLE001 - the way below raises why
                score = 0.0
            if turn is not None and replica.turn is turn:
                if score > 0.0:
                    if score < inf:
                        return replica.positive
                elif score < 0.0 and score > -inf:
                    return replica.negative
        replica = self._replica()
        with replica.lock:
            return replica.label(x)

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return a number per label, in sum 1; `{}` while no class was seen.

        Errors are those of `predict_one`.
        """
        replica = self._replica()
        with replica.lock:
            answers = replica.state.answers
            _, _, scores = answers.decide(made_of(replica.state, x))
            label = answers.label
            return {label(y): p for y, p in answers.probabilities(scores).items()}

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return the score that decides the label of `x`; errors are those of `predict_one`."""
        replica = self._replica()
        with replica.lock:
            state = replica.state
            return state.answers.decide(made_of(state, x))[1]

    def explain_one(self, x: Mapping[Any, Any], y: Label | None = None) -> dict[Any, float]:
        """Return each feature's contribution to the score, the intercept under `hinged.INTERCEPT`.

        Of a multiclass model it is the score of the class `y`, by default the predicted one. What
        a pipeline makes of several features is shared among them.

        Raises
        ------
        Conflict
            The score of this learner is not a sum over features.
        KeyError
            There is no such class.

        """
        replica = self._replica()
        with replica.lock:
            state = replica.state
            features = x if state.pipeline is None else as_sent(state, x)
            label = None if y is None else label_text(y)
            found = explain_event(state, features, label)
        if found is None:
            raise Conflict("The score of this learner is not a sum over features.")
        return {**found["features"], hinged.INTERCEPT: found["intercept"]}

    def predict_many(self, X: frames.Frame) -> frames.Series:
        """Return the labels of the rows of a frame, all of one position, as a series."""
        rows = list(frames.rows(X))
        replica = self._replica()
        with replica.lock:
            labels = [replica.label(row) for row in rows]
            boolean = not replica.state.multiclass and replica.state.answers.classes()[1] is True
        return frames.labels(labels, X, boolean=boolean)

    @property
    def position(self) -> str:
        """The last entry of the log that is in the model, as the service returns positions."""
        return str(self._replica().position)

    @property
    def model(self) -> str:
        """Name of the model; of an alias, of the one that it points to now."""
        self._replica()
        return self._background.model().name

    @property
    def staleness_s(self) -> float:
        """Seconds since the model was at the end of its log, infinite if it was deleted."""
        tail = self._background.tail
        return math.inf if tail is None else time.monotonic() - tail.seen.pulse.at_s

    @property
    def status(self) -> Literal["live", "stale", "set_aside", "gone"]:
        """Return whether the model follows its log.

        `live`: within the age allowed. `stale`: Redis does not answer, or the log is longer than
        could be read; `set_aside`: the log is damaged, or folded by another version; in both the
        answers are those of `position`. `gone`: it was deleted, or its alias points to no model.
        """
        tail = self._background.tail
        if tail is None:
            return "gone"
        if not isinstance(self.trouble, Unavailable | None):
            return "set_aside"
        return "live" if self.staleness_s <= tail.settings.max_staleness_ms / 1000 else "stale"

    @property
    def trouble(self) -> Exception | None:
        """The reason that the model cannot be brought to the end of its log; `None` if it can."""
        return self._background.trouble

    @property
    def _multiclass(self) -> bool:
        return self._replica().state.multiclass

    def _replica(self) -> SharedReplica:
        tail = self._background.tail
        if tail is None:
            raise self._background.absent() from self.trouble
        return tail.replica

    def _sent(self, x: Mapping[Any, Any], y: Label, w: float, name: str | None) -> bytes:
        plain = self._replica().state.pipeline is None
        event = Event(present(x, plain), y, w, name)
        return encode_event(event, flags_are_numbers=plain).json

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._name!r})"

    def clone(
        self, new_params: dict[str, Any] | None = None, include_attributes: bool = False
    ) -> Self:
        """Raise `TypeError`: a clone would be the same model."""
        raise TypeError(f"A clone would be the same model {self._name!r}: follow another one.")

    def __deepcopy__(self, _: dict[int, Any]) -> Self:
        return self.clone()

    def __reduce__(self) -> str:
        raise TypeError("A follower belongs to its process: follow the model in the other one.")


class Follower(_Answers):
    """A River classifier that predicts from memory with a model of the service.

    A thread reads the log of the model in Redis and folds it, as a worker of the service does:
    at one `position` both have the same state, bit for bit. Nothing is written to Redis unless
    `learn_one` is called. While Redis does not answer, predictions go on from memory.

    Predictions may be asked for from any thread. One waits while an entry of the log is applied.

    Parameters
    ----------
    url
        Address of the Redis of the service, as its `HINGED_REDIS_URL`.
    name
        Name of a model, or of an alias, which is followed through promotions.
    max_staleness_ms
        Age of the model up to which the log is not read again, in milliseconds, at least 1.
    open_timeout_s
        Longest that opening may take, in seconds: to load the snapshot, and to fold the log after.
    hold
        Let the workers wait with their snapshots while one is loaded, as another worker does; that
        takes rights to write. A model with more than 50,000 weights that changes all the time
        cannot be loaded without.
    settings
        Further settings of the service, such as `redis_timeout_ms` or `models`, the operator's own
        pipelines. The environment's apply as well.

    Notes
    -----
    Features and labels are those of `hinged_service.client.RemoteClassifier`; names of features
    are text, as in the log. A follower opened before a process forks is closed in the child.

    Examples
    --------
    ::

        with Follower("redis://127.0.0.1:6379", "visits") as model:
            model.predict_one({"seconds": 290, "pages": 9})

    """

    def __enter__(self) -> Self:
        """Start to follow.

        Raises
        ------
        ServiceError, StartupError
            There is no such model, it cannot be loaded, or did not catch up in time.

        """
        self._background.start(self._open_timeout_s)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop to follow; the last state still answers."""
        self._background.stop()

    def wait_for(self, position: str, timeout_s: float = 1.0) -> None:
        """Return once the model is at `position` or later.

        Raises
        ------
        Conflict
            The log holds another history than the one that led to `position`.
        Unavailable
            The log did not get there in time.

        """
        at = Position.parse(position)
        self._background.ask(self._background.wait_for(at, timeout_s)).result()

    def learn_one(
        self,
        x: Mapping[Any, Any],
        y: Label,
        w: float = 1.0,
        *,
        id: str | None = None,  # noqa: A002 - as events call it
    ) -> None:
        """Append a labelled event to the log; it is in this model when the call returns.

        Parameters
        ----------
        x, y, w
            Features, label and sample weight.
        id
            Name of the event, which counts once under it for all senders.

        Raises
        ------
        Refused
            The user of the address may only read.
        Invalid, ServiceError
            As a learn call of the service; nothing was learned, unless Redis did not answer in
            time: then send it again with the same `id`.

        """
        self._background.ask(self._background.learn(self._sent(x, y, w, id))).result()


class AsyncFollower(_Answers):
    """A `Follower` for asyncio: await the calls that use Redis; predictions are ordinary calls."""

    async def __aenter__(self) -> Self:
        """Start to follow; raises as `Follower`."""
        await asyncio.to_thread(self._background.start, self._open_timeout_s)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop to follow; the last state still answers."""
        await asyncio.to_thread(self._background.stop)

    async def wait_for(self, position: str, timeout_s: float = 1.0) -> None:
        """Return once the model is at `position` or later; raises as `Follower.wait_for`."""
        at = Position.parse(position)
        await asyncio.wrap_future(self._background.ask(self._background.wait_for(at, timeout_s)))

    async def learn_one(  # type: ignore[override] # River knows no coroutines
        self,
        x: Mapping[Any, Any],
        y: Label,
        w: float = 1.0,
        *,
        id: str | None = None,  # noqa: A002 - as events call it
    ) -> None:
        """Append a labelled event to the log, as `Follower.learn_one`."""
        learning = self._background.learn(self._sent(x, y, w, id))
        await asyncio.wrap_future(self._background.ask(learning))


def follow(url: str, name: str, **options: Any) -> Follower:
    """Return a `Follower` to be entered with `with`; parameters are its own."""
    return Follower(url, name, **options)


def follow_async(url: str, name: str, **options: Any) -> AsyncFollower:
    """Return an `AsyncFollower` to be entered with `async with`; parameters are its own."""
    return AsyncFollower(url, name, **options)
