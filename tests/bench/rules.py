"""Time per event of every rule beside River's nearest relative, and of whole tables.

Run `python -m tests.bench.rules`. Processor time, the best of several rounds; 30
normal features out of 20,000 per event, labelled by a hidden linear function.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from river import linear_model, optim, stream
from sklearn.linear_model import Perceptron as SklearnPerceptron

import hinged

EVENTS, NAMES, WIDTH, ROUNDS = 5_000, 20_000, 30, 5

_river: Any = linear_model


def _descent(optimizer: Any, **penalty: float) -> Any:
    return _river.LogisticRegression(optimizer, loss=optim.losses.Hinge(), **penalty)


PAIRS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "Perceptron": (hinged.Perceptron, _river.Perceptron),
    "AveragedPerceptron": (hinged.AveragedPerceptron, _river.Perceptron),
    "PocketPerceptron": (hinged.PocketPerceptron, _river.Perceptron),
    "PassiveAggressive": (hinged.PassiveAggressive, _river.PAClassifier),
    "LinearUnit": (hinged.LinearUnit, lambda: _descent(optim.SGD(0.03))),
    "HingeSGD AdaGrad": (hinged.HingeSGD, lambda: _descent(optim.AdaGrad(0.3))),
    "HingeSGD constant": (
        lambda: hinged.HingeSGD(0.1, "constant"),
        lambda: _descent(optim.SGD(0.1)),
    ),
    "HingeSGD constant, l2": (
        lambda: hinged.HingeSGD(0.1, "constant", l2=0.001),
        lambda: _descent(optim.SGD(0.1), l2=0.001),
    ),
    "HingeSGD constant, l1": (
        lambda: hinged.HingeSGD(0.1, "constant", l1=0.001),
        lambda: _descent(optim.SGD(0.1), l1=0.001),
    ),
    "AROW (beside PA)": (hinged.AROW, _river.PAClassifier),
}


def made_events() -> list[tuple[dict[str, float], bool]]:
    draw = random.Random(1)
    names = [f"f{i}" for i in range(NAMES)]
    hidden = {name: draw.gauss(0, 1) for name in names}
    events = []
    for _ in range(EVENTS):
        x = {name: draw.gauss(0, 1) for name in draw.sample(names, WIDTH)}
        events.append((x, np.dot([hidden[n] for n in x], list(x.values())) > 0))
    return [(x, bool(y)) for x, y in events]


def learn_us(make: Callable[[], Any], events: list[tuple[dict[str, float], bool]]) -> float:
    """Return the microseconds of one `learn_one`."""
    best = float("inf")
    for _ in range(ROUNDS):
        model = make()
        started = time.process_time()
        for x, y in events:
            model.learn_one(x, y)
        best = min(best, time.process_time() - started)
    return best / len(events) * 1e6


def table_us(noise: float) -> tuple[int, float, float, float]:
    """Return the updates, and microseconds per row of learn_many, of a loop, of scikit-learn."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(100_000, WIDTH))
    labels = values @ rng.normal(size=WIDTH) + rng.normal(scale=noise, size=len(values)) > 0
    X = pd.DataFrame(values, columns=[f"c{i}" for i in range(WIDTH)])
    y = pd.Series(labels)
    best = [float("inf")] * 3
    for _ in range(ROUNDS):
        model, loop = hinged.Perceptron(), hinged.Perceptron()
        compiled = SklearnPerceptron(shuffle=False, max_iter=1, tol=None)
        marks = [time.process_time()]
        model.learn_many(X, y)
        marks.append(time.process_time())
        for x, label in stream.iter_frame(X, y):
            loop.learn_one(x, label)
        marks.append(time.process_time())
        compiled.fit(values, labels)
        marks.append(time.process_time())
        best = [min(b, end - start) for b, (start, end) in zip(best, pairwise(marks), strict=True)]
        if dict(model.weights) != dict(loop.weights):
            raise AssertionError("the table and the loop disagree")
    many, single, fit = (s / len(values) * 1e6 for s in best)
    return model.accounting.updates, many, single, fit


def main() -> None:
    events = made_events()
    out = sys.stdout.write
    out("| rule | µs | River's nearest, µs | ratio |\n|---|---|---|---|\n")
    for name, (ours, theirs) in PAIRS.items():
        mine, other = learn_us(ours, events), learn_us(theirs, events)
        out(f"| {name} | {mine:.1f} | {other:.1f} | {other / mine:.2f} |\n")
    out("\n100,000 rows of 30 columns, µs per row:\n\n")
    out("| updates | learn_many | loop over rows | ratio | scikit-learn's compiled loop |\n")
    out("|---|---|---|---|---|\n")
    for noise in (0.0, 1.0, 5.0, 20.0):
        updates, many, single, fit = table_us(noise)
        out(f"| {updates} | {many:.2f} | {single:.2f} | {single / many:.1f} | {fit:.2f} |\n")


if __name__ == "__main__":
    main()
