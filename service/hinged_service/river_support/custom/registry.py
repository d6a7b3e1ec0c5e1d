"""The custom models that this process serves: loaded and checked once, when it starts."""

from __future__ import annotations

from collections.abc import Mapping

from hinged_service.river_support.custom.loader import load, sources
from hinged_service.river_support.custom.model import Served

__all__ = ["install", "served"]

_served: dict[str, Served] = {}


def install(setting: str | None) -> None:
    """Load, check and serve the models of the setting `models` instead of earlier ones.

    Parameters
    ----------
    setting
        Files and `module:function` names, separated by commas.

    Raises
    ------
    StartupError
        Naming what cannot be served, and what to do.

    """
    listed = sources(setting)
    found: Mapping[str, Served] = {}
    if listed:
        from hinged_service.river_support.custom.probe import probe_all  # takes most of River along

        found = probe_all(listed, load(listed))
    _served.clear()
    _served.update(found)


def served() -> Mapping[str, Served]:
    """Return the custom models of this process by name."""
    return _served
