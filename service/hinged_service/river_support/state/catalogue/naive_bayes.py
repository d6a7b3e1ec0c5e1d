"""Naive Bayes."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from river import naive_bayes, proba

from hinged_service.river_support.state.catalogue.entry import Entry, all_of

__all__ = ["CLASSES"]

_COUNTS = Counter[Any]
_BAYES: dict[str, Any] = {"alpha": float, "class_counts": _COUNTS}
CLASSES: dict[type, Entry] = {
    naive_bayes.GaussianNB: Entry(
        {"class_counts": _COUNTS, "gaussians": defaultdict[Any, defaultdict[Any, proba.Gaussian]]}
    ),
    naive_bayes.BernoulliNB: Entry(
        {**_BAYES, "true_threshold": float, "feature_counts": defaultdict[Any, _COUNTS]}
    ),
    naive_bayes.MultinomialNB: Entry(
        {**_BAYES, "feature_counts": defaultdict[Any, _COUNTS], "class_totals": _COUNTS}
    ),
    naive_bayes.ComplementNB: Entry(
        _BAYES
        | {"feature_counts": defaultdict[Any, _COUNTS]}
        | all_of(_COUNTS, "feature_totals class_totals")
    ),
}
