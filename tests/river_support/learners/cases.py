"""Pipelines as a spec has them and as River has them, with a stream of events for each."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from river import (
    compose,
    datasets,
    feature_extraction,
    linear_model,
    naive_bayes,
    preprocessing,
    stats,
    tree,
)

import hinged

fx: Any = feature_extraction
pp: Any = preprocessing
nb: Any = naive_bayes
_datasets: Any = datasets  # not all of River is typed
Event = tuple[dict[str, Any], Any]


@dataclass(frozen=True)
class Case:
    """A model twice: its spec, and the same pipeline in process.

    `chunk` events go into one call; `labels` are the service's names of the labels in process.
    """

    spec: dict[str, Any]
    river: Callable[[], Any]
    events: Callable[[], list[Event]]
    chunk: int = 7
    labels: dict[Any, Any] = field(default_factory=dict)

    def label(self, y: Any) -> Any:
        """Return the service's label for a label of the pipeline in process."""
        return self.labels.get(y, y)


def phishing() -> list[Event]:
    return [({str(k): float(v) for k, v in x.items()}, bool(y)) for x, y in datasets.Phishing()]


def segments(n: int = 250) -> list[Event]:
    events = _datasets.ImageSegments().take(n)
    return [({k: float(v) for k, v in x.items()}, str(y)) for x, y in events]


def messages(n: int = 250) -> list[Event]:
    """Short messages, a third of them advertisements."""
    r = random.Random(3)
    spam = ["free", "prize", "now", "click", "win", "call", "cash", "élan", "£100", "urgent"]
    ham = ["see", "you", "at", "home", "tonight", "Été", "lunch", "later", "the", "of"]
    events: list[Event] = []
    for _ in range(n):
        wanted = r.random() < 2 / 3
        words = r.choices(ham if wanted else spam, k=r.randrange(1, 9)) + r.choices(ham + spam, k=2)
        text = " ".join(words).capitalize() + r.choice(["", "!", "…"])
        events.append(({"text": text}, "ham" if wanted else "spam"))
    return events


def shoppers(n: int = 300) -> list[Event]:
    """Categories, truth values, numbers, text, and holes."""
    r = random.Random(4)
    events: list[Event] = []
    for _ in range(n):
        x: dict[str, Any] = {
            "colour": r.choice(["red", "green", "blue", "a_b"]),
            "member": r.choice([True, False]),
            "size": float(r.randrange(4)),
            "price": r.gauss(20.0, 8.0),
            "age": None if r.random() < 0.3 else float(r.randrange(20, 80)),
            "hue": None if r.random() < 0.3 else r.choice(["dark", "light"]),
        }
        events.append((x, (x["colour"] == "red" and x["size"] > 1.0) or x["member"]))
    return events


def with_holes() -> list[Event]:
    return [({k: x[k] for k in ("age", "hue", "size")}, y) for x, y in shoppers()]


def without_holes() -> list[Event]:
    return [({k: v for k, v in x.items() if k not in ("age", "hue")}, y) for x, y in shoppers()]


def xor(n: int = 300) -> list[Event]:
    r = random.Random(5)
    points = [(r.uniform(-1, 1), r.uniform(-1, 1)) for _ in range(n)]
    return [({"a": a, "b": b}, (a > 0) is not (b > 0)) for a, b in points]


class Select(compose.Select):
    """River's, in the order of the keys: its own is that of a set, another in every process."""

    def __init__(self, *keys: str) -> None:
        super().__init__(*keys)
        self.order = keys

    def transform_one(self, x: dict[Any, Any]) -> dict[Any, Any]:
        return {name: x[name] for name in self.order}


def _categorical() -> Any:
    categories = Select("colour", "member") | pp.OneHotEncoder()
    return categories + (Select("price", "size") | pp.StandardScaler())


CATEGORICAL = {
    "type": "Union",
    "branches": [
        [{"type": "Select", "keys": ["colour", "member"]}, {"type": "OneHotEncoder"}],
        [{"type": "Select", "keys": ["price", "size"]}, {"type": "StandardScaler"}],
    ],
}
IMPUTED = [
    {
        "type": "StatImputer",
        "imputers": [
            {"feature": "age", "statistic": "Mean"},
            {"feature": "hue", "value": "none"},
        ],
    },
    {"type": "OneHotEncoder", "drop_zeros": True},
]
BINARY_TEXT = {"labels": ["ham", "spam"]}
AS_TEXT = {False: "ham", True: "spam"}


def _first_all_there(events: list[Event]) -> list[Event]:
    """Begin with an event without holes: River's mean of nothing is no age."""
    start = next(i for i, (x, _) in enumerate(events) if None not in x.values())
    return events[start:]


def as_binary(events: list[Event]) -> list[Event]:
    return [(x, y == "spam") for x, y in events]


CASES: dict[str, Case] = {
    "scaled perceptron on Phishing": Case(
        {"learner": {"type": "perceptron"}, "pipeline": [{"type": "StandardScaler"}]},
        lambda: pp.StandardScaler() | hinged.Perceptron(),
        phishing,
        chunk=1,
    ),
    "scaled logistic regression": Case(
        {"learner": {"type": "LogisticRegression"}, "pipeline": [{"type": "StandardScaler"}]},
        lambda: pp.StandardScaler() | linear_model.LogisticRegression(intercept_lr=0.01),
        lambda: phishing()[:400],
    ),
    "scaled tree": Case(
        {
            "learner": {"type": "HoeffdingTreeClassifier", "grace_period": 30},
            "labels": [False, True],
            "pipeline": [{"type": "StandardScaler"}],
        },
        lambda: pp.StandardScaler() | tree.HoeffdingTreeClassifier(grace_period=30, max_depth=10),
        lambda: phishing()[:400],
    ),
    "scaled multiclass perceptron": Case(
        {"learner": {"type": "multiclass_perceptron"}, "pipeline": [{"type": "StandardScaler"}]},
        lambda: pp.StandardScaler() | hinged.MulticlassPerceptron(),
        segments,
    ),
    "words to naive Bayes": Case(
        {
            "learner": {"type": "MultinomialNB"},
            "pipeline": [{"type": "BagOfWords", "on": "text"}],
        },
        lambda: fx.BagOfWords(on="text") | nb.MultinomialNB(),
        messages,
    ),
    "TFIDF to a perceptron": Case(
        {
            "learner": {"type": "passive_aggressive"},
            "pipeline": [{"type": "TFIDF", "on": "text"}],
            **BINARY_TEXT,
        },
        lambda: fx.TFIDF(on="text") | hinged.PassiveAggressive(),
        lambda: as_binary(messages()),
        labels=AS_TEXT,
    ),
    "categories beside numbers": Case(
        {"learner": {"type": "arow"}, "pipeline": [CATEGORICAL]},
        lambda: _categorical() | hinged.AROW(),
        without_holes,
    ),
    "imputed holes": Case(
        {"learner": {"type": "perceptron"}, "pipeline": IMPUTED},
        lambda: compose.Pipeline(
            pp.StatImputer(("age", stats.Mean()), ("hue", "none")),
            pp.OneHotEncoder(drop_zeros=True),
            hinged.Perceptron(),
        ),
        lambda: _first_all_there(with_holes()),
    ),
    "products for XOR": Case(
        {
            "learner": {"type": "averaged_perceptron"},
            "pipeline": [{"type": "PolynomialExtender", "interaction_only": True}],
        },
        lambda: fx.PolynomialExtender(interaction_only=True) | hinged.AveragedPerceptron(),
        xor,
    ),
}
