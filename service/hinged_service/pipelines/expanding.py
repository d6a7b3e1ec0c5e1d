"""Products of features."""

from __future__ import annotations

import math
from itertools import combinations, combinations_with_replacement
from typing import Any, Literal

from pydantic import Field

import hinged
from hinged_service.pipelines.choosing import Name
from hinged_service.pipelines.stage import Origins, Stage
from hinged_service.pipelines.values import MAX_WIDTH, Features, clipped, floats
from hinged_service.river_on_demand import feature_extraction
from hinged_service.strict import Strict

__all__ = ["PolynomialExtenderSpec"]


class PolynomialExtenderSpec(Strict):
    """Add the products of features, named like `a*b`.

    `river.feature_extraction.PolynomialExtender` itself; an event that would give
    more than 10,000 features is refused.
    """

    type: Literal["PolynomialExtender"]
    degree: int = Field(2, ge=1, le=3, description="The most factors of a product.")
    interaction_only: bool = Field(False, description="No feature twice in a product.")
    include_bias: bool = Field(False, description="Add a feature that is always 1.")
    bias_name: Name = Field("bias", description="The name of that feature.")

    def build(self, max_features: int) -> PolynomialExtender:
        """Return the stage."""
        return PolynomialExtender(self)


class PolynomialExtender(Stage):
    """Has no state."""

    numbers_suffice = False

    def __init__(self, spec: PolynomialExtenderSpec) -> None:
        super().__init__()
        self._spec = spec
        extender: Any = feature_extraction.PolynomialExtender
        self._extender = extender(
            spec.degree, spec.interaction_only, spec.include_bias, spec.bias_name
        )

    def transform(self, x: Features) -> dict[str, float]:
        """Return the features and their products."""
        numbers = floats(x, "PolynomialExtender")
        self._check_width(len(numbers))
        made: dict[str, float] = self._extender.transform_one(numbers)
        if self._spec.include_bias:
            made[self._spec.bias_name] = 1.0
        return clipped(made)

    def _check_width(self, n: int) -> None:
        degrees = range(1, self._spec.degree + 1)
        if self._spec.interaction_only:
            width = sum(math.comb(n, k) for k in degrees)
        else:
            width = sum(math.comb(n + k - 1, k) for k in degrees)
        if width > MAX_WIDTH:
            raise hinged.InvalidEvent(
                "x",
                f"gives {width} features at PolynomialExtender, more than {MAX_WIDTH}: put Select "
                "before it, or use a smaller degree",
            )

    def origins(self, x: Features) -> Origins:
        """Return the different factors of each product; nothing for the bias."""
        self.transform(x)
        choose = combinations if self._spec.interaction_only else combinations_with_replacement
        found: Origins = {
            "*".join(sorted(factors)): tuple(dict.fromkeys(factors))
            for k in range(1, self._spec.degree + 1)
            for factors in choose(x, k)
        }
        if self._spec.include_bias:
            found[self._spec.bias_name] = ()
        return found
