"""A live model that is read by other threads, and saves nothing."""

from __future__ import annotations

import contextlib
import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import hinged
from hinged_service.client.errors import Invalid
from hinged_service.client.events import encode_question, present
from hinged_service.engine.catch_up import LogFollower
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.long_work import Pace
from hinged_service.engine.replica import Replica
from hinged_service.engine.state_access import TAKEN_STATE
from hinged_service.errors import Unprocessable
from hinged_service.model.predictor import Label, Predictor
from hinged_service.model.results import Result
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.river_support.learners import Features
from hinged_service.store.log_reader import LogReader
from hinged_service.store.log_types import Entry
from hinged_service.store.snapshot import Loaded
from hinged_service.wire.decoding import parse_questions
from hinged_service.wire.events import Event
from hinged_service.wire.position import Mark

__all__ = ["FollowedModel", "SharedReplica", "Tail", "as_sent", "made_of"]


class SharedReplica(Replica):
    """A replica whose state any thread may read, between two entries.

    An entry that fails leaves no state: `TAKEN_STATE` answers until the model is loaded again.

    Attributes
    ----------
    lock
        Held while an entry is applied; who holds it may read the state.
    turn
        Names the present state; `None` while an entry is applied. What was read without the lock
        is of one state if this was not `None` before and is the same after.
    score
        From features to the score whose sign decides between `negative` and `positive`. It is NaN
        if the model is no such one; it may be 0, infinite or NaN, or raise, and then means nothing.
    negative, positive
        The labels; `None` of a model that is no such one.

    """

    def __init__(self, uid: str, spec: ModelSpec, loaded: Loaded, complete: bool = True) -> None:
        super().__init__(uid, spec, loaded, complete)
        self.lock = threading.Lock()
        self.turn: object | None = object()
        self._answers: Predictor[Any] | None = None
        self.score: Callable[[Mapping[Any, Any]], float]
        self.negative: Label | None
        self.positive: Label | None
        self._renew()

    def fold_entry(
        self, entry: Entry, events: Sequence[Event | None] | None = None
    ) -> list[Result]:
        """Apply the entry right after `position`, as `Replica.fold_entry`."""
        with self._changing():
            return super().fold_entry(entry, events)

    def fold_restore(self, entry: Entry, state: ModelState | None) -> None:
        """Apply a command that restores a checkpoint, as `Replica.fold_restore`."""
        with self._changing():
            super().fold_restore(entry, state)

    def note_stored(self, stored: str, saved: Mark) -> None:
        """Forget the changes: another worker saves them."""
        with self.lock:
            for vector in self.state.vectors().values():
                vector.take_changed()

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        with self.lock:
            self.turn = None
            try:
                yield
                self._renew()
            except BaseException:
                self.state = TAKEN_STATE
                self.score = _unknown
                raise
            finally:
                self.turn = object()

    def _renew(self) -> None:
        """Take note of the learner, which a command may have replaced."""
        state = self.state
        answers = state.answers
        if answers is self._answers:
            return
        self._answers, learner = answers, state.learner
        self.score, self.negative, self.positive = _unknown, None, None
        plain = state.pipeline is None and not state.can_reject_features
        if plain and isinstance(learner, hinged.BinaryLinearClassifier):
            self.score = learner._served_score  # noqa: SLF001 - what its `predict_one` begins with
            self.negative, self.positive = answers.classes()

    def label(self, x: Mapping[Any, Any]) -> Label | None:
        """Return the label of `x`; the caller holds the lock."""
        answers = self.state.answers
        return answers.label(answers.decide(made_of(self.state, x))[0])


def _unknown(x: Mapping[Any, Any]) -> float:
    return math.nan


class _OwnThread(Pace):
    """The pace of a thread that has nothing else to do: all work is done at once, in it."""

    def __init__(self) -> None:
        self.few = self.most_events = sys.maxsize

    def note(self, size: int, took_s: float) -> None:
        """Change nothing."""


class Tail(LogFollower):
    """The way of a `SharedReplica` along a log that is only read."""

    replica_kind = SharedReplica
    replica: SharedReplica

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.log = LogReader(self.connection, self.keys)
        self.pace = _OwnThread()


class FollowedModel(LiveModel):
    """A live model that reads, folds, and appends on request; it writes nothing else."""

    follower_kind = Tail
    _follower: Tail

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.stop_saving()

    @property
    def tail(self) -> Tail:
        """The part that moves its replica along the log."""
        return self._follower


def made_of(state: ModelState, x: Mapping[Any, Any]) -> Features:
    """Return the features that the learner of a state gets."""
    if state.pipeline is not None:
        x = as_sent(state, x)
    elif not state.can_reject_features:
        return x
    return state.made_of(x)


def as_sent(state: ModelState, x: Mapping[Any, Any]) -> Features:
    """Return features as the service reads them from JSON."""
    mixed = state.accepts_non_numeric
    try:
        question = encode_question(present(x, not mixed), flags_are_numbers=not mixed)
        return parse_questions(question.json, 1, mixed)[0][0].x
    except (Invalid, Unprocessable) as error:
        fault = error.errors[0]
        raise hinged.InvalidEvent(fault.field, fault.reason) from None
