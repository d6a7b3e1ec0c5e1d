"""The commands `hinged ingest …`: options and help; their code is imported when they run."""

from __future__ import annotations

import socket
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from hinged_service.cli.arguments import sendable
from hinged_service.cli.command import with_shared
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
from hinged_service.cli.ingest_kafka import kafka
from hinged_service.cli.ingest_options import WaitS, predict_to, run_source, target_options
from hinged_service.ingest.target import Target

if TYPE_CHECKING:
    from hinged_service.ingest.progress import Reporter
    from hinged_service.ingest.writer import Feeder

__all__ = ["ingest"]

_ABOUT_CODES = (
    "Exit codes: 0 every record was taken, or as many were bad as `--max-bad` allows, or a reader "
    "without `--drain` was stopped; 1 failed, or more were bad; 2 wrong usage; 130 and 143 stopped "
    "by a signal before the end; 8 acknowledged events are not on disk, as it is full."
)

ingest = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Bring events from files and streams into a model, each exactly once.\n\n"
    "An ingest is a worker of its own: it needs no running `hinged serve`. It stores its offset "
    "with the model, in the same step as the events. Stop it or kill it, start it again, and it "
    "continues where it was. A bad record does not stop it: it goes to the stream "
    "`hinged:{S}:dead` with its place and the reason, and the exit code is 1 unless `--max-bad` "
    "allows it.",
    epilog=_ABOUT_CODES,
)


def _command(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds a function of a target, with the options that make one."""
    add = ingest.command(name, epilog=_ABOUT_CODES)
    return lambda function: add(with_shared(target_options, function))


class Begin(StrEnum):
    """The place at which the first reading of a stream begins."""

    group = "group"
    start = "start"
    now = "now"


@_command("file")
def file(
    target: Target,
    paths: Annotated[
        list[str], typer.Argument(metavar="FILE…", help="Files; `-` is standard input.")
    ],
    label: LabelColumn = None,
    id: Annotated[  # noqa: A002 - as the option is called
        str | None,
        typer.Option(
            help="Column that names each event, so that it counts once: by text, or by whole "
            "numbers, 123 and 123.0 alike (in CSV and TSV with --type COLUMN=number)."
        ),
    ] = None,
    weight: WeightColumn = None,
    column: ColumnTypes = None,
    labels: LabelMap = None,
    format: FileFormat = "auto",  # noqa: A002 - as the option is called
    compression: Packed = "auto",
    delimiter: Delimiter = None,
    quote: Quote = "auto",
    encoding: Encoding = "utf-8",
    missing: Missing = None,
    restart: Annotated[
        bool,
        typer.Option(
            "--restart",
            help="Begin again with files that were learned before, as if they were new. Events "
            "with ids still count once.",
        ),
    ] = False,
) -> None:
    r"""Learn files: CSV, TSV, NDJSON, libsvm, Vowpal Wabbit, Parquet, Arrow; compressed or not.

    The progress of a file is stored by its content, not its name: the same command again continues
    where it was interrupted, and does nothing once the file is finished. A file that has grown
    counts as another file: give events an `--id` if files grow. A pipe cannot be resumed.

        hinged ingest file elec.csv --model elec --label class --learner perceptron

        zcat day.ndjson.gz | hinged ingest file - --format ndjson --model mail
    """
    from hinged_service.ingest.file import bring_files

    options = file_options(
        label, weight, column, labels, format, compression, delimiter, quote, encoding, missing, id
    )

    async def bring(feeder: Feeder, reporter: Reporter) -> dict[str, Any]:
        predict_to(target, feeder)
        return await bring_files(paths, options, restart, feeder, reporter)

    run_source(
        target,
        bring,
        "Stopped. Give the same command again (without --restart) to continue from here.",
    )


@_command("redis-stream")
def redis_stream(
    target: Target,
    url: Annotated[
        str,
        typer.Option(
            callback=sendable, help="The Redis of the stream; it may be another than the models'."
        ),
    ],
    stream: Annotated[str, typer.Option(callback=sendable, help="Key of the stream.")],
    group: Annotated[
        str, typer.Option(callback=sendable, help="Consumer group. A missing group is created.")
    ] = "hinged",
    consumer: Annotated[
        str | None,
        typer.Option(
            callback=sendable,
            help="Name of this reader in the group, different for each. Default: that of the host.",
        ),
    ] = None,
    event: Annotated[
        str, typer.Option(help='Field that holds the event as JSON: `{"x": {...}, "y": ...}`.')
    ] = "event",
    id: Annotated[  # noqa: A002 - as the option is called
        str, typer.Option(help="Field that holds the event's id, where there is one.")
    ] = "id",
    flat: Annotated[
        bool, typer.Option("--flat", help="The fields themselves are the features, as numbers.")
    ] = False,
    label: Annotated[str | None, typer.Option(help="With --flat: field of the label.")] = None,
    weight: Annotated[str | None, typer.Option(help="With --flat: field of the weight.")] = None,
    text: Annotated[
        list[str] | None, typer.Option(help="With --flat: a field that is text, not a number.")
    ] = None,
    begin: Annotated[
        Begin | None,
        typer.Option(
            "--from",
            help="Where to begin the first time: at the position of the group (the start, for a "
            "new one), at the start, or with new entries. Default: the position of the group, "
            "unless the stream has earlier entries that the model never took.",
        ),
    ] = None,
    claim_after_s: Annotated[
        float,
        typer.Option(min=0.1, help="Seconds after which a reader that does not move is replaced."),
    ] = 5.0,
    source: Annotated[
        str | None,
        typer.Option(
            callback=sendable,
            help="Name under which the offset is kept. By default address and key: keep the old "
            "name if the address changes.",
        ),
    ] = None,
    drain: Annotated[
        bool,
        typer.Option("--drain", help="Stop at the end of the stream instead of waiting for more."),
    ] = False,
    wait_s: WaitS = 30.0,
) -> None:
    r"""Learn a Redis stream of your own, in the order of its entries, each once.

    Several readers may run: one reads the stream, and another takes over when it stops. The offset
    is kept with the model, so a crash loses nothing and repeats nothing. Do not trim entries before
    they were read: the command reports them as gone, and they are not learned.

        hinged ingest redis-stream --url redis://queue:6379/0 --stream labels --model mail
    """
    from hinged_service.ingest.redis_stream import Rules, bring_stream
    from hinged_service.ingest.redis_stream_client import ForeignStream, PredictionStream
    from hinged_service.ingest.stream_entries import Reading
    from hinged_service.store.log_types import INBOX

    if flat and label is None:
        raise typer.BadParameter("which field is the label?", param_hint="--label")
    if source == INBOX:
        raise typer.BadParameter("that is the name of the inbox", param_hint="--source")
    at = urlsplit(url)
    name = source or f"redis-stream:{at.hostname or ''}:{at.port or 6379}{at.path}:{stream}"
    features = frozenset(text or ())
    reading = Reading(None if flat else event, id, label, weight, features, target.labels_only)
    rules = Rules(name, reading, None if begin is None else begin.value, claim_after_s, drain)

    async def bring(feeder: Feeder, reporter: Reporter) -> dict[str, Any]:
        predict_to(target, feeder, lambda key: PredictionStream(url, key))
        reader = ForeignStream(url, stream, group, consumer or socket.gethostname())
        return await bring_stream(reader, rules, feeder, reporter)

    run_source(
        target,
        bring,
        "Stopped. Run the same command to continue from here.",
        endless=not drain,
        wait_s=wait_s if drain else None,
    )


_command("kafka")(kafka)
