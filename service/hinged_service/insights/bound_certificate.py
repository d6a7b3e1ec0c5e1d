"""The bound certificate: a window of a model's past, folded again, against its theorem.

Nothing is kept for it while a model learns. The window begins where the model's
state is stored, its end must be the live model bit for bit, and what the learner
was taught in between is set against the bounds of `hinged.bounds`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import hinged
from hinged.accounting import Accounting
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.replica import Replica
from hinged_service.errors import Conflict, ModelGone, NotFound
from hinged_service.insights.bound_search import (
    Bound,
    Covered,
    Row,
    general_bound,
    linear_of,
    norm,
    zero_bounds,
)
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.river_support.learners import Features, Label
from hinged_service.settings import Settings
from hinged_service.store import checkpoints
from hinged_service.store.connection import Connection
from hinged_service.store.log import EventLog
from hinged_service.store.log_types import Entry
from hinged_service.store.snapshot import Loaded
from hinged_service.wire.codec import DamagedState, OtherVersion
from hinged_service.wire.position import Position

__all__ = ["Certificate", "certify"]

_ROUNDING = 1e-9
_ADVICE = "Make a checkpoint (POST …/checkpoints): the next window can begin there."


class Certificate(NamedTuple):
    """The updates of a model in a window, and those that the theorem allows.

    Parameters
    ----------
    start, end
        The positions before the first and after the last entry of the window.
    events, updates, mistakes
        Events of weight 1 that were learned, those that moved the weights, and those
        whose label was predicted wrong just before, by what the learner was taught.
    radius
        The largest norm of such an event, its constant included.
    margin, learning_rate
        The learner's.
    start_norm
        Norm of the weights at the window's start, the intercept included.
    bounds
        By name.
    holds
        Whether the updates stay within all of them.
    notes
        Why the window starts where it does, and why a bound is missing.

    """

    start: str
    end: str
    events: int
    updates: int
    mistakes: int
    radius: float
    margin: float
    learning_rate: float
    start_norm: float
    bounds: dict[str, Bound]
    holds: bool
    notes: list[str]


@dataclass(slots=True)
class _Segment:
    """Consecutive events after a stored state."""

    position: Position
    start: Covered
    rows: list[Row] = field(default_factory=list)
    updates: list[Row] = field(default_factory=list)
    mistakes: int = 0


class _Recorder:
    """Fold entries into a scratch replica and keep the latest events of its learner.

    Parameters
    ----------
    replica
        The scratch replica.
    spec
        The model's spec.
    most
        Events to keep at most, up to one entry more.

    """

    def __init__(self, replica: Replica, spec: ModelSpec, most: int) -> None:
        self.replica = replica
        self._spec = spec
        self._half = max(1, most // 2)
        self.note: str | None = None
        self.segments: list[_Segment] = []
        self._spoiled: str | None = None
        self._begin()

    def fold(self, entries: Sequence[Entry]) -> None:
        """Fold entries that restore no checkpoint."""
        for entry in entries:
            self.replica.fold_entry(entry)
            self._close_entry()

    def restore(self, entry: Entry, state: Loaded | None) -> None:
        """Fold an entry that restores a checkpoint."""
        self.replica.fold_restore(entry, self.replica.restored(state))
        self._close_entry()

    def _close_entry(self) -> None:
        """Begin a new segment if the model changed by other means, or the segment is full."""
        if self._learner is not self.replica.state.learner:
            self._spoiled = "a command or a drift changed the model"
        if self._spoiled is not None:
            self.note = f"The window begins late: {self._spoiled} before."
            self._spoiled = None
            self.segments.clear()
            self._begin()
        elif len(self.segments[-1].rows) >= self._half:
            if len(self.segments) > 1:
                self.note = "The window begins late: max_bound_events are enough."
                del self.segments[0]
            self._begin()

    def _begin(self) -> None:
        state = self.replica.state
        state.observe(self._record)
        self._learner = state.learner
        self._left_out = self._left_out_so_far()
        self.segments.append(_Segment(self.replica.position, _copy(self._spec, state)))

    def _left_out_so_far(self) -> tuple[int, int]:
        account = self.replica.state.learner.accounting
        return account.ignored, account.overflows

    def _record(self, x: Features, y: Label, w: float, outcome: hinged.Outcome) -> None:
        if w == 0.0:
            return
        left_out = self._left_out_so_far()
        if w != 1.0:
            self._spoiled = "an event had a weight other than 1"
        elif left_out != self._left_out:
            self._spoiled = "an update left out features beyond max_features, or overflowed"
        self._left_out = left_out
        row = cast("Row", (dict(x), y))
        segment = self.segments[-1]
        segment.rows.append(row)
        segment.mistakes += outcome.mistake
        if outcome.updated:
            segment.updates.append(row)


def _copy(spec: ModelSpec, state: ModelState) -> Covered:
    """Return the learner in its present state, its account closed."""
    learner = cast("Covered", spec.configured(state.configured).build(spec.max_features))
    learner.set_state(state.learner.get_state())
    learner.accounting = Accounting()
    return learner


def _fingerprint(state: ModelState) -> tuple[Any, ...]:
    """Return a value that differs between two states of a model."""
    scalars: dict[str, Any] = state.learner.get_state()["scalars"]
    return state.events, state.mistakes, state.rejected, dict(scalars)


async def certify(connection: Connection, settings: Settings, live_model: LiveModel) -> Certificate:
    """Return the certificate of a model in its present state.

    Parameters
    ----------
    connection, settings
        The worker's.
    live_model
        The model, fresh.

    Raises
    ------
    Conflict
        No theorem covers the learner, or its past is not in the log any more.
    ModelGone, Unavailable
        As for reading the log.

    """
    state, end = await live_model.at_rest(), live_model.position
    learner, wanted = state.learner, _fingerprint(state)
    if not isinstance(learner, Covered):
        raise Conflict(
            "The theorem is about the perceptron, the averaged and the pocket perceptron; no bound "
            f"is known for {live_model.entry.spec.learner.type}."
        )
    if not isinstance(learner.learning_rate, float):
        raise Conflict("No bound holds for a learning rate that is a schedule.")
    if isinstance(learner.initial_weights, hinged.RandomWeights):
        raise Conflict("No bound is known for random initial weights of any name.")
    deadline_s = time.monotonic() + settings.bound_timeout_ms / 1000
    for loaded in await _starts(connection, settings, live_model, state.events):
        recorder = await _fold_again(connection, settings, live_model, loaded, end, deadline_s)
        if recorder is not None and _fingerprint(recorder.replica.state) == wanted:
            search_s = time.monotonic() + settings.bound_timeout_ms / 1000
            return await asyncio.to_thread(_certificate, recorder, str(end), search_s)
    raise Conflict(f"The log does not reach back to a state of the model that is known. {_ADVICE}")


async def _starts(
    connection: Connection, settings: Settings, live_model: LiveModel, events: int
) -> list[Callable[[], Any]]:
    """Return loaders of the states that a window may begin with, the best one first.

    Best is the latest that has enough events after it; then the earliest.
    """
    entry, keys, chunk = live_model.entry, live_model.keys.on, settings.snapshot_chunk
    base = Position.parse(entry.base or "")

    async def from_base() -> Loaded:
        if entry.origin is None:
            return Loaded(base, None, {})
        return replace(await checkpoints.read(connection, keys, entry.origin, chunk), position=base)

    found: list[tuple[int, Callable[[], Any]]] = [(0, from_base)]
    for kept in await live_model.checkpoints.listed():
        if kept.model == live_model.name and kept.spec == entry.spec and kept.position is not None:

            async def from_checkpoint(uid: str = kept.uid) -> Loaded:
                return await checkpoints.read(connection, keys, uid, chunk)

            found.append((kept.events, from_checkpoint))
    enough = events - settings.max_bound_events
    late = sorted((f for f in found if f[0] <= enough), key=lambda f: -f[0])
    early = sorted((f for f in found if f[0] > enough), key=lambda f: f[0])
    return [load for _, load in (*late, *early)]


async def _fold_again(
    connection: Connection,
    settings: Settings,
    live_model: LiveModel,
    load: Callable[[], Any],
    end: Position,
    deadline_s: float,
) -> _Recorder | None:
    """Fold from a stored state to a position; `None` if the log does not lead there from it."""
    entry = live_model.entry
    try:
        loaded = await load()
        if loaded.state is not None:
            loaded = replace(loaded, state=replace(loaded.state, marks=[]))
        replica = await asyncio.to_thread(Replica, entry.uid, entry.fold, loaded)
    except (NotFound, DamagedState, OtherVersion, hinged.InvalidState):
        return None
    recorder = await asyncio.to_thread(_Recorder, replica, entry.spec, settings.max_bound_events)
    log = EventLog(connection, live_model.keys)
    while replica.position.order < end.order:
        size = min(settings.reply_bytes, 2**20)
        reply = await log.catch_up(replica.position, size)
        if reply.kind == "gone":
            raise ModelGone
        if reply.kind == "lost" or not reply.entries:
            return None
        page = [found for found in reply.entries if found.position.order <= end.order]
        if not await _fold_page(connection, settings, live_model, recorder, page):
            return None
        if time.monotonic() > deadline_s:
            raise Conflict(f"Folding the log again takes longer than bound_timeout_ms. {_ADVICE}")
    return recorder if replica.position == end else None


async def _fold_page(
    connection: Connection,
    settings: Settings,
    live_model: LiveModel,
    recorder: _Recorder,
    page: list[Entry],
) -> bool:
    """Fold entries; `False` if one restores a checkpoint that is there no more."""
    plain: list[Entry] = []
    for entry in page:
        command = recorder.replica.command_in(entry) if entry.command is not None else None
        if command is None or command.get("do") != "restore":
            plain.append(entry)
            continue
        await asyncio.to_thread(recorder.fold, plain)
        plain = []
        try:
            uid, chunk = str(command.get("checkpoint")), settings.snapshot_chunk
            state = await checkpoints.read(connection, live_model.keys.on, uid, chunk)
        except (NotFound, DamagedState, OtherVersion):
            return False
        await asyncio.to_thread(recorder.restore, entry, state)
    await asyncio.to_thread(recorder.fold, plain)
    return True


def _certificate(recorder: _Recorder, end: str, deadline_s: float) -> Certificate:
    segments = recorder.segments
    start = segments[0].start
    rows = [row for segment in segments for row in segment.rows]
    updates = [row for segment in segments for row in segment.updates]
    notes = [] if recorder.note is None else [recorder.note]
    weights, intercept = linear_of(start)
    gamma = start.margin if isinstance(start, hinged.Perceptron) else 0.0
    constant = 1.0 if start.fit_intercept else 0.0
    now = linear_of(cast("Covered", recorder.replica.state.learner))
    found: dict[str, Bound] = {}
    try:
        half_s = (time.monotonic() + deadline_s) / 2
        found["general"] = general_bound(start, updates, now, half_s)
    except hinged.InvalidParameter as error:
        raise Conflict(f"The theorem does not cover this window: {error}.") from error
    late = time.monotonic() > half_s
    if gamma > 0.0:
        notes.append("hinge, sharp and separable hold for margin 0 only.")
    elif any(weights.values()) or intercept != 0.0:
        notes.append("hinge, sharp and separable hold from zero weights only.")
    else:
        found |= zero_bounds(rows, now, start.fit_intercept, deadline_s)
        late = late or time.monotonic() > deadline_s
    if late:
        notes.append("There may be lower bounds: bound_timeout_ms ended the search for them.")
    most = min(bound.value for bound in found.values())
    return Certificate(
        start=str(segments[0].position),
        end=end,
        events=len(rows),
        updates=len(updates),
        mistakes=sum(segment.mistakes for segment in segments),
        radius=max((norm(x, constant) for x, _ in rows), default=0.0),
        margin=gamma,
        learning_rate=cast("float", start.learning_rate),
        start_norm=norm(weights, intercept),
        bounds=found,
        holds=len(updates) <= most * (1.0 + _ROUNDING),
        notes=notes,
    )
