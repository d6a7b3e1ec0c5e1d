"""Types of columns, decided once for all files of one command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from hinged_service.ingest.files.file_source import Source, open_source
from hinged_service.ingest.files.options import FileOptions, Kind
from hinged_service.ingest.files.record import FileError

__all__ = ["open_sources"]


def open_sources(paths: Sequence[str], options: FileOptions) -> list[Source]:
    """Open files as sources of events that have one type for each column.

    A column that is text here and numbers there would give two features of one value, such as
    `zip_10` and `zip_10.0`. The user is asked for its type: then it is the same again when the
    command is, with a file more or less. A `FileError` as of `open_source`; or if a file cannot be
    read at all, files differ in the type of a column, or a column in `types` is in none of them.
    """
    several = len(paths) > 1
    sources = [open_source(path, replace(options, elsewhere=several)) for path in paths]
    for source in sources:
        source.look()
    if several:
        _agree(sources, options)
    return sources


def _agree(sources: Sequence[Source], options: FileOptions) -> None:
    """Settle the types of columns, or refuse files that differ."""
    found = [(source, source.guesses()) for source in sources]
    columns = {name for _, guesses in found for name in guesses}
    unknown = [repr(name) for name in options.types if name not in columns]
    if unknown:
        raise FileError(f"There is no column {', '.join(unknown)} in any of the files.")
    declared = {options.label, options.id, options.weight, *options.types}
    kinds: dict[str, tuple[Kind, str]] = {}
    faults: dict[str, str] = {}
    for source, guesses in found:
        for name, kind in guesses.items():
            if kind in (None, "ignore") or name in declared:
                continue
            first, where = kinds.setdefault(name, (kind, source.name))
            if (kind == "text") != (first == "text"):
                faults[name] = f"{name} is {first} in {where} and {kind} in {source.name}"
    if faults:
        raise FileError(_explain(faults))
    for source in sources:
        source.settle({name: kind for name, (kind, _) in kinds.items()})


def _explain(faults: dict[str, str]) -> str:
    choices = " ".join(f"--type {shlex.quote(f'{name}=text')}" for name in faults)
    return (
        "One command reads a column alike in all files, but, by their first rows, "
        f"{'; '.join(faults.values())}. Say what it is: {choices}; or number, and records in which "
        "it is none are bad."
    )
