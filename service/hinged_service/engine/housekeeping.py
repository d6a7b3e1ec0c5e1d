"""The background task of a worker: saves quiet models, finishes the work of dead workers.

It also looks at Redis now and then: its configuration may change while it runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import random
from collections import defaultdict
from collections.abc import Mapping

from hinged_service.engine.lifecycle import ModelLifecycle
from hinged_service.engine.lost_entries import put_back
from hinged_service.engine.registry import ModelRegistry
from hinged_service.errors import Conflict, ModelGone, NotFound, ServiceError, SetAside
from hinged_service.model.index_entry import IndexEntry
from hinged_service.settings import Settings
from hinged_service.store import followers, index, pending_predictions
from hinged_service.store.keys import StreamKeys
from hinged_service.tasks import cancel
from hinged_service.wire.codec import DamagedState

__all__ = ["Housekeeping"]

logger = logging.getLogger(__name__)

_SWEEP_EVERY = 20  # rounds: what sweeps look for is rare, and each reads all of the index
_SHARE = 0.1
"""The share of the time that rounds may take, and that sweeps may: of many models above all."""
_DICE = random.Random()  # noqa: S311 - spreads workers; the global one is its user's
_NAMES_LOGGED = 20
_MODELS_AT_ONCE = 50
"""Models checked within one turn of the loop."""
_LONGEST_PAUSE_S = 5.0
"""Longest that a round pauses for the time that it took, which other work may have had."""
_STREAMS_AT_ONCE = 20
"""Streams read in one round trip."""
_WATCH_S = 5.0
"""Time between two looks at the server's policy, persistence and replication, in seconds."""


