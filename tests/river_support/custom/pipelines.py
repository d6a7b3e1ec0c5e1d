"""Pipelines as an operator may declare them, and events for them; served by the tests here."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from river import compose, feature_extraction, linear_model, multiclass, preprocessing, tree

import hinged
from hinged_service.custom import CustomModel

WORDS = ["free", "now", "cat", "the", "Mat", "prize", "win", "home", "élan"]
SIZES = ("hour", "size", "links", "caps", "digits", "age")

Event = tuple[dict[str, Any], Any]


def mails(n: int = 120, seed: int = 3) -> list[Event]:
    r = random.Random(seed)
    made = []
    for _ in range(n):
        words = r.choices(WORDS, k=r.randrange(1, 9))
        x = {"text": " ".join(words), **{name: r.gauss(2.0, 3.0) for name in SIZES}}
        made.append((x, ("free" in words) != (r.random() < 0.1)))
    return made


def topics(n: int = 120, seed: int = 4) -> list[Event]:
    return [(x, ("ham", "spam", "other")[y + (x["hour"] > 4.0)]) for x, y in mails(n, seed)]


def houses(n: int = 120) -> list[Event]:
    """Events with text, true and false, numbers and holes."""
    r = random.Random(5)
    return [
        (
            {
                "town": r.choice(["Rome", "Oslo", "Bern"]),
                "new": r.random() < 0.5,
                "rooms": r.choice([None, 2.0, 3.0]),
            },
            r.random() < 0.5,
        )
        for _ in range(n)
    ]


def logistic() -> Any:
    text: Any = feature_extraction.BagOfWords(on="text")
    numbers = compose.Select(*SIZES) | preprocessing.StandardScaler()
    return (text + numbers) | linear_model.LogisticRegression()


def arow() -> Any:
    text = compose.Select("text") | feature_extraction.TFIDF(on="text")
    numbers = compose.Discard("text") | preprocessing.StandardScaler()
    return (text + numbers) | hinged.AROW()


def perceptron() -> Any:
    return (
        compose.Select(*SIZES)
        | preprocessing.StandardScaler()
        | hinged.Perceptron(label_at_zero=True)
    )


def one_vs_rest() -> Any:
    rest = multiclass.OneVsRestClassifier(linear_model.LogisticRegression())
    return feature_extraction.BagOfWords(on="text") | rest


def multiclass_pa() -> Any:
    numbers = compose.Discard("text") | preprocessing.StandardScaler()
    return numbers | hinged.MulticlassPassiveAggressive()


def one_hot() -> Any:
    return preprocessing.OneHotEncoder() | tree.HoeffdingTreeClassifier(
        memory_estimate_period=2**62
    )


BUILDS: dict[str, tuple[Callable[[], Any], Callable[[], list[Event]], int | None]] = {
    "logistic": (logistic, mails, None),
    "arow": (arow, mails, None),
    "perceptron": (perceptron, mails, None),
    "one_vs_rest": (one_vs_rest, topics, 3),
    "multiclass_pa": (multiclass_pa, topics, 10),
    "one_hot": (one_hot, lambda: [(x, "yes" if y else "no") for x, y in houses()], 2),
}
"""Builders, events, and the classes of a multiclass model."""


def models() -> dict[str, CustomModel]:
    made = {name: CustomModel(build, "1", events()) for name, (build, events, _) in BUILDS.items()}
    plain = CustomModel(lambda: preprocessing.StandardScaler() | hinged.PassiveAggressive(), "1")
    return {**made, "plain": plain}
