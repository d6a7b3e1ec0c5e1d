"""Models created, imported and replayed."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator
from typing import Literal

from hinged_service.engine import damaged_entries
from hinged_service.engine.export import Document
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.lost_entries import unlisted, unused
from hinged_service.engine.name_access import EVERYTHING, NameAccess
from hinged_service.engine.recovery import ModelRecovery
from hinged_service.engine.stream_rules import stream_rules
from hinged_service.errors import (
    Conflict,
    Detail,
    NotFound,
    Unavailable,
    Unprocessable,
)
from hinged_service.model.cost import cost_of
from hinged_service.model.index_entry import Alias, IndexEntry
from hinged_service.model.spec import Learner, ModelSpec, same_spec
from hinged_service.model.start import Exclude, StartFrom
from hinged_service.model.state import ModelState
from hinged_service.model.state_check import check_kind
from hinged_service.model.state_codec import state_scalars
from hinged_service.store import checkpoints, followers, index
from hinged_service.store.checkpoints import Checkpoint
from hinged_service.store.keys import INDEX, StreamKeys
from hinged_service.store.snapshot import Snapshot
from hinged_service.wire.copies import copied
from hinged_service.wire.position import Position
from hinged_service.wire.progress import OnProgress, no_progress

__all__ = ["ModelLifecycle"]

_CREATE_ATTEMPTS = 50


class ModelLifecycle(ModelRecovery):
    """Creation, import, replay, deletion and recovery of models.

    A worker may die at any step: a sweep of another one finishes what it began.
    """

    async def create(
        self,
        name: str,
        spec: ModelSpec,
        access: NameAccess = EVERYTHING,
        on_progress: OnProgress = no_progress,
    ) -> tuple[IndexEntry, bool]:
        """Create a model, or confirm that it is there.

        `on_progress` reports the weights of a checkpoint that it starts from.

        Returns
        -------
        Its index entry; whether it is new.

        Raises
        ------
        Conflict
            There is one of that name with another spec.
        Unprocessable
            It would be a custom model that this worker does not serve, its events would take
            too long, or it would start from a model of another kind.
        Forbidden
            A name that it touches is not in the caller's reach.

        """
        _check_names(name, spec, access)
        for _ in range(_CREATE_ATTEMPTS):
            try:
                entry = await self._find(name)
            except index.DamagedEntry as damaged:
                spec.check_new()
                await damaged_entries.take_over(
                    self._connection, self._settings, name, spec, damaged
                )
                continue
            if isinstance(entry, Alias):
                raise Conflict(f"{name!r} is an alias. Choose another name.")
            if entry is None:
                spec.check_new()
                finished = await self._begin(name, self._bounded(spec), access, on_progress)
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
        raise Unavailable(
            "Another caller is creating or deleting this model. Try again.", retry_after_s=1
        )

    async def _check_unused(self, stream: str) -> None:
        """Refuse to make a model on a stream that has a model which the index lost.

        A lost model that learned nothing does not count: a failover may have lost a part of a
        creation. A sweep removes the rest.
        """
        left = await unlisted(self._connection, stream)
        if left and not await unused(self._connection, stream):
            raise Conflict(
                f"The stream {stream!r} has the log of a model that the index does not know: Redis "
                f"lost the index or a part of it. Restore the key {INDEX} from a backup. Or remove "
                f"the rest of the model with DELETE /v1/models/{stream}, then create it again."
            )

    def _bounded(self, spec: ModelSpec) -> ModelSpec:
        """Return the spec of a new model with its bytes bounded, which then no setting changes."""
        most = self._settings.max_model_bytes
        if (spec.max_bytes or 0) > most:
            raise Unprocessable(
                "The model might take too much memory: see errors.",
                [Detail("max_bytes", f"must be at most {most} (HINGED_MAX_MODEL_BYTES)")],
            )
        return spec.with_max_bytes(most)

    async def _begin(
        self, name: str, spec: ModelSpec, access: NameAccess, on_progress: OnProgress
    ) -> IndexEntry | None:
        """Create a model whose name is free; `None` if another worker was quicker."""
        start = spec.start
        if not isinstance(start, StartFrom):
            await self._check_unused(name)
            spec = spec.on(name)
            await self._check_promotion(spec, access)
            return await self._enter(name, spec, None)
        source = await self._registry.open(start.model, on_progress)
        stream, keys = source.entry.stream, source.keys.on
        access.check(source.name, f"the model that {start.model!r} points to")
        access.check(stream, f"the stream of {start.model!r}")
        if spec.stream not in (None, stream):
            raise Conflict(
                f"The model {start.model!r} is on the stream {stream!r}, and a model that starts "
                "from it must be there too. For another stream, export and import it."
            )
        spec = spec.on(stream)
        await self._check_promotion(spec, access)
        await asyncio.to_thread(ModelState, spec)  # what it needs of River is imported there
        if start.checkpoint is not None:
            found = await checkpoints.find(self._connection, keys, start.checkpoint)
            access.check(found.model, "the model of this checkpoint")
            state = await source.checkpoints.read(found, on_progress)
            if state.state is not None:
                scalars = state.state.scalars
                await asyncio.to_thread(check_kind, spec, found.spec, scalars, state.vectors)
            return await self._enter(name, spec, found)
        async with self._log_held(keys):
            await source.freshness.read()
            state_now = await source.at_rest()
            check_kind(spec, source.entry.spec, state_scalars(state_now), state_now.vectors())
            made = await source.checkpoints.make(None, on_progress)
            entry = None
            try:
                entry = await self._enter(name, spec, made)
            finally:
                if entry is None:
                    await checkpoints.drop(self._connection, keys, made.uid)
        return entry

    async def _check_promotion(self, spec: ModelSpec, access: NameAccess) -> None:
        """Refuse a drift action that may promote what the caller may not promote.

        Any model of the stream may turn out to be the best one, or the model of the alias.
        """
        if spec.promotes is None:
            return
        for other, entry in (await self._registry.entries()).items():
            if entry.stream == spec.stream:
                access.check(other, "every model that the alias could point to")

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
        self._check_cost(spec)
        entry = IndexEntry(
            uid=secrets.token_hex(8),
            stream=spec.stream or name,
            fold=spec,
            origin=None if origin is None else origin.uid,
        )
        if not await index.enter(self._connection, name, entry, self._settings.max_models):
            return None
        return await self.finish_creation(name, entry)

    def _check_cost(self, spec: ModelSpec) -> None:
        """Refuse a spec whose events would take too long, and name its factors."""
        cost, most = cost_of(spec), self._settings.max_cost_per_event_ms
        if cost.ms > most:
            raise Unprocessable(
                f"An event of 30 numbers or 200 words would take about {cost.ms:.0f} ms, more than "
                f"the {most} that max_cost_per_event_ms allows. Make one of these factors smaller.",
                [Detail(factor.field, factor.reason) for factor in cost.factors],
            )

    async def create_imported(
        self,
        name: str,
        document: Document,
        access: NameAccess = EVERYTHING,
        on_progress: OnProgress = no_progress,
    ) -> IndexEntry:
        """Create a model with an imported state, on a new stream of its name.

        `on_progress` reports the weights that are stored.

        Raises
        ------
        Conflict
            There is a model, alias or stream of that name; or the model was deleted meanwhile.
        Forbidden
            The alias that it promotes is not in the caller's reach.
        Unprocessable
            Its events would take too long.

        """
        _check_names(name, document.spec, access)
        self._check_cost(document.spec)
        await self.check_free(name)
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
            vectors={part: copied(vector.view()) for part, vector in vectors.items()},
            sizes={part: len(vector) for part, vector in vectors.items()},
            marks=[],
            wanted="0-0",
        )
        entry = IndexEntry(uid=secrets.token_hex(8), stream=name, fold=spec, origin=made.uid)
        # What takes long comes first: a sweep undoes what stays half made, without its state.
        chunk = self._settings.snapshot_chunk
        staged = await checkpoints.stage(self._connection, keys, made, state, chunk, on_progress)
        if not await index.enter(self._connection, name, entry, self._settings.max_models):
            raise Conflict(f"The name {name!r} is taken. Choose another one.")
        await checkpoints.enter(self._connection, keys, made, "", staged)
        finished = await self.finish_creation(name, entry)
        if finished is None:
            raise Conflict("The model was deleted while it was imported.")
        return finished

    async def check_free(self, name: str) -> None:
        """Raise `Conflict` if there is a model or alias of that name."""
        if await index.find(self._connection, name) is not None:
            raise Conflict(f"The name {name!r} is taken. Choose another one.")

    async def replay(
        self,
        source: LiveModel,
        name: str,
        checkpoint: str | None,
        exclude: Exclude | None,
        learner: Learner | None,
        access: NameAccess = EVERYTHING,
        on_progress: OnProgress = no_progress,
    ) -> tuple[IndexEntry, bool]:
        """Create a model that learns the past of `source`'s stream again.

        It starts from a checkpoint, or else from the oldest event that the stream has; it may
        leave events out, and have another learner. `on_progress` is as for `create`.
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
        return await self.create(
            name, ModelSpec.model_validate(spec.model_dump()), access, on_progress
        )

    async def finish_creation(self, name: str, entry: IndexEntry) -> IndexEntry | None:
        """Register the model on its stream; `None` if it was deleted meanwhile."""
        keys = StreamKeys(entry.stream)
        if entry.base is not None:
            if entry.uid in await followers.snapshot_positions(self._connection, keys):
                return entry
            if await self._present(name, entry) is None:
                return None
            raise Conflict(
                f"Redis lost the model {name!r}: the index has it, but its stream {entry.stream!r} "
                "does not. Restore Redis from a backup. Or, if it had no events or you can send "
                f"them again, DELETE /v1/models/{name}, then create it again."
            )
        try:
            position = await self._register(keys, entry)
        except (Conflict, NotFound):
            if await index.compare_and_set(self._connection, name, entry, None):
                raise
            if await self._present(name, entry) is None:
                return None  # what it starts with went with it
            raise
        finished = entry.with_base(str(position))
        model = keys.model(entry.uid)
        if not await index.compare_and_set(self._connection, name, entry, finished):
            found = await self._present(name, entry)
            if found is None:
                await followers.delete(self._connection, model)
            return found
        await followers.note_entry(self._connection, model, name, finished.dumps())
        return finished

    async def _present(self, name: str, entry: IndexEntry) -> IndexEntry | None:
        """Return the index entry of a model as it is now, `None` if it is deleted or being so."""
        found = await index.find(self._connection, name)
        same = isinstance(found, IndexEntry) and found.uid == entry.uid and not found.deleting
        return found if same and isinstance(found, IndexEntry) else None

    async def _register(self, keys: StreamKeys, entry: IndexEntry) -> Position:
        spec = entry.spec
        start: Position | Literal["now", "log"] = "now"
        if entry.origin is not None:
            origin = await checkpoints.find(self._connection, keys, entry.origin)
            start = checkpoints.place(origin) or "now"
        elif spec.start == "log":
            start = "log"
        rules = stream_rules(spec, self._settings)
        return await followers.register(
            self._connection, keys.model(entry.uid), rules, start, entry.origin
        )


def _check_names(name: str, spec: ModelSpec, access: NameAccess) -> None:
    """Check the names in a new model: its own, its stream, another model, an alias."""
    source = spec.start.model if isinstance(spec.start, StartFrom) else None
    for touched in (name, spec.stream, source, spec.promotes):
        if touched is not None:
            access.check(touched)
