"""River's optimizers as parts of a spec."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hinged_service.river_support.lazy import optim
from hinged_service.river_support.learners.parameters import RiverSpec, arguments, class_name

__all__ = ["SGD", "Optimizer"]

Rate = Annotated[float, Field(gt=0, le=1_000, description="The learning rate.")]
Decay = Annotated[float, Field(ge=0, le=0.9999, description="How slowly the average forgets.")]


class _Optimizer(RiverSpec):
    def river(self) -> object:
        """Return the fresh optimizer, which has the name of its spec."""
        return getattr(optim, class_name(self))(**arguments(self))


class SGD(_Optimizer):
    """Plain gradient descent."""

    type: Literal["SGD"]
    lr: Rate = 0.01


class Momentum(_Optimizer):
    """Gradient descent along a running sum of gradients."""

    type: Literal["Momentum"]
    lr: Rate = 0.1
    rho: Decay = 0.9


class AdaGrad(_Optimizer):
    """A rate per feature, falling with the sum of its squared gradients."""

    type: Literal["AdaGrad"]
    lr: Rate = 0.1


class RMSProp(_Optimizer):
    """A rate per feature by the running mean of its squared gradients."""

    type: Literal["RMSProp"]
    lr: Rate = 0.1
    rho: Decay = 0.9


class Adam(_Optimizer):
    """Running means of both the gradient and its square."""

    type: Literal["Adam"]
    lr: Rate = 0.1
    beta_1: Decay = 0.9
    beta_2: Decay = 0.999


Optimizer = Annotated[SGD | Momentum | AdaGrad | RMSProp | Adam, Field(discriminator="type")]
