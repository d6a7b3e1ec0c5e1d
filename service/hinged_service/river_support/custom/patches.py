"""Three transformers of River's, mended for pipelines of the operator's own; their values stay.

River's Select and TFIDF go through a set, whose order differs between processes, and with
it the order of their state, or the last digits of every sum over the features. Its
StandardScaler makes an entry for every name that it is only asked about, so that a
prediction would change the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from river import compose, feature_extraction, preprocessing

__all__ = ["mend"]

_scaled: Callable[..., dict[Any, Any]] = preprocessing.StandardScaler.transform_one


def mend() -> None:
    """Let Select and TFIDF keep the order of the event, and StandardScaler accept predictions.

    This holds for all of the process. Doing it again changes nothing.
    """
    compose.Select.transform_one = _select  # type: ignore[method-assign]
    feature_extraction.TFIDF.learn_one = _learn_terms  # type: ignore[method-assign]
    preprocessing.StandardScaler.transform_one = _scale  # type: ignore[method-assign]


def _select(self: compose.Select, x: dict[Any, Any]) -> dict[Any, Any]:
    kept = {name: value for name, value in x.items() if name in self.keys}
    if len(kept) < len(self.keys):
        raise KeyError(min(map(str, self.keys - kept.keys())))
    return kept


def _learn_terms(self: feature_extraction.TFIDF, x: dict[Any, Any]) -> None:
    terms = self.process_text(x)  # type: ignore[no-untyped-call]
    self.dfs.update(list(dict.fromkeys(terms)))
    self.n += 1


def _scale(self: preprocessing.StandardScaler, x: dict[Any, Any]) -> dict[Any, Any]:
    with_mean = {name: value for name, value in x.items() if name in self.means}
    made = _scaled(self, with_mean)
    if len(with_mean) == len(x):
        return made
    return {
        name: made[name] if name in made else 0.0 if self.with_std else value - 0.0
        for name, value in x.items()
    }
