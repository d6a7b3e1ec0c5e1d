"""The base rate: the share of each label, independent of the features."""

from __future__ import annotations

from collections.abc import Mapping

from hinged.errors import InvalidState
from hinged.kernel import Mixing
from hinged.state import SUM, ScalarType

__all__ = ["BaseRate"]


class BaseRate(Mixing):
    """The share of true labels, mixed into log-odds as far as it has predicted the labels better.

    With p the probability of true that a pool gives, and r = (positives + 1/2) / (all + 1):

        q = (1 - v) p + v r

    v starts at 1/2. After the label, of the sample weight w, v goes by Bayes' rule, and a
    share of it is spread evenly:

        v = v r_y^w / ((1 - v) p_y^w + v r_y^w),  v = 0.999 v + 0.0005

    where p_y and r_y are what both gave the label. So the log loss is never much above that
    of the better one. The label stays that of the pool: where q is on the other side of
    1/2, it becomes 1/2, by a hair on the pool's side.

    Attributes
    ----------
    positives, negatives : float
        The weights of the labels so far, and 1/2 each.
    trust : float
        v.

    References
    ----------
    Herbster, M. and Warmuth, M. K., 1998. Tracking the best expert. Machine Learning, 32(2).
    Krichevsky, R. E. and Trofimov, V. K., 1981. The performance of universal encoding. IEEE
    Transactions on Information Theory, 27(2).

    """

    __slots__ = ()

    @staticmethod
    def kinds() -> dict[str, ScalarType]:
        """Return the names of the saved scalars and their types."""
        return dict.fromkeys(("base_positives", "base_negatives", "base_trust"), SUM)

    def scalars(self) -> dict[str, float]:
        """Return the scalars to save, by the names of `kinds`."""
        return dict(zip(self.kinds(), (self.positives, self.negatives, self.trust), strict=True))

    @classmethod
    def restored(cls, scalars: Mapping[str, float]) -> BaseRate:
        """Return the base rate of saved scalars, or raise `InvalidState`."""
        one = cls(*(scalars[name] for name in cls.kinds()))
        if not (one.positives >= 0.5 <= one.negatives and 0.0 < one.trust < 1.0):
            raise InvalidState("base_positives, base_negatives and base_trust must go together")
        return one
