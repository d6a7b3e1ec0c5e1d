"""`hinged key`: make an API key, and keep its salted hash."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hinged_service.wire.encodings import without_marks

if TYPE_CHECKING:
    from hinged_service.api.api_keys import Scope

__all__ = ["key"]

_SCOPES: tuple[Scope, ...] = ("predict", "learn", "admin")


def key(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of its user: letters, digits and -.")
    ],
    scope: Annotated[
        list[str] | None,
        typer.Option(help="predict, learn or admin; repeat it for more."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="Names of its models, with * and ?; repeat it for more. Default: all."),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option(
            help="Calls that it may make to each worker, such as 100/second or 5000/minute. "
            "Default: no limit."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, help="JSON file of keys to add it to. A missing file is created."
        ),
    ] = None,
) -> None:
    """Make an API key. It is shown once; only its salted hash is kept.

    hinged key web --scope predict --model 'spam*' --file keys.json
    """
    from pydantic import ValidationError

    from hinged_service.api.api_keys import new_key

    scopes = tuple(s for s in _SCOPES if s in (scope or ["predict"]))
    if unknown := set(scope or ()) - set(_SCOPES):
        raise typer.BadParameter(
            f"{sorted(unknown)[0]!r} is not a scope; the scopes are {', '.join(_SCOPES)}."
        )
    records = _records(file)
    if any(record.get("name") == name for record in records):
        raise typer.BadParameter(f"There is a key {name!r} in {file} already.")
    try:
        text, record = new_key(name, scopes, model or ["*"], rate)
    except ValidationError as error:
        if error.errors()[0]["loc"] == ("rate",):
            reason = (
                f"{rate!r} is not a rate: write a number and a unit, such as 100/second. The "
                "units are /second, /minute, /hour and /day."
            )
        else:
            reason = f"{name!r} is not a valid name: use letters, digits and -."
        raise typer.BadParameter(reason) from None
    kept = record.model_dump(mode="json")
    where = f"To keep, in HINGED_KEYS or a file: {json.dumps([kept])}"
    if file is not None:
        _write(file, json.dumps([*records, kept], indent=2) + "\n")
        where = f"Its hash is in {file}; the service reads it at its next start."
    typer.echo(f"Key (not shown again): {text}\n{where}")


def _write(file: Path, text: str) -> None:
    """Write a file that its owner alone may read, also while it is written."""
    try:
        file.touch(mode=0o600)
        file.chmod(0o600)
        file.write_text(text)
    except OSError as error:
        raise typer.BadParameter(f"Cannot write {file}: {error.strerror}.") from None


def _records(file: Path | None) -> list[dict[str, Any]]:
    if file is None or not file.exists():
        return []
    try:
        found = json.loads(without_marks(file.read_bytes()))
    except ValueError:
        found = None
    except OSError as error:
        raise typer.BadParameter(f"Cannot read {file}: {error.strerror}.") from None
    if not isinstance(found, list) or not all(isinstance(record, dict) for record in found):
        raise typer.BadParameter(f"{file} is not a JSON list of keys.")
    return found
