"""Every transformer of River's in front of learners, by River's own conformance suite.

Each stands in front of three learners, which differ in labels and rule, and one of them in front of
every learner: a learner knows nothing of the transformer before it.

A transformer may give NaN, as a fresh `MinMaxScaler` does; River's learners go on, and so
must these, with finite weights.
"""

from __future__ import annotations

import copy
import importlib
import inspect
import math
import pkgutil
import random
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import river
from river import (
    checks,
    compose,
    datasets,
    evaluate,
    linear_model,
    metrics,
    preprocessing,
    stats,
)

from hinged import LinearClassifier
from tests.core.conftest import LEARNERS

Rows = list[tuple[dict[Any, Any], Any]]

EVENTS, FEATURES = 36, 5  # not more: there are hundreds of pairs
CLASSES = ["brickface", "cement", "foliage", "grass", "path", "sky", "window"]


@cache
def found() -> dict[str, type[Any]]:
    """Return what in River has a `transform_one`, by name."""
    names = [m.name for m in pkgutil.iter_modules(river.__path__) if not m.name.startswith("_")]
    return {
        name: kind
        for module in names
        for name, kind in inspect.getmembers(importlib.import_module(f"river.{module}"))
        if inspect.isclass(kind) and not inspect.isabstract(kind) and hasattr(kind, "transform_one")
    }


TEXT = {"BagOfWords", "GapEncoder", "TFIDF"}  # they take text, and no numbers
BUILT: dict[str, Callable[[Any, list[str]], Any]] = {
    "Agg": lambda kind, names: kind(names[0], names[1], stats.Mean()),
    "BagOfWords": lambda kind, names: kind(on="text"),
    "Discard": lambda kind, names: kind(*names[:2]),
    "FuncTransformer": lambda kind, names: kind(copy.copy),
    "GapEncoder": lambda kind, names: kind(on="text"),
    "Grouper": lambda kind, names: kind(preprocessing.MinMaxScaler(), by=names[1]),
    "Pipeline": lambda kind, names: kind(preprocessing.MinMaxScaler()),
    "LDA": lambda kind, names: kind(n_components=2, seed=1),
    "PoissonInclusion": lambda kind, names: kind(p=0.5, seed=1),
    "Prefixer": lambda kind, names: kind("before_"),
    "RandomTreesEmbedding": lambda kind, names: kind(n_trees=2, seed=1),
    "Renamer": lambda kind, names: kind({names[0]: "renamed"}),
    "Select": lambda kind, names: kind(*names[:2]),
    "SelectKBest": lambda kind, names: kind(stats.PearsonCorr(), k=2),
    "SelectType": lambda kind, names: kind(float, int),
    "StatImputer": lambda kind, names: kind(*((name, stats.Mean()) for name in names)),
    "Suffixer": lambda kind, names: kind("_after"),
    "TargetAgg": lambda kind, names: kind(names[1], stats.Mean()),
    "TFIDF": lambda kind, names: kind(on="text"),
    "TransformerProduct": lambda kind, names: kind(
        preprocessing.MinMaxScaler(), preprocessing.StandardScaler()
    ),
    "TransformerUnion": lambda kind, names: kind(
        preprocessing.MinMaxScaler(), compose.Prefixer("plain_")
    ),
}
"""Transformers that need arguments, or take long with their defaults."""

MEMORY = "check_bounded_memory_growth"  # says nothing about a stream this short
LACKING = {
    "check_emerging_features",
    "check_disappearing_features",
    "check_radically_disappearing_features",
}
SHUFFLED = {"check_shuffle_features_no_impact"}
BATCH = {"check_learn_many_matches_learn_one"}
EXCEPTIONS: dict[str, set[str]] = {
    # They raise KeyError for an event without a feature that they were told of.
    **dict.fromkeys(("Agg", "Grouper", "TargetAgg"), LACKING),
    # The same; and the last event of a batch is looked at before the first is learned.
    "Select": LACKING | BATCH,
    # The same; and a clone has the very statistics of its original.
    "StatImputer": LACKING | BATCH | {"check_clone_is_independent"},
    # They draw random numbers for the features in the order in which these come first.
    **dict.fromkeys(
        (
            "GaussianRandomProjector",
            "LDA",
            "PoissonInclusion",
            "RBFSampler",
            "SparseRandomProjector",
        ),
        SHUFFLED,
    ),
    # Of features that are equally good it keeps those that come first.
    "SelectKBest": SHUFFLED,
    # It divides by 0 for an event of zeros only.
    "Normalizer": LACKING | BATCH,
    # It renames the features in the event that it was given.
    "Renamer": {"check_learn_one", "check_emerging_features", "check_predict_proba_one"},
    # It sorts types, which have no order.
    "SelectType": {"check_repr", "check_repr_roundtrips_clone"},
    # It learns the whole batch before the learner sees the first row.
    "StandardScaler": BATCH,
}
"""The checks that a transformer may fail, before any learner."""


