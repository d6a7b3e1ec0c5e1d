"""Every learner in process beside River's nearest relative, event by event.

Both take the same slices of the same events in turn; processor times. A rule without
a relative in River stands beside the closest thing that River has, which its name says.
"""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from river import ensemble, linear_model, multiclass, naive_bayes, optim, preprocessing

import hinged
from tests.bench.table import Row

__all__ = ["measure"]

SLICE = 250
CLASSES = 4
_river: Any = linear_model

Make = Callable[[], Any]
Events = list[tuple[dict[str, float], Any]]


@dataclass(frozen=True)
class Shape:
    """Number of features in each event, and of all."""

    present: int
    of: int

    @property
    def name(self) -> str:
        """The shape in words."""
        return f"dense {self.of}" if self.present == self.of else f"{self.present} of {self.of:,}"


SHAPES = (Shape(10, 10), Shape(30, 30), Shape(100, 100), Shape(30, 20_000))


def _descent(optimizer: Any, **penalty: float) -> Any:
    return _river.LogisticRegression(optimizer, loss=optim.losses.Hinge(), **penalty)


def _one_vs_rest(make: Make) -> Make:
    return lambda: multiclass.OneVsRestClassifier(make())


def _vote() -> Any:
    """Return River's nearest to the default pool of `Hedge`: as many learners, and a vote."""
    return ensemble.VotingClassifier(
        [
            *(_river.Perceptron(), _river.Perceptron(), _river.PAClassifier()),
            *(_river.PAClassifier(), _descent(optim.AdaGrad(0.3)), _descent(optim.SGD(0.03))),
        ],
        use_probabilities=False,
    )


def _multiclass_vote() -> Any:
    """Return River's nearest to the default pool of `MulticlassHedge`: five, and a vote."""
    return ensemble.VotingClassifier(
        [
            _river.SoftmaxRegression(optim.AdaGrad(0.3)),
            _one_vs_rest(_river.Perceptron)(),
            *(_one_vs_rest(_river.PAClassifier)() for _ in range(3)),
        ],
        use_probabilities=False,
    )


BINARY: dict[str, tuple[Make, Make]] = {
    "Perceptron": (hinged.Perceptron, _river.Perceptron),
    "AveragedPerceptron (beside Perceptron)": (hinged.AveragedPerceptron, _river.Perceptron),
    "PocketPerceptron (beside Perceptron)": (hinged.PocketPerceptron, _river.Perceptron),
    "PassiveAggressive": (hinged.PassiveAggressive, _river.PAClassifier),
    "LinearUnit (beside SGD)": (hinged.LinearUnit, lambda: _descent(optim.SGD(0.03))),
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
    "HingeSGD Pegasos (beside SGD with l2)": (
        lambda: hinged.HingeSGD(steps="pegasos", l2=0.01),
        lambda: _descent(optim.SGD(0.1), l2=0.01),
    ),
    "AROW (beside PassiveAggressive)": (hinged.AROW, _river.PAClassifier),
    "AROW forgetting (beside PassiveAggressive)": (
        lambda: hinged.AROW(forgetting=0.01),
        _river.PAClassifier,
    ),
    "SCW (beside PassiveAggressive)": (hinged.SCW, _river.PAClassifier),
    "LogisticSGD RMS": (
        hinged.LogisticSGD,
        lambda: _river.LogisticRegression(optim.RMSProp(0.01, rho=0.999)),
    ),
    "CoinBetting (beside AdaGrad)": (
        hinged.CoinBetting,
        lambda: _river.LogisticRegression(optim.AdaGrad(0.3)),
    ),
    "FTRLProximal": (
        hinged.FTRLProximal,
        lambda: _river.LogisticRegression(optim.FTRLProximal(0.3, 0.1, l2=0.0)),
    ),
    "Hedge (beside a vote of six)": (hinged.Hedge, _vote),
    "Auto (beside a scaled vote of six)": (
        hinged.Auto,
        lambda: preprocessing.StandardScaler() | _vote(),
    ),
    "AutoScaler and AROW (beside StandardScaler and PassiveAggressive)": (
        lambda: hinged.AutoScaler() | hinged.AROW(),
        lambda: preprocessing.StandardScaler() | _river.PAClassifier(),
    ),
    "Curved (beside PassiveAggressive)": (hinged.Curved, _river.PAClassifier),
    "Quadratic (beside PassiveAggressive)": (hinged.Quadratic, _river.PAClassifier),
    "Calibrated Perceptron (beside Perceptron)": (
        lambda: hinged.Calibrated(hinged.Perceptron()),
        _river.Perceptron,
    ),
}

