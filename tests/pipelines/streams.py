"""Streams of events, and one pipeline of each kind, that the tests of pipelines share."""

import json
import random
from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter
from river import datasets

from hinged_service.pipelines import Pipeline, Steps, Value

Event = dict[str, Value]
_STEPS: TypeAdapter[Steps] = TypeAdapter(Steps)
WORDS = ["the", "cat", "Sat", "on", "élan", "Été", "mat-book", "free", "now", "of", "a", "naïve"]


def steps(*specs: Any) -> Steps:
    return _STEPS.validate_json(json.dumps(specs))


def pipeline(*specs: Any, max_features: int = 1_000) -> Pipeline:
    """Return a fresh pipeline; a bare name stands for a transformer without parameters."""
    named = [{"type": spec} if isinstance(spec, str) else spec for spec in specs]
    return Pipeline(steps(*named), max_features)


def step(kind: str, **parameters: Any) -> dict[str, Any]:
    return {"type": kind, **parameters}


def union(*branches: list[dict[str, Any]]) -> dict[str, Any]:
    return step("Union", branches=list(branches))


def phishing() -> list[Event]:
    return [{str(name): float(v) for name, v in x.items()} for x, _ in datasets.Phishing()]


def numbers(n: int = 300) -> list[Event]:
    r = random.Random(5)
    kinds: list[Callable[[], Value]] = [
        lambda: r.gauss(3.0, 2.0),
        lambda: 0.0,
        lambda: r.randrange(9),
        lambda: 7.5,
    ]
    return [
        {f"f{i}": kinds[i % 4]() for i in range(8) if r.random() < 0.8 or i == 0} for _ in range(n)
    ]


def texts(n: int = 200) -> list[Event]:
    r = random.Random(6)
    return [
        {"text": " ".join(r.choices(WORDS, k=r.randrange(12))), "length": float(r.randrange(9))}
        for _ in range(n)
    ]


def categories(n: int = 200) -> list[Event]:
    r = random.Random(7)
    colours = ["red", "green", "blue", "grey", "a_b"]
    return [
        {"colour": r.choice(colours), "size": r.randrange(4), "new": r.choice([True, False])}
        for _ in range(n)
    ]


def holes(n: int = 200) -> list[Event]:
    r = random.Random(8)
    return [
        {
            "age": None if r.random() < 0.3 else float(r.randrange(80)),
            "colour": None if r.random() < 0.3 else r.choice(["red", "green", "blue"]),
            "one": 1.0,
        }
        for _ in range(n)
    ]


def mixed(n: int = 200) -> list[Event]:
    streams = zip(texts(n), categories(n), holes(n), strict=True)
    return [{**t, **c, "age": h["age"], "hue": h["colour"]} for t, c, h in streams]


LISTED = {"colour": ["red", "blue"], "size": [1, 2], "new": [True]}
STATISTICS = {"age": "Median", "colour": "Mode", "weight": "Mean", "depth": "Min", "height": "Max"}
IMPUTERS = [
    *({"feature": name, "statistic": statistic} for name, statistic in STATISTICS.items()),
    {"feature": "width", "value": 2},
]
CATALOGUE: dict[str, tuple[Any, list[Event]]] = {
    "AutoScaler": ("AutoScaler", numbers()),
    "StandardScaler": ("StandardScaler", numbers()),
    "StandardScaler without std": (step("StandardScaler", with_std=False), numbers()),
    "MinMaxScaler": ("MinMaxScaler", numbers()),
    "MaxAbsScaler": ("MaxAbsScaler", numbers()),
    "RobustScaler": ("RobustScaler", numbers()),
    "Normalizer": ("Normalizer", numbers()),
    "OneHotEncoder": ("OneHotEncoder", categories()),
    "OneHotEncoder without first": (
        step("OneHotEncoder", drop_first=True, drop_zeros=True),
        categories(),
    ),
    "OneHotEncoder of listed categories": (step("OneHotEncoder", categories=LISTED), categories()),
    "FeatureHasher": (step("FeatureHasher", n_features=16), categories()),
    "StatImputer": ([step("StatImputer", imputers=IMPUTERS), "OneHotEncoder"], holes()),
    "BagOfWords": (step("BagOfWords", on="text", ngram_range=[1, 2]), texts()),
    "TFIDF": (step("TFIDF", on="text", stop_words=["the", "of"]), texts()),
    "PolynomialExtender": (step("PolynomialExtender", include_bias=True), numbers()),
    "RBFSampler": (step("RBFSampler", n_components=7, seed=3), numbers()),
    "FourierFeatures": (step("FourierFeatures", n_components=7, seed=3), numbers()),
    "Select": (step("Select", keys=["f1", "f2", "absent"]), numbers()),
    "Discard": (step("Discard", keys=["f1", "f2", "absent"]), numbers()),
    "Union": (
        union(
            [
                step("StatImputer", imputers=[{"feature": "age", "statistic": "Mean"}]),
                step("Select", keys=["age", "length"]),
                step("StandardScaler"),
            ],
            [step("TFIDF", on="text")],
            [step("Select", keys=["colour", "size"]), step("OneHotEncoder")],
        ),
        mixed(),
    ),
}


def of_catalogue(name: str, max_features: int = 1_000) -> tuple[Pipeline, list[Event]]:
    """Return a fresh pipeline of one kind with a stream for it."""
    specs, events = CATALOGUE[name]
    listed = specs if isinstance(specs, list) else [specs]
    return pipeline(*listed, max_features=max_features), events
