"""Aliases: names that point to one model of a stream at a time, moved by decisions made once."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from hinged_service.errors import Conflict, NotFound, Unavailable
from hinged_service.model.index_entry import Alias, IndexEntry
from hinged_service.store import aliases, followers, index
from hinged_service.store.aliases import Promoted
from hinged_service.store.connection import Connection
from hinged_service.store.keys import StreamKeys

__all__ = ["Aliases"]

_ATTEMPTS = 10


class _CachedAlias(NamedTuple):
    model: str
    uid: str
    stream: str
    until_s: float


class Aliases:
    """The aliases, as one worker has them cached.

    Parameters
    ----------
    staleness_s
        Age in seconds up to which a meaning is taken for true without looking again.
    max_models
        Most models and aliases that there may be.
    max_cached
        Most that are cached; the one looked up longest ago is dropped first.

    """

    def __init__(
        self, connection: Connection, staleness_s: float, max_models: int, max_cached: int
    ) -> None:
        self._connection = connection
        self._max_models = max_models
        self._max_cached = max_cached
        self._staleness_s = staleness_s
        self._cached: dict[str, _CachedAlias] = {}
        self._loop = asyncio.get_running_loop()

    def fresh(self, alias: str) -> str | None:
        """Return the model that an alias points to, if that was looked up a moment ago."""
        cached = self._cached.get(alias)
        return cached.model if cached is not None and self._loop.time() < cached.until_s else None

    def last(self, alias: str) -> str | None:
        """Return the model that an alias pointed to when it was last looked up."""
        cached = self._cached.get(alias)
        return None if cached is None else cached.model

    async def again(self, alias: str) -> str | None:
        """Return the model that a cached alias points to, by two small reads.

        Returns
        -------
        `None` if it is not cached, or points to another model than before: look it up.

        """
        cached = self._cached.get(alias)
        if cached is None:
            return None
        meant = await aliases.meant(self._connection, StreamKeys(cached.stream), alias)
        if meant != cached.uid:
            return None
        found = await index.find(self._connection, cached.model)
        if not isinstance(found, IndexEntry) or found.uid != meant or found.deleting:
            return None
        self._cache(alias, cached.model, found)
        return cached.model

    def _cache(self, alias: str, model: str, entry: IndexEntry) -> None:
        until_s = self._loop.time() + self._staleness_s
        self._cached.pop(alias, None)
        self._cached[alias] = _CachedAlias(model, entry.uid, entry.stream, until_s)
        if len(self._cached) > self._max_cached:
            del self._cached[next(iter(self._cached))]

    async def look_up(self, alias: str, entry: Alias) -> str:
        """Return the name of the model that an alias points to.

        Raises
        ------
        NotFound
            It points to none.

        """
        meant = await aliases.meant(self._connection, StreamKeys(entry.alias_on), alias)
        for name, model in (await index.index(self._connection)).models.items():
            if model.uid == meant and not model.deleting:
                self._cache(alias, name, model)
                return name
        self._cached.pop(alias, None)
        raise NotFound(f"The alias {alias!r} points to no model. Promote one to it.")

    async def set(self, alias: str, model: str) -> tuple[str, bool]:
        """Make an alias, or confirm that it points to this model already.

        An alias whose model is gone is made again.

        Returns
        -------
        Its stream; whether it is new.

        Raises
        ------
        Conflict
            The name is taken, or the alias points to another model.
        NotFound
            There is no such model.

        """
        target = await self._model(model)
        keys = StreamKeys(target.stream)
        entry = Alias(alias_on=target.stream)
        for _ in range(_ATTEMPTS):
            found = await index.find(self._connection, alias)
            if isinstance(found, IndexEntry):
                raise Conflict(f"{alias!r} is a model. Choose another name.")
            if found is None and not await index.enter(
                self._connection, alias, entry, self._max_models
            ):
                continue
            if found is not None and found != entry:
                old = StreamKeys(found.alias_on)
                living = await followers.snapshot_positions(self._connection, old)
                meant = await aliases.meant(self._connection, old, alias)
                if living and (not meant or meant in living):  # perhaps it is just being made
                    raise Conflict(
                        f"{alias!r} is an alias on the stream {found.alias_on!r}. Choose another "
                        "name."
                    )
                await aliases.remove(self._connection, old, alias)
                await index.compare_and_set(self._connection, alias, found, entry)
                continue
            made = await aliases.promote(self._connection, keys, alias, "", target.uid, "")
            if made.kind == "moved" and made.uid is not None:
                following = await followers.snapshot_positions(self._connection, keys)
                if made.uid not in following:  # that model is gone
                    lost = made.uid
                    made = await aliases.promote(
                        self._connection, keys, alias, lost, target.uid, ""
                    )
            if made.kind == "gone":
                raise NotFound(f"There is no model {model!r}.")
            if made.uid != target.uid:
                raise Conflict(
                    f"The alias {alias!r} points to another model. Move it with "
                    f"POST /v1/aliases/{alias}/promote."
                )
            self._cached.pop(alias, None)
            return target.stream, made.kind == "ok"
        raise Unavailable(
            "Another caller is creating or deleting this alias. Try again.", retry_after_s=1
        )

    async def promote(self, alias: str, of: str, to: str, decision: str | None) -> Promoted:
        """Repoint an alias from `of` to `to`, unless it moved or this decision was applied already.

        Raises
        ------
        NotFound
            There is no such alias or model.
        Conflict
            The models are not on the alias's stream.

        """
        entry = await index.find(self._connection, alias)
        if not isinstance(entry, Alias):
            raise NotFound(f"There is no alias {alias!r}. Make it with PUT /v1/aliases/{alias}.")
        old, new = await self._model(of), await self._model(to)
        for name, model in ((of, old), (to, new)):
            if model.stream != entry.alias_on:
                raise Conflict(
                    f"The alias is on the stream {entry.alias_on!r}, but {name!r} is on "
                    f"{model.stream!r}. Name models of the stream of the alias."
                )
        keys = StreamKeys(entry.alias_on)
        made = await aliases.promote(
            self._connection, keys, alias, old.uid, new.uid, decision or ""
        )
        if made.kind == "gone":
            raise NotFound(f"There is no model {to!r}.")
        self._cached.pop(alias, None)
        return made

    async def delete(self, alias: str) -> None:
        """Forget an alias; the model that it points to stays.

        Raises
        ------
        NotFound
            There is none.

        """
        entry = await index.find(self._connection, alias)
        if not isinstance(entry, Alias):
            raise NotFound(f"There is no alias {alias!r}.")
        await aliases.remove(self._connection, StreamKeys(entry.alias_on), alias)
        await index.compare_and_set(self._connection, alias, entry, None)
        self._cached.pop(alias, None)

    async def _model(self, name: str) -> IndexEntry:
        found = await index.find(self._connection, name)
        if not isinstance(found, IndexEntry) or found.deleting or found.base is None:
            raise NotFound(f"There is no model {name!r}.")
        return found
