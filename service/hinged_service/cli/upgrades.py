"""The verb that hands models over to a new version of the service."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
import typer

from hinged_service.cli.arguments import NameOrAll
from hinged_service.cli.command import Session, verb
from hinged_service.cli.output import print_table
from hinged_service.client import ClientError, Upgraded

__all__ = ["add"]

_PANEL: Final = "Models"


def add(cli: typer.Typer) -> None:
    """Add the verb to the command line."""
    verb(cli, "upgrade", _PANEL)(upgrade)


def upgrade(
    session: Session,
    name: NameOrAll = None,
    every: Annotated[bool, typer.Option("--all", help="All models.")] = False,
) -> None:
    """Let the version of the service that answers go on with a model.

    Versions whose arithmetic may differ do not fold the same model: a worker of a new one
    answers 503 for it until this is done, one of the old version after. Models that the version
    folds already stay as they are.

    hinged upgrade mail

    hinged upgrade --all
    """
    if (name is None) is not every:
        raise typer.BadParameter("Name a model, or say --all.")
    names = [m.name for m in session.client.models()] if name is None else [name]
    done: dict[str, Upgraded | ClientError] = {}
    for one in names:
        try:
            done[one] = session.client.upgrade(one)
        except ClientError as error:
            done[one] = error
            if not every:
                raise
    shown = [_shown(one, result) for one, result in done.items()]
    session.show(
        shown if every else shown[0],
        lambda: print_table(
            ("model", "", "folded by"),
            [_row(one, result) for one, result in done.items()],
            "There are no models.",
        ),
    )
    for result in done.values():
        if isinstance(result, ClientError):
            raise result


def _shown(name: str, result: Upgraded | ClientError) -> dict[str, Any]:
    if isinstance(result, ClientError):
        return {"model": name, "error": result.detail}
    return {"model": name, **msgspec.to_builtins(result)}


def _row(name: str, result: Upgraded | ClientError) -> tuple[str, str, str]:
    if isinstance(result, ClientError):
        return name, "failed", result.detail
    return name, "as before" if result.before == result.fold else "upgraded", result.fold
