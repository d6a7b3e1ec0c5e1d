"""Peers of the part `quality`: River's and Vowpal Wabbit's learners, as they come and tuned."""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Callable, Mapping
from typing import Any

from river import forest, linear_model, multiclass, neighbors, optim, preprocessing

from tests.bench.streams import Label, Stream

__all__ = ["Model", "ceilings", "fixed", "tuned"]

Model = Any
"""Has `learn_one`, `predict_one` and, if it knows them, `predict_proba_one`, `score_one`."""
Makers = dict[str, Callable[[], Model]]

_river: Any = linear_model
_STEPS = {"SGD": optim.SGD, "AdaGrad": optim.AdaGrad, "RMSProp": optim.RMSProp}
_AS_COMES = {"SGD": 0.1, "AdaGrad": 0.3, "RMSProp": 0.01}
_RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_CAPS = (0.001, 0.01, 0.1, 1.0)
_WABBIT = (0.05, 0.2, 1.0, 3.0)


class VowpalWabbit:
    """Vowpal Wabbit behind River's methods; scores are signed, classes are counted from 1."""

    def __init__(self, options: str, labels: list[Label]) -> None:
        module: Any = importlib.import_module("vowpalwabbit")
        self.binary = all(isinstance(y, bool) for y in labels)
        self._labels: dict[Label, str] = {True: "1", False: "-1"}
        if not self.binary:
            self._labels = {y: str(i) for i, y in enumerate(labels, 1)}
            options += f" --oaa {len(labels)}"
        self._names = {text: y for y, text in self._labels.items()}
        self._workspace = module.Workspace(f"{options} --quiet")

    def _example(self, x: Mapping[str, float], label: str = "") -> str:
        names = {n: n.replace(" ", "_").replace(":", "_").replace("|", "_") for n in x}
        return f"{label} | " + " ".join(f"{names[n]}:{v}" for n, v in x.items())

    def predict_one(self, x: Mapping[str, float]) -> Label | None:
        found = self._workspace.predict(self._example(x))
        return found > 0.0 if self.binary else self._names.get(str(int(found)))

    def learn_one(self, x: Mapping[str, float], y: Label) -> None:
        self._workspace.learn(self._example(x, self._labels[y]))


class VowpalWabbitScores(VowpalWabbit):
    """The binary one, with its score, which is log-odds under logistic loss."""

    def score_one(self, x: Mapping[str, float]) -> float:
        return float(self._workspace.predict(self._example(x)))


class VowpalWabbitLogistic(VowpalWabbitScores):
    """The binary one under logistic loss."""

    def predict_proba_one(self, x: Mapping[str, float]) -> dict[bool, float]:
        p = 0.5 * (1.0 + math.tanh(self.score_one(x) / 2.0))
        return {False: 1.0 - p, True: p}


def _logistic(steps: str, rate: float, binary: bool) -> Model:
    if binary:
        return _river.LogisticRegression(_STEPS[steps](rate))
    return _river.SoftmaxRegression(_STEPS[steps](rate))


def _of_classes(make: Callable[[], Model], binary: bool) -> Callable[[], Model]:
    return make if binary else lambda: multiclass.OneVsRestClassifier(make())


def _wabbit(loss: str, labels: list[Label], more: str = "") -> Model:
    binary = all(isinstance(y, bool) for y in labels)
    of_loss = VowpalWabbitLogistic if loss == "logistic" else VowpalWabbitScores
    kind = of_loss if binary else VowpalWabbit
    return kind(f"--loss_function {loss}{more}", labels)


def _wabbits(labels: list[Label], mores: Mapping[str, str]) -> Makers:
    if importlib.util.find_spec("vowpalwabbit") is None:
        return {}
    return {
        f"Vowpal Wabbit {loss}{name}": functools.partial(_wabbit, loss, labels, more)
        for loss in ("logistic", "hinge", "squared")
        for name, more in mores.items()
    }


def fixed(stream: Stream) -> Makers:
    """Return the peers as they come."""
    binary = stream.binary
    kind = "logistic" if binary else "softmax"
    made: Makers = {
        "River Perceptron": _of_classes(_river.Perceptron, binary),
        "River PA I": _of_classes(lambda: _river.PAClassifier(C=1.0, mode=1), binary),
        "River PA II": _of_classes(lambda: _river.PAClassifier(C=1.0, mode=2), binary),
        "River ALMA": _of_classes(_river.ALMAClassifier, binary),
    }
    for steps, rate in _AS_COMES.items():
        made[f"River {kind} {steps}({rate})"] = functools.partial(_logistic, steps, rate, binary)
    return made | _wabbits(stream.labels, {"": ""})


def tuned(stream: Stream) -> Makers:
    """Return linear peers over grids of their rates; the best is known in hindsight only."""
    binary = stream.binary
    made: Makers = {
        f"{steps}({rate})": functools.partial(_logistic, steps, rate, binary)
        for steps in _STEPS
        for rate in _RATES
    }
    for cap in _CAPS:
        pa = functools.partial(_river.PAClassifier, C=cap, mode=1)
        made[f"PA I({cap})"] = _of_classes(pa, binary)
    return made | _wabbits(stream.labels, {f"({r})": f" -l {r}" for r in _WABBIT})


def ceilings() -> Makers:
    """Return learners without a plane, for what the linear ones cannot reach."""
    _forest: Any = forest
    _neighbours: Any = neighbors
    return {
        "River ARF": lambda: _forest.ARFClassifier(seed=1),
        "River KNN": lambda: preprocessing.StandardScaler() | _neighbours.KNNClassifier(),
    }
