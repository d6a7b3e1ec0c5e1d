"""Whole tables: `learn_many` beside scikit-learn's compiled loop, River's `learn_many`, a loop.

How exact a way is stands beside its speed: the largest difference of a weight from those
that learning row by row gives. River's `learn_many` takes one averaged step per table.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from river import linear_model, optim, stream
from sklearn import linear_model as compiled

import hinged
from tests.bench.table import Row, ratios

__all__ = ["measure"]

WIDTH = 30
CHUNK = 1_000
NOISES = {"separable": 0.0, "noisy": 5.0}
_river: Any = linear_model


@dataclass(frozen=True)
class Rule:
    """One rule in three libraries; `None` where one lacks it or leaves the one-by-one course."""

    name: str
    ours: Callable[[], Any]
    sklearn: Callable[[], Any] | None
    river: Callable[[], Any] | None
    ones: bool = False
    """True if scikit-learn's intercept is a column of ones."""


def _sgd(**options: Any) -> Callable[[], Any]:
    return lambda: compiled.SGDClassifier(penalty=None, shuffle=False, **options)


RULES = (
    Rule(
        "Perceptron",
        hinged.Perceptron,
        lambda: compiled.Perceptron(shuffle=False),
        _river.Perceptron,
    ),
    Rule(
        "PassiveAggressive I",
        hinged.PassiveAggressive,
        _sgd(loss="hinge", learning_rate="pa1", eta0=1.0, fit_intercept=False),
        None,
        ones=True,
    ),
    Rule(
        "HingeSGD constant",
        lambda: hinged.HingeSGD(0.1, "constant"),
        _sgd(loss="hinge", learning_rate="constant", eta0=0.1),
        lambda: _river.LogisticRegression(optim.SGD(0.1), loss=optim.losses.Hinge()),
    ),
)


@dataclass
class _Times:
    """Seconds and weights of each way, round by round."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    weights: dict[str, Any] = field(default_factory=dict)

    def add(self, way: str, seconds: float, weights: Any) -> None:
        self.seconds.setdefault(way, []).append(seconds)
        self.weights[way] = np.asarray(weights, dtype=float)


def measure(rounds: int, count: int) -> list[Row]:
    """Return the rows: every rule on `count` rows of 30 columns, in tables of 1,000."""
    rows: list[Row] = []
    for kind, noise in NOISES.items():
        X, y = _made(count, noise)
        for rule in RULES:
            times = _Times()
            for _ in range(rounds):
                _round(rule, X, y, times)
            rows += _rows(f"{rule.name}, {kind}", times, count)
    return rows


def _made(count: int, noise: float) -> tuple[pd.DataFrame, pd.Series]:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(count, WIDTH))
    labels = values @ rng.normal(size=WIDTH) + rng.normal(scale=noise, size=count) > 0
    return pd.DataFrame(values, columns=[f"c{i}" for i in range(WIDTH)]), pd.Series(labels)


def _round(rule: Rule, X: pd.DataFrame, y: pd.Series, times: _Times) -> None:
    names, values, labels = list(X.columns), X.to_numpy(), y.to_numpy()
    tables = [(X[at : at + CHUNK], y[at : at + CHUNK]) for at in range(0, len(X), CHUNK)]

    many = rule.ours()
    started_s = time.process_time()
    for table, wanted in tables:
        many.learn_many(table, wanted)
    times.add("learn_many", time.process_time() - started_s, [many.weights[n] for n in names])

    loop = rule.ours()
    started_s = time.process_time()
    for x, label in stream.iter_pandas(X, y):
        loop.learn_one(x, label)
    times.add("row by row", time.process_time() - started_s, [loop.weights[n] for n in names])

    if rule.sklearn is not None:
        if rule.ones:
            values = np.hstack([values, np.ones((len(values), 1))])
        model = rule.sklearn()
        started_s = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of rules that scikit-learn gives another name
            for at in range(0, len(values), CHUNK):
                part = slice(at, at + CHUNK)
                model.partial_fit(values[part], labels[part], classes=[False, True])
        spent_s = time.process_time() - started_s
        times.add("scikit-learn", spent_s, model.coef_[0][:WIDTH])

    if rule.river is not None:
        model = rule.river()
        started_s = time.process_time()
        for table, wanted in tables:
            model.learn_many(table, wanted)
        spent_s = time.process_time() - started_s
        times.add("River learn_many", spent_s, [model.weights[n] for n in names])


def _rows(name: str, times: _Times, count: int) -> list[Row]:
    ours = times.seconds["learn_many"]
    faster = ratios(times.seconds["row by row"], ours)
    target = 5.0 if name.startswith("Perceptron") else None
    rows = [Row(f"{name}: row by row / learn_many", faster, target=target)]
    rows += [
        Row(f"{name}: learn_many / {way}", ratios(ours, seconds), at_most=True)
        for way, seconds in times.seconds.items()
        if way not in ("learn_many", "row by row")
    ]
    for way, seconds in times.seconds.items():
        rows.append(Row(f"{name}: {way}", [s / count * 1e6 for s in seconds], "µs/row"))
    exact = times.weights["row by row"]
    for way, weights in times.weights.items():
        if way != "row by row":
            apart = float(np.max(np.abs(weights - exact)) / np.max(np.abs(exact)))
            rows.append(
                Row(f"{name}: {way}, off the weights of row by row", [100 * apart], "% at most")
            )
    return rows
