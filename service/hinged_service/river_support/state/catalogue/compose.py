"""Pipelines and their parts."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any

from river import base, compose

from hinged_service.river_support.state.catalogue.entry import Entry
from hinged_service.wire.codec import DamagedState

__all__ = ["CLASSES"]


def _finish_pipeline(made: compose.Pipeline) -> None:
    if not made.steps:
        raise DamagedState("a stored pipeline has no steps")
    vars(made).update(_plan=None, _inference_transformers=(), _last_step_cached=None)


CLASSES: dict[type, Entry] = {
    compose.Select: Entry({"keys": set[Any]}),
    compose.Discard: Entry({"keys": set[Any]}),
    compose.Grouper: Entry(
        {
            "transformer": base.Transformer,
            "by": list[Any],
            "transformers": defaultdict[Any, base.Transformer],
        }
    ),
    compose.TransformerUnion: Entry(
        {"transformers": dict[Any, base.Transformer | compose.Pipeline]}
    ),
    compose.Pipeline: Entry(
        {"steps": OrderedDict[Any, base.Estimator]},
        derived=frozenset(
            ("_plan", "_inference_transformers", "_last_step_cached", "_last_step_params")
        ),
        finish=_finish_pipeline,
    ),
}
