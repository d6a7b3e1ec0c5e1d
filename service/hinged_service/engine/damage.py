"""Damage of what Redis holds of a model and its stream, as it is told to callers."""

from __future__ import annotations

from hinged_service.errors import SetAside, Unavailable
from hinged_service.store import checkpoints, log
from hinged_service.store.connection import Connection
from hinged_service.store.keys import ModelKeys
from hinged_service.wire.codec import DamagedState

__all__ = ["damage_of", "set_aside_for"]

_AGAIN_S = 60


def set_aside_for(error: DamagedState) -> SetAside:
    """Return how the damage that a call met is told to its caller."""
    return SetAside(f"What Redis holds is damaged: {error}.", retry_after_s=_AGAIN_S)


async def damage_of(connection: Connection, keys: ModelKeys) -> dict[str, str]:
    """Return what is damaged: where, and what it is; empty while Redis does not answer."""
    try:
        found = await log.damage(connection, keys)
        for uid in await checkpoints.damaged(connection, keys.on):
            found[f"checkpoint {uid}"] = "has a description that cannot be read: delete it"
    except Unavailable:
        return {}
    return found
