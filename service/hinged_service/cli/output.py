"""Results on standard output: tables for people, one JSON document for machines."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hinged_service.client import Duplicate, Learned

__all__ = [
    "moment",
    "number",
    "print_facts",
    "print_json",
    "print_line",
    "print_table",
    "printable",
]

_PIPE_COLUMNS = 10_000


def print_json(value: object) -> None:
    """Print a value of the client as one JSON document, in ASCII."""
    sys.stdout.write(json.dumps(_plain(value), allow_nan=False) + "\n")


def print_line(text: str) -> None:
    """Print a line for people."""
    _console().print(Text(printable(text)), soft_wrap=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], empty: str) -> None:
    """Print rows under their headings, numbers to the right; or `empty` if there are no rows."""
    found = list(rows)
    if not found:
        print_line(empty)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        numbers = all(isinstance(row[index], (int, float, type(None))) for row in found)
        table.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in found:
        table.add_row(*(_cell(value) for value in row))
    _console().print(table)


def print_facts(facts: Mapping[str, object]) -> None:
    """Print names with their values, one a line; what is `None` is left out."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        if value is not None:
            table.add_row(name, _cell(value))
    _console().print(table)


def printable(text: str) -> str:
    """Return text without what a terminal would obey; names may be anything."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def number(value: float | None) -> str:
    """Return a number as people read it; the JSON has all digits."""
    return "-" if value is None else f"{value:.6g}"


def moment(ms: int) -> str:
    """Return a time of the service as local time."""
    return datetime.fromtimestamp(ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _cell(value: object) -> Text:
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if isinstance(value, float) or value is None:
        return Text(number(value))
    if isinstance(value, int):
        return Text(f"{value:,}")
    if isinstance(value, str):
        return Text(printable(value))
    return Text(printable(json.dumps(value, ensure_ascii=False)))


def _plain(value: object) -> object:
    if isinstance(value, (Learned, Duplicate)):
        return {**msgspec.to_builtins(value), "duplicate": value.duplicate}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return msgspec.to_builtins(value)


def _console() -> Console:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    width = None if sys.stdout.isatty() else _PIPE_COLUMNS
    return Console(highlight=False, width=width)
