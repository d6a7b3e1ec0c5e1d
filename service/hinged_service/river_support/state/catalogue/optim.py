"""Optimizers, schedules, losses, initial weights."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from river import optim, utils

from hinged_service.river_support.state.catalogue.entry import Entry, all_of
from hinged_service.wire.codec import DamagedState

__all__ = ["CLASSES"]

_VECTOR_DICT: Any = utils.VectorDict
_FLOATS = defaultdict[Any, float]
_VECTOR = _VECTOR_DICT | defaultdict[Any, float] | None
_STEPS: dict[str, Any] = {"lr": optim.base.Scheduler, "n_iterations": int}
_MOMENTS: dict[str, Any] = {**_STEPS, "beta_1": float, "beta_2": float, "eps": float}


def _finish_optimal(made: optim.schedulers.Optimal) -> None:
    if made.t0 <= 0 or made.alpha <= 0:
        raise DamagedState("the parameters of a stored schedule are damaged")


def _finish_steps(made: optim.base.Optimizer) -> None:
    if made.n_iterations < 0:
        raise DamagedState("the steps of a stored optimizer are damaged")
    sums = [value for value in vars(made).values() if isinstance(value, dict)]
    if len(set(map(id, sums))) != len(sums):
        raise DamagedState("the sums of a stored optimizer are one and the same")
    for name in ("g2", "s2", "v", "v_hat", "u", "n"):
        squares = getattr(made, name, None) or {}
        if not all(value >= 0.0 for value in squares.values()):
            raise DamagedState("the squares of a stored optimizer are damaged")


def _finish_adam(made: optim.Adam) -> None:
    _finish_steps(made)
    first, second = vars(made)["m"], vars(made)["v"]
    if (first is None) is not (second is None) or set(first or ()) != set(second or ()):
        raise DamagedState("the moments of a stored optimizer are not of the same names")


CLASSES: dict[type, Entry] = {
    optim.SGD: Entry(_STEPS, finish=_finish_steps),
    optim.Momentum: Entry({**_STEPS, "rho": float, "s": _FLOATS}, finish=_finish_steps),
    optim.NesterovMomentum: Entry({**_STEPS, "rho": float, "s": _FLOATS}, finish=_finish_steps),
    optim.AdaGrad: Entry({**_STEPS, "eps": float, "g2": _FLOATS}, finish=_finish_steps),
    optim.AdaDelta: Entry(
        {**_STEPS, "rho": float, "eps": float, "g2": _FLOATS, "s2": _FLOATS}, finish=_finish_steps
    ),
    optim.RMSProp: Entry(
        {**_STEPS, "rho": float, "eps": float, "g2": _VECTOR}, finish=_finish_steps
    ),
    optim.Adam: Entry({**_MOMENTS, "m": _VECTOR, "v": _VECTOR}, finish=_finish_adam),
    optim.AdaMax: Entry({**_MOMENTS, "m": _FLOATS, "u": _FLOATS}, finish=_finish_steps),
    optim.Nadam: Entry({**_MOMENTS, "m": _FLOATS, "v": _FLOATS}, finish=_finish_steps),
    optim.AMSGrad: Entry(
        {**_MOMENTS, "correct_bias": bool, "m": _FLOATS, "v": _FLOATS, "v_hat": _FLOATS},
        finish=_finish_steps,
    ),
    optim.FTRLProximal: Entry(
        all_of(float, "alpha beta l1 l2") | {"z": _FLOATS, "n": _FLOATS, "n_iterations": int},
        finish=_finish_steps,
    ),
    optim.Averager: Entry(
        {"optimizer": optim.base.Optimizer, "start": int, "avg_w": _FLOATS, "n_iterations": int}
    ),
    optim.schedulers.Constant: Entry({"learning_rate": float}),
    optim.schedulers.InverseScaling: Entry({"learning_rate": float, "power": float}),
    optim.schedulers.Optimal: Entry(
        {"loss": optim.base.Loss, "alpha": float, "t0": float}, finish=_finish_optimal
    ),
    optim.initializers.Zeros: Entry({"value": float}),
    optim.initializers.Constant: Entry({"value": float}),
    optim.losses.Log: Entry({"weight_pos": float, "weight_neg": float}),
    optim.losses.Hinge: Entry({"threshold": float}),
    optim.losses.Squared: Entry({}),
    optim.losses.CrossEntropy: Entry({"class_weight": dict[Any, float]}),
}
