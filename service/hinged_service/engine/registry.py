"""All models of one worker: found, opened, kept, created, deleted, looked after."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import random
import secrets
import time
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Literal

import hinged
from hinged_service.engine.aliases import Aliases
from hinged_service.engine.auto_promotion import Switching
from hinged_service.engine.export import Document
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.upgrade import Handover, take_over
from hinged_service.errors import (
    Conflict,
    Detail,
    ModelGone,
    NotFound,
    ServiceError,
    SetAside,
    Unavailable,
    Unprocessable,
)
from hinged_service.model.spec import Alias, IndexEntry, LateLabels, Learner, ModelSpec, same_spec
from hinged_service.model.start import Exclude, StartFrom
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import restore_state, state_scalars
from hinged_service.server.shutdown import Stopping
from hinged_service.settings import Settings
from hinged_service.store import aliases, checkpoints, followers, index
from hinged_service.store import pending_predictions as late
from hinged_service.store.checkpoints import Checkpoint
from hinged_service.store.connection import Connection
from hinged_service.store.keys import StreamKeys
from hinged_service.store.snapshot import Snapshot
from hinged_service.wire.codec import DamagedState, Position
from hinged_service.wire.dedup import label_digest

__all__ = ["ModelRegistry"]

logger = logging.getLogger(__name__)

_SWEEP_EVERY = 20
_SWEEPING_SHARE = 0.1
"""The share of the time that sweeps may take, of many streams above all."""
_DICE = random.Random()  # noqa: S311 - spreads workers; the global one is its user's
_CREATE_ATTEMPTS = 50
_ASIDE_S = 5.0
_SAVING_S = 10.0
"""What a worker that stops has saved by then is saved: who stops it waits no longer."""
_NAMES_TOLD = 20


class ModelRegistry:
    """The worker's models, the least recently used ones forgotten first.

    Parameters
    ----------
    connection, settings
        The worker's.

    Attributes
    ----------
    stopping
        Whether the worker was told to stop.

    """

    def __init__(self, connection: Connection, settings: Settings) -> None:
        self.connection = connection
        self._settings = settings
        self._changes = connection.observer.changes
        self._producer = secrets.token_hex(8)
        self._sequence = itertools.count(1)
        self._live: OrderedDict[str, LiveModel] = OrderedDict()
        self.aliases = Aliases(
            connection,
            settings.max_staleness_ms / 1000,
            settings.max_models,
            settings.max_replicas,
        )
        self._opening: dict[str, asyncio.Task[LiveModel]] = {}
        self._aside: dict[str, tuple[str, float]] = {}
        self._orphans: set[str] = set()
        self._switching = Switching(self.aliases, self.entries, self.open)
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self.stopping = Stopping()

    def start(self) -> None:
        """Start the background task."""
        self._task = asyncio.create_task(self._look_after())

    async def aclose(self) -> None:
        """Stop the background task, finish what was accepted, save every model."""
        self._closing = True  # an answer that comes in the same moment may swallow the cancel
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        await self._switching.aclose()
        saving = {asyncio.create_task(live_model.aclose()) for live_model in self._live.values()}
        if not saving:
            return
        done, late = await asyncio.wait(saving, timeout=_SAVING_S)
        if late:
            logger.warning("%d models are not saved; their logs have everything", len(late))
        while late:  # an answer that comes in the same moment may swallow a cancel
            for task in late:
                task.cancel()
            _, late = await asyncio.wait(late, timeout=0.1)
        for task in done:
            task.result()

    def live(self, name: str) -> LiveModel | None:
        """Return the model if it is open here; the fast way of the hot calls."""
        live_model = self._live.get(name)
        if live_model is None or live_model.status.ended:
            return None
        self._live.move_to_end(name)
        return live_model

    @property
    def open_count(self) -> int:
        """How many models are open here."""
        return len(self._live)

    def recent(self) -> Iterator[LiveModel]:
        """Return the models that are open here, the last used ones first."""
        return reversed(self._live.values())

    async def open(self, name: str) -> LiveModel:
        """Return a model by its name or an alias, loaded if need be.

        Raises
        ------
        NotFound
            There is no such model.
        SetAside, Unavailable
            It cannot be served here and now.

        """
        name = self.aliases.fresh(name) or name
        live_model = self.live(name)
        if live_model is not None:
            return live_model
        return await asyncio.shield(self._opening_of(name))

    def _opening_of(self, name: str) -> asyncio.Task[LiveModel]:
        task = self._opening.get(name)
        if task is None:
            task = self._opening[name] = asyncio.create_task(self._load(name))
            task.add_done_callback(lambda done: self._opened(name, done))
        return task

    def _opened(self, name: str, task: asyncio.Task[LiveModel]) -> None:
        del self._opening[name]
        if not task.cancelled():
            task.exception()  # whoever waited has it

    async def _load(self, name: str) -> LiveModel:
        try:
            await self.connection.ensure_checked()
            if (meant := await self.aliases.again(name)) is not None:
                return await self.open(meant)
            entry = await index.find(self.connection, name)
            if isinstance(entry, Alias):
                return await self.open(await self.aliases.look_up(name, entry))
        except Unavailable:  # an alias goes on meaning what it meant
            live_model = self.live(self.aliases.last(name) or name)
            if live_model is None:
                raise
            return live_model
        if entry is None or entry.deleting or entry.base is None:
            self._live.pop(name, None)
            raise NotFound(f"There is no model {name!r}. Create it with PUT /v1/models/{name}.")
        now_s = asyncio.get_running_loop().time()
        self._aside = {uid: why for uid, why in self._aside.items() if now_s < why[1]}
        if entry.uid in self._aside:
            raise SetAside(self._aside[entry.uid][0], retry_after_s=60)
        try:
            live_model = await LiveModel.open(
                self.connection, self._settings, name, entry, self._producer, self._sequence
            )
        except SetAside as error:
            self._aside[entry.uid] = (error.detail, now_s + _ASIDE_S)
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
                "lost it. PUT it again to make it anew."
            ) from None
        self._live[name] = live_model
        self._switching.watch_drift(name, live_model)
        self._forget_some()
        return live_model

    def _forget_some(self) -> None:
        excess = len(self._live) - self._settings.max_replicas
        if excess <= 0:
            return
        idle = [name for name, a in itertools.islice(self._live.items(), 64) if a.idle]
        for name in idle[:excess]:
            del self._live[name]

    def forget(self, name: str, live_model: LiveModel) -> None:
        """Drop a model that turned out to be gone."""
        if self._live.get(name) is live_model:
            del self._live[name]

    async def create(self, name: str, spec: ModelSpec) -> tuple[IndexEntry, bool]:
        """Create a model, or confirm that it is there.

        Parameters
        ----------
        name, spec
            The model's.

        Returns
        -------
        Its index entry; whether it is new.

        Raises
        ------
        Conflict
            There is one of that name with another spec.
        Unprocessable
            It would be a custom model that this worker does not serve, or is to start from a
            model of another kind.

        """
        for _ in range(_CREATE_ATTEMPTS):
            entry = await index.find(self.connection, name)
            if isinstance(entry, Alias):
                raise Conflict(f"{name!r} is an alias. Choose another name.")
            if entry is None:
                spec.check_known()
                finished = await self._begin(name, spec)
                if finished is not None:
                    if spec.start != "now":
                        self._opening_of(name)  # catch up before anybody asks
                    return finished, True
                continue
            if entry.deleting:
                await self._finish_deletion(name, entry)
                continue
            if not same_spec(entry.spec, spec.on(entry.stream)):
                raise Conflict(
                    f"There is a model {name!r} with another spec. Choose another name, or delete "
                    "it first."
                )
            finished = await self._finish_creation(name, entry)
            if finished is not None:
                return finished, False
        raise Unavailable("The model is being created and deleted elsewhere.", retry_after_s=1)

    async def _begin(self, name: str, spec: ModelSpec) -> IndexEntry | None:
        """Create a model whose name is free; `None` if somebody else was quicker."""
        start = spec.start
        if not isinstance(start, StartFrom):
            return await self._enter(name, spec.on(name), None)
        source = await self.open(start.model)
        stream, keys = source.entry.stream, source.keys.on
        if spec.stream not in (None, stream):
            raise Conflict(
                f"The model {start.model!r} is on the stream {stream!r}: a model that starts from "
                "it is too. Export and import it to go elsewhere."
            )
        spec = spec.on(stream)
        await asyncio.to_thread(ModelState, spec)  # what it needs of River is imported there
        if start.checkpoint is not None:
            found = await checkpoints.find(self.connection, keys, start.checkpoint)
            state = await source.read_checkpoint(found)
            if state.state is not None:
                _check_kind(spec, found.spec, state.state.scalars, state.vectors)
            return await self._enter(name, spec, found)
        async with self._log_held(keys):
            await source.read()
            fold = source.replica.fold
            _check_kind(spec, source.entry.spec, state_scalars(fold), fold.vectors())
            made = await source.checkpoint(None)
            entry = None
            try:
                entry = await self._enter(name, spec, made)
            finally:
                if entry is None:
                    await checkpoints.drop(self.connection, keys, made)
        return entry

    @contextlib.asynccontextmanager
    async def _log_held(self, keys: StreamKeys) -> AsyncIterator[None]:
        """Let nobody trim the log past its present end meanwhile.

        It is a follower that holds it; if this worker dies, the next sweeps remove it.
        """
        holder = secrets.token_hex(8)
        settings = self._settings
        await followers.register(
            self.connection, keys, holder, settings.seen_s * 1000, settings.seen_ids
        )
        try:
            yield
        finally:
            await followers.delete(self.connection, keys.model(holder))

    async def _enter(
        self, name: str, spec: ModelSpec, origin: Checkpoint | None
    ) -> IndexEntry | None:
        """Put a new model into the index and register it; `None` if the name was taken."""
        entry = IndexEntry(
            uid=secrets.token_hex(8),
            stream=spec.stream or name,
            spec=spec,
            origin=None if origin is None else origin.uid,
        )
        if not await index.enter(self.connection, name, entry, self._settings.max_models):
            return None
        return await self._finish_creation(name, entry)

    async def create_imported(self, name: str, document: Document) -> IndexEntry:
        """Create a model with an imported state, on a new stream of its name.

        Raises
        ------
        Conflict
            There is a model, alias or stream of that name.

        """
        if await index.find(self.connection, name) is not None:
            raise Conflict(f"The name {name!r} is taken. Choose another one.")
        spec, keys = document.spec.on(name), StreamKeys(name)
        if await followers.snapshot_positions(self.connection, keys):
            raise Conflict(f"There is a stream {name!r} already. Choose another name.")
        fold = document.fold
        made = Checkpoint(
            uid=secrets.token_hex(8),
            model=name,
            spec=spec,
            created_ms=int(time.time() * 1000),
            events=fold.events,
            mistakes=fold.mistakes,
            judged=fold.judged,
        )
        vectors = fold.vectors()
        state = Snapshot(
            position=Position("0-0", "0" * 40),
            scalars=state_scalars(fold),
            vectors={part: dict(vector.view()) for part, vector in vectors.items()},
            sizes={part: len(vector) for part, vector in vectors.items()},
            marks=[],
            wanted="0-0",
        )
        entry = IndexEntry(uid=secrets.token_hex(8), stream=name, spec=spec, origin=made.uid)
        if not await index.enter(self.connection, name, entry, self._settings.max_models):
            raise Conflict(f"The name {name!r} is taken. Choose another one.")
        # if this worker dies here, a sweep finishes the creation, or undoes it without the state
        chunk = self._settings.snapshot_chunk
        await checkpoints.keep(self.connection, keys, made, "", state, chunk)
        finished = await self._finish_creation(name, entry)
        if finished is None:
            raise Unavailable("The model was deleted while it was imported.", retry_after_s=1)
        return finished

    async def replay(
        self,
        source: LiveModel,
        name: str,
        checkpoint: str | None,
        exclude: Exclude | None,
        learner: Learner | None,
    ) -> tuple[IndexEntry, bool]:
        """Create a model that learns the past of another one's stream again.

        Parameters
        ----------
        source
            The other model.
        name
            The new model's name.
        checkpoint
            Start from this one; from the oldest event that the stream has if left out.
        exclude
            Events to leave out.
        learner
            Another learner than that of the other model.

        """
        changes: dict[str, object] = {
            "stream": source.entry.stream,
            "start": "log",
            "exclude": exclude,
        }
        if checkpoint is not None:
            changes["start"] = StartFrom(model=source.name, checkpoint=checkpoint)
        if learner is not None:
            changes["learner"] = learner
        spec = source.entry.spec.model_copy(update=changes)
        return await self.create(name, ModelSpec.model_validate(spec.model_dump()))

    async def _finish_creation(self, name: str, entry: IndexEntry) -> IndexEntry | None:
        """Register the model on its stream; `None` if it was deleted meanwhile."""
        keys = StreamKeys(entry.stream)
        if entry.base is not None:
            if entry.uid in await followers.snapshot_positions(self.connection, keys):
                return entry
            self._changes.enter(
                ("anew", entry.uid),
                logger,
                "model %s is not on its stream any more; it starts anew",
                name,
                extra={"model": name},
            )
        try:
            position = await self._register(keys, entry)
        except (Conflict, NotFound):
            await index.compare_and_set(self.connection, name, entry, None)
            raise
        finished = entry.with_base(str(position))
        if await index.compare_and_set(self.connection, name, entry, finished):
            return finished
        found = await index.find(self.connection, name)
        if isinstance(found, IndexEntry) and found.uid == entry.uid and not found.deleting:
            return found
        await followers.delete(self.connection, keys.model(entry.uid))
        return None

    async def _register(self, keys: StreamKeys, entry: IndexEntry) -> Position:
        spec = entry.spec
        start: Position | Literal["now", "log"] = "now"
        if entry.origin is not None:
            origin = await checkpoints.find(self.connection, keys, entry.origin)
            start = checkpoints.place(origin) or "now"
        elif spec.start == "log":
            start = "log"
        kept = spec.retention
        return await followers.register(
            self.connection,
            keys,
            entry.uid,
            self._settings.seen_s * 1000,
            self._settings.seen_ids,
            start,
            entry.origin,
            None if kept is None else followers.Retention(kept.events, kept.bytes),
            None if spec.late_labels is None else _waiting(spec.late_labels),
        )

    async def upgrade(self, name: str) -> Handover:
        """Let this version of the service go on with a model that another one folded.

        Raises
        ------
        NotFound
            There is no such model.
        Conflict, SetAside, Unavailable
            As for `take_over`.

        """
        entry = await index.find(self.connection, name)
        if isinstance(entry, Alias):
            return await self.upgrade(await self.aliases.look_up(name, entry))
        if entry is None or entry.deleting or entry.base is None:
            raise NotFound(f"There is no model {name!r}.")
        try:
            done = await take_over(self.connection, self._settings, entry)
        except ModelGone:
            raise NotFound(f"There is no model {name!r} any more.") from None
        self._aside.pop(entry.uid, None)
        if self.live(name) is None:
            self._opening_of(name)  # catch up before anybody asks
        return done

    async def delete(self, name: str) -> None:
        """Delete a model; no worker can write it back.

        Raises
        ------
        NotFound
            There is no such model.

        """
        while True:
            entry = await index.find(self.connection, name)
            if entry is None:
                raise NotFound(f"There is no model {name!r}.")
            if isinstance(entry, Alias):
                raise Conflict(f"{name!r} is an alias: DELETE /v1/aliases/{name} removes it.")
            meaning = await aliases.of_stream(self.connection, StreamKeys(entry.stream))
            if not entry.deleting and entry.uid in meaning.values():
                alias = next(a for a, uid in meaning.items() if uid == entry.uid)
                raise Conflict(
                    f"The alias {alias!r} means this model: promote another one to it first, or "
                    "delete the alias."
                )
            if entry.deleting or await index.compare_and_set(
                self.connection, name, entry, entry.as_deleting()
            ):
                break
        await self._finish_deletion(name, entry.as_deleting())
        self._live.pop(name, None)

    async def _finish_deletion(self, name: str, entry: IndexEntry) -> None:
        keys = StreamKeys(entry.stream)
        await followers.delete(self.connection, keys.model(entry.uid))
        start = entry.spec.start
        named = isinstance(start, StartFrom) and start.checkpoint is not None
        if entry.origin is not None and not named:  # it was made for this model
            with contextlib.suppress(NotFound):
                made = await checkpoints.find(self.connection, keys, entry.origin)
                await checkpoints.drop(self.connection, keys, made)
        await index.compare_and_set(self.connection, name, entry, None)

    async def entries(self) -> dict[str, IndexEntry]:
        """Return the index entries of all models that are neither half made nor half gone."""
        found = (await index.index(self.connection)).models
        return {n: e for n, e in sorted(found.items()) if e.base is not None and not e.deleting}

    async def overview(self) -> tuple[dict[str, IndexEntry], dict[str, tuple[str, str | None]]]:
        """Return the models by name, and by alias its stream and the model that it means."""
        found = await index.index(self.connection)
        names = {e.uid: n for n, e in found.models.items() if not e.deleting}
        meaning: dict[str, tuple[str, str | None]] = {}
        for stream in sorted(set(found.aliases.values())):
            uids = await aliases.of_stream(self.connection, StreamKeys(stream))
            for alias in sorted(a for a, on in found.aliases.items() if on == stream):
                meaning[alias] = stream, names.get(uids.get(alias, ""))
        return await self.entries(), meaning

    async def _look_after(self) -> None:
        pause_s = self._settings.housekeeping_ms / 1000
        loop, due_s = asyncio.get_running_loop(), 0.0
        for turn in itertools.count(1):
            if self._closing:
                return
            await asyncio.sleep(pause_s * _DICE.uniform(0.8, 1.2))
            for live_model in list(self._live.values()):
                live_model.save_if_due()
                live_model.delayed.expire_soon()
            began_s = loop.time()
            if turn % _SWEEP_EVERY == 0 and began_s >= due_s:
                try:
                    await self._sweep()
                    due_s = began_s + (loop.time() - began_s) / _SWEEPING_SHARE
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

    async def _sweep(self) -> None:
        """Finish what a dead worker began, and advance who would hold the log."""
        told = self.connection.observer.known()
        found, _, unreadable = await index.index(self.connection)
        by_stream: dict[str, dict[str, IndexEntry]] = defaultdict(dict)
        for name, entry in found.items():
            by_stream[entry.stream][name] = entry
        unnamed: set[str] = set()
        for stream, entries in by_stream.items():
            try:
                unnamed |= await self._sweep_stream(StreamKeys(stream), entries)
                self._changes.leave(("stream", stream), logger, "stream %s is whole again", stream)
            except DamagedState as error:
                self._changes.enter(
                    ("stream", stream),
                    logger,
                    "stream %s is damaged: %s",
                    stream,
                    error,
                    level=logging.ERROR,
                )
        if unreadable:  # nobody knows which followers are theirs: remove none
            shown = ", ".join(sorted(unreadable)[:_NAMES_TOLD])
            text = "%d index entries cannot be read here: %s"
            self._changes.enter("index", logger, text, len(unreadable), shown)
            unnamed.clear()
        else:
            self._changes.leave("index", logger, "all index entries can be read again")
            self.connection.observer.note_index(
                told, {entry.uid for entry in found.values()}, set(found)
            )
        self._orphans = unnamed

    async def _sweep_stream(self, keys: StreamKeys, entries: dict[str, IndexEntry]) -> set[str]:
        """Finish what was begun on a stream, and remove followers that no name was found for twice.

        Returns
        -------
        The followers without a name now.

        """
        named: dict[str, str] = {}
        for name, entry in entries.items():
            if entry.deleting:
                await self._finish_deletion(name, entry)
                continue
            if entry.base is None:
                with contextlib.suppress(Conflict, NotFound):  # then it is undone
                    await self._finish_creation(name, entry)
            named[entry.uid] = name
        if not named:
            return set()
        await late.retire(self.connection, keys)
        following = await followers.snapshot_positions(self.connection, keys)
        unnamed = following.keys() - named.keys()
        for uid in self._orphans & unnamed:
            await followers.delete(self.connection, keys.model(uid))
        if len(following) > 1:
            await self._advance_laggards(keys, {u: named[u] for u in following if u in named})
        return unnamed

    async def _advance_laggards(self, keys: StreamKeys, named: dict[str, str]) -> None:
        lag = await followers.lag_bytes(self.connection, keys)
        kept = (await followers.retention(self.connection, keys)).bytes
        limit = self._settings.retention_bytes if kept is None else kept
        for uid, name in named.items():
            if lag.get(uid, 0) > limit // 2:
                try:
                    live_model = await self.open(name)
                    if not live_model.status.caught_up:  # it reads and saves by itself
                        live_model.resume_catch_up()
                        continue
                    await live_model.read()
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
                    await followers.release(self.connection, keys, uid)


def _check_kind(
    spec: ModelSpec, other: ModelSpec, scalars: dict[str, Any], vectors: Mapping[str, Any]
) -> None:
    """Refuse a model that is to start with the state of another kind of model."""
    reason = "its labels are others" if spec.labels != other.labels else ""
    try:
        restore_state(ModelState(spec), scalars, dict(vectors))
    except hinged.InvalidState as error:
        reason = reason or str(error)
    if reason:
        raise Unprocessable(
            "Nothing was done: see errors.",
            [Detail("start", f"is of another kind of model: {reason}"[:300])],
        )


def _waiting(rules: LateLabels) -> followers.DelayedLabelRules:
    default = rules.default_label
    return followers.DelayedLabelRules(
        rules.wait_s * 1000,
        rules.max_waiting,
        "" if default is None else json.dumps(default),
        "" if default is None else label_digest(default),
        early=rules.early,
        said=True,
    )