class Housekeeping:
    """The worker's one background task, and its sweeps over all streams."""

    def __init__(
        self, registry: ModelRegistry, lifecycle: ModelLifecycle, settings: Settings
    ) -> None:
        self._registry = registry
        self._lifecycle = lifecycle
        self._connection = registry.connection
        self._settings = settings
        self._changes = registry.connection.observer.changes
        self._orphans: set[str] = set()
        self._half_made: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the background task."""
        self._task = asyncio.create_task(self._look_after())

    async def aclose(self) -> None:
        """Stop the background task."""
        await cancel(self._task)

    async def _look_after(self) -> None:
        pause_s = self._settings.housekeeping_ms / 1000
        loop, due_s, took_s = asyncio.get_running_loop(), 0.0, 0.0
        watch_s = loop.time() + _WATCH_S
        for turn in itertools.count(1):
            longer_s = min(took_s / _SHARE, _LONGEST_PAUSE_S)
            await asyncio.sleep(max(pause_s, longer_s) * _DICE.uniform(0.8, 1.2))
            began_s = loop.time()
            # A model saves as it learns; one that is not used any more has only this.
            for number, live_model in enumerate(list(self._registry.recent()), 1):
                live_model.save_if_due()
                live_model.delayed.expire_soon()
                if number % _MODELS_AT_ONCE == 0:
                    await asyncio.sleep(0)
            took_s, began_s = loop.time() - began_s, loop.time()
            if began_s >= watch_s:
                watch_s = began_s + _WATCH_S
                with contextlib.suppress(ServiceError):  # logged there
                    await self._connection.check_again()
            if turn % _SWEEP_EVERY == 0 and began_s >= due_s:
                try:
                    await self.sweep()
                    due_s = began_s + (loop.time() - began_s) / _SHARE
                except ServiceError:
                    continue  # Redis is away; the next sweep finds the same
                except Exception as error:  # noqa: BLE001 - logged there; the next may go well
                    self._changes.enter(
                        "sweep",
                        logger,
                        "housekeeping fails: %s",
                        type(error).__name__,
                        level=logging.ERROR,
                        exc_info=True,
                    )
                else:
                    self._changes.leave("sweep", logger, "housekeeping works again")

    async def sweep(self) -> None:
        """Finish the work of dead workers, and advance followers that would hold the log."""
        # Before the index is read: a model made meanwhile is not in it, but is no model gone.
        reported = self._connection.observer.reported_models()
        found, _, unreadable = await index.index(self._connection)
        half_made = {entry.uid for entry in found.values() if entry.base is None}
        by_stream: dict[str, dict[str, IndexEntry]] = defaultdict(dict)
        for name, entry in found.items():
            by_stream[entry.stream][name] = entry
        unnamed: set[str] = set()
        streams = list(by_stream)
        for first in range(0, len(streams), _STREAMS_AT_ONCE):
            several = streams[first : first + _STREAMS_AT_ONCE]
            unnamed |= await self._sweep_streams({one: by_stream[one] for one in several})
        if unreadable:  # their followers may be among the others: remove none
            names = ", ".join(sorted(unreadable)[:_NAMES_LOGGED])
            text = "%d index entries cannot be read here: %s"
            self._changes.enter("index", logger, text, len(unreadable), names)
            unnamed.clear()
        else:
            self._changes.leave("index", logger, "all index entries can be read again")
            self._connection.observer.note_index(
                reported, {entry.uid for entry in found.values()}, set(found)
            )
        self._orphans, self._half_made = unnamed, half_made

    async def _sweep_streams(self, streams: Mapping[str, Mapping[str, IndexEntry]]) -> set[str]:
        """Sweep streams that are read together; one that is damaged keeps no other from it.

        Returns
        -------
        The followers without a name.

        """
        named: dict[str, dict[str, str]] = {}
        damaged: dict[str, DamagedState] = {}
        unnamed: set[str] = set()
        for stream, entries in streams.items():
            try:
                if found := await self._finish(entries):
                    named[stream] = found
            except DamagedState as error:
                damaged[stream] = error
        each = [StreamKeys(stream) for stream in named]
        for keys, overview in zip(
            each, await followers.overviews(self._connection, each), strict=True
        ):
            entries = streams[keys.stream]
            try:
                unnamed |= await self._sweep_stream(keys, overview, named[keys.stream], entries)
            except DamagedState as error:
                damaged[keys.stream] = error
        for stream in streams:
            if stream in damaged:
                self._changes.enter(
                    ("stream", stream),
                    logger,
                    "stream %s is damaged: %s",
                    stream,
                    damaged[stream],
                    level=logging.ERROR,
                )
            else:
                self._changes.leave(("stream", stream), logger, "stream %s is whole again", stream)
        return unnamed

    async def _finish(self, entries: Mapping[str, IndexEntry]) -> dict[str, str]:
        """Finish the work begun on the models of a stream.

        A model that starts with a state and was not half made at the sweep before is left alone:
        the state may be on its way.

        Returns
        -------
        The models that remain: uid to name.

        """
        named: dict[str, str] = {}
        for name, entry in entries.items():
            if entry.deleting:
                await self._lifecycle.finish_deletion(name, entry)
                continue
            is_left = entry.origin is None or entry.uid in self._half_made
            if entry.base is None and is_left:
                with contextlib.suppress(Conflict, NotFound):  # then it is undone
                    await self._lifecycle.finish_creation(name, entry)
            named[entry.uid] = name
        return named

    async def _sweep_stream(
        self,
        keys: StreamKeys,
        overview: followers.Overview | DamagedState,
        named: Mapping[str, str],
        entries: Mapping[str, IndexEntry],
    ) -> set[str]:
        """Give up late predictions of a stream, and remove followers without a name in two sweeps.

        Returns
        -------
        The followers without a name now.

        """
        if isinstance(overview, DamagedState):
            raise overview
        if overview.predicts:
            # Open models do that in each round; a stream may have none open anywhere.
            await pending_predictions.retire(self._connection, keys)
        following = overview.positions.keys()
        # The index was read before: a follower without a name may be a model just made, so it
        # is removed only if the sweep before found no name for it either.
        unnamed = following - named.keys()
        unnamed -= await self._note_and_find(keys, overview, named, entries)
        for uid in self._orphans & unnamed:
            await followers.delete(self._connection, keys.model(uid))
        if len(following) > 1:
            await self._advance_laggards(keys, {u: named[u] for u in following if u in named})
        return unnamed

    async def _note_and_find(
        self,
        keys: StreamKeys,
        overview: followers.Overview,
        named: Mapping[str, str],
        entries: Mapping[str, IndexEntry],
    ) -> set[str]:
        """Note on the stream the entries it does not have; put back those that the index lost.

        Returns
        -------
        The followers that the stream notes.

        """
        following, notes = overview.positions.keys(), overview.notes
        for uid in following & named.keys() - notes.keys():  # of a model that is older than notes
            entry = entries[named[uid]]
            if entry.base is not None:
                text = entry.dumps()
                await followers.note_entry(self._connection, keys.model(uid), named[uid], text)
        lost = following & notes.keys() - named.keys()
        for uid in lost:
            name, text = notes[uid]
            if await put_back(self._connection, name, text) is not None:
                continue
            try:
                found = await index.find(self._connection, name)
            except SetAside:  # the entry cannot be read here: it may be this model's
                continue
            if not isinstance(found, IndexEntry) or found.uid != uid:
                self._changes.enter(
                    ("unnamed", uid),
                    logger,
                    "stream %s has a model %s that the index lost, and the name is taken or the "
                    "note damaged; the log does not wait for it",
                    keys.stream,
                    name,
                    level=logging.ERROR,
                )
                await followers.release(self._connection, keys, uid)
        return lost

    async def _advance_laggards(self, keys: StreamKeys, named: dict[str, str]) -> None:
        lag = await followers.lag_bytes(self._connection, keys)
        kept = (await followers.retention(self._connection, keys)).bytes
        limit = self._settings.retention_bytes if kept is None else kept
        for uid, name in named.items():
            # At half, so that the model has moved on before the log reaches its bound.
            if lag.get(uid, 0) > limit // 2:
                try:
                    live_model = await self._registry.open(name)
                    if not live_model.status.caught_up:  # it reads and saves by itself
                        live_model.freshness.resume_catch_up()
                        continue
                    await live_model.freshness.read()
                    await live_model.save()
                    self._changes.leave(("laggard", uid), logger)
                except (NotFound, ModelGone):
                    continue  # deleted meanwhile
                except SetAside:
                    self._changes.enter(
                        ("laggard", uid),
                        logger,
                        "model %s cannot advance; the log no longer waits for it",
                        name,
                        extra={"model": name},
                    )
                    await followers.release(self._connection, keys, uid)
