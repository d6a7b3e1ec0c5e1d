"""Products of features."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations, combinations_with_replacement
from typing import ClassVar, Literal

from pydantic import Field

import hinged
from hinged_service.pipelines.selection import Name, Separator
from hinged_service.pipelines.stage import Origins, Stage, StepSpec
from hinged_service.pipelines.values import MAX_WIDTH, Features, clipped, floats

__all__ = ["PolynomialExtenderSpec"]


class PolynomialExtender(Stage):
    """A stage without state."""

    numbers_suffice = False
    _spec: PolynomialExtenderSpec

    def transform(self, x: Features) -> dict[str, float]:
        numbers = floats(x, "PolynomialExtender")
        self._check_width(len(numbers))
        made = {
            name: math.prod(numbers[factor] for factor in factors)
            for name, factors in self._products(numbers)
        }
        if self._spec.include_bias:
            made[self._spec.bias_name] = 1.0
        return clipped(made)

    def _check_width(self, n: int) -> None:
        again = not self._spec.interaction_only
        width = sum(math.comb(n + again * (k - 1), k) for k in range(1, self._spec.degree + 1))
        if width > MAX_WIDTH:
            raise hinged.InvalidEvent(
                "x",
                f"gives {width} features at PolynomialExtender, more than {MAX_WIDTH}: put Select "
                "before it, or use a smaller degree",
            )

    def _products(self, x: Features) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Yield the name and the factors of each product, in River's order."""
        choose = combinations if self._spec.interaction_only else combinations_with_replacement
        for k in range(1, self._spec.degree + 1):
            for factors in choose(x, k):
                yield self._spec.separator.join(sorted(factors)), factors

    def origins(self, x: Features) -> Origins:
        """Return the different factors of each product; nothing for the bias."""
        self.transform(x)
        found: Origins = {
            name: tuple(dict.fromkeys(factors)) for name, factors in self._products(x)
        }
        if self._spec.include_bias:
            found[self._spec.bias_name] = ()
        return found


class PolynomialExtenderSpec(StepSpec):
    """Add the products of features, named like `a*b`.

    As `river.feature_extraction.PolynomialExtender`; an event that would give more than
    10,000 features is refused. A feature whose own name is that of a product, `a*b`, is
    replaced by the product: a `separator` of characters that are in no feature name keeps
    both.
    """

    stage: ClassVar = PolynomialExtender
    type: Literal["PolynomialExtender"]
    degree: int = Field(2, ge=1, le=3, description="The most factors of a product.")
    interaction_only: bool = Field(False, description="No feature twice in a product.")
    include_bias: bool = Field(False, description="Add a feature that is always 1.")
    bias_name: Name = Field(
        "bias", description="The name of that feature; another one of this name is replaced."
    )
    separator: Separator = Field(
        "*", description="Stands between the factors in a name; as River has it by default."
    )
