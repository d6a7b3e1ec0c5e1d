"""The table of the failure drills: one row each, printed when the tests are over.

`HINGED_DRILLS` names a file that it is written to as well, as Markdown.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path

import pytest

PROPERTY = "drill"
_HEAD = (
    *("drill", "what was done", "sent", "acknowledged", "learned", "lost", "doubled"),
    "time to recover",
)


@dataclass(frozen=True)
class Row:
    """Outcome of one drill; the numbers are of events, `recover_s` is in seconds."""

    drill: str
    done: str
    sent: int
    acknowledged: int
    learned: int
    lost: int
    doubled: int
    recover_s: float

    def as_json(self) -> str:
        """Return it as the text that goes from a test process to the one that prints."""
        return json.dumps(astuple(self))

    def cells(self) -> list[str]:
        """Return it as the table shows it."""
        *texts, recover_s = astuple(self)
        return [*(str(text) for text in texts), f"{recover_s:.2f} s"]


def table(rows: Iterable[Row]) -> str:
    """Return the rows as a Markdown table that reads well as text, too."""
    lines = [list(_HEAD), *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    text = [
        "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table if there were drills."""
    reports = [
        report
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        if report.when == "call"
    ]
    found = [
        Row(*json.loads(str(value)))
        for report in sorted(reports, key=lambda report: report.location)
        for name, value in report.user_properties
        if name == PROPERTY
    ]
    if not found:
        return
    text = table(found)
    terminalreporter.section("failure drills")
    terminalreporter.write_line(text)
    if "HINGED_DRILLS" in os.environ:
        Path(os.environ["HINGED_DRILLS"]).write_text(text + "\n", encoding="utf-8")
