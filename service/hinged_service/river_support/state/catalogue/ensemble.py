"""Ensembles."""

from __future__ import annotations

import random

from river import base, compose, ensemble

from hinged_service.river_support.state.catalogue.entry import Entry
from hinged_service.river_support.state.catalogue.likeness import check_alike
from hinged_service.wire.codec import DamagedState

__all__ = ["CLASSES"]


def _finish_ensemble(made: ensemble.BaggingClassifier) -> None:
    if made.n_models != len(made.data):
        raise DamagedState("the members of a stored ensemble are damaged")
    for member in made.data:
        check_alike(member, made.model)


CLASSES: dict[type, Entry] = {
    ensemble.BaggingClassifier: Entry(
        {
            "data": list[base.Classifier | compose.Pipeline],
            "model": base.Classifier | compose.Pipeline,
        }
        | {"n_models": int, "seed": int | None, "_rng": random.Random},
        finish=_finish_ensemble,
    ),
}
