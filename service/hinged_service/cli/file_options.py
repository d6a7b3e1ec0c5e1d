"""Options of the commands that read files of labelled events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from hinged_service.ingest.files import FileOptions

__all__ = [
    "ColumnTypes",
    "Delimiter",
    "Encoding",
    "FileFormat",
    "LabelColumn",
    "LabelMap",
    "Missing",
    "Packed",
    "Quote",
    "WeightColumn",
    "file_options",
]

LabelColumn = Annotated[
    str | None, typer.Option("--label", help="Column of the label; tables need it.")
]
WeightColumn = Annotated[str | None, typer.Option("--weight", help="Column of the sample weight.")]
ColumnTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="COLUMN=number|text|bool|ignore",
        help="Type of a column, if the first rows suggest a wrong one.",
    ),
]
LabelMap = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="TEXT=LABEL",
        help="Meaning of a label in the file, as JSON or text: `--map UP=true`. Once one is "
        "given, other labels are bad records.",
    ),
]
FileFormat = Annotated[
    str,
    typer.Option(
        "--format",
        help="csv, tsv, ndjson, libsvm, vw, parquet, arrow; `auto` depends on the suffix.",
    ),
]
Packed = Annotated[
    str,
    typer.Option("--compression", help="none, gz, zst, bz2, xz; `auto` depends on the suffix."),
]
Delimiter = Annotated[str | None, typer.Option("--delimiter", help="Character between the cells.")]
Quote = Annotated[
    str,
    typer.Option(
        "--quote",
        help="Quote around a cell of CSV or TSV: one character, or `none`. `auto` is a double "
        "quote in CSV and none in TSV, where a quotation mark is text like any other.",
    ),
]
Encoding = Annotated[str, typer.Option("--encoding", help="Encoding of CSV and TSV.")]
Missing = Annotated[
    list[str] | None,
    typer.Option("--missing", help="A cell that means a missing value, such as `NA`."),
]


def file_options(
    label: str | None,
    weight: str | None,
    column: list[str] | None,
    labels: list[str] | None,
    format: str,  # noqa: A002 - as the option is called
    compression: str,
    delimiter: str | None,
    quote: str,
    encoding: str,
    missing: list[str] | None,
    id: str | None = None,  # noqa: A002 - as the option is called
) -> FileOptions:
    """Return the options of a file from those of a command; wrong ones are wrong usage."""
    from hinged_service.ingest.files import FileError, FileOptions

    roles: dict[str, Any] = {
        "format": format,
        "compression": compression,
        "types": _pairs(column, "--type"),
        "labels": {text: _scalar(y) for text, y in _pairs(labels, "--map").items()},
    }
    try:
        return FileOptions(
            label=label,
            id=id,
            weight=weight,
            delimiter=delimiter,
            quote=None if quote == "none" else quote,
            encoding=encoding,
            missing=("", *(missing or ())),
            **roles,
        )
    except FileError as error:
        raise typer.BadParameter(str(error)) from None


def _pairs(texts: list[str] | None, option: str) -> dict[str, str]:
    """Return names and values of texts like `name=value`; a name may hold equals signs."""
    found: dict[str, str] = {}
    for text in texts or ():
        name, sign, value = text.rpartition("=")
        if not sign:
            raise typer.BadParameter(f"{text!r} has no '='.", param_hint=option)
        if name in found:
            raise typer.BadParameter(f"{name!r} is given twice.", param_hint=option)
        found[name] = value
    return found


def _scalar(text: str) -> bool | int | str:
    """Return a label as JSON has it, if it is one there, else as text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, (bool, int, str)) else text
