"""Models upgraded and repaired, by name or alias."""

from __future__ import annotations

from hinged_service.engine import damaged_entries
from hinged_service.engine.deletion import ModelDeletion
from hinged_service.engine.name_access import EVERYTHING, NameAccess
from hinged_service.engine.repair import repair, start_from_checkpoint
from hinged_service.engine.upgrade import Handover, take_over
from hinged_service.errors import Conflict, ModelGone, NotFound, SetAside
from hinged_service.model.index_entry import Alias, IndexEntry
from hinged_service.store import checkpoints, index
from hinged_service.store.keys import StreamKeys
from hinged_service.store.repairs import LogRepair
from hinged_service.wire.progress import OnProgress, no_progress

__all__ = ["ModelRecovery"]


class ModelRecovery(ModelDeletion):
    """Deletion, upgrade and repair of models."""

    async def upgrade(
        self, name: str, access: NameAccess = EVERYTHING, on_progress: OnProgress = no_progress
    ) -> Handover:
        """Let this version of the service go on with a model that another one folded.

        `on_progress` reports the weights that are read.

        Raises
        ------
        NotFound
            There is no such model.
        Forbidden
            The name is an alias of a model that is not in the caller's reach.
        Conflict, SetAside, Unavailable
            As for `take_over`.

        """
        entry = await index.find(self._connection, name)
        if isinstance(entry, Alias):
            meant = await self._registry.aliases.look_up(name, entry)
            access.check(meant, f"the model that {name!r} points to")
            return await self.upgrade(meant, access, on_progress)
        if entry is None or entry.deleting or entry.base is None:
            raise NotFound(f"There is no model {name!r}.")
        try:
            done = await take_over(self._connection, self._settings, entry, on_progress)
        except ModelGone:
            raise NotFound(f"There is no model {name!r} any more.") from None
        self._registry.try_again(entry.uid)
        if self._registry.live(name) is None:
            self._registry.open_soon(name)
        return done

    async def repair(
        self,
        name: str,
        checkpoint: str | None = None,
        access: NameAccess = EVERYTHING,
        on_progress: OnProgress = no_progress,
    ) -> LogRepair:
        """Repair the index entry of a model, if that is damaged, and its log: see `engine.repair`.

        With a checkpoint, a model whose snapshot is lost goes on from that. `on_progress` reports
        the weights that are read and written.

        Raises
        ------
        NotFound
            There is no such model or checkpoint.
        Forbidden
            The model that an alias points to, or that the checkpoint was made of, is not in the
            caller's reach.
        Conflict, Unavailable
            As for `engine.repair`; the model needs no checkpoint.
        DamagedEntry
            Nothing is left from which the index entry could be made.

        """
        entry: IndexEntry | Alias | None
        try:
            entry = await index.find(self._connection, name)
        except index.DamagedEntry as damaged:
            entry = await damaged_entries.put_back(self._connection, name, damaged)
        if isinstance(entry, Alias):
            meant = await self._registry.aliases.look_up(name, entry)
            access.check(meant, f"the model that {name!r} points to")
            return await self.repair(meant, checkpoint, access, on_progress)
        if entry is None or entry.deleting or entry.base is None:
            raise NotFound(f"There is no model {name!r}.")
        if checkpoint is not None:
            found = await checkpoints.find(self._connection, StreamKeys(entry.stream), checkpoint)
            access.check(found.model, f"the model of the checkpoint {checkpoint!r}")
            await self._start_from(name, entry, checkpoint, on_progress)
            return LogRepair([], [], [])
        try:
            done, uids = await repair(self._connection, self._settings, entry)
        except ModelGone:
            raise NotFound(f"There is no model {name!r} any more.") from None
        for uid in uids:
            self._registry.try_again(uid)
        return done

    async def _start_from(
        self, name: str, entry: IndexEntry, checkpoint: str, on_progress: OnProgress
    ) -> None:
        try:
            await self._registry.open(name)
        except SetAside:
            await start_from_checkpoint(
                self._connection, self._settings, entry, checkpoint, on_progress
            )
            self._registry.try_again(entry.uid)
        else:
            raise Conflict(
                f"The model {name!r} can be served: POST /v1/models/{name}/restore takes the state "
                "of a checkpoint."
            )
