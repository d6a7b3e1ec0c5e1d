"""Damage of what Redis holds of a model and its stream, as it is told to callers."""

from __future__ import annotations

from hinged_service.errors import Unavailable
from hinged_service.store import checkpoints, log
from hinged_service.store.connection import Connection
from hinged_service.store.keys import ModelKeys

__all__ = ["damage_of"]


async def damage_of(connection: Connection, keys: ModelKeys) -> dict[str, str]:
    """Return what is damaged: where, and what it is; empty while Redis does not answer."""
    try:
        found = await log.damage(connection, keys)
        for uid in await checkpoints.damaged(connection, keys.on):
            found[f"checkpoint {uid}"] = "has a description that cannot be read: delete it"
    except Unavailable:
        return {}
    return found
