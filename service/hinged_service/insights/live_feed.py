"""The live feed: what happens to a model, told to everybody who watches it on this worker.

One hub per watched name keeps the model fresh and encodes what is folded once
for all of its readers. Nobody waits for a reader: one that is too slow is
dropped. What comes faster than people read is sampled.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any

import msgspec
from fastapi.sse import format_sse_event

import hinged
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.registry import ModelRegistry
from hinged_service.engine.replica import AppliedEntry
from hinged_service.engine.top_weights import largest
from hinged_service.errors import Busy, ModelGone, NotFound, ServiceError, SetAside, Unavailable
from hinged_service.model.state import ModelState
from hinged_service.settings import Settings
from hinged_service.wire.events import Event

__all__ = ["Feeds", "Reader"]

logger = logging.getLogger(__name__)

_TICK_S = 0.2
_TICKS_PER_SECOND = 5
_OUTCOMES_PER_TICK = 20
_FEATURE_BYTES_PER_TICK = 2**18
_MARKS_PER_TICK = 100
_KEEP_ALIVE_S = 10.0
_TELL_S = 60.0
_READER_CHUNKS = 50
_READER_BYTES = 2**21
_TOP_WEIGHTS = 20
_CLASSES = 20
_MANY_FEATURES = 10_000
_WEIGHING_SHARE = 0.02
"""Of the time at most, so that a model of a million weights does not slow its worker down."""


def _message(event: str, data: Any, position: str | None = None) -> bytes:
    text = msgspec.json.encode(data).decode()
    return format_sse_event(event=event, data_str=text, id=position)


class Reader:
    """One who watches: a bounded queue of encoded messages.

    Parameters
    ----------
    hub
        The hub that fills the queue.
    features
        Whether outcomes come with the features of their events.
    weights
        Whether the largest weights are told.

    Attributes
    ----------
    ended
        Whether nothing more will be put into the queue.
    slow
        Set when the reader was dropped because it did not keep up.

    """

    def __init__(self, hub: _Hub, features: bool, weights: bool) -> None:
        self.features = features
        self.weights = weights
        self.ended = False
        self.slow = asyncio.Event()
        self._hub = hub
        self._chunks: deque[bytes] = deque()
        self._bytes = 0
        self._some = asyncio.Event()

    def put(self, chunk: bytes) -> None:
        """Queue a chunk; one too many, and the reader is dropped."""
        if self.ended or not chunk:
            return
        behind = len(self._chunks) >= _READER_CHUNKS or self._bytes > _READER_BYTES
        if behind:
            self._chunks.clear()
            self._bytes = 0
            self._hub.changes.enter(
                ("feed", self._hub.name),
                logger,
                "a reader of the live feed of %s was too slow",
                self._hub.name,
                every_s=_TELL_S,
            )
            self.end("slow")
            self.slow.set()
            return
        self._chunks.append(chunk)
        self._bytes += len(chunk)
        self._some.set()

    def end(self, reason: str) -> None:
        """Queue the last message."""
        if not self.ended:
            self.ended = True
            self._chunks.append(_message("end", {"reason": reason}))
            self._some.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield what is to be sent, comments while there is nothing, until the end."""
        while True:
            while self._chunks:
                chunk = self._chunks.popleft()
                self._bytes = max(0, self._bytes - len(chunk))
                yield chunk
            if self.ended:
                return
            self._some.clear()
            try:
                await asyncio.wait_for(self._some.wait(), _KEEP_ALIVE_S)
            except TimeoutError:
                yield b": still here\n\n"

    def leave(self) -> None:
        """Stop watching; to be called once whatever happened."""
        self.ended = True
        self._chunks.clear()
        self._hub.leave(self)


