"""Models of all kinds that follow one stream together, and events for them."""

from __future__ import annotations

import random
from typing import Any

STREAM = "all"

Event = dict[str, Any]

NUMBERS: dict[str, Any] = {"type": "Select", "keys": ["a", "b"]}
CATEGORIES: list[dict[str, Any]] = [
    {"type": "Select", "keys": ["colour", "member"]},
    {
        "type": "StatImputer",
        "imputers": [
            {"feature": "colour", "value": "none"},
            {"feature": "member", "statistic": "Mode"},
        ],
    },
    {"type": "OneHotEncoder"},
]
BOTH = {
    "type": "Union",
    "branches": [
        [{"type": "TFIDF", "on": "text"}],
        CATEGORIES,
        [NUMBERS, {"type": "StandardScaler"}],
    ],
}
TWO: dict[str, Any] = {"labels": [False, True]}
ADWIN = {"detector": {"type": "ADWIN", "grace_period": 10, "clock": 8}}
DDM = {"detector": {"type": "DDM", "warm_start": 30}, "action": "reset"}
ROLLING = {"type": "rolling", "metric": "accuracy", "window": 100}
ALL_METRICS = ["accuracy", "balanced_accuracy", "f1", "roc_auc", "log_loss", "confusion_matrix"]

NUMERIC = {"numeric", "numeric-river"}
"""Models without a pipeline: they learn what is numbers and count the rest as rejected."""
MODELS: dict[str, dict[str, Any]] = {
    "numeric": {"learner": {"type": "perceptron"}, "metrics": ["accuracy"]},
    "numeric-river": {"learner": {"type": "LogisticRegression"}},
    "text": {
        "learner": {"type": "averaged_perceptron"},
        "pipeline": [BOTH],
        "metrics": [*ALL_METRICS, ROLLING],
    },
    "categories": {"learner": {"type": "arow"}, "pipeline": CATEGORIES, "drift": ADWIN},
    "scaled": {
        "learner": {"type": "passive_aggressive"},
        "pipeline": [NUMBERS, {"type": "StandardScaler"}],
        "drift": DDM,
        "metrics": [ROLLING],
    },
    "hedge": {"learner": {"type": "hedge"}, "pipeline": [NUMBERS, {"type": "PolynomialExtender"}]},
    "several": {"learner": {"type": "multiclass_arow"}, "pipeline": [BOTH], **TWO},
    "logistic": {
        "learner": {"type": "LogisticRegression"},
        "pipeline": [BOTH],
        "metrics": ["log_loss", "roc_auc"],
        "drift": ADWIN,
    },
    "bayes": {
        "learner": {"type": "GaussianNB"},
        "pipeline": [NUMBERS, {"type": "MinMaxScaler"}],
        "drift": DDM,
        **TWO,
    },
    "tree": {
        "learner": {"type": "HoeffdingTreeClassifier", "grace_period": 30},
        "pipeline": [NUMBERS, {"type": "RobustScaler"}],
        "metrics": ["accuracy", ROLLING],
        **TWO,
    },
}


def made_events(rng: random.Random, count: int) -> list[Event]:
    """Return events of numbers, text and holes; half-way their labels turn round."""
    words = ["free", "prize", "lunch", "home", "élan", "see", "cash"]
    events: list[Event] = []
    for number in range(count):
        x: dict[str, Any] = {"a": rng.gauss(0, 3), "b": rng.randrange(-3, 4)}
        y = x["a"] + x["b"] > 0
        if rng.random() < 0.7:
            x["text"] = " ".join(rng.choices(words, k=rng.randrange(1, 7)))
            x["colour"] = rng.choice(["red", "green", "blue", None])
            if rng.random() < 0.8:
                x["member"] = rng.choice([True, False])
            y = y if rng.random() < 0.7 else "free" in x["text"] or x["colour"] == "red"
        events.append({"x": x, "y": y is not (number > count // 2), "id": f"e{number}"})
    return events


def is_numbers(event: Event) -> bool:
    """Return whether a model without a pipeline takes the event."""
    return not any(v is None or isinstance(v, (bool, str)) for v in event["x"].values())
