"""The common part of pools: experts with a trust and a temperature each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from hinged import members
from hinged.accounting import Accounting
from hinged.base import LinearClassifier
from hinged.errors import InvalidParameter
from hinged.events import checked_weight
from hinged.parameters import NonNegativeNumber, PositiveNumber
from hinged.state import COUNT, SUM, ScalarType
from hinged.temperature import Temperature

__all__ = ["Pool"]

Expert = TypeVar("Expert", bound=LinearClassifier)


class _Read(NamedTuple, Generic[Expert]):
    """A saved state that was checked, and not yet taken over."""

    scalars: dict[str, Any]
    account: Accounting
    temperatures: list[Temperature]
    prototypes: list[Expert]
    experts: list[Expert]


class Pool(LinearClassifier, Generic[Expert]):
    """A learner of several experts, which loses trust in those that are wrong.

    `Hedge` and `MulticlassHedge` describe the parameters.

    Attributes
    ----------
    experts : tuple
        The learned experts, in the order of `models`.
    trust : list of float
        The share of each expert; they sum to 1.
    temperatures : list of Temperature
        The calibration of the scores of each expert, and last of those of the pool.

    """

    learning_rate = PositiveNumber(mutable=True)
    _learning_rate: float
    share = NonNegativeNumber()
    _prototypes: list[Expert]
    _experts: list[Expert]

    def _fill(self, pool: Iterable[Expert], learning_rate: float, share: float) -> None:
        """Take the parameters and fresh copies of the experts."""
        self.learning_rate = learning_rate
        self.share = share
        if not self.share < 1.0:
            raise InvalidParameter(f"0 <= share < 1 must hold, not share={share!r}")
        self._prototypes = list(pool)
        if not self._prototypes:
            raise InvalidParameter("models must hold at least one learner")
        self._experts = [model.clone() for model in self._prototypes]
        count = len(self._experts)
        self.trust = [1.0 / count] * count
        self.temperatures = [Temperature() for _ in range(count + 1)]

    @property
    def experts(self) -> tuple[Expert, ...]:
        """The learned experts, in the order of `models`."""
        return tuple(self._experts)

    def check_weight(self, w: object) -> float:
        """Return the sample weight as a float, or raise `InvalidEvent`."""
        weight = checked_weight(w)
        for expert in self._prototypes:
            expert.check_weight(weight)
        return weight

    @property
    def numbers_per_name(self) -> int:
        """The most numbers that all experts store for a name of one event."""
        return sum(expert.numbers_per_name for expert in self._experts)

    def stored_bytes(self) -> int:
        """Return the bytes of the numbers stored by name."""
        return sum(expert.stored_bytes() for expert in self._experts)

    def _pool_state(self, more: Mapping[str, float] | None = None) -> dict[str, Any]:
        """Return a flat state: that of the pool, of each expert, and `more` scalars.

        `"members"` are the experts' types; the scalars and vectors of expert i are
        named `"i/..."`, its trust `trust_i`, its temperature `log_scale_i` and
        `curvature_i`, that of the pool likewise with the number of experts.
        """
        own = {"clock": self.clock, **{f"trust_{i}": v for i, v in enumerate(self.trust)}}
        for i, temperature in enumerate(self.temperatures):
            own |= temperature.scalars(f"_{i}")
        own |= more or {}
        return members.flat_state(type(self).__name__, own, self.accounting, self._experts)

    def _read_state(
        self,
        saved: Mapping[str, Any],
        prototypes: list[Expert],
        more: Mapping[str, ScalarType] | None = None,
    ) -> _Read[Expert]:
        """Return a checked state with fresh experts, and the scalars of `more` among its own."""
        count = len(prototypes)
        kinds = {"clock": COUNT} | {f"trust_{i}": SUM for i in range(count)} | dict(more or {})
        for i in range(count + 1):
            kinds |= Temperature.kinds(f"_{i}")
        scalars, account = members.restored_account(saved, kinds)
        temperatures = [Temperature.restored(scalars, f"_{i}") for i in range(count + 1)]
        experts = members.restored(saved, [model.clone() for model in prototypes])
        return _Read(scalars, account, temperatures, prototypes, experts)

    def _take_state(self, read: _Read[Expert]) -> None:
        """Take over a state that was read."""
        self._prototypes, self._experts = read.prototypes, read.experts
        self.trust = [read.scalars[f"trust_{i}"] for i in range(len(read.experts))]
        self.temperatures = read.temperatures
        self.clock = read.scalars["clock"]
        self.accounting = read.account
