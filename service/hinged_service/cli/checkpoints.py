"""Verbs about checkpoints and documents: keep, go back, carry elsewhere, rebuild."""

from __future__ import annotations

import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from hinged_service.cli.arguments import CheckpointName, LearnerType, Name, Settings
from hinged_service.cli.command import Session
from hinged_service.cli.inputs import read_bytes
from hinged_service.cli.models import learner_spec, typed
from hinged_service.cli.output import Share, Table, accuracy, moment
from hinged_service.cli.progress import progress
from hinged_service.client import Checkpoint
from hinged_service.client.exports import export_model

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
    with progress("saving") as bar:
        made = session.client.make_checkpoint(name, as_, progress=bar.step)
    session.show(
        made,
        f"Kept {made.model} as {made.name or made.uid}. Events so far: {made.events:,}.",
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
    with progress("restoring") as bar:
        was_frozen = session.client.model(name, progress=bar.step).frozen
        position = session.client.restore(name, checkpoint, progress=bar.step)
        frozen = session.client.model(name, at_least=position).frozen
    sentences = [f"The model {name} is back at {checkpoint}."]
    if frozen is not was_frozen:
        now = "only predicts now" if frozen else "learns again"
        then = "frozen" if frozen else "not frozen"
        sentences.append(f"It {now}: it was {then} when the checkpoint was made.")
    session.show(
        {"model": name, "position": position, "frozen": frozen, "was_frozen": was_frozen},
        " ".join(sentences),
    )


def discard(session: Session, name: Name, checkpoint: CheckpointName) -> None:
    """Delete a checkpoint, unless a model still needs it.

    hinged discard mail before-the-campaign
    """
    session.client.delete_checkpoint(name, checkpoint)
    session.show({"discarded": checkpoint}, f"The checkpoint {checkpoint} is deleted.")


class Format(StrEnum):
    """The format of an export."""

    json = "json"
    river = "river"
    sklearn = "sklearn"
    onnx = "onnx"
    sql = "sql"
    c = "c"


class Trainer(StrEnum):
    """The library whose trained model is imported."""

    river = "river"
    sklearn = "sklearn"


def export(
    session: Session,
    name: Name,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="File to write; - is standard output.")
    ],
    checkpoint: Annotated[
        str | None,
        typer.Option(help="Name or uid of a checkpoint. Default: the present state."),
    ] = None,
    format: Annotated[  # noqa: A002 - as the option is called
        Format,
        typer.Option(
            help="json: a document for another server. river: a pickle of a River classifier that "
            "needs hinged. Of a linear model, with scalers or without: sklearn (a pickled "
            "Pipeline), onnx, sql (a query), c (a header)."
        ),
    ] = Format.json,
    table: Annotated[str, typer.Option(help="With --format sql: the table's name.")] = "events",
) -> None:
    """Write a model with its state, for another server or another program.

    hinged export mail mail.json

    hinged export mail mail.onnx --format onnx
    """
    with progress("exporting") as bar:
        document = export_model(session.client, name, checkpoint, bar.step)
    if format is not Format.json:
        from hinged_service.interchange.formats import NotExportable, exported_as

        try:
            document = exported_as(format.value, name, document, table)
        except NotExportable as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(1) from None
    if file == "-":
        sys.stdout.buffer.write(document + b"\n" * (format in (Format.sql, Format.c)))
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
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="An exported document; - is standard input.")
    ],
    trainer: Annotated[
        Trainer | None,
        typer.Option(
            "--from",
            help="The file is a pickle of a linear model that this library has trained. Unpickling "
            "runs what the file says, here and as you: give your own files only. The service gets "
            "numbers.",
        ),
    ] = None,
    learner: LearnerType = None,
    parameters: Settings = None,
    labels: Annotated[
        list[str] | None,
        typer.Option("--label", help="With --from: a label; two, the negative one first."),
    ] = None,
) -> None:
    """Make a model from an exported document, or from a model that was trained elsewhere.

    hinged import mail mail.json

    hinged import mail trained.pkl --from sklearn
    """
    if trainer is None:
        if learner or parameters or labels:
            raise typer.BadParameter("--learner, --set and --label go with --from.")
        document = read_bytes(file)
    else:
        from hinged_service.interchange.warm_start import NotImportable, document_from

        if parameters and learner is None:
            raise typer.BadParameter("goes with --learner.", param_hint="--set")
        rule = None if learner is None else learner_spec(learner, parameters)
        try:
            document = document_from(file, trainer.value, name, rule, typed(labels or []))
        except NotImportable as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(1) from None
    with progress("importing") as bar:
        made = session.client.import_model(name, document, progress=bar.step)
    session.show(made, f"Created the model {made.name} with its state.")


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
    with progress("creating") as bar:
        made = session.client.replay(
            name,
            new,
            checkpoint=checkpoint,
            exclude=exclude or None,
            learner=None if learner is None else learner_spec(learner, parameters),
            progress=bar.step,
        )
    if wait:
        with progress("catching up") as bar:
            while (found := session.client.model(new)).progress < 1:
                bar.update(found.progress, found.events)
                time.sleep(_POLL_S)
    state = (
        "has caught up with the log"
        if wait
        else f"is catching up; `hinged show {new}` shows its progress"
    )
    session.show(made, f"Created the model {new}: it {state}.")


def _accuracy(checkpoint: Checkpoint) -> Share | None:
    judged = checkpoint.events if checkpoint.judged is None else checkpoint.judged
    return accuracy(judged, checkpoint.mistakes)