class _Tick:
    """What was folded since the last tick, encoded."""

    def __init__(self) -> None:
        self.shown = self.left_out = 0
        self._plain: list[bytes] = []
        self._full: list[bytes] = []
        self._full_bytes = 0
        self._marks = 0

    def add(self, event: str, data: Any, position: str) -> None:
        """Add a message for all."""
        self._marks += 1
        if self._marks <= _MARKS_PER_TICK:
            message = _message(event, data, position)
            self._plain.append(message)
            self._full.append(message)

    def add_outcome(self, data: dict[str, Any], x: Mapping[str, Any], position: str) -> None:
        """Add an outcome; with its features while there is room for them."""
        self.shown += 1
        self._plain.append(_message("outcome", data, position))
        full = self._plain[-1]
        if self._full_bytes < _FEATURE_BYTES_PER_TICK:
            full = _message("outcome", {**data, "x": x}, position)
            self._full_bytes += len(full)
        self._full.append(full)

    def chunks(self) -> tuple[bytes, bytes]:
        """Return the messages without and with features."""
        if self.left_out:
            data = {"shown": self.shown, "left_out": self.left_out}
            self._plain.append(_message("sample", data))
            self._full.append(self._plain[-1])
        return b"".join(self._plain), b"".join(self._full)


class _Hub:
    """The readers of one name, and the task that feeds them."""

    def __init__(self, feeds: Feeds, name: str, live_model: LiveModel) -> None:
        self._feeds = feeds
        self.changes = feeds.registry.connection.observer.changes
        self.name = name
        self._readers: list[Reader] = []
        self._tick = _Tick()
        self._last = (0, 0)
        self._heard = 0
        self._heard_at_s = asyncio.get_running_loop().time()
        self._weights = b""
        self._weighed = ("", 0.0)
        self._appender = live_model
        self._over = False
        self._watch(live_model)
        self._task = asyncio.create_task(self._run())

    def join(self, features: bool, weights: bool) -> Reader:
        """Return a new reader, who is told at once how things stand."""
        reader = Reader(self, features, weights)
        self._readers.append(reader)
        reader.put(self._model() + self._metrics(None) + (self._weights if weights else b""))
        return reader

    def leave(self, reader: Reader) -> None:
        """Forget a reader; the last one takes the hub with it."""
        if reader in self._readers:
            self._readers.remove(reader)
        if not self._readers:
            self._close()
            self._task.cancel()

    def end(self, reason: str) -> None:
        """Tell all readers that this was it."""
        self._close()
        for reader in self._readers:
            reader.end(reason)

    async def stop(self) -> None:
        """End for a shutdown."""
        self.end("shutdown")
        self._task.cancel()
        await asyncio.wait([self._task])

    def __len__(self) -> int:
        return len(self._readers)

    def _close(self) -> None:
        self._over = True  # an answer that comes in the same moment may swallow the cancel
        self._unwatch()
        self._feeds.forget(self.name, self)

    def _watch(self, live_model: LiveModel) -> None:
        self._appender = live_model
        self._last = live_model.replica.position.order
        live_model.replica.watchers.append(self._hear)

    def _unwatch(self) -> None:
        watchers = self._appender.replica.watchers
        if self._hear in watchers:
            watchers.remove(self._hear)

    def _hear(self, folded: AppliedEntry) -> None:
        """Take note of an entry; this runs on the way of learning."""
        order = folded.entry.position.order
        if order <= self._last:  # folded again by a rebuild
            return
        self._last = order
        tick = self._tick
        if folded.results:
            self._heard += len(folded.results)
            if tick.shown < _OUTCOMES_PER_TICK:
                self._hear_outcomes(folded, str(folded.entry.position))
            else:
                tick.left_out += sum(map(_is_outcome, folded.results))
        if folded.command is None and not folded.detections:
            return
        position = str(folded.entry.position)
        if folded.command is not None:
            command = {k: v for k, v in folded.command.items() if k != "model"}
            tick.add("command", {**command, "position": position, "at_ms": order[0]}, position)
        for detection in folded.detections:
            data = {**detection._asdict(), "position": position, "at_ms": order[0]}
            tick.add("drift", data, position)

    def _hear_outcomes(self, folded: AppliedEntry, position: str) -> None:
        tick, fold = self._tick, self._appender.replica.fold
        for number, result in enumerate(folded.results):
            if not _is_outcome(result):
                continue
            if tick.shown >= _OUTCOMES_PER_TICK:
                tick.left_out += 1
                continue
            event = folded.events[number]
            if event is not None:
                data = _outcome(fold, event, result)
                data |= {"position": position, "number": number}
                data["at_ms"] = folded.entry.position.order[0]
                tick.add_outcome(data, event.x, position)

    async def _run(self) -> None:
        try:
            turn = 0
            while not self._over:
                await asyncio.sleep(_TICK_S)
                turn = (turn + 1) % _TICKS_PER_SECOND
                reason = await self._freshen(look_up=turn == 0)
                self._send(metrics=turn == 0)
                await self._weigh()
                if reason is not None:
                    self.end(reason)
                    return
        except Exception:
            logger.exception("the live feed of %s failed", self.name)
            self.end("failed")

    async def _freshen(self, look_up: bool) -> str | None:
        """Keep the model fresh; return why there is nothing to watch any more, if so."""
        try:
            if look_up or self._appender.status.ended:
                await self._follow()
            await self._appender.refresh_if_stale()
        except (NotFound, ModelGone):
            if self._appender.name == self.name:
                return "deleted"
            self._feeds.registry.forget(self._appender.name, self._appender)
        except SetAside as error:
            return f"set aside: {error.detail}"
        except Unavailable:
            pass  # the metrics tell how stale they are
        except ServiceError as error:
            return error.detail
        return None

    async def _follow(self) -> None:
        """Go on with the model that the name means now.

        Raises
        ------
        NotFound
            There is none, or one made anew.

        """
        found = await self._feeds.registry.open(self.name)
        if found is self._appender or not self._readers:
            return
        same = found.entry.uid == self._appender.entry.uid
        if not same and self._appender.name == self.name:
            raise NotFound("The model was deleted and made anew.")
        last = self._last
        self._unwatch()
        self._watch(found)
        if same:
            self._last = max(last, self._last)
        else:
            self._send(metrics=False)
            self._put_all(self._model())

    def _send(self, metrics: bool) -> None:
        plain, full = self._tick.chunks()
        self._tick = _Tick()
        if metrics:
            now_s = asyncio.get_running_loop().time()
            told = self._metrics(self._heard / (now_s - self._heard_at_s))
            self._heard, self._heard_at_s = 0, now_s
            plain, full = plain + told, full + told
        for reader in tuple(self._readers):
            reader.put(full if reader.features else plain)

    async def _weigh(self) -> None:
        """Tell the largest weights if they may have changed and it is time."""
        loop, position = asyncio.get_running_loop(), str(self._appender.replica.position)
        began_s = loop.time()
        told, due_s = self._weighed
        if told == position or began_s < due_s or not any(r.weights for r in self._readers):
            return
        fold = self._appender.replica.fold
        shown = fold.shown_weights(None)
        if shown is None:
            return
        if fold.feature_count() > _MANY_FEATURES:
            shown = await asyncio.to_thread(largest, shown, _TOP_WEIGHTS)
        else:
            shown = largest(shown, _TOP_WEIGHTS)
        self._weights = _message("weights", {**_few(shown), "position": position})
        now_s = loop.time()
        self._weighed = position, max(began_s + 1.0, now_s + (now_s - began_s) / _WEIGHING_SHARE)
        for reader in tuple(self._readers):
            if reader.weights:
                reader.put(self._weights)

    def _put_all(self, chunk: bytes) -> None:
        for reader in tuple(self._readers):
            reader.put(chunk)

    def _model(self) -> bytes:
        live_model = self._appender
        position = str(live_model.replica.position)
        data = {"name": self.name, "model": live_model.name, "uid": live_model.entry.uid}
        return _message("model", {**data, "position": position}, position)

    def _metrics(self, events_per_s: float | None) -> bytes:
        replica = self._appender.replica
        fold, position = replica.fold, str(replica.position)
        account = fold.learner.accounting
        data = {
            "position": position,
            "at_ms": replica.position.order[0],
            "events": fold.events,
            "judged": fold.judged,
            "mistakes": fold.mistakes,
            "updates": account.updates,
            "hinge_loss": account.hinge_loss,
            "overflows": account.overflows,
            "rejected": fold.rejected,
            "drifts": fold.detected,
            "frozen": fold.frozen,
            "accuracy": fold.accuracy(),
            "metrics": fold.metrics.report() if fold.metrics is not None else {},
            "events_per_s": events_per_s,
            "stale_s": max(0.0, self._appender.age_s()),
            "caught_up": self._appender.status.caught_up,
        }
        return _message("metrics", data, position)


