"""Several classes by binary classifiers."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from river import base, multiclass

from hinged_service.river_support.state.callables import product
from hinged_service.river_support.state.catalogue.entry import Entry
from hinged_service.river_support.state.catalogue.likeness import check_alike

__all__ = ["CLASSES"]


def _finish_several(
    made: multiclass.OneVsRestClassifier | multiclass.OneVsOneClassifier,
) -> None:
    members = list(made.classifiers.values())
    if isinstance(made.classifiers, defaultdict) and made.classifiers.default_factory is not None:
        members += product(made.classifiers.default_factory)
    for member in members:
        check_alike(member, made.classifier)


_MODELS = defaultdict[Any, base.Classifier]
CLASSES: dict[type, Entry] = {
    multiclass.OneVsRestClassifier: Entry(
        {
            "classifier": base.Classifier,
            "classifiers": dict[Any, base.Classifier],
            "_y_name": str | None,
        },
        finish=_finish_several,
    ),
    multiclass.OneVsOneClassifier: Entry(
        {"classifier": base.Classifier, "classifiers": _MODELS, "classes": set[Any]},
        finish=_finish_several,
    ),
}
