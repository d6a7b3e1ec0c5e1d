"""The command `hinged train`: learn a past of many files side by side, for a new model."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

import typer

from hinged_service.cli.arguments import LearnerType, Settings, sendable
from hinged_service.cli.command import Session
from hinged_service.cli.errors import CONFLICT
from hinged_service.cli.file_options import (
    ColumnTypes,
    Delimiter,
    Encoding,
    FileFormat,
    LabelColumn,
    LabelMap,
    Missing,
    Packed,
    Quote,
    WeightColumn,
    file_options,
)
from hinged_service.cli.models import learner_spec, typed
from hinged_service.cli.output import printable
from hinged_service.cli.progress import progress
from hinged_service.client import NotFound
from hinged_service.ingest.target import Allowance

__all__ = ["train"]


class Engine(StrEnum):
    """The place where the files are learned."""

    processes = "processes"
    dask = "dask"
    ray = "ray"


def train(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new model's name.")],
    paths: Annotated[
        list[str],
        typer.Argument(metavar="FILE…", help="Files, each a part that one worker learns."),
    ],
    on: Annotated[
        Engine,
        typer.Option(
            "--on",
            help="What runs the workers: processes of this machine; dask or ray, which must be "
            "installed here and, with hinged, where the workers are.",
        ),
    ] = Engine.processes,
    address: Annotated[
        str | None,
        typer.Option(
            callback=sendable,
            help="Cluster of Dask or Ray, such as tcp://scheduler:8786. Its workers open the files "
            "by the same names. Default: processes of this machine.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Files learned at once on this machine. Default: one per core."),
    ] = None,
    passes: Annotated[
        int,
        typer.Option(
            min=1,
            help="Passes over the files; the mixture of one is the start of the next. One pass "
            "may fail on data that can be separated.",
        ),
    ] = 3,
    learner: LearnerType = None,
    parameters: Settings = None,
    negative: Annotated[
        str | None, typer.Option(help="The label that means no; false by default.")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="The label that means yes; true by default.")
    ] = None,
    label: LabelColumn = None,
    weight: WeightColumn = None,
    column: ColumnTypes = None,
    labels: LabelMap = None,
    format: FileFormat = "auto",  # noqa: A002 - as the option is called
    compression: Packed = "auto",
    delimiter: Delimiter = None,
    quote: Quote = "auto",
    encoding: Encoding = "utf-8",
    missing: Missing = None,
    max_bad: Annotated[
        str,
        typer.Option(
            metavar="N or N%",
            help="Bad records to allow, as a number or a share of all; if more are bad, no model "
            "is made.",
        ),
    ] = "0",
) -> None:
    """Learn many files of past events in parallel, and make a model that continues from there.

    Each worker learns its files with a copy of the learner; the mean of the weights is the start
    of the next pass (iterative parameter mixing). The result is imported into the service as a
    new model; its counters start at 0. The files are not in its log: to learn them there, in one
    order and each event once, use `hinged ingest file`.

    The learner is perceptron (by default), passive_aggressive or linear_unit, of two labels.

    hinged train mail day-*.ndjson --negative ham --positive spam

    hinged train elec part-*.csv --label class --on dask --address tcp://scheduler:8786
    """
    from pydantic import ValidationError

    from hinged_service.ingest.files import FileError
    from hinged_service.interchange.back_fill import MIXED, BackFill, Part, back_fill
    from hinged_service.interchange.engines import EngineFailed, engine
    from hinged_service.interchange.warm_start import document_of_learner
    from hinged_service.model.spec import ModelSpec
    from hinged_service.wire.strict_model import reason_of

    allowed = _allowance(max_bad)
    if (negative is None) != (positive is None):
        raise typer.BadParameter("--negative and --positive go together.")
    if len(set(paths)) < len(paths):
        raise typer.BadParameter("a file is named twice.", param_hint="FILE")
    if "-" in paths:
        raise typer.BadParameter(
            "standard input cannot be read in several passes.", param_hint="FILE"
        )
    pair = typed([negative, positive]) if negative is not None and positive is not None else None
    rule = learner_spec(learner or MIXED[0], parameters)
    if rule["type"] not in MIXED:
        raise typer.BadParameter(
            f"{rule['type']} cannot be mixed; these can: {', '.join(MIXED)}.",
            param_hint="--learner",
        )
    fields: dict[str, Any] = {"learner": rule} | ({"labels": pair} if pair else {})
    try:
        spec = ModelSpec.model_validate_json(json.dumps(fields))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise typer.BadParameter(f"{where}: {reason_of(first)}.") from None
    options = file_options(
        label, weight, column, labels, format, compression, delimiter, quote, encoding, missing
    )
    _check_new(session, name)
    try:
        with engine(on.value, workers, address) as spread, progress("learning") as bar:
            done = events = 0

            def note(_: int, part: Part) -> None:
                nonlocal done, events
                done += 1
                events += part.learner.accounting.events
                bar.update(done / (passes * len(paths)), events)

            mixed, total = back_fill(BackFill(paths, options, spec, passes), spread, note)
    except (FileError, EngineFailed) as error:
        typer.echo(printable(str(error)), err=True)
        raise typer.Exit(1) from None
    if total.bad:
        typer.echo(printable(f"{total.bad:,} bad records, the first: {total.why}"), err=True)
    if not allowed.covers(total.bad, total.events + total.bad):
        typer.echo(f"No model was made: --max-bad allows {max_bad}.", err=True)
        raise typer.Exit(1)
    document = document_of_learner(mixed, name, rule, pair)
    with progress("importing") as bar:
        session.client.import_model(name, document, progress=bar.step)
    counts = {
        "model": name,
        "files": len(paths),
        "passes": passes,
        "events": total.events,
        "mistakes": total.mistakes,
        "bad": total.bad,
    }
    session.show(
        counts,
        f"The model {name} is there: {total.events:,} events of {len(paths)} files, learned "
        f"{passes} times; {total.mistakes:,} mistakes in the last pass.",
    )


def _allowance(text: str) -> Allowance:
    try:
        return Allowance.of(text)
    except ValueError as error:
        raise typer.BadParameter(f"{error}.", param_hint="--max-bad") from None


def _check_new(session: Session, name: str) -> None:
    """End with a conflict if the name is taken: before the work, not after it."""
    try:
        session.client.model(name)
    except NotFound:
        return
    typer.echo(printable(f"There is a model {name} already: give another name."), err=True)
    raise typer.Exit(CONFLICT)