def _few(shown: dict[str, Any]) -> dict[str, Any]:
    """Return the weights of the first classes only, if there are many."""
    classes = shown.get("classes")
    if not isinstance(classes, dict):
        return shown
    return {**shown, "classes": dict(itertools.islice(classes.items(), _CLASSES))}


def _is_outcome(result: Any) -> bool:
    return type(result) is hinged.Outcome or type(result) is tuple


def _outcome(fold: ModelState, event: Event, outcome: Any) -> dict[str, Any]:
    y_pred, score, mistake, updated, hinge_loss = outcome
    data = {
        "id": event.id,
        "y": event.y,
        "w": event.w,
        "y_pred": fold.answers.label(y_pred),
        "score": score,
        "mistake": mistake,
        "updated": updated,
        "hinge_loss": hinge_loss,
    }
    if isinstance(fold.learner, hinged.BinaryLinearClassifier):
        data["margin"] = score if fold.answers.target(event.y) else 0.0 - score
    return data


class Feeds:
    """The live feeds of a worker.

    Parameters
    ----------
    host
        The worker's models.
    settings
        The worker's settings.

    """

    def __init__(self, registry: ModelRegistry, settings: Settings) -> None:
        self.registry = registry
        self._most = settings.max_live_feeds
        self._hubs: dict[str, _Hub] = {}
        self._stopping = False

    def end(self) -> None:
        """End all feeds, and take no further reader."""
        self._stopping = True
        for hub in tuple(self._hubs.values()):
            hub.end("shutdown")

    async def aclose(self) -> None:
        """End all feeds."""
        self._stopping = True
        await asyncio.gather(*(hub.stop() for hub in tuple(self._hubs.values())))

    def watch(
        self, live_model: LiveModel, name: str, features: bool, weights: bool = False
    ) -> Reader:
        """Return a new reader of a model or alias, who has to leave in the end.

        Parameters
        ----------
        appender
            The model as it is open here.
        name
            What was asked for, the name or an alias of it.
        features
            Whether outcomes come with the features of their events.
        weights
            Whether the largest weights are told.

        Raises
        ------
        Busy
            There are too many readers.
        Unavailable
            The worker is stopping.

        """
        if self._stopping:
            raise Unavailable("The worker is stopping; ask another one.", retry_after_s=1)
        if self.open_count >= self._most:
            raise Busy(
                f"{self._most} live feeds are open on this worker, as many as max_live_feeds "
                "allows.",
                retry_after_s=10,
            )
        hub = self._hubs.get(name)
        if hub is None:
            hub = self._hubs[name] = _Hub(self, name, live_model)
        return hub.join(features, weights)

    @property
    def open_count(self) -> int:
        """How many readers there are."""
        return sum(len(hub) for hub in self._hubs.values())

    def forget(self, name: str, hub: _Hub) -> None:
        """Drop a hub that has ended."""
        if self._hubs.get(name) is hub:
            del self._hubs[name]
