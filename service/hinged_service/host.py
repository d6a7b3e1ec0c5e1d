"""All models of one worker: found, opened, kept, created, deleted, looked after."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import secrets
from collections import OrderedDict, defaultdict

from hinged_service.appender import Appender
from hinged_service.codec import DamagedState
from hinged_service.errors import (
    Conflict,
    ModelGone,
    NotFound,
    ServiceError,
    SetAside,
    Unavailable,
)
from hinged_service.keys import StreamKeys
from hinged_service.settings import Settings
from hinged_service.spec import IndexEntry, ModelSpec, same_spec
from hinged_service.store import models
from hinged_service.store.connection import Connection

__all__ = ["Host"]

logger = logging.getLogger(__name__)

_SWEEP_EVERY = 20
_CREATE_ATTEMPTS = 50
_ASIDE_S = 5.0


class Host:
    """The worker's models, the least recently used ones forgotten first.

    Parameters
    ----------
    connection, settings
        The worker's.

    """

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self.connection = connection
        self._settings = settings
        self._producer = secrets.token_hex(8)
        self._sequence = itertools.count(1)
        self._live: OrderedDict[str, Appender] = OrderedDict()
        self._opening: dict[str, asyncio.Task[Appender]] = {}
        self._aside: dict[str, tuple[str, float]] = {}
        self._orphans: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    def start(self) -> None:
        """Start the background task."""
        self._task = asyncio.create_task(self._look_after())

    async def aclose(self) -> None:
        """Stop the background task, finish what was accepted, save every model."""
        self._closing = True  # an answer that comes in the same moment may swallow the cancel
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        live = list(self._live.values())
        await asyncio.gather(*(appender.aclose() for appender in live))

    def live(self, name: str) -> Appender | None:
        """Return the model if it is open here; the fast way of the hot calls."""
        appender = self._live.get(name)
        if appender is None or appender.gone:
            return None
        self._live.move_to_end(name)
        return appender

    async def open(self, name: str) -> Appender:
        """Return a model, loaded if need be.

        Raises
        ------
        NotFound
            There is no such model.
        SetAside, Unavailable
            It cannot be served here and now.

        """
        appender = self.live(name)
        if appender is not None:
            return appender
        task = self._opening.get(name)
        if task is None:
            task = self._opening[name] = asyncio.create_task(self._load(name))
            task.add_done_callback(lambda done: self._opened(name, done))
        return await asyncio.shield(task)

    def _opened(self, name: str, task: asyncio.Task[Appender]) -> None:
        del self._opening[name]
        if not task.cancelled():
            task.exception()  # whoever waited has it

    async def _load(self, name: str) -> Appender:
        await self.connection.ensure_checked()
        entry = await models.find(self.connection, name)
        if entry is None or entry.deleting or entry.base is None:
            self._live.pop(name, None)
            raise NotFound(f"There is no model {name!r}. Create it with PUT /v1/models/{name}.")
        now_s = asyncio.get_running_loop().time()
        self._aside = {uid: why for uid, why in self._aside.items() if now_s < why[1]}
        if entry.uid in self._aside:
            raise SetAside(self._aside[entry.uid][0], retry_after_s=60)
        try:
            appender = await Appender.open(
                self.connection, self._settings, entry, self._producer, self._sequence
            )
        except SetAside as error:
            self._aside[entry.uid] = (error.detail, now_s + _ASIDE_S)
            raise
        except ModelGone:
            raise NotFound(
                f"The model {name!r} is not on its stream any more: it is being deleted, or Redis "
                "lost it. PUT it again to make it anew."
            ) from None
        self._live[name] = appender
        self._forget_some()
        return appender

    def _forget_some(self) -> None:
        excess = len(self._live) - self._settings.max_replicas
        if excess <= 0:
            return
        idle = [name for name, a in itertools.islice(self._live.items(), 64) if a.idle]
        for name in idle[:excess]:
            del self._live[name]

    def forget(self, name: str, appender: Appender) -> None:
        """Drop a model that turned out to be gone."""
        if self._live.get(name) is appender:
            del self._live[name]

    async def create(self, name: str, spec: ModelSpec) -> tuple[IndexEntry, bool]:
        """Create a model, or confirm that it is there.

        Returns
        -------
        Its index entry; whether it is new.

        Raises
        ------
        Conflict
            There is one of that name with another spec.

        """
        spec = spec.on(name)
        for _ in range(_CREATE_ATTEMPTS):
            entry = await models.find(self.connection, name)
            if entry is None:
                entry = IndexEntry(uid=secrets.token_hex(8), stream=spec.stream or name, spec=spec)
                if not await models.swap(self.connection, name, None, entry):
                    continue
                finished = await self._finish_creation(name, entry)
                if finished is not None:
                    return finished, True
                continue
            if entry.deleting:
                await self._finish_deletion(name, entry)
                continue
            if not same_spec(entry.spec, spec):
                raise Conflict(
                    f"There is a model {name!r} with another spec. Choose another name, or delete "
                    "it first."
                )
            finished = await self._finish_creation(name, entry)
            if finished is not None:
                return finished, False
        raise Unavailable("The model is being created and deleted elsewhere.", retry_after_s=1)

    async def _finish_creation(self, name: str, entry: IndexEntry) -> IndexEntry | None:
        """Register the model on its stream; `None` if it was deleted meanwhile."""
        keys = StreamKeys(entry.stream)
        if entry.base is not None:
            if entry.uid in await models.followers(self.connection, keys):
                return entry
            logger.warning("model %s is not on its stream any more; it starts anew", name)
        position = await models.register(
            self.connection,
            keys,
            entry.uid,
            self._settings.seen_s * 1000,
            self._settings.seen_ids,
        )
        finished = entry.with_base(str(position))
        if await models.swap(self.connection, name, entry, finished):
            return finished
        found = await models.find(self.connection, name)
        if found is not None and found.uid == entry.uid and not found.deleting:
            return found
        await models.delete(self.connection, keys.model(entry.uid))
        return None

    async def delete(self, name: str) -> None:
        """Delete a model; no worker can write it back.

        Raises
        ------
        NotFound
            There is no such model.

        """
        while True:
            entry = await models.find(self.connection, name)
            if entry is None:
                raise NotFound(f"There is no model {name!r}.")
            if entry.deleting or await models.swap(
                self.connection, name, entry, entry.as_deleting()
            ):
                break
        await self._finish_deletion(name, entry.as_deleting())
        self._live.pop(name, None)

    async def _finish_deletion(self, name: str, entry: IndexEntry) -> None:
        await models.delete(self.connection, StreamKeys(entry.stream).model(entry.uid))
        await models.swap(self.connection, name, entry, None)

    async def entries(self) -> dict[str, IndexEntry]:
        """Return the index entries of all models that are neither half made nor half gone."""
        found, _ = await models.all_entries(self.connection)
        return {n: e for n, e in sorted(found.items()) if e.base is not None and not e.deleting}

    async def _look_after(self) -> None:
        pause_s = self._settings.housekeeping_ms / 1000
        for turn in itertools.count(1):
            if self._closing:
                return
            await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))  # noqa: S311 - spreads workers
            for appender in list(self._live.values()):
                appender.save_if_due()
            if turn % _SWEEP_EVERY == 0:
                try:
                    await self._sweep()
                except ServiceError:
                    continue  # Redis is away; the next sweep finds the same
                except Exception:
                    logger.exception("housekeeping failed")

    async def _sweep(self) -> None:
        """Finish what a dead worker began, and advance who would hold the log."""
        found, unreadable = await models.all_entries(self.connection)
        by_stream: dict[str, dict[str, str]] = defaultdict(dict)
        for name, entry in found.items():
            if entry.deleting:
                await self._finish_deletion(name, entry)
                continue
            if entry.base is None:
                await self._finish_creation(name, entry)
            by_stream[entry.stream][entry.uid] = name
        unnamed: set[str] = set()
        for stream, named in by_stream.items():
            try:
                unnamed |= await self._sweep_stream(StreamKeys(stream), named)
            except DamagedState as error:
                logger.error("stream %s is damaged: %s", stream, error)  # noqa: TRY400 - it says all
        if unreadable:  # nobody knows which followers are theirs: remove none
            logger.warning("index entries that cannot be read here: %s", ", ".join(unreadable))
            unnamed.clear()
        self._orphans = unnamed

    async def _sweep_stream(self, keys: StreamKeys, named: dict[str, str]) -> set[str]:
        """Remove followers that no name was found for twice; return those without a name now."""
        following = await models.followers(self.connection, keys)
        unnamed = following.keys() - named.keys()
        for uid in self._orphans & unnamed:
            await models.delete(self.connection, keys.model(uid))
        if len(following) > 1:
            await self._advance_laggards(keys, {u: named[u] for u in following if u in named})
        return unnamed

    async def _advance_laggards(self, keys: StreamKeys, named: dict[str, str]) -> None:
        lag = await models.lag_bytes(self.connection, keys)
        for uid, name in named.items():
            if lag.get(uid, 0) > self._settings.retention_bytes // 2:
                try:
                    appender = await self.open(name)
                    await appender.read()
                    await appender.save()
                except (NotFound, ModelGone):
                    continue  # deleted meanwhile
                except SetAside:
                    logger.warning("model %s cannot advance; the log no longer waits for it", name)
                    await models.set_aside(self.connection, keys, uid)
