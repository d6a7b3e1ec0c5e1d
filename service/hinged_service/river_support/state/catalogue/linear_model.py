"""Linear models."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from river import linear_model, optim, utils

from hinged_service.river_support.state.catalogue.entry import Entry, all_of
from hinged_service.river_support.state.catalogue.likeness import check_alike
from hinged_service.wire.codec import DamagedState

__all__ = ["CLASSES"]

_VECTOR_DICT: Any = utils.VectorDict
_FLOATS = defaultdict[Any, float]
_LINEAR: dict[str, Any] = {
    "optimizer": optim.base.Optimizer,
    "loss": optim.base.Loss,
    **all_of(float, "l2 l1 intercept_init intercept"),
    "intercept_lr": optim.base.Scheduler,
    "clip_gradient": float,
    "initializer": optim.base.Initializer,
    "_weights": _VECTOR_DICT,
    "_y_name": str | None,
}
_PENALTY = {"max_cum_l1": float, "cum_l1": _VECTOR_DICT}


def _finish_pa(made: linear_model.PAClassifier) -> None:
    if made.mode not in (0, 1, 2):
        raise DamagedState("the mode of a stored passive-aggressive learner is damaged")
    made.calc_tau = getattr(made, f"_calc_tau_{int(made.mode)}")


def _finish_linear(made: linear_model.LogisticRegression) -> None:
    if bool(made.l1) is not hasattr(made, "cum_l1"):
        raise DamagedState("the penalty of a stored linear model is damaged")


def _finish_softmax(made: linear_model.SoftmaxRegression) -> None:
    for optimizer in made.optimizers.values():
        check_alike(optimizer, made.optimizer)


CLASSES: dict[type, Entry] = {
    linear_model.LogisticRegression: Entry(_LINEAR, _PENALTY, finish=_finish_linear),
    linear_model.Perceptron: Entry(_LINEAR, _PENALTY, finish=_finish_linear),
    linear_model.PAClassifier: Entry(
        {"C": float, "mode": int, "learn_intercept": bool}
        | {"weights": _FLOATS, "intercept": float, "loss": optim.losses.Hinge},
        derived=frozenset(("calc_tau",)),
        finish=_finish_pa,
    ),
    linear_model.ALMAClassifier: Entry(
        {"p": float, "alpha": float, "B": float, "C": float, "w": _FLOATS, "k": int}
    ),
    linear_model.SoftmaxRegression: Entry(
        {
            "optimizer": optim.base.Optimizer,
            "optimizers": defaultdict[Any, optim.base.Optimizer],
            "loss": optim.losses.MultiClassLoss,
            "l2": float,
            "weights": defaultdict[Any, _FLOATS],
        },
        finish=_finish_softmax,
    ),
}
