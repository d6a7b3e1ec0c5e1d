"""Results kept as JSON, and two of them side by side: what became slower beyond noise."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tests.bench.table import RIGHT, Row, shown

__all__ = ["Results", "Section", "changes", "read", "write"]

LEAST = 0.05
"""Smaller changes are not told, however little the rounds differ."""
ROUNDS = 3
"""Fewer rounds do not tell how much they differ; an accuracy needs but one."""
LEAST_RIGHT = 0.001


@dataclass(frozen=True)
class Section:
    """The rows of a part, and the machine and versions that they were measured with."""

    machine: str
    rows: list[Row]


Results = dict[str, Section]
"""Measured sections by their title: of one run, or of the last run of each part."""


def write(path: Path, results: Results) -> None:
    """Keep every value as JSON."""
    kept = {title: asdict(section) for title, section in results.items()}
    path.write_text(json.dumps(kept) + "\n", encoding="utf-8")


def read(path: Path) -> Results:
    """Return what `write` kept.

    Raises
    ------
    ValueError
        The file was not written by `write`.

    """
    try:
        kept: Any = json.loads(path.read_text(encoding="utf-8"))
        return {
            title: Section(section["machine"], [Row(**row) for row in section["rows"]])
            for title, section in kept.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} holds no results of this command: {error}") from None


def changes(old: Results, new: Results) -> list[str]:
    """Return a line for each quantity of both runs that is worse now, the worst first.

    Worse means that the medians differ by more than 5 %, and that no round of the
    new run was as good as any of the old one. Fewer than three
    rounds do not tell. An accuracy, which has no noise, is worse by 0.1 % already.
    """
    before = {(title, row.name): row for title, section in old.items() for row in section.rows}
    found: list[tuple[float, str]] = []
    for title, section in new.items():
        for row in section.rows:
            was = before.get((title, row.name))
            exact = row.unit == RIGHT
            if was is None or was.unit != row.unit or not was.values or not row.values:
                continue
            if not exact and min(len(was.values), len(row.values)) < ROUNDS:
                continue
            factor = _worse(was, row)
            if factor > 1 + (LEAST_RIGHT if exact else LEAST):
                found.append((factor, _line(title, was, row, factor)))
    return [line for _, line in sorted(found, reverse=True)]


def _worse(was: Row, row: Row) -> float:
    """Return how many times worse the median is, 1 if the rounds of both runs overlap."""
    if row.less_is_better:
        apart, factor = min(row.values) > max(was.values), (median(row.values), median(was.values))
    else:
        apart, factor = max(row.values) < min(was.values), (median(was.values), median(row.values))
    return factor[0] / factor[1] if apart and factor[1] > 0 else 1.0


def _line(title: str, was: Row, row: Row, factor: float) -> str:
    old, new = (
        f"{shown(median(r.values))} ({shown(min(r.values))}–{shown(max(r.values))})"
        for r in (was, row)
    )
    return f"{title}: {row.name}: {old} → {new} {row.unit}, {factor:.2f} times worse"
