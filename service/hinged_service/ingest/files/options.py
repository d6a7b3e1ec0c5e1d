"""Options of a file, as the user gives them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, get_args

from hinged_service.ingest.files.record import FileError

__all__ = ["Compression", "FileOptions", "Format", "Kind", "LabelValue"]

Format = Literal["auto", "csv", "tsv", "ndjson", "libsvm", "vw", "parquet", "arrow"]
Compression = Literal["auto", "none", "gz", "zst", "bz2", "xz"]
Kind = Literal["number", "text", "bool", "ignore"]
LabelValue = bool | int | str


@dataclass(frozen=True, kw_only=True)
class FileOptions:
    """Options for reading a file.

    Parameters
    ----------
    format
        The format, or `"auto"`: by the suffix of the name.
    compression
        The compression, or `"auto"`: by the last suffix of the name.
    label
        The column that holds the label. Tables (CSV, TSV, Parquet, Arrow) need it.
    id
        The column that names each event: by text as it stands, or by whole numbers, of which
        123 and 123.0 are the same (in CSV if they are numbers by `types`). In Vowpal
        Wabbit text `"tag"` takes the tag.
    weight
        The column that holds the sample weight; an empty cell is weight 1.
    types
        Types of columns that are not to be inferred. `"ignore"` leaves a column out.
    elsewhere
        Whether such a column may be missing here, as another file has it.
    delimiter
        The mark between cells: by default a comma, in TSV a tab.
    quote
        The mark around a cell; `None` if there is none; `"auto"`: `"` in CSV, none in TSV
        (text/tab-separated-values has no quotes).
    encoding
        The encoding of CSV and TSV; one that keeps ASCII as it is.
    missing
        Cells that stand for a missing value; so do cells of white space.
    labels
        From a label as the file has it to the label to learn. Others are bad records.
    takes
        Returns whether the model has a label: then a label that is text in the file is the one of
        the model that is written like this, independent of other records. Without it the first
        records decide.
    sample_rows
        How many records decide the types of columns and labels, at least 1.

    Raises
    ------
    FileError
        For an option that has no such value.

    """

    format: Format = "auto"
    compression: Compression = "auto"
    label: str | None = None
    id: str | None = None
    weight: str | None = None
    types: Mapping[str, Kind] = field(default_factory=lambda: MappingProxyType({}))
    elsewhere: bool = False
    delimiter: str | None = None
    quote: str | None = "auto"
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ("",)
    labels: Mapping[str, LabelValue] = field(default_factory=lambda: MappingProxyType({}))
    takes: Callable[[LabelValue], bool] | None = None
    sample_rows: int = 1000

    def __post_init__(self) -> None:
        _one_of("format", self.format, get_args(Format))
        _one_of("compression", self.compression, get_args(Compression))
        for column, kind in self.types.items():
            _one_of(f"type of column {column!r}", kind, get_args(Kind))
        quote = None if self.quote == "auto" else self.quote
        for name, mark in (("delimiter", self.delimiter), ("quote", quote)):
            if mark is not None and not (len(mark) == 1 and mark not in "\r\n"):
                raise FileError(f"The {name} must be one character, not {mark!r}.")
        if not self.sample_rows >= 1:
            raise FileError(f"sample_rows must be at least 1, not {self.sample_rows}.")
        try:
            kept = "a,\n".encode(self.encoding) == b"a,\n"
        except (LookupError, UnicodeError):
            kept = False
        if not kept:
            raise FileError(
                f"The encoding {self.encoding!r} is unknown or no superset of ASCII: "
                "convert the file to UTF-8 first (iconv)."
            )
        roles = [name for name in (self.label, self.id, self.weight) if name is not None]
        if len(set(roles)) < len(roles):
            raise FileError("Label, id and weight must be different columns.")


def _one_of(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise FileError(f"The {what} must be one of {', '.join(allowed)}, not {value!r}.")
