"""Format and compression by the suffixes of a name, and which options they go with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath

from hinged_service.ingest.files.options import Compression, FileOptions, Format
from hinged_service.ingest.files.record import FileError

__all__ = ["QUOTES", "settle"]

QUOTES: dict[str, str | None] = {"csv": '"', "tsv": None}
"""The default quote of each format that has quotes."""

_COMPRESSIONS: dict[str, Compression] = {
    ".gz": "gz",
    ".zst": "zst",
    ".bz2": "bz2",
    ".xz": "xz",
}
_FORMATS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".ndjson": "ndjson",
    ".jsonl": "ndjson",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".svm": "libsvm",
    ".vw": "vw",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}


def settle(name: str, options: FileOptions) -> FileOptions:
    """Return the options with format, compression and quote decided.

    A `FileError` if the suffixes do not decide the format, or it does not fit the other options.
    """
    suffixes = [suffix.lower() for suffix in PurePath(name).suffixes]
    by_name = _COMPRESSIONS.get(suffixes[-1]) if suffixes else None
    if by_name is not None:
        suffixes.pop()
    compression = options.compression
    if compression == "auto":
        compression = by_name or "none"
    kind = options.format
    if kind == "auto":
        kind = _FORMATS.get(suffixes[-1], "auto") if suffixes else "auto"
    if kind == "auto":
        formats = ", ".join(_FORMATS)
        what = "Standard input" if name == "-" else f"{name}, by its suffix,"
        raise FileError(f"{what} has no known format ({formats}): name it with --format.")
    _check(replace(options, format=kind, compression=compression))
    quote = QUOTES.get(kind) if options.quote == "auto" else options.quote
    return replace(options, format=kind, compression=compression, quote=quote)


def _check(options: FileOptions) -> None:
    kind = options.format
    if kind == "parquet" and options.compression != "none":
        raise FileError("Parquet is compressed inside: a compressed file of it cannot be read.")
    if kind not in ("csv", "tsv") and options.delimiter is not None:
        raise FileError(f"A delimiter is for CSV and TSV, not for {kind}.")
    if kind not in QUOTES and options.quote != "auto":
        raise FileError(f"A quote is for CSV and TSV, not for {kind}.")
    if kind in ("csv", "tsv", "parquet", "arrow"):
        return
    if kind == "vw" and options.id not in (None, "tag"):
        raise FileError(f"Vowpal Wabbit text has no column {options.id!r}: its id can be 'tag'.")
    named = {
        "label": options.label,
        "id": None if kind == "vw" else options.id,
        "weight": options.weight,
        "types": options.types or None,
    }
    unused = [name for name, value in named.items() if value is not None]
    if unused:
        raise FileError(f"{kind} has no columns: leave out {', '.join(unused)}.")
