"""Models opened for a request: its API key allows the model, also through an alias."""

from __future__ import annotations

from starlette.types import Scope

from hinged_service.api.api_keys import Key
from hinged_service.api.progress_lines import on_progress_of
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.name_access import EVERYTHING, NameAccess
from hinged_service.engine.registry import ModelRegistry

__all__ = ["name_access", "open_model"]


def name_access(scope: Scope) -> NameAccess:
    """Return the names that a request may touch: all of them if the service has no keys."""
    key: Key | None = scope.get("hinged.key")
    return EVERYTHING if key is None else key.access


async def open_model(scope: Scope, registry: ModelRegistry, name: str) -> LiveModel:
    """Return the model of the name in a request's path, which was checked, or of an alias.

    Raises
    ------
    Forbidden
        The name is an alias of a model that the request may not touch.
    NotFound, SetAside, Unavailable
        As `ModelRegistry.open`.

    """
    live_model = await registry.open(name, on_progress_of(scope))
    if live_model.name != name:
        name_access(scope).check(live_model.name, f"the model that {name!r} points to")
    return live_model
