"""Models deleted, also those that the index lost or whose entry is damaged."""

from __future__ import annotations

import logging

from hinged_service.engine import damaged_entries
from hinged_service.engine.lost_entries import recovered, unlisted
from hinged_service.engine.registry import ModelRegistry
from hinged_service.errors import Conflict, NotFound
from hinged_service.model.index_entry import Alias, IndexEntry
from hinged_service.model.start import StartFrom
from hinged_service.settings import Settings
from hinged_service.store import aliases, checkpoints, followers, index
from hinged_service.store.keys import StreamKeys

__all__ = ["ModelDeletion"]

logger = logging.getLogger(__name__)


class ModelDeletion:
    """Deletion of models."""

    def __init__(self, registry: ModelRegistry, settings: Settings) -> None:
        self._registry = registry
        self._connection = registry.connection
        self._settings = settings

    async def _find(self, name: str) -> IndexEntry | Alias | None:
        """Return the entry of a name, also of a model that the index lost; `None` without one."""
        entry = await index.find(self._connection, name)
        return entry if entry is not None else await recovered(self._connection, name)

    async def delete(self, name: str) -> None:
        """Delete a model; no worker can write it back.

        Raises
        ------
        NotFound
            There is no such model.

        """
        while True:
            try:
                entry = await self._find(name)
            except index.DamagedEntry as damaged:
                if await damaged_entries.remove(self._connection, name, damaged):
                    self._registry.forget(name)
                    return
                continue
            if entry is None:
                await self._delete_unlisted(name)
                return
            if isinstance(entry, Alias):
                raise Conflict(f"{name!r} is an alias: DELETE /v1/aliases/{name} removes it.")
            meaning = await aliases.of_stream(self._connection, StreamKeys(entry.stream))
            if not entry.deleting and entry.uid in meaning.values():
                alias = next(a for a, uid in meaning.items() if uid == entry.uid)
                raise Conflict(
                    f"The alias {alias!r} points to this model. Promote another model first, or "
                    "delete the alias."
                )
            if entry.deleting or await index.compare_and_set(
                self._connection, name, entry, entry.as_deleting()
            ):
                break
        await self.finish_deletion(name, entry.as_deleting())
        self._registry.forget(name)

    async def _delete_unlisted(self, name: str) -> None:
        """Delete the data on a stream of models that the index lost."""
        left = await unlisted(self._connection, name)
        if not left:
            raise NotFound(f"There is no model {name!r}.")
        logger.warning("removing what is left of model %s, which the index lost", name)
        for uid in left:
            await followers.delete(self._connection, StreamKeys(name).model(uid))

    async def finish_deletion(self, name: str, entry: IndexEntry) -> None:
        """Delete the data of a model that is marked as deleting, its name last."""
        keys = StreamKeys(entry.stream)
        await followers.delete(self._connection, keys.model(entry.uid))
        start = entry.spec.start
        named = isinstance(start, StartFrom) and start.checkpoint is not None
        if entry.origin is not None and not named:  # it was made for this model
            await checkpoints.drop(self._connection, keys, entry.origin)
        await index.compare_and_set(self._connection, name, entry, None)
