"""Distributions."""

from __future__ import annotations

import random

from river import proba, stats

from hinged_service.river_support.state.catalogue.entry import Entry
from hinged_service.wire.codec import DamagedState

__all__ = ["CLASSES"]


def _finish_gaussian(made: proba.Gaussian) -> None:
    if made.seed is None:  # draws only what nothing asks for, and could not be repeated
        vars(made)["_rng"] = random.Random(0)  # noqa: S311
    elif not isinstance(getattr(made, "_rng", None), random.Random):
        raise DamagedState("a stored distribution has a seed but no random numbers")


CLASSES: dict[type, Entry] = {
    proba.Gaussian: Entry(
        {"seed": int | None, "_var": stats.Var},
        optional={"_rng": random.Random},
        finish=_finish_gaussian,
    ),
}
