"""The inner loops of the learners: compiled if there is a compiled version, else in Python.

`hinged.kernel.pure` is the definition; the extension `hinged.kernel.native` gives the same
bits. The choice is made once, on import: the environment variable `HINGED_PURE=1` takes the
pure version though the compiled one is there.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Literal

from hinged.kernel.pure import (
    Accounting,
    BinaryCore,
    ClassWeights,
    Mixing,
    Scales,
    Scaling,
    Storage,
    adaptive_dot,
    add_adaptively,
    add_all,
    add_both_by_confidence,
    add_by_betting,
    add_by_confidence,
    add_logistic,
    add_penalised,
    add_proximally,
    add_pulled,
    add_shrunk,
    add_to_classes,
    add_to_means,
    all_finite,
    averaged_scores,
    best,
    both_probabilities,
    class_at_once,
    class_scores,
    class_shares,
    finite_scores,
    judged,
    learn_class,
    learn_rows,
    learn_run,
    length,
    log_probabilities,
    mean_scores,
    mixed,
    norm_of,
    packed_features,
    pool_event,
    pool_score,
    pooled,
    pulled_dot,
    read_events,
    scores_at_once,
    scores_of,
    sent_text,
    served_scores,
    set_mark,
    shrunk_dot,
    softmax,
    teach,
    teach_classes,
    uncertainty,
    with_squares,
)

__all__ = [
    "Accounting",
    "BinaryCore",
    "ClassWeights",
    "Mixing",
    "Scales",
    "Scaling",
    "Storage",
    "adaptive_dot",
    "add_adaptively",
    "add_all",
    "add_both_by_confidence",
    "add_by_betting",
    "add_by_confidence",
    "add_logistic",
    "add_penalised",
    "add_proximally",
    "add_pulled",
    "add_shrunk",
    "add_to_classes",
    "add_to_means",
    "all_finite",
    "averaged_scores",
    "best",
    "both_probabilities",
    "class_at_once",
    "class_scores",
    "class_shares",
    "finite_scores",
    "is_compiled",
    "judged",
    "kind",
    "learn_class",
    "learn_rows",
    "learn_run",
    "length",
    "log_probabilities",
    "mean_scores",
    "mixed",
    "norm_of",
    "packed_features",
    "pool_event",
    "pool_score",
    "pooled",
    "pulled_dot",
    "read_events",
    "scores_at_once",
    "scores_of",
    "sent_text",
    "served_scores",
    "set_mark",
    "shrunk_dot",
    "softmax",
    "teach",
    "teach_classes",
    "uncertainty",
    "with_squares",
]

is_compiled = (
    os.environ.get("HINGED_PURE", "") in ("", "0") and find_spec("hinged.kernel.native") is not None
)
"""True if the compiled version is in use."""
if is_compiled:
    _native = vars(import_module("hinged.kernel.native"))
    globals().update((name, _native[name]) for name in __all__ if name in _native)


def kind() -> Literal["compiled", "pure"]:
    """Return which version is in use."""
    return "compiled" if is_compiled else "pure"
