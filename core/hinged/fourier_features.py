"""Random Fourier features: curves for linear learners."""

from __future__ import annotations

import hashlib
import math
import struct
from array import array
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from river import base

from hinged import frames, state
from hinged.errors import InvalidParameter, shown
from hinged.events import as_floats, finite_features
from hinged.parameters import PositiveNumber, checked_count
from hinged.state import COUNT
from hinged.vector import Event, Features, Numbers

__all__ = ["FourierFeatures"]

LARGEST = 1e100
"""The largest value; larger ones are cut to it."""
REMEMBERED = 20_000
"""Random weights that are remembered at most, in 8 bytes each."""
REMEMBERED_NAMES = 500
"""The most names whose weights are remembered."""
_PARTS = 8
_LEVELS = 2**16


def width(x: Numbers) -> int:
    """Return how many features are not 0: those that are add nothing, as missing ones."""
    return sum(1 for value in x.values() if value != 0.0)


class FourierFeatures(base.MiniBatchTransformer):
    """Random cosines of the whole event: a linear learner behind them learns curves.

    Cosine j of n is

        sqrt(2 / n) cos(w_j . x + b_j)

    w_j normal with variance 2 gamma for each feature, b_j even in [0, 2 pi). The products of
    the cosines of two events sum up to about exp(-gamma |x - z|^2): a Gaussian kernel of
    the whole event, so that what lies in several features together is found, as XOR is.

    gamma = bend / d, d being the most features other than 0 that any learned event had: the
    distance of two scaled events grows with their number. The features should be
    scaled: put `AutoScaler` before. A feature that is absent counts as 0.

    The random numbers are a hash of seed and feature name, so they depend neither on the
    order of events nor on the machine: w is the sum of 8 even numbers of 16 bits,
    which is normal but for tails that end at 4.9 standard deviations. The sum goes over the
    features in the order of their names as text, not in that of the event.

    Time is n times the features of the event. What is kept is one number.

    Parameters
    ----------
    n_components
        How many cosines.
    bend
        Curvature: gamma times the number of features. 0.5 is nearly straight.
    seed
        Seed of the cosines.
    prefix
        The cosines are named by it and their number: `"cos_0"`.

    Attributes
    ----------
    widest : int
        The most features other than 0 that any learned event had.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from hinged import AROW, AutoScaler, FourierFeatures

    >>> model = AutoScaler() | FourierFeatures(bend=4.0) | AROW()
    >>> evaluate.progressive_val_score(datasets.Bananas(), model, metrics.Accuracy())
    Accuracy: 89...%

    References
    ----------
    Rahimi, A. and Recht, B., 2007. Random features for large-scale kernel machines. NIPS 20.

    """

    bend = PositiveNumber()
    _bend: float

    def __init__(
        self, n_components: int = 100, bend: float = 2.0, seed: int = 0, prefix: str = "cos"
    ) -> None:
        n_components = checked_count("n_components", n_components)
        if not isinstance(seed, int) or not isinstance(prefix, str):
            raise InvalidParameter(f"seed must be whole and prefix text, not {shown(seed)}")
        self.n_components = n_components
        self.bend = bend
        self.seed = seed
        self.prefix = prefix
        self.widest = 0
        self.names = tuple(f"{prefix}_{j}" for j in range(n_components))
        parts = _hashed(f"phases {seed}", n_components)
        self._phases = [2.0 * math.pi * (part / _LEVELS) for part in parts]
        self._height = math.sqrt(2.0 / n_components)
        self._weights = _Weights(n_components, seed)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield {"n_components": 7}

    def learn_one(self, x: Event) -> None:
        """Take note of how many features the event has."""
        self.widest = max(self.widest, width(finite_features(x)))

    def transform_one(self, x: Event) -> Features:
        """Return the cosines; nothing changes.

        Raises
        ------
        InvalidEvent
            Naming the feature that is neither missing nor a finite real number.

        """
        scale = math.sqrt(2.0 * self._bend / max(1, self.widest))
        sums, weights = self._phases, self._weights
        numbers = as_floats(finite_features(x))
        for name in sorted(numbers, key=str):
            if (value := numbers[name]) != 0.0:
                step = scale * max(-LARGEST, min(LARGEST, value))
                sums = [s + step * w for s, w in zip(sums, weights[name], strict=True)]
        height, cos = self._height, math.cos
        return {name: height * cos(s) for name, s in zip(self.names, sums, strict=True)}

    def learn_many(self, X: frames.Frame) -> None:
        """Learn the rows of a frame, all of them or, refused, none."""
        for x in frames.each_row(frames.rows(X), finite_features):
            self.learn_one(x)

    def transform_many(self, X: frames.Frame) -> frames.Frame:
        """Return a frame of the cosines."""
        rows = [self.transform_one(x) for x in frames.rows(X)]
        return frames.frame({name: [row[name] for row in rows] for name in self.names}, like=X)

    def get_state(self) -> dict[str, Any]:
        """Return `{"version", "type", "widest"}`."""
        kind = type(self).__name__
        return {"version": state.STATE_VERSION, "type": kind, "widest": self.widest}

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a saved state, or raise `InvalidState` and change nothing."""
        saved = state.checked_header(saved, type(self).__name__)
        self.widest = int(state.scalar("widest", COUNT, saved.get("widest")))


class _Weights(dict[Hashable, "array[float]"]):
    """The normal weights of each name, a pure function; those of a few names are remembered.

    They take 160 kB and the names at most, and are no part of any state.
    """

    def __init__(self, n: int, seed: int) -> None:
        super().__init__()
        self._n, self._seed = n, seed
        self._room = min(REMEMBERED_NAMES, REMEMBERED // n)

    def __missing__(self, name: Hashable) -> array[float]:
        if len(self) >= self._room:
            self.clear()
        parts = _hashed(f"weights {self._seed} {name}", self._n * _PARTS)
        middle = _PARTS * (_LEVELS - 1) / 2.0
        unit = 1.0 / (_LEVELS * math.sqrt(_PARTS / 12.0))
        groups = (parts[i : i + _PARTS] for i in range(0, len(parts), _PARTS))
        found = self[name] = array("d", ((sum(group) - middle) * unit for group in groups))
        return found

    def __reduce__(self) -> tuple[type[_Weights], tuple[int, int]]:
        return type(self), (self._n, self._seed)


def _hashed(text: str, n: int) -> tuple[int, ...]:
    """Return n numbers of 16 bits that are a hash of `text`."""
    digest = hashlib.shake_256(text.encode("utf-8", "surrogatepass")).digest(2 * n)
    return struct.unpack(f">{n}H", digest)
