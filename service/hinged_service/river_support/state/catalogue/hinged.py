"""The transformers of hinged itself."""

from __future__ import annotations

from typing import Any

import hinged
from hinged.kernel.pure import Record
from hinged_service.river_support.state.catalogue.entry import Entry, all_of
from hinged_service.wire.codec import DamagedState

__all__ = ["CLASSES"]

_MOST = 100_000
"""Components of a stored FourierFeatures at most: what a damaged one may take."""


def _finish_scaler(made: hinged.AutoScaler) -> None:
    fresh = hinged.AutoScaler(made.max_features)
    fresh.set_state(made.get_state())
    vars(made).update(vars(fresh))


def _finish_fourier(made: hinged.FourierFeatures) -> None:
    if not made.n_components <= _MOST:
        raise DamagedState(f"{made.n_components} components are too many")
    fresh = hinged.FourierFeatures(made.n_components, made.bend, made.seed, made.prefix)
    fresh.set_state({**fresh.get_state(), "widest": made.widest})
    vars(made).update(vars(fresh))


CLASSES: dict[type, Entry] = {
    hinged.AutoScaler: Entry(
        {
            "max_features": int | None,
            "_records": dict[Any, Record],
            **all_of(int, "events ignored"),
        },
        derived=frozenset({"_measured", "_name_bytes"}),
        parts=hinged.AutoScaler.__getstate__,
        finish=_finish_scaler,
    ),
    hinged.FourierFeatures: Entry(
        {"_bend": float, "prefix": str, **all_of(int, "n_components seed widest")},
        derived=frozenset({"names", "_phases", "_height", "_weights"}),
        finish=_finish_fourier,
    ),
}
