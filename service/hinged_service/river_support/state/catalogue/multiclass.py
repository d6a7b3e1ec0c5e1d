"""Several classes by binary classifiers."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from river import base, multiclass

from hinged_service.river_support.state.catalogue.entry import Entry

__all__ = ["CLASSES"]

_MODELS = defaultdict[Any, base.Classifier]
CLASSES: dict[type, Entry] = {
    multiclass.OneVsRestClassifier: Entry(
        {
            "classifier": base.Classifier,
            "classifiers": dict[Any, base.Classifier],
            "_y_name": str | None,
        }
    ),
    multiclass.OneVsOneClassifier: Entry(
        {"classifier": base.Classifier, "classifiers": _MODELS, "classes": set[Any]}
    ),
}
