"""Weights to start from: zero, given by name, or random by name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from numbers import Integral

from hinged.arithmetic import dot
from hinged.errors import InvalidEvent, InvalidParameter, shown
from hinged.events import checked_numbers
from hinged.parameters import checked_number
from hinged.vector import Event, Features, Numbers, WeightVector

__all__ = ["InitialWeights", "RandomWeights", "StartedVector", "started", "starts_of"]

_LARGEST = 1e100


@dataclass(frozen=True, slots=True)
class RandomWeights:
    """Random initial weights for any name, uniform between -scale and scale.

    The weight of a name is computed from the seed and the name alone: the same in every
    process and on every platform, for any names that came before, and never 0.

    Parameters
    ----------
    seed
        A whole number.
    scale
        Above 0, at most 1e100.

    Examples
    --------
    >>> from hinged import Perceptron, RandomWeights
    >>> start = RandomWeights(seed=1, scale=0.5)
    >>> round(start("height"), 6), start("height") == start("width")
    (-0.123057, False)
    >>> Perceptron(initial_weights=start).score_one({"height": 2.0}) == 2.0 * start("height")
    True

    """

    seed: int = 0
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.seed, Integral) or isinstance(self.seed, bool):
            raise InvalidParameter(f"seed must be a whole number, not {shown(self.seed)}")
        scale = checked_number("scale", self.scale, "0 < scale <= 1e100", 0.0, closed=False)
        if scale > _LARGEST:
            raise InvalidParameter(f"0 < scale <= 1e100 must hold, not scale={scale!r}")
        object.__setattr__(self, "seed", int(self.seed))
        object.__setattr__(self, "scale", scale)

    def of(self, label: Hashable) -> RandomWeights:
        """Return the weights of a class: of a seed of its own."""
        digest = hashlib.blake2b(f"{self.seed} c{label!r}".encode("utf-8", "surrogatepass"))
        return RandomWeights(int.from_bytes(digest.digest()[:8], "big"), self.scale)

    def __call__(self, name: Hashable) -> float:
        """Return the weight of a name; of one that is no text, from its `repr`."""
        text = f"{self.seed} s{name}" if isinstance(name, str) else f"{self.seed} r{name!r}"
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        odd = 2 * (int.from_bytes(digest, "big") >> 11) + 1 - 2**53  # exact as a float
        return self.scale * (odd * 2.0**-53)


InitialWeights = Numbers | RandomWeights | None
"""Weights to start from; `None` for 0."""


class StartedVector(WeightVector):
    """A weight vector in which a name not stored has a random weight instead of 0.

    Reading stores nothing. A full one gives 0 to names that it does not have.

    Parameters
    ----------
    start
        The weights of names not stored.
    cap
        The most names, or `None` for no limit.
    values
        Stored weights. Taken over, not copied.

    """

    __slots__ = ("_cap", "_start")

    def __init__(
        self, start: RandomWeights, cap: int | None, values: Features | None = None
    ) -> None:
        self._start, self._cap = start, cap
        super().__init__(values)
        self.plain = False
        self.bound = max(self.bound, start.scale)

    def __reduce__(self) -> tuple[object, ...]:
        return _revived, (self._start, self._cap, *self.parts())

    def lookup(self, name: Hashable, default: float) -> float:
        """Return one weight, as `get` does."""
        return self.get(name)

    def get(self, name: Hashable) -> float:
        """Return one weight, that of the start for a name never learned."""
        if name in self:
            return super().get(name)
        full = self._cap is not None and len(self) >= self._cap
        return 0.0 if full else self._start(name)

    def dot(self, x: Event) -> float:
        """Return `w . x`, or raise `TypeError`, as `hinged.arithmetic.dot` says."""
        return dot(self.lookup, x)

    def fits(self, x: Numbers, step: float, norm: float) -> bool:
        """Return whether `step * x` can be added with every weight staying finite."""
        fits = super().fits(x, step, norm)
        self.bound = max(self.bound, self._start.scale)
        return fits

    def move(self, x: Numbers, step: float, norm: float) -> bool:
        """Add `step * x` if it fits (see `fits`); else change nothing and return `False`."""
        if not self.fits(x, step, norm):
            return False
        self.add(x, step)
        return True

    def add(self, x: Numbers, step: float) -> None:
        """Add `step * x`, which must fit (see `fits`)."""
        new = self.unknown(x)
        before = dict(zip(new, map(self._start, new), strict=True))
        values = self.opened(x)
        for name, value in x.items():
            values[name] = (before[name] if name in before else values[name]) + step * float(value)


def _revived(
    start: RandomWeights, cap: int | None, values: Features, changed: set[Hashable] | None
) -> StartedVector:
    vector = StartedVector(start, cap, values)
    vector.set_changed(changed)
    return vector


def started(initial: InitialWeights, cap: int | None) -> WeightVector:
    """Return the vector that starts from these weights, or raise `InvalidParameter`."""
    if initial is None:
        return WeightVector()
    if isinstance(initial, RandomWeights):
        return StartedVector(initial, cap)
    if not isinstance(initial, Mapping):
        raise InvalidParameter(
            f"initial_weights must be None, a mapping or RandomWeights, not {shown(initial)}"
        )
    try:
        weights = checked_numbers(initial)
    except InvalidEvent as error:
        raise InvalidParameter(f"initial_weights: {error}") from None
    if cap is not None and len(weights) > cap:
        raise InvalidParameter(f"initial_weights must hold at most {cap} names, as max_features")
    return WeightVector(weights)


def starts_of(initial: InitialWeights) -> Callable[[Hashable], float] | None:
    """Return a function of a name to its initial weight; `None` if that is 0 for all."""
    if initial is None or isinstance(initial, RandomWeights):
        return initial
    return lambda name: float(initial.get(name, 0.0))
