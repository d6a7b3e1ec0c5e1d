"""River's optimizers as parts of a spec."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from hinged_service.river_support.lazy import optim
from hinged_service.wire.strict import StrictModel

__all__ = ["SGD", "Optimizer"]

Rate = Annotated[float, Field(gt=0, le=1_000, description="The learning rate.")]
Decay = Annotated[float, Field(ge=0, le=0.9999, description="How slowly the average forgets.")]


class SGD(StrictModel):
    """Plain gradient descent."""

    type: Literal["SGD"]
    lr: Rate = 0.01

    def build(self) -> Any:
        """Return the fresh optimizer."""
        return optim.SGD(self.lr)


class Momentum(StrictModel):
    """Gradient descent along a running sum of gradients."""

    type: Literal["Momentum"]
    lr: Rate = 0.1
    rho: Decay = 0.9

    def build(self) -> Any:
        """Return the fresh optimizer."""
        return optim.Momentum(self.lr, self.rho)


class AdaGrad(StrictModel):
    """A rate per feature, falling with the sum of its squared gradients."""

    type: Literal["AdaGrad"]
    lr: Rate = 0.1

    def build(self) -> Any:
        """Return the fresh optimizer."""
        return optim.AdaGrad(self.lr)


class RMSProp(StrictModel):
    """A rate per feature by the running mean of its squared gradients."""

    type: Literal["RMSProp"]
    lr: Rate = 0.1
    rho: Decay = 0.9

    def build(self) -> Any:
        """Return the fresh optimizer."""
        return optim.RMSProp(self.lr, self.rho)


class Adam(StrictModel):
    """Running means of both the gradient and its square."""

    type: Literal["Adam"]
    lr: Rate = 0.1
    beta_1: Decay = 0.9
    beta_2: Decay = 0.999

    def build(self) -> Any:
        """Return the fresh optimizer."""
        return optim.Adam(self.lr, self.beta_1, self.beta_2)


Optimizer = Annotated[SGD | Momentum | AdaGrad | RMSProp | Adam, Field(discriminator="type")]