@cache
def stream(multiclass: bool) -> tuple[list[str], Rows]:
    """Return feature names and events; classes are numbers, which supervised transformers need."""
    source: Any = datasets.ImageSegments if multiclass else datasets.Phishing
    rows = list(source().take(2 * EVENTS))
    names = list(rows[0][0])[:FEATURES]
    few = [
        ({name: x[name] for name in names}, CLASSES.index(y) if multiclass else y) for x, y in rows
    ]
    return names, [(x, y) for x, y in few if any(x.values())][:EVENTS]


def in_front(name: str, learner: Any) -> Any:
    """Return a pipeline of a fresh transformer and a fresh learner."""
    names, _ = stream(learner._multiclass)
    kind: Any = found()[name]
    transformer = BUILT[name](kind, names) if name in BUILT else kind()
    return transformer | learner.clone()


def failed(model: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Exception]:
    """Return the checks that failed, and how."""
    _, rows = stream(model._multiclass)

    def few(model: Any, scale: int = 1) -> Iterator[Rows]:
        yield copy.deepcopy(rows)

    monkeypatch.setattr(checks, "_yield_datasets", few)
    failures = {}
    for check in checks.yield_checks(model):
        name = str(getattr(check, "__name__", check))
        if name != MEMORY:
            random.seed(1)  # River's checks shuffle
            try:
                check(model.clone())
            except Exception as error:
                failures[name] = error
    return failures


def assert_finite(model: LinearClassifier) -> None:
    state = model.get_state()
    values = [v for vector in state["vectors"].values() for v in vector.view().values()]
    assert all(map(math.isfinite, [*state["scalars"].values(), *values]))


NUMERIC = sorted(found().keys() - TEXT)


THREE = ("Perceptron", "AROW", "MulticlassPassiveAggressive")
KINDS = {type(learner).__name__: learner for learner in LEARNERS}
PAIRS = [
    *(
        (name, kind)
        for name in NUMERIC
        for kind in ("Perceptron", "AROW", "MulticlassPassiveAggressive")
    ),
    *(("MinMaxScaler", kind) for kind in sorted(KINDS)),
]


@pytest.mark.parametrize(("name", "kind"), sorted(set(PAIRS)))
def test_a_learner_conforms_behind_it(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for check, error in failed(in_front(name, KINDS[kind]), monkeypatch).items():
        if check not in EXCEPTIONS.get(name, set()):
            error.add_note(f"in River's {check}")
            raise error


RIVERS = {False: linear_model.LogisticRegression(), True: linear_model.SoftmaxRegression()}


@pytest.mark.parametrize("name", sorted(EXCEPTIONS))
def test_rivers_own_learners_fail_there_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    for learner in RIVERS.values():
        seen |= failed(in_front(name, learner), monkeypatch).keys()
    assert seen & EXCEPTIONS[name]
    assert seen - EXCEPTIONS[name] <= BATCH  # theirs is another rule for batches


@pytest.mark.parametrize(("name", "kind"), sorted(set(PAIRS)))
def test_progressive_validation_passes_and_stays_finite(name: str, kind: str) -> None:
    model = in_front(name, KINDS[kind])
    _, rows = stream(KINDS[kind]._multiclass)
    metric: Any = metrics.Accuracy()  # type: ignore[no-untyped-call]
    evaluate.progressive_val_score(copy.deepcopy(rows), model, metric)
    learner = model[kind]
    assert learner.accounting.events == len(rows)
    assert_finite(learner)


@pytest.mark.parametrize("name", sorted(TEXT))
def test_it_takes_words(name: str, binary: LinearClassifier) -> None:
    texts = ["free money now", "lunch at noon", "money for free", "free lunch", "noon is fine"] * 4
    rows: Rows = [({"text": text}, "free" in text) for text in texts]
    model: Any = BUILT[name](found()[name], []) | binary.clone()
    metric: Any = metrics.Accuracy()  # type: ignore[no-untyped-call]
    evaluate.progressive_val_score(rows, model, metric)
    learner = model[type(binary).__name__]
    assert learner.accounting.events == len(rows)
    assert_finite(learner)
