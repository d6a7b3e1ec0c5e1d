"""Every learner, for the tests of what all must do."""

from __future__ import annotations

import pytest

from hinged import (
    AROW,
    SCW,
    Auto,
    AveragedPerceptron,
    Calibrated,
    CoinBetting,
    Curved,
    FTRLProximal,
    Hedge,
    HingeSGD,
    LinearClassifier,
    LinearUnit,
    LogisticSGD,
    MulticlassAROW,
    MulticlassAveragedPerceptron,
    MulticlassDiscriminant,
    MulticlassHedge,
    MulticlassLogisticSGD,
    MulticlassPassiveAggressive,
    MulticlassPerceptron,
    MulticlassPocketPerceptron,
    MulticlassQuadratic,
    OneVsRest,
    PassiveAggressive,
    Perceptron,
    PocketPerceptron,
    Quadratic,
    RandomWeights,
)

BINARY: list[LinearClassifier] = [
    Perceptron(),
    Perceptron(learning_rate=0.5, fit_intercept=False, margin=0.25),
    Perceptron(update_on="mistake", label_at_zero=True),
    Perceptron(initial_weights={"ip_in_url": 0.5, "other": -1.0}, initial_intercept=0.25),
    AveragedPerceptron(),
    PocketPerceptron(),
    PassiveAggressive(mode="uncapped"),
    PassiveAggressive(mode="I", C=0.5),
    PassiveAggressive(mode="II", fit_intercept=False),
    LinearUnit(),
    HingeSGD(),
    HingeSGD(l1=0.001, l2=0.01),
    HingeSGD(0.125, "constant"),  # exact: no tie is decided by the order of a sum
    HingeSGD(0.1, "sqrt", l1=0.01),
    HingeSGD(steps="pegasos", l2=0.1, l1=0.001),
    HingeSGD(steps="pegasos", l2=0.1),
    AROW(),
    AROW(r=0.1, fit_intercept=False),
    AROW(forgetting=0.05),
    SCW(),
    SCW(C=1.0, phi=1.64, fit_intercept=False),
    LogisticSGD(initial_weights=RandomWeights(4)),
    LogisticSGD(0.125, "constant"),
    LogisticSGD(0.3, "adagrad", fit_intercept=False),
    CoinBetting(),
    CoinBetting(label_at_zero=True, initial_weights=RandomWeights(7, 0.5)),
    FTRLProximal(initial_weights={"a": 0.5, "zz": -1.0}, initial_intercept=0.25),
    FTRLProximal(l1=0.5, l2=0.1, fit_intercept=False),
    AveragedPerceptron(label_at_zero=True, initial_weights=RandomWeights(3, 0.5)),
    PocketPerceptron(initial_weights={"a": 1.0, "zz": -2.0}, initial_intercept=0.5),
    PassiveAggressive(initial_weights=RandomWeights(1)),
    LinearUnit(initial_weights=RandomWeights(2, 0.25)),
    HingeSGD(initial_weights=RandomWeights(3)),
    HingeSGD(0.1, "sqrt", l2=0.1, initial_weights={"a": 0.5, "zz": -1.0}),
    AROW(label_at_zero=True, initial_weights=RandomWeights(5)),
    Hedge(),
    Hedge([Perceptron(), AROW()], learning_rate=0.5, share=0.0),
    Hedge([Perceptron()], curved=True),
    Curved(n_components=20),
    Curved(AveragedPerceptron(), n_components=7, bend=0.5, seed=3),
    Quadratic(),
    Quadratic(LogisticSGD(0.1, "adagrad")),
    Calibrated(AveragedPerceptron()),
    Calibrated(Perceptron(label_at_zero=True)),
    Auto(max_classes=2),
]
MULTICLASS: list[LinearClassifier] = [
    MulticlassPerceptron(),
    MulticlassAveragedPerceptron(),
    MulticlassPocketPerceptron(fit_intercept=False),
    MulticlassPassiveAggressive(),
    MulticlassPassiveAggressive(mode="uncapped"),
    MulticlassPassiveAggressive(mode="II"),
    MulticlassAROW(),
    MulticlassLogisticSGD(),
    MulticlassDiscriminant(),
    MulticlassLogisticSGD(0.1, least=0.0, initial_weights=RandomWeights(4)),
    MulticlassAveragedPerceptron(initial_weights=RandomWeights(1)),
    MulticlassPocketPerceptron(initial_weights=RandomWeights(2, 0.5)),
    MulticlassAROW(initial_weights=RandomWeights(3)),
    OneVsRest(),
    OneVsRest(PassiveAggressive()),
    MulticlassQuadratic(),
    MulticlassQuadratic(OneVsRest(PassiveAggressive())),
    MulticlassHedge(),
    MulticlassHedge([MulticlassAROW(), OneVsRest(AROW())], learning_rate=0.5, share=0.0),
    Calibrated(MulticlassPerceptron()),
    Calibrated(OneVsRest()),
    Auto(),
]
LEARNERS = BINARY + MULTICLASS
"""Every learner, as configured for the tests of what all must do. Append new ones here."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give every learner, or those of one sort, to tests that ask for one by these names."""
    sorts = {
        "learner": LEARNERS,
        "binary": BINARY,
        "multiclass": MULTICLASS,
        "one_per_type": list({type(model): model for model in LEARNERS}.values()),
    }
    for name, models in sorts.items():
        if name in metafunc.fixturenames:
            ids = [f"{i}-{type(model).__name__}" for i, model in enumerate(models)]
            metafunc.parametrize(name, models, ids=ids)
