"""River's own conformance suite, for every learner, and River's wrappers around them."""

from __future__ import annotations

from typing import Any

import pytest
from river import (
    base,
    checks,
    datasets,
    ensemble,
    evaluate,
    feature_extraction,
    metrics,
    multiclass,
    preprocessing,
)

from hinged import (
    AROW,
    AveragedPerceptron,
    HingeSGD,
    LinearClassifier,
    LinearUnit,
    PassiveAggressive,
    Perceptron,
)
from hinged import checks as hinged_checks

MEMORY = "check_bounded_memory_growth"  # as slow as all others: run once per type of learner
SCALED_SKIPS = {
    # The scaler sees the whole batch before the learner sees its first row.
    "check_learn_many_matches_learn_one",
    MEMORY,
}


def run_checks(model: base.Estimator, skips: set[str]) -> int:
    """Run all checks but the skipped ones; a failure names its check."""
    ran = 0
    for check in checks.yield_checks(model):
        name = hinged_checks.name_of(check)
        if name not in skips:
            try:
                check(model.clone())
            except Exception as error:
                error.add_note(f"in River's {name}")
                raise
            ran += 1
    return ran


def test_conforms(learner: LinearClassifier) -> None:
    assert learner._unit_test_skips() == set()
    assert run_checks(learner, {MEMORY}) > 30


def test_conforms_in_memory(one_per_type: LinearClassifier) -> None:
    found = {hinged_checks.name_of(check) for check in checks.yield_checks(one_per_type)}
    assert run_checks(one_per_type, found - {MEMORY}) >= 1


def test_conforms_behind_a_scaler(one_per_type: LinearClassifier) -> None:
    assert run_checks(preprocessing.StandardScaler() | one_per_type.clone(), SCALED_SKIPS) > 30


WRAPPED: list[base.Estimator] = [
    multiclass.OneVsRestClassifier(Perceptron()),
    multiclass.OneVsRestClassifier(AROW()),
    multiclass.OneVsRestClassifier(PassiveAggressive()),
    ensemble.BaggingClassifier(AveragedPerceptron(), n_models=3, seed=1),
    ensemble.BaggingClassifier(HingeSGD(), n_models=3, seed=1),
    ensemble.BaggingClassifier(LinearUnit(), n_models=3, seed=1),
]


@pytest.mark.parametrize("model", WRAPPED, ids=lambda m: f"{type(m).__name__}")
def test_conforms_inside_rivers_wrappers(model: base.Estimator) -> None:
    assert run_checks(model, {MEMORY}) > 20


def test_is_what_river_knows(learner: LinearClassifier) -> None:
    assert isinstance(learner, base.Classifier)
    assert isinstance(learner, base.MiniBatchClassifier)


def stream_of(model: LinearClassifier, n: int) -> list[tuple[dict[Any, Any], Any]]:
    source: Any = datasets.ImageSegments if model._multiclass else datasets.Phishing
    return list(source().take(n))


def test_progressive_validation_counts_the_same_mistakes(learner: LinearClassifier) -> None:
    model = learner.clone()
    metric: Any = metrics.Accuracy()  # type: ignore[no-untyped-call]
    accuracy = evaluate.progressive_val_score(stream_of(learner, 400), model, metric)
    judged = 400 - int(learner._multiclass)  # without the event before any class is known
    right = judged - model.accounting.mistakes
    assert accuracy.get() == pytest.approx(right / judged, abs=1e-12)


def test_xor_needs_the_product_and_learns_it_with_rivers_extender() -> None:
    rows = [({"a": a, "b": b}, a != b) for a in (0, 1) for b in (0, 1)]
    plain_model = Perceptron()
    for _ in range(200):
        updates = plain_model.accounting.updates
        for x, y in rows:
            plain_model.learn_one(x, y)
        assert plain_model.accounting.updates > updates

    extender: Any = feature_extraction.PolynomialExtender
    model = extender(degree=2, interaction_only=True) | Perceptron()
    passes = []
    for _ in range(12):
        before = model["Perceptron"].accounting.updates
        for x, y in rows:
            model.learn_one(x, y)
        passes.append(model["Perceptron"].accounting.updates - before)
    assert passes[-1] == 0
    assert all(passes[:-1])
