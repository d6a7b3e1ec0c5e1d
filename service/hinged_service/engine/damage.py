"""Damage of the data of a model and its stream in Redis, as callers see it."""

from __future__ import annotations

from hinged_service.errors import SetAside, Unavailable
from hinged_service.store import checkpoints, log
from hinged_service.store.connection import Connection
from hinged_service.store.keys import ModelKeys
from hinged_service.wire.codec import DamagedState

__all__ = ["damage_of", "set_aside_for"]

_AGAIN_S = 60


def set_aside_for(error: DamagedState) -> SetAside:
    """Return the error for damage that a call met."""
    return SetAside(f"What Redis holds is damaged: {error}.", retry_after_s=_AGAIN_S)


async def damage_of(connection: Connection, keys: ModelKeys) -> dict[str, str]:
    """Return the damaged parts, with their places; empty while Redis does not answer."""
    try:
        found = await log.damage(connection, keys)
        for uid in await checkpoints.damaged(connection, keys.on):
            found[f"checkpoint {uid}"] = "has a description that cannot be read: delete it"
    except Unavailable:
        return {}
    return found
