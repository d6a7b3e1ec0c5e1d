"""Online perceptrons with River's interfaces and honest mistake accounting."""

from hinged.accounting import Accounting, Outcome
from hinged.base import BinaryLinearClassifier
from hinged.errors import HingedError, InvalidEvent, InvalidParameter, InvalidState
from hinged.perceptron import Perceptron
from hinged.vector import WeightVector

__all__ = [
    "FOLD_VERSION",
    "Accounting",
    "BinaryLinearClassifier",
    "HingedError",
    "InvalidEvent",
    "InvalidParameter",
    "InvalidState",
    "Outcome",
    "Perceptron",
    "WeightVector",
    "__version__",
]

__version__ = "0.1.0"

FOLD_VERSION = 1
"""Raised whenever the same events would give other weights than before."""