MULTICLASS: dict[str, tuple[Make, Make]] = {
    "MulticlassPerceptron (beside one-vs-rest)": (
        hinged.MulticlassPerceptron,
        _one_vs_rest(_river.Perceptron),
    ),
    "MulticlassPassiveAggressive (beside one-vs-rest)": (
        hinged.MulticlassPassiveAggressive,
        _one_vs_rest(_river.PAClassifier),
    ),
    "MulticlassAveragedPerceptron (beside one-vs-rest)": (
        hinged.MulticlassAveragedPerceptron,
        _one_vs_rest(_river.Perceptron),
    ),
    "MulticlassPocketPerceptron (beside one-vs-rest)": (
        hinged.MulticlassPocketPerceptron,
        _one_vs_rest(_river.Perceptron),
    ),
    "MulticlassAROW (beside one-vs-rest)": (
        hinged.MulticlassAROW,
        _one_vs_rest(_river.PAClassifier),
    ),
    "MulticlassLogisticSGD (beside SoftmaxRegression with AdaGrad)": (
        hinged.MulticlassLogisticSGD,
        lambda: _river.SoftmaxRegression(optim.AdaGrad(0.3)),
    ),
    "MulticlassDiscriminant (beside naive Bayes of normal features)": (
        hinged.MulticlassDiscriminant,
        naive_bayes.GaussianNB,
    ),
    "MulticlassQuadratic (beside one-vs-rest)": (
        hinged.MulticlassQuadratic,
        _one_vs_rest(_river.PAClassifier),
    ),
    "MulticlassHedge (beside a vote of five)": (hinged.MulticlassHedge, _multiclass_vote),
    "Auto (beside a scaled one-vs-rest)": (
        hinged.Auto,
        lambda: preprocessing.StandardScaler() | _one_vs_rest(_river.PAClassifier)(),
    ),
    "OneVsRest of Perceptron": (
        lambda: hinged.OneVsRest(hinged.Perceptron()),
        _one_vs_rest(_river.Perceptron),
    ),
}


def measure(rounds: int, count: int) -> list[Row]:
    """Return the rows: per rule, shape and call, how many times faster than River's relative."""
    rows: list[Row] = []
    for shape in SHAPES:
        for pairs, classes in ((BINARY, 2), (MULTICLASS, CLASSES)):
            events = _made(shape, classes, count)
            for name, pair in pairs.items():
                rows += _compared(f"{name}, {shape.name}", pair, events, rounds)
    for pairs, classes in ((BINARY, 2), (MULTICLASS, CLASSES)):
        for name, pair in pairs.items():
            rows += _weighed(name, pair, classes, 10 * count)
    return rows


def _made(shape: Shape, classes: int, count: int) -> Events:
    draw = random.Random(shape.present * classes)
    names = [f"f{i}" for i in range(shape.of)]
    hidden = [{name: draw.gauss(0, 1) for name in names} for _ in range(classes)]
    events: Events = []
    for _ in range(count):
        present = names if shape.present == shape.of else draw.sample(names, shape.present)
        x = {name: draw.gauss(0, 1) for name in present}
        scores = [sum(w[name] * value for name, value in x.items()) for w in hidden]
        best = scores.index(max(scores))
        events.append((x, bool(best) if classes == 2 else f"c{best}"))
    return events


def _compared(name: str, pair: tuple[Make, Make], events: Events, rounds: int) -> list[Row]:
    learn, predict, ours_us = [], [], []
    slices = [events[at : at + SLICE] for at in range(0, len(events), SLICE)]
    for _ in range(rounds):
        ours, river = (make() for make in pair)
        times: list[tuple[float, float, float, float]] = []
        for number, part in enumerate(slices):
            if number % 2:
                mine, theirs = _learn_s(ours, part), _learn_s(river, part)
                asked, their_asked = _predict_s(ours, part), _predict_s(river, part)
            else:
                theirs, mine = _learn_s(river, part), _learn_s(ours, part)
                their_asked, asked = _predict_s(river, part), _predict_s(ours, part)
            times.append((mine, theirs, asked, their_asked))
        learn.append(median(t[1] / t[0] for t in times))
        predict.append(median(t[3] / t[2] for t in times))
        ours_us.append(median(t[0] for t in times) / SLICE * 1e6)
    # without a relative in the strict sense there is nothing to be as fast as
    target = None if "beside" in name else 1.0
    return [
        Row(f"{name}: learn_one, River / hinged", learn, target=target),
        Row(f"{name}: predict_one, River / hinged", predict),
        Row(f"{name}: learn_one", ours_us, "µs"),
    ]


def _weighed(name: str, pair: tuple[Make, Make], classes: int, features: int) -> list[Row]:
    """Return the rows: what each of so many features takes in memory, its name aside.

    Every feature comes with every class, and every label is one that is not predicted.
    """
    names = [f"f{i}" for i in range(features)]
    parts = [names[at : at + SLICE] for at in range(0, features, SLICE)]
    labels: list[Any] = [False, True] if classes == 2 else [f"c{i}" for i in range(classes)]
    found = []
    for make in pair:
        tracemalloc.start()
        model = make()
        for part in parts:
            x = dict.fromkeys(part, 1.0)
            for y in labels:
                if model.predict_one(x) == y:
                    model.learn_one(x, next(label for label in labels if label != y))
                model.learn_one(x, y)
            del x
        found.append(tracemalloc.get_traced_memory()[0] / features)
        tracemalloc.stop()
    ours, river = found
    return [
        Row(f"{name}: a feature in memory", [ours], "bytes"),
        Row(f"{name}: a feature in memory, River", [river], "bytes"),
    ]


def _learn_s(model: Any, part: Sequence[tuple[dict[str, float], Any]]) -> float:
    learn = model.learn_one
    started_s = time.process_time()
    for x, y in part:
        learn(x, y)
    return time.process_time() - started_s


def _predict_s(model: Any, part: Sequence[tuple[dict[str, float], Any]]) -> float:
    predict = model.predict_one
    started_s = time.process_time()
    for x, _ in part:
        predict(x)
    return time.process_time() - started_s
