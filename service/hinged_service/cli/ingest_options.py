"""Options that all `hinged ingest …` share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hinged_service.cli.arguments import DataDir, RedisUrl, sendable
from hinged_service.ingest.target import Allowance, Target
from hinged_service.wire.names import NAME_PATTERN

if TYPE_CHECKING:
    from hinged_service.ingest.predictions import Output
    from hinged_service.ingest.runner import Bring
    from hinged_service.ingest.writer import Feeder

__all__ = ["WaitS", "predict_to", "run_source", "target_options"]

_NAME = re.compile(NAME_PATTERN)

WaitS = Annotated[
    float,
    typer.Option(
        "--wait-s",
        min=0,
        help="With --drain: seconds to wait for a server that does not answer; then the exit code "
        "is 1. Without --drain the command waits without limit.",
    ),
]


def _a_name(name: str) -> str:
    """Return a name; refuse one that no model can have."""
    if _NAME.fullmatch(name) is None:
        raise typer.BadParameter(
            f"{name[:140]!a} is not a valid name: a name has 1 to 128 letters (a to z), digits, "
            "'.', '_' and '-', and begins with a letter or a digit."
        )
    return name


@contextmanager
def target_options(
    model: Annotated[str, typer.Option(callback=_a_name, help="Name or alias of the model.")],
    create: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False,
            help="JSON file with a spec: create the model from it if it does not exist.",
        ),
    ] = None,
    learner: Annotated[
        str | None,
        typer.Option(help="Or create it with this learner and defaults, such as `perceptron`."),
    ] = None,
    redis_url: RedisUrl = None,
    data_dir: DataDir = None,
    max_bad: Annotated[
        str,
        typer.Option(
            "--max-bad",
            metavar="N or N%",
            help="Bad records to allow, as a number or a share of all. Good ones are learned in "
            "any case; if more are bad the exit code is 1.",
        ),
    ] = "0",
    labels_only: Annotated[
        bool,
        typer.Option(
            "--labels-only",
            help="The records are labels of earlier predictions: of each, only id, label and "
            "weight count. A label whose id names no prediction that waits is a bad record.",
        ),
    ] = False,
    predict_to: Annotated[
        str | None,
        typer.Option(
            "--predict-to",
            metavar="TOPIC|STREAM|FILE",
            callback=sendable,
            help="Write the prediction of each event, made just before it is learned: to a topic "
            "of the same brokers, a stream of the same Redis, a file of lines if the source is a "
            "file. `file:PATH` is a file for every source.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the summary as one JSON object.")
    ] = False,
) -> Iterator[Target]:
    """Yield the target that the options name."""
    try:
        allowed = Allowance.of(max_bad)
    except ValueError:
        raise typer.BadParameter(
            f"{max_bad!r} is neither a number of records, as 25, nor a share, as 0.5%.",
            param_hint="--max-bad",
        ) from None
    yield Target(
        model, redis_url, data_dir, create, learner, as_json, allowed, labels_only, predict_to
    )


def predict_to(target: Target, feeder: Feeder, own: Callable[[str], Output] | None = None) -> None:
    """Let a feeder write predictions to the target's place; `own` makes outputs like the source."""
    from hinged_service.ingest.prediction_file import PredictionFile
    from hinged_service.ingest.predictions import Predictions

    text = target.predict_to
    if text is not None:
        to_file = own is None or text.startswith("file:")
        output = PredictionFile(text.removeprefix("file:")) if to_file or own is None else own(text)
        feeder.predictions = Predictions(output)


def run_source(
    target: Target,
    bring: Bring,
    go_on: str,
    endless: bool = False,
    wait_s: float | None = None,
) -> None:
    """Feed a source, then exit; see `hinged_service.ingest.runner.run`."""
    from hinged_service.ingest.runner import run

    raise typer.Exit(run(target, bring, go_on, endless, wait_s))
