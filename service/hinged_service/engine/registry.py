"""The models of one worker: found, opened, kept while in use, forgotten."""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
import secrets
from collections import OrderedDict
from collections.abc import Iterator

from hinged_service.engine.aliases import Aliases
from hinged_service.engine.auto_promotion import Switching
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.lost_entries import recovered
from hinged_service.engine.parked_models import ParkedModels
from hinged_service.errors import ModelGone, NotFound, SetAside, Unavailable
from hinged_service.model.index_entry import Alias, IndexEntry
from hinged_service.server.memory import give_back
from hinged_service.server.shutdown import Stopping
from hinged_service.settings import Settings
from hinged_service.store import aliases, index, snapshot_reader
from hinged_service.store.connection import Connection
from hinged_service.store.keys import StreamKeys
from hinged_service.store.snapshot_reader import Opened
from hinged_service.tasks import cancel
from hinged_service.wire.progress import OnProgress, Progress, no_progress

__all__ = ["ModelRegistry"]

logger = logging.getLogger(__name__)

_LARGE_BYTES = 16 * 2**20
_GIVE_BACK_S = 1.0
_ASIDE_S = 5.0
_REPORT_S = 0.1
_SAVING_S = 10.0
"""Longest that a worker that stops saves its models, in seconds."""


class ModelRegistry:
    """The worker's models, the least recently used ones forgotten first.

    Attributes
    ----------
    aliases
        The aliases as this worker knows them.
    stopping
        True once the worker was asked to stop.

    """

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self.connection = connection
        self._settings = settings
        self._changes = connection.observer.changes
        self._producer = secrets.token_hex(8)
        self._sequence = itertools.count(1)
        self._live: OrderedDict[str, LiveModel] = OrderedDict()
        self._parked = ParkedModels(settings.max_parked_bytes)
        self.aliases = Aliases(
            connection,
            settings.max_staleness_ms / 1000,
            settings.max_models,
            settings.max_replicas,
        )
        self._opening: dict[str, asyncio.Task[LiveModel]] = {}
        self._loaded: dict[str, Progress] = {}
        self._aside: dict[str, tuple[SetAside, float]] = {}
        self._switching = Switching(self.aliases, self.entries, self.open)
        self.stopping = Stopping()

    async def aclose(self) -> None:
        """Finish accepted calls, save every model."""
        await self._switching.aclose()
        saving = {asyncio.create_task(live_model.aclose()) for live_model in self._live.values()}
        if not saving:
            return
        done, late = await asyncio.wait(saving, timeout=_SAVING_S)
        if late:
            logger.warning("%d models are not saved; their logs have everything", len(late))
        await cancel(*late)
        for task in done:
            task.result()

    def live(self, name: str) -> LiveModel | None:
        """Return the model if it is open or parked here; the fast way of the hot calls."""
        live_model = self._live.get(name)
        if live_model is None:
            return self._unparked(name)
        if live_model.status.ended:
            return None
        self._live.move_to_end(name)
        return live_model

    def _unparked(self, name: str) -> LiveModel | None:
        """Open a parked model, `None` if there is none, or if work on it goes on."""
        parked = self._parked.take(name)
        if parked is None:
            return None
        live_model = parked.model()
        if live_model is None and parked.writer() is None:
            live_model = LiveModel.unparked(
                *(self.connection, self._settings, name, parked, self._producer, self._sequence)
            )
        if live_model is None or live_model.status.ended:
            return None
        self._live[name] = live_model
        self._forget_some()
        return live_model

    @property
    def open_count(self) -> int:
        """Number of models that are open here."""
        return len(self._live)

    @property
    def aside_count(self) -> int:
        """Number of models that were set aside in the minute before the last request for it."""
        now_s = asyncio.get_running_loop().time()
        return sum(now_s < until_s for _, until_s in self._aside.values())

    def recent(self) -> Iterator[LiveModel]:
        """Return the models that are open here, the last used ones first."""
        return reversed(self._live.values())

    async def open(self, name: str, on_progress: OnProgress = no_progress) -> LiveModel:
        """Return a model by its name or an alias, loaded if need be.

        `on_progress` reports the weights that are loaded, until it raises.

        Raises
        ------
        NotFound
            There is no such model.
        SetAside, Unavailable
            This worker cannot serve it now.

        """
        name = self.aliases.fresh(name) or name
        live_model = self.live(name)
        if live_model is not None:
            return live_model
        opening = self._opening_of(name)
        while on_progress is not no_progress and not opening.done():  # others may wait for it, too
            await asyncio.wait([opening], timeout=_REPORT_S)
            if name in self._loaded:
                on_progress(self._loaded[name])
        return await asyncio.shield(opening)

    def open_soon(self, name: str) -> None:
        """Start to open a model, so that it catches up before the first call."""
        self._opening_of(name)

    def _opening_of(self, name: str) -> asyncio.Task[LiveModel]:
        task = self._opening.get(name)
        if task is None:
            task = self._opening[name] = asyncio.create_task(self._load(name))
            task.add_done_callback(lambda done: self._opened(name, done))
        return task

    def _opened(self, name: str, task: asyncio.Task[LiveModel]) -> None:
        del self._opening[name]
        self._loaded.pop(name, None)
        if not task.cancelled():
            task.exception()  # read: the callers that waited have it

    def _note_loaded(self, name: str, read: Progress) -> None:
        self._loaded[name] = Progress("load", read.done, read.total)

    async def _load(self, name: str) -> LiveModel:
        on_progress = functools.partial(self._note_loaded, name)
        try:
            await self.connection.ensure_checked()
            if (meant := await self.aliases.again(name)) is not None:
                return await self.open(meant, on_progress)
            entry, opened = await self._read(name)
            if isinstance(entry, Alias):
                return await self.open(await self.aliases.look_up(name, entry), on_progress)
            if entry is None:
                entry = await recovered(self.connection, name)
        except (SetAside, Unavailable):  # an alias goes on pointing to its model
            live_model = self.live(self.aliases.last(name) or name)
            if live_model is None:
                raise
            return live_model
        if entry is None or entry.deleting or entry.base is None:
            self._live.pop(name, None)
            self._parked.take(name)
            raise NotFound(f"There is no model {name!r}. Create it with PUT /v1/models/{name}.")
        now_s = asyncio.get_running_loop().time()
        self._aside = {uid: why for uid, why in self._aside.items() if now_s < why[1]}
        if entry.uid in self._aside:
            reason = self._aside[entry.uid][0]
            raise SetAside(reason.detail, reason.errors, retry_after_s=60)
        try:
            live_model = await LiveModel.open(
                *(self.connection, self._settings, name, entry),
                *(self._producer, self._sequence, opened, on_progress),
            )
        except SetAside as error:
            self._aside[entry.uid] = (error, now_s + _ASIDE_S)
            self._changes.enter(
                ("aside", entry.uid),
                logger,
                "model %s is set aside: %s",
                name,
                error.detail,
                level=logging.ERROR,
                extra={"model": name},
            )
            raise
        except ModelGone:
            raise NotFound(
                f"The model {name!r} is not on its stream any more: it is being deleted, or Redis "
                "lost it. Then restore Redis from a backup, or delete it and create it again."
            ) from None
        self._live[name] = live_model
        self._switching.watch_drift(name, live_model)
        self._forget_some()
        return live_model

    async def _read(self, name: str) -> tuple[IndexEntry | Alias | None, Opened | None]:
        """Return the present index entry, and the model if it is small.

        If the entry is what it was, one round trip has both.
        """
        entry: IndexEntry | Alias | None = index.cached_entry(self.connection, name)
        if entry is None:
            entry = await index.find(self.connection, name)
        if not isinstance(entry, IndexEntry) or entry.deleting or entry.base is None:
            return entry, None
        keys, most = StreamKeys(entry.stream).model(entry.uid), self._settings.reply_bytes
        stored, opened = await snapshot_reader.open_small(
            self.connection, name, keys, entry.base, most
        )
        found = index.read(self.connection, name, stored)
        return found, opened if found is entry else None

    def _forget_some(self) -> None:
        excess = len(self._live) - self._settings.max_replicas
        if excess <= 0:
            return
        idle = ((name, a) for name, a in itertools.islice(self._live.items(), 64) if a.idle)
        for name, live_model in list(itertools.islice(idle, excess)):
            if not live_model.save_before_leaving():  # else it goes when it is saved
                self._park(name, self._live.pop(name))

    def _park(self, name: str, dropped: LiveModel) -> None:
        parked = dropped.parked()
        if parked is None:
            self._parked.take(name)
            self._freed(dropped)
        else:
            self._parked.put(name, parked)

    @staticmethod
    def _freed(dropped: LiveModel) -> None:
        """Give the memory of a large model back soon, once no call uses it any more."""
        if dropped.away or dropped.state.stored_bytes() > _LARGE_BYTES:
            asyncio.get_running_loop().call_later(_GIVE_BACK_S, give_back)

    def forget(self, name: str, live_model: LiveModel | None = None) -> None:
        """Drop a model that turned out to be gone; without `live_model` any of that name."""
        if live_model is None or self._live.get(name) is live_model:
            dropped = self._live.pop(name, None)
            self._parked.take(name)
            if dropped is not None:
                dropped.stop_saving()
                self._freed(dropped)

    def try_again(self, uid: str) -> None:
        """Load a model at its next use even if it was set aside a moment ago."""
        self._aside.pop(uid, None)

    async def entries(self) -> dict[str, IndexEntry]:
        """Return the index entries of all models, without those being created or deleted."""
        found = (await index.index(self.connection)).models
        return {n: e for n, e in sorted(found.items()) if e.base is not None and not e.deleting}

    async def overview(self) -> tuple[dict[str, IndexEntry], dict[str, tuple[str, str | None]]]:
        """Return the models by name, and by alias its stream and the model that it points to."""
        found = await index.index(self.connection)
        names = {e.uid: n for n, e in found.models.items() if not e.deleting}
        meaning: dict[str, tuple[str, str | None]] = {}
        for stream in sorted(set(found.aliases.values())):
            uids = await aliases.of_stream(self.connection, StreamKeys(stream))
            for alias in sorted(a for a, on in found.aliases.items() if on == stream):
                meaning[alias] = stream, names.get(uids.get(alias, ""))
        return await self.entries(), meaning
