"""Verbs about streams, the models that follow them side by side, and aliases."""

from __future__ import annotations

from typing import Annotated

import typer

from hinged_service.cli.arguments import AliasName, Name, StreamName
from hinged_service.cli.command import Session
from hinged_service.cli.errors import CONFLICT
from hinged_service.cli.output import Table, accuracy
from hinged_service.client import NotFound, StreamInfo

__all__ = ["alias", "aliases", "promote", "streams", "unalias"]


def streams(session: Session, name: StreamName = None) -> None:
    """List the streams, or compare the models of one. Each of them learns every event.

    hinged streams

    hinged streams mail
    """
    if name is not None:
        compared = session.client.stream(name)
        session.show(compared, _compared(compared))
        return
    found = session.client.streams()
    session.show(
        found,
        Table(
            ("stream", "models", "aliases"),
            [(s.stream, ", ".join(s.models), ", ".join(s.aliases)) for s in found],
            "There are no streams; the first model makes one.",
        ),
    )


def aliases(session: Session) -> None:
    """List the aliases with the models that they point to.

    hinged aliases
    """
    found = session.client.aliases()
    session.show(
        found,
        Table(
            ("alias", "model", "stream"),
            [(a.alias, a.model or "(lost)", a.stream) for a in found],
            "There are no aliases. Make one: hinged alias ALIAS MODEL",
        ),
    )


def alias(
    session: Session,
    alias: Annotated[str, typer.Argument(metavar="ALIAS", help="Name of the new alias.")],
    model: Name,
) -> None:
    """Make an alias: it can be used in place of the name of a model.

    hinged alias live mail
    """
    made = session.client.set_alias(alias, model)
    session.show(made, f"{made.alias} points to {made.model} now.")


def promote(
    session: Session,
    alias: AliasName,
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="The model that the alias points to from now on.")
    ],
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="MODEL",
            help="Promote only if the alias points to this model. Default: its model now.",
        ),
    ] = None,
    decision: Annotated[
        str | None,
        typer.Option(
            help="Name of the decision. It is carried out once; a repetition changes nothing."
        ),
    ] = None,
) -> None:
    """Move an alias to another model of its stream. The exit code is 4 if it points elsewhere.

    hinged promote live mail2 --from mail
    """
    before = from_ or _meaning(session, alias)
    found = session.client.promote(alias, before, model, decision)
    texts = {
        "promoted": f"{alias} points to {model} now.",
        "repeated": f"That decision was carried out before; {alias} points to {found.model}.",
        "refused": f"Nothing was done: {alias} does not point to {before}, but to {found.model}.",
    }
    session.show(found, texts[found.result])
    if found.result == "refused":
        raise typer.Exit(CONFLICT)


def unalias(session: Session, alias: AliasName) -> None:
    """Delete an alias; its model stays.

    hinged unalias live
    """
    session.client.delete_alias(alias)
    session.show({"deleted": alias}, f"The alias {alias} is deleted.")


def _meaning(session: Session, alias: str) -> str:
    for found in session.client.aliases():
        if found.alias == alias and found.model is not None:
            return found.model
    raise NotFound(f"There is no alias {alias!r} that points to a model.")


def _compared(found: StreamInfo) -> Table:
    return Table(
        ("model", "aliases", "learner", "events", "mistakes", "accuracy", "drifts", "problem"),
        [
            (
                m.name,
                ", ".join(m.aliases),
                m.learner,
                m.events,
                m.mistakes,
                accuracy(m.judged, m.mistakes),
                m.drifts,
                m.problem or "",
            )
            for m in found.models
        ],
        "No model follows this stream.",
    )
