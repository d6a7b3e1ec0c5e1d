"""Words, products, kernels."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from typing import Any

from river import feature_extraction

from hinged_service.river_support.state.catalogue.entry import Entry
from hinged_service.wire.codec import DamagedState

__all__ = ["CLASSES"]

_COUNTS = Counter[Any]
_TEXT: dict[str, Any] = {
    "on": str | None,
    "strip_accents": bool,
    "lowercase": bool,
    "preprocessor": None,
    "stop_words": set[str] | None,
    "tokenizer_pattern": str,
    "tokenizer": None,
    "ngram_range": tuple[int, int],
}
_NOT_TEXT = frozenset(("processing_steps",))


def _finish_text(made: feature_extraction.BagOfWords) -> None:
    try:
        re.compile(made.tokenizer_pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise DamagedState("the pattern of a stored tokenizer is damaged") from error
    fresh = type(made)(**{name: getattr(made, name) for name in _TEXT})
    made.processing_steps = fresh.processing_steps


CLASSES: dict[type, Entry] = {
    feature_extraction.BagOfWords: Entry(_TEXT, derived=_NOT_TEXT, finish=_finish_text),
    feature_extraction.TFIDF: Entry(
        {**_TEXT, "normalize": bool, "dfs": _COUNTS, "n": int},
        derived=_NOT_TEXT,
        finish=_finish_text,
    ),
    feature_extraction.PolynomialExtender: Entry(
        {"degree": int, "interaction_only": bool, "include_bias": bool, "bias_name": Any}
    ),
    feature_extraction.RBFSampler: Entry(
        {
            "gamma": float,
            "n_components": int,
            "seed": int | None,
            "rng": random.Random,
            "weights": defaultdict[Any, list[float]],
            "offsets": list[float],
        }
    ),
}
