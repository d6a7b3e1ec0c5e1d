"""Rows of results: what was measured, how it spread, and the target beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

RIGHT = "% right"
"""The unit of an accuracy."""


@dataclass
class Row:
    """One measured quantity over several runs.

    Parameters
    ----------
    name
        What was measured.
    values
        One value per run.
    unit
        Of the values; `×` for a ratio.
    target
        What must hold for the median; `None` for a quantity shown for information.
    at_most
        Whether the target bounds the value from above, or a ratio is better if smaller.
    aim
        A better value that is hoped for.

    """

    name: str
    values: Sequence[float] = field(default_factory=list)
    unit: str = "×"
    target: float | None = None
    at_most: bool = False
    aim: float | None = None

    @property
    def less_is_better(self) -> bool:
        """True if a smaller value is better; rates, ratios and shares grow for the better."""
        if self.unit.endswith("/s") or self.unit in ("×", RIGHT):
            return self.at_most
        return True

    def cells(self) -> list[str]:
        """Return the row as the table shows it."""
        middle = median(self.values)
        spread = f"{shown(min(self.values))}–{shown(max(self.values))}"
        if self.target is None:
            return [self.name, f"{shown(middle)} {self.unit}", spread, "", ""]
        sign = "≤" if self.at_most else "≥"
        target = f"{sign} {shown(self.target)}"
        if self.aim is not None:
            target += f", aim {shown(self.aim)}"
        met = middle <= self.target if self.at_most else middle >= self.target
        return [
            self.name,
            f"{shown(middle)} {self.unit}",
            spread,
            target,
            "met" if met else "**missed**",
        ]


def shown(value: float) -> str:
    """Return a number with three digits or so."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3f}"


def ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Return the quotients of values that were measured in the same round."""
    return [a / b for a, b in zip(numerators, denominators, strict=True)]


class Costs:
    """Time of several ways to learn events, and the processor time it took, in µs per event."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, list[float]]] = {}

    def add(self, way: str, events: int, whole_s: float, worker_s: float, redis_s: float) -> None:
        """Note a round."""
        for kind, seconds in (
            ("", whole_s),
            (": processor of the worker", worker_s),
            (": processor of Redis", redis_s),
        ):
            found = self._found.setdefault(kind, {}).setdefault(way, [])
            found.append(seconds / events * 1e6)

    def over(self, one: str, other: str) -> list[float]:
        """Return how many times the time of `other` that of `one` is."""
        return ratios(self._found[""][one], self._found[""][other])

    def rows(self, name: Callable[[str], str]) -> list[Row]:
        """Return all of it; `name` says what a way is called."""
        return [
            Row(name(way) + kind, values, "µs/event")
            for kind, of in self._found.items()
            for way, values in of.items()
        ]


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table that reads well as text, too."""
    head = ["measured", "median", "min–max", "target", ""]
    lines = [head, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    text = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)
