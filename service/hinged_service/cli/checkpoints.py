"""Verbs about checkpoints and documents: keep, go back, carry elsewhere, rebuild."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from hinged_service.cli.arguments import CheckpointName, LearnerType, Name, Settings
from hinged_service.cli.command import Session
from hinged_service.cli.inputs import read_bytes
from hinged_service.cli.models import learner_spec
from hinged_service.cli.output import Share, Table, accuracy, moment
from hinged_service.cli.progress import progress
from hinged_service.client import Checkpoint, Client

__all__ = ["checkpoint", "checkpoints", "discard", "export", "import_", "replay", "restore"]

_POLL_S: Final = 0.1


def checkpoint(
    session: Session,
    name: Name,
    as_: Annotated[
        str | None, typer.Option("--name", help="Name of the checkpoint. It has a uid, too.")
    ] = None,
) -> None:
    """Keep the present state of a model.

    hinged checkpoint mail --name before-the-campaign
    """
    made = session.client.make_checkpoint(name, as_)
    session.show(
        made,
        f"Checkpoint {made.name or made.uid} of {made.model} after {made.events:,} events.",
    )


def checkpoints(session: Session, name: Name) -> None:
    """List the checkpoints of a model's stream, oldest first.

    hinged checkpoints mail
    """
    found = session.client.checkpoints(name)
    session.show(
        found,
        Table(
            ("checkpoint", "model", "made", "events", "accuracy", "uid"),
            [
                (c.name or "", c.model, moment(c.created_ms), c.events, _accuracy(c), c.uid)
                for c in found
            ],
            f"There are no checkpoints. Make one: hinged checkpoint {name}",
        ),
    )


def restore(session: Session, name: Name, checkpoint: CheckpointName) -> None:
    """Go back to a checkpoint. The model learns later events from there.

    hinged restore mail before-the-campaign
    """
    was_frozen = session.client.model(name).frozen
    position = session.client.restore(name, checkpoint)
    frozen = session.client.model(name, at_least=position).frozen
    said = [f"The model {name} is back at {checkpoint}."]
    if frozen is not was_frozen:
        now = "only predicts now" if frozen else "learns again"
        then = "frozen" if frozen else "not frozen"
        said.append(f"It {now}: it was {then} when the checkpoint was made.")
    session.show(
        {"model": name, "position": position, "frozen": frozen, "was_frozen": was_frozen},
        " ".join(said),
    )


def discard(session: Session, name: Name, checkpoint: CheckpointName) -> None:
    """Delete a checkpoint, unless a model still needs it.

    hinged discard mail before-the-campaign
    """
    session.client.delete_checkpoint(name, checkpoint)
    session.show({"discarded": checkpoint}, f"The checkpoint {checkpoint} is deleted.")


def export(
    session: Session,
    name: Name,
    file: Annotated[str, typer.Argument(help="Where to write; - is standard output.")],
    checkpoint: Annotated[
        str | None,
        typer.Option(help="Name or uid of a checkpoint. Default: the present state."),
    ] = None,
) -> None:
    """Write a model with its state as one JSON document, for another server to import.

    hinged export mail mail.json
    """
    client = session.client
    with progress("exporting"), _kept(client, name, checkpoint) as kept:
        document = client.export_checkpoint(name, kept)
    if file == "-":
        sys.stdout.buffer.write(document)
        return
    try:
        Path(file).write_bytes(document)
    except OSError as error:
        typer.echo(f"Cannot write {file}: {error.strerror}.", err=True)
        raise typer.Exit(1) from None
    session.show(
        {"model": name, "file": file, "bytes": len(document)},
        f"{name} is in {file}, {len(document):,} bytes.",
    )


def import_(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new model's name.")],
    file: Annotated[str, typer.Argument(help="An exported document; - is standard input.")],
) -> None:
    """Make a model from an exported document.

    hinged import mail mail.json
    """
    document = read_bytes(file)
    with progress("importing"):
        made = session.client.import_model(name, document)
    session.show(made, f"The model {made.name} is there, with its state.")


def replay(
    session: Session,
    name: Name,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new model's name.")],
    checkpoint: Annotated[
        str | None,
        typer.Option(help="Checkpoint to start from. Default: the oldest event in the log."),
    ] = None,
    without_ids: Annotated[
        list[str] | None,
        typer.Option("--without-id", help="Leave out the event with this id; repeat it for more."),
    ] = None,
    without_entries: Annotated[
        list[str] | None,
        typer.Option(
            "--without-entry",
            help="Leave out the events of this position or log entry; repeat it for more.",
        ),
    ] = None,
    learner: LearnerType = None,
    parameters: Settings = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has caught up.")] = False,
) -> None:
    """Make a new model that learns the past of a stream without some events, or with a new rule.

    hinged replay mail mail2 --without-id m17 --wait
    """
    if parameters and learner is None:
        raise typer.BadParameter("goes with --learner.", param_hint="--set")
    exclude: dict[str, Any] = {}
    if without_ids:
        exclude["ids"] = without_ids
    if without_entries:
        exclude["entries"] = without_entries
    made = session.client.replay(
        name,
        new,
        checkpoint=checkpoint,
        exclude=exclude or None,
        learner=None if learner is None else learner_spec(learner, parameters),
    )
    if wait:
        with progress("catching up") as tell:
            while (found := session.client.model(new)).progress < 1:
                tell(found.progress, found.events)
                time.sleep(_POLL_S)
    state = "has caught up" if wait else f"is catching up; `hinged show {new}` shows its progress"
    session.show(made, f"The model {new} is there and {state}.")


@contextmanager
def _kept(client: Client, name: str, checkpoint: str | None) -> Iterator[str]:
    """Yield the checkpoint, or a new one of the present state that goes again."""
    if checkpoint is not None:
        yield checkpoint
        return
    made = client.make_checkpoint(name)
    try:
        yield made.uid
    finally:
        client.delete_checkpoint(name, made.uid)


def _accuracy(checkpoint: Checkpoint) -> Share | None:
    judged = checkpoint.events if checkpoint.judged is None else checkpoint.judged
    return accuracy(judged, checkpoint.mistakes)
