"""Results on standard output: tables for people, JSON and CSV for machines."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec
import typer
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from hinged_service.client import Duplicate, Learned

__all__ = [
    "PANEL",
    "Facts",
    "JsonOption",
    "Output",
    "OutputOption",
    "Part",
    "Share",
    "Table",
    "accuracy",
    "console",
    "grid",
    "label_text",
    "moment",
    "number",
    "print_json",
    "print_line",
    "print_result",
    "print_rows",
    "printable",
    "staleness",
]

PANEL: Final = "Service"
_PIPE_COLUMNS: Final = 10_000


class Output(StrEnum):
    """Form of a result."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


OutputOption = Annotated[
    Output,
    typer.Option(
        "--output",
        "-o",
        help="Form of the result: a table for people, one JSON document, or CSV with a header.",
        rich_help_panel=PANEL,
    ),
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", help="The same as --output json.", rich_help_panel=PANEL),
]


class Share(float):
    """A share of 0 to 1, which a table shows as a percentage."""


class Table(NamedTuple):
    """Rows under their headings, numbers to the right; `empty` is written if there are no rows."""

    columns: Sequence[str]
    rows: Iterable[Sequence[object]]
    empty: str = ""


class Facts(dict[str, object]):
    """Names with their values, one a line; a table leaves out `None`."""


Part: TypeAlias = str | Facts | Table


def print_result(output: Output, value: object, *parts: Part) -> None:
    """Print a result.

    Parameters
    ----------
    output
        Its form.
    value
        A value of the client: all of it is JSON, and CSV where no part is a table.
    parts
        Sentences, facts and tables for people.

    """
    if output is Output.JSON:
        print_json(value)
    elif output is Output.CSV:
        table = next((part for part in parts if isinstance(part, Table)), None)
        print_rows(*(_fields(value) if table is None else (table.columns, table.rows)))
    else:
        for part in parts:
            if isinstance(part, str):
                print_line(part)
            else:
                console().print(grid(part))


def print_json(value: object) -> None:
    """Print a value of the client as one line of JSON, in ASCII."""
    sys.stdout.write(json.dumps(_plain(value), allow_nan=False) + "\n")


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print CSV: the columns, unless there are none, then the rows."""
    console()
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if columns:
        writer.writerow(columns)
    writer.writerows([_plain_cell(value) for value in row] for row in rows)


def print_line(text: str) -> None:
    """Print a line for people."""
    console().print(Text(printable(text)), soft_wrap=True)


def grid(part: Facts | Table) -> Grid | Text:
    """Return facts or a table as a terminal shows them."""
    lines = Grid(box=None, pad_edge=False, header_style="bold", show_header=False)
    if isinstance(part, Facts):
        lines.add_column(style="dim")
        lines.add_column(overflow="fold")
        for name, value in part.items():
            if value is not None:
                lines.add_row(name, _cell(value))
        return lines
    found = list(part.rows)
    if not found:
        return Text(printable(part.empty))
    lines.show_header = True
    for index, column in enumerate(part.columns):
        numbers = all(isinstance(row[index], (int, float, type(None))) for row in found)
        lines.add_column(column, justify="right" if numbers else "left", overflow="fold")
    for row in found:
        lines.add_row(*(_cell(value) for value in row))
    return lines


def printable(text: str) -> str:
    """Return text without control characters for a terminal; names may be anything."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def number(value: float | None) -> str:
    """Return a number as people read it; the JSON has all digits."""
    return "-" if value is None else f"{value:.2%}" if isinstance(value, Share) else f"{value:.6g}"


def accuracy(judged: int | None, mistakes: int | None) -> Share | None:
    """Return the share of judged events predicted right; `None` without one."""
    return Share((judged - (mistakes or 0)) / judged) if judged else None


def label_text(label: object) -> str:
    """Return a label as the service writes it."""
    if label is None:
        return "(no class is known yet)"
    return str(label).lower() if isinstance(label, bool) else str(label)


def moment(ms: int) -> str:
    """Return a time of the service as local time."""
    return datetime.fromtimestamp(ms / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def console() -> Console:
    """Return the standard output, which escapes characters that it cannot encode."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    width = None if sys.stdout.isatty() else _PIPE_COLUMNS
    return Console(highlight=False, width=width)


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


def staleness(seconds: float | None) -> str | None:
    """Return the age of an answer from memory for people, `None` for an up-to-date one."""
    return None if seconds is None else f"{seconds:.1f} s, Redis does not answer"


def _plain_cell(value: object) -> str:
    """Return a value as a cell of CSV: text as it is, all else as JSON, nothing for `None`."""
    if isinstance(value, str):
        return printable(value) if sys.stdout.isatty() else value
    return "" if value is None else json.dumps(value, allow_nan=False)


def _fields(value: object) -> tuple[list[str], list[list[object]]]:
    """Return the columns and rows of a value of the client, or of a list of them."""
    plain = _plain(value)
    records = plain if isinstance(plain, list) else [plain]
    columns = list(dict.fromkeys(name for record in records for name in record))
    return columns, [[record.get(name) for name in columns] for record in records]


def _plain(value: object) -> Any:
    if isinstance(value, (Learned, Duplicate)):
        return {**msgspec.to_builtins(value), "duplicate": value.duplicate}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return msgspec.to_builtins(value, enc_hook=float)  # a share
