"""Progressive accounting: counts of the events, mistakes and updates of a learner."""

from __future__ import annotations

from hinged.events import Label
from hinged.kernel import Accounting
from hinged.kernel.pure import Outcome, outcome_of

__all__ = ["Accounting", "Fields", "Outcome", "outcome_of"]

Fields = tuple[Label | None, float, bool, bool, float]
"""The fields of an `Outcome` in order, cheaper to make."""
