"""Models created, imported, replayed, upgraded and deleted."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal

import hinged
from hinged_service.engine.export import Document
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.registry import ModelRegistry
from hinged_service.engine.upgrade import Handover, take_over
from hinged_service.errors import Conflict, Detail, ModelGone, NotFound, Unavailable, Unprocessable
from hinged_service.model.spec import Alias, IndexEntry, LateLabels, Learner, ModelSpec, same_spec
from hinged_service.model.start import Exclude, StartFrom
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import restore_state, state_scalars
from hinged_service.settings import Settings
from hinged_service.store import aliases, checkpoints, followers, index
from hinged_service.store.checkpoints import Checkpoint
from hinged_service.store.keys import StreamKeys
from hinged_service.store.snapshot import Snapshot
from hinged_service.wire.codec import Position
from hinged_service.wire.dedup import label_digest

__all__ = ["ModelLifecycle"]

logger = logging.getLogger(__name__)

_CREATE_ATTEMPTS = 50


class ModelLifecycle:
    """Creation and deletion of models.

    A worker may die at any step: a sweep of another one finishes what it began.
    """

    def __init__(self, registry: ModelRegistry, settings: Settings) -> None:
        self._registry = registry
        self._connection = registry.connection
        self._settings = settings
        self._changes = registry.connection.observer.changes

    async def create(self, name: str, spec: ModelSpec) -> tuple[IndexEntry, bool]:
        """Create a model, or confirm that it is there.

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
            entry = await index.find(self._connection, name)
            if isinstance(entry, Alias):
                raise Conflict(f"{name!r} is an alias. Choose another name.")
            if entry is None:
                spec.check_known()
                finished = await self._begin(name, self._bounded(spec))
                if finished is not None:
                    if spec.start != "now":
                        self._registry.open_soon(name)
                    return finished, True
                continue
            if entry.deleting:
                await self.finish_deletion(name, entry)
                continue
            same = spec.on(entry.stream).with_max_bytes(entry.spec.max_bytes)
            if not same_spec(entry.spec, same):
                raise Conflict(
                    f"There is a model {name!r} with another spec. Choose another name, or delete "
                    "it first."
                )
            finished = await self.finish_creation(name, entry)
            if finished is not None:
                return finished, False
        raise Unavailable("The model is being created and deleted elsewhere.", retry_after_s=1)

    def _bounded(self, spec: ModelSpec) -> ModelSpec:
        """Return the spec of a new model with its bytes bounded, which then no setting changes."""
        most = self._settings.max_model_bytes
        if (spec.max_bytes or 0) > most:
            raise Unprocessable(
                "The model might take too much memory: see errors.",
                [Detail("max_bytes", f"must be at most {most} (HINGED_MAX_MODEL_BYTES)")],
            )
        return spec.with_max_bytes(most)

    async def _begin(self, name: str, spec: ModelSpec) -> IndexEntry | None:
        """Create a model whose name is free; `None` if another worker was quicker."""
        start = spec.start
        if not isinstance(start, StartFrom):
            return await self._enter(name, spec.on(name), None)
        source = await self._registry.open(start.model)
        stream, keys = source.entry.stream, source.keys.on
        if spec.stream not in (None, stream):
            raise Conflict(
                f"The model {start.model!r} is on the stream {stream!r}: a model that starts from "
                "it is too. Export and import it to go elsewhere."
            )
        spec = spec.on(stream)
        await asyncio.to_thread(ModelState, spec)  # what it needs of River is imported there
        if start.checkpoint is not None:
            found = await checkpoints.find(self._connection, keys, start.checkpoint)
            state = await source.checkpoints.read(found)
            if state.state is not None:
                _check_kind(spec, found.spec, state.state.scalars, state.vectors)
            return await self._enter(name, spec, found)
        async with self._log_held(keys):
            await source.freshness.read()
            state_now = source.state
            _check_kind(spec, source.entry.spec, state_scalars(state_now), state_now.vectors())
            made = await source.checkpoints.make(None)
            entry = None
            try:
                entry = await self._enter(name, spec, made)
            finally:
                if entry is None:
                    await checkpoints.drop(self._connection, keys, made)
        return entry

    @contextlib.asynccontextmanager
    async def _log_held(self, keys: StreamKeys) -> AsyncIterator[None]:
        """Keep the log from being trimmed past its present end meanwhile.

        It is a follower that holds it; if this worker dies, the next sweeps remove it.
        """
        holder = keys.model(secrets.token_hex(8))
        settings = self._settings
        rules = followers.StreamRules(settings.seen_s * 1000, settings.seen_ids)
        await followers.register(self._connection, holder, rules)
        try:
            yield
        finally:
            await followers.delete(self._connection, holder)

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
        if not await index.enter(self._connection, name, entry, self._settings.max_models):
            return None
        return await self.finish_creation(name, entry)

    async def create_imported(self, name: str, document: Document) -> IndexEntry:
        """Create a model with an imported state, on a new stream of its name.

        Raises
        ------
        Conflict
            There is a model, alias or stream of that name.

        """
        if await index.find(self._connection, name) is not None:
            raise Conflict(f"The name {name!r} is taken. Choose another one.")
        spec, keys = self._bounded(document.spec).on(name), StreamKeys(name)
        if (taken := document.state.stored_bytes()) > spec.bytes_bound:
            raise Unprocessable(
                "The model takes too much memory: see errors.",
                [Detail("state", f"takes {taken} bytes, but max_bytes is {spec.bytes_bound}")],
            )
        if await followers.snapshot_positions(self._connection, keys):
            raise Conflict(f"There is a stream {name!r} already. Choose another name.")
        made = Checkpoint(
            uid=secrets.token_hex(8),
            model=name,
            spec=spec,
            created_ms=int(time.time() * 1000),
            events=document.state.events,
            mistakes=document.state.mistakes,
            judged=document.state.judged,
        )
        vectors = document.state.vectors()
        state = Snapshot(
            position=Position("0-0", "0" * 40),
            scalars=state_scalars(document.state),
            vectors={part: dict(vector.view()) for part, vector in vectors.items()},
            sizes={part: len(vector) for part, vector in vectors.items()},
            marks=[],
            wanted="0-0",
        )
        entry = IndexEntry(uid=secrets.token_hex(8), stream=name, spec=spec, origin=made.uid)
        if not await index.enter(self._connection, name, entry, self._settings.max_models):
            raise Conflict(f"The name {name!r} is taken. Choose another one.")
        # if this worker dies here, a sweep finishes the creation, or undoes it without the state
        chunk = self._settings.snapshot_chunk
        await checkpoints.keep(self._connection, keys, made, "", state, chunk)
        finished = await self.finish_creation(name, entry)
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
        """Create a model that learns the past of `source`'s stream again.

        It starts from a checkpoint, or else from the oldest event that the stream has; it may
        leave events out, and have another learner.
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

    async def finish_creation(self, name: str, entry: IndexEntry) -> IndexEntry | None:
        """Register the model on its stream; `None` if it was deleted meanwhile."""
        keys = StreamKeys(entry.stream)
        if entry.base is not None:
            if entry.uid in await followers.snapshot_positions(self._connection, keys):
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
            await index.compare_and_set(self._connection, name, entry, None)
            raise
        finished = entry.with_base(str(position))
        if await index.compare_and_set(self._connection, name, entry, finished):
            return finished
        found = await index.find(self._connection, name)
        if isinstance(found, IndexEntry) and found.uid == entry.uid and not found.deleting:
            return found
        await followers.delete(self._connection, keys.model(entry.uid))
        return None

    async def _register(self, keys: StreamKeys, entry: IndexEntry) -> Position:
        spec = entry.spec
        start: Position | Literal["now", "log"] = "now"
        if entry.origin is not None:
            origin = await checkpoints.find(self._connection, keys, entry.origin)
            start = checkpoints.place(origin) or "now"
        elif spec.start == "log":
            start = "log"
        kept = spec.retention
        rules = followers.StreamRules(
            self._settings.seen_s * 1000,
            self._settings.seen_ids,
            followers.Retention(*((None, None) if kept is None else (kept.events, kept.bytes))),
            None if spec.late_labels is None else _waiting(spec.late_labels),
        )
        return await followers.register(
            self._connection, keys.model(entry.uid), rules, start, entry.origin
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
        entry = await index.find(self._connection, name)
        if isinstance(entry, Alias):
            return await self.upgrade(await self._registry.aliases.look_up(name, entry))
        if entry is None or entry.deleting or entry.base is None:
            raise NotFound(f"There is no model {name!r}.")
        try:
            done = await take_over(self._connection, self._settings, entry)
        except ModelGone:
            raise NotFound(f"There is no model {name!r} any more.") from None
        self._registry.try_again(entry.uid)
        if self._registry.live(name) is None:
            self._registry.open_soon(name)
        return done

    async def delete(self, name: str) -> None:
        """Delete a model; no worker can write it back.

        Raises
        ------
        NotFound
            There is no such model.

        """
        while True:
            entry = await index.find(self._connection, name)
            if entry is None:
                raise NotFound(f"There is no model {name!r}.")
            if isinstance(entry, Alias):
                raise Conflict(f"{name!r} is an alias: DELETE /v1/aliases/{name} removes it.")
            meaning = await aliases.of_stream(self._connection, StreamKeys(entry.stream))
            if not entry.deleting and entry.uid in meaning.values():
                alias = next(a for a, uid in meaning.items() if uid == entry.uid)
                raise Conflict(
                    f"The alias {alias!r} means this model: promote another one to it first, or "
                    "delete the alias."
                )
            if entry.deleting or await index.compare_and_set(
                self._connection, name, entry, entry.as_deleting()
            ):
                break
        await self.finish_deletion(name, entry.as_deleting())
        self._registry.forget(name)

    async def finish_deletion(self, name: str, entry: IndexEntry) -> None:
        """Delete what a model that is marked as deleting still has, its name last."""
        keys = StreamKeys(entry.stream)
        await followers.delete(self._connection, keys.model(entry.uid))
        start = entry.spec.start
        named = isinstance(start, StartFrom) and start.checkpoint is not None
        if entry.origin is not None and not named:  # it was made for this model
            with contextlib.suppress(NotFound):
                made = await checkpoints.find(self._connection, keys, entry.origin)
                await checkpoints.drop(self._connection, keys, made)
        await index.compare_and_set(self._connection, name, entry, None)


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
