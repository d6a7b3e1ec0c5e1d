"""The measurements run, are kept, and tell a regression from noise."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import results
from tests.bench.table import RIGHT, Row


def measured(*rows: Row) -> results.Results:
    return {"A part": results.Section("a machine", list(rows))}


@pytest.mark.parametrize(
    ("unit", "at_most", "old", "new", "worse"),
    [
        ("µs", False, [10, 11, 12], [13, 14, 15], True),
        ("µs", False, [10, 11, 12], [12, 14, 15], False),  # a round was as good as one before
        ("µs", False, [10, 11, 12], [7, 8, 9], False),
        ("µs", False, [100, 100, 100], [104, 104, 104], False),  # too little to tell
        ("µs", False, [10], [20], False),  # one round does not tell how rounds differ
        ("requests/s", False, [10, 11, 12], [7, 8, 9], True),
        ("requests/s", False, [10, 11, 12], [13, 14, 15], False),
        ("×", False, [2.0, 2.1, 2.2], [1.5, 1.6, 1.7], True),
        ("×", True, [2.0, 2.1, 2.2], [1.5, 1.6, 1.7], False),
        ("×", True, [2.0, 2.1, 2.2], [2.5, 2.6, 2.7], True),
        (RIGHT, False, [90.0], [89.8], True),
        (RIGHT, False, [90.0], [90.2], False),
    ],
)
def test_only_what_is_worse_beyond_noise_is_told(
    unit: str, at_most: bool, old: list[float], new: list[float], worse: bool
) -> None:
    before, after = (measured(Row("it", values, unit, at_most=at_most)) for values in (old, new))
    found = results.changes(before, after)
    assert bool(found) is worse
    assert all(line.startswith("A part: it: ") for line in found)


def test_the_worst_comes_first_and_what_only_one_run_has_is_left_out() -> None:
    before = measured(Row("a", [1, 1, 1], "ms"), Row("b", [1, 1, 1], "ms"), Row("gone", [1], "ms"))
    after = measured(Row("a", [2, 2, 2], "ms"), Row("b", [3, 3, 3], "ms"), Row("new", [1], "ms"))
    changed = results.changes(before, after)
    assert [line.split(": ")[1] for line in changed] == ["b", "a"]


def test_a_run_is_kept_and_compared(tmp_path: Path) -> None:
    """Against a past in which everything was a hundred times better, all is worse."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tests.bench", "--quick", "learners", *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)

    kept = tmp_path / "now.json"
    first = run("--json", str(kept))
    assert first.returncode == 0, first.stderr
    stored = json.loads(kept.read_text())
    assert "River" in first.stdout
    for section in stored.values():
        for row in section["rows"]:
            factor = 100 if row["unit"] == "×" else 0.01
            row["values"] = [value * factor for value in row["values"]]
    displayed = run("--show", "--json", str(kept))
    assert displayed.returncode == 0, displayed.stderr
    table = [line for line in first.stdout.splitlines() if line.startswith("|")]
    assert table == [line for line in displayed.stdout.splitlines() if line.startswith("|")]
    past = tmp_path / "past.json"
    past.write_text(json.dumps(stored))
    second = run("--compare", str(past))
    assert second.returncode == 0, second.stderr
    assert second.stdout.count(" times worse") == sum(
        len(section["rows"]) for section in stored.values()
    )
    (tmp_path / "other.json").write_text("[]")
    third = run("--compare", str(tmp_path / "other.json"))
    assert third.returncode == 2
    assert "holds no results" in third.stderr
