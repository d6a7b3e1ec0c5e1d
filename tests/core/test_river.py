"""River's own conformance suite, one test per check, for every learner of the list."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from river import base, checks, datasets, evaluate, metrics, preprocessing

from hinged import Perceptron

LEARNERS: list[base.Classifier] = [
    Perceptron(),
    Perceptron(learning_rate=0.5, fit_intercept=False),
]
"""Every learner, as configured for all tests of this file. Append new ones here."""

SCALED_SKIPS = {
    # The scaler sees the whole batch before the learner sees its first row.
    "check_learn_many_matches_learn_one",
}


def cases(models: list[base.Estimator], skips: set[str]) -> Iterator[Any]:
    for number, model in enumerate(models):
        seen: dict[str, int] = {}
        for check in checks.yield_checks(model):
            name = getattr(check, "__name__", "check")
            if name in skips:
                continue
            seen[name] = seen.get(name, 0) + 1
            label = f"{number}-{type(model).__name__}-{name}-{seen[name]}"
            yield pytest.param(model, check, id=label)


def scaled() -> list[base.Estimator]:
    return [preprocessing.StandardScaler() | model.clone() for model in LEARNERS]


@pytest.mark.parametrize(("model", "check"), [*cases([*LEARNERS], set())])
def test_check(model: base.Estimator, check: Callable[[base.Estimator], None]) -> None:
    check(model.clone())


@pytest.mark.parametrize(("model", "check"), [*cases(scaled(), SCALED_SKIPS)])
def test_check_behind_a_scaler(
    model: base.Estimator, check: Callable[[base.Estimator], None]
) -> None:
    check(model.clone())


def label_of(model: base.Classifier) -> str:
    return " ".join(repr(model).split())


@pytest.fixture(params=LEARNERS, ids=label_of)
def trained(request: pytest.FixtureRequest) -> Any:
    model = request.param.clone()
    for x, y in datasets.Phishing().take(100):
        model.learn_one(x, y)
    return model


@pytest.mark.parametrize("duplicate", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy])
def test_copies_go_on_alike_and_share_nothing(trained: Any, duplicate: Any) -> None:
    twin = duplicate(trained)
    later = list(datasets.Phishing().take(300))[100:]
    frozen = duplicate(trained)
    for x, y in later:
        assert twin.predict_learn_one(x, y) == trained.predict_learn_one(x, y)
    assert twin.get_state()["scalars"] == trained.get_state()["scalars"]
    assert dict(twin.weights) == dict(trained.weights)
    assert frozen.accounting.events == 100
    assert dict(frozen.weights) != dict(trained.weights)


def test_a_clone_keeps_parameters_and_forgets_the_rest(trained: Any) -> None:
    clone = trained.clone()
    assert repr(clone) == repr(trained)
    assert dict(clone.weights) == {}
    assert clone.accounting.events == 0
    assert clone.intercept == 0.0
    assert trained.accounting.events == 100


def test_progressive_validation_counts_the_same_mistakes() -> None:
    model = Perceptron()
    metric: Any = metrics.Accuracy()  # type: ignore[no-untyped-call]
    accuracy = evaluate.progressive_val_score(datasets.Phishing(), model, metric)
    right = model.accounting.events - model.accounting.mistakes
    assert accuracy.get() == right / model.accounting.events
