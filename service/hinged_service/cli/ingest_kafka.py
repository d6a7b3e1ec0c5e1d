"""The command `hinged ingest kafka`: its options and help."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hinged_service.cli.arguments import sendable
from hinged_service.cli.ingest_options import WaitS, predict_to, run_source
from hinged_service.ingest.target import BAD_USAGE, Target

if TYPE_CHECKING:
    from hinged_service.ingest.progress import Reporter
    from hinged_service.ingest.writer import Feeder

__all__ = ["kafka"]


class OnGap(StrEnum):
    """The choices for records that were removed before they were learned."""

    stop = "stop"
    go_on = "continue"


def kafka(
    target: Target,
    bootstrap: Annotated[
        str, typer.Option(callback=sendable, help="Brokers: `host:port`, several by commas.")
    ],
    topic: Annotated[
        list[str], typer.Option(callback=sendable, help="Name of the topic; may be given again.")
    ],
    group: Annotated[
        str | None,
        typer.Option(
            callback=sendable,
            help="Consumer group, which assigns the partitions. By default `hinged-` and the "
            "model.",
        ),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            help="Values are flat objects, this field is the label, the others are features."
        ),
    ] = None,
    id: Annotated[  # noqa: A002 - as the option is called
        str | None,
        typer.Option(
            help="Id of each event, so that it counts once, even if it arrives several times: "
            "`key` is the record's key; any other name is a field (with --label)."
        ),
    ] = None,
    weight: Annotated[
        str | None, typer.Option(help="Field of the sample weight (with --label).")
    ] = None,
    begin: Annotated[
        str,
        typer.Option(
            "--from",
            help="Where to begin with a partition the first time: `beginning`, `end`, or a time "
            "such as `2026-11-01T06:00:00Z`. Later it goes on from its offset.",
        ),
    ] = "beginning",
    on_gap: Annotated[
        OnGap,
        typer.Option(
            help="When Kafka has deleted records before they were learned: `stop` and say so, or "
            "`continue` behind them, which allows their loss."
        ),
    ] = OnGap.stop,
    drain: Annotated[
        bool,
        typer.Option(
            "--drain", help="Stop at the end of all partitions instead of waiting for more."
        ),
    ] = False,
    wait_s: WaitS = 30.0,
    config: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="An option of librdkafka, as `security.protocol=SASL_SSL`. Others on the machine "
            "can read a command line: put secrets into the file or the environment.",
        ),
    ] = None,
    config_file: Annotated[
        Path | None,
        typer.Option(
            envvar="HINGED_KAFKA_CONFIG_FILE",
            show_envvar=True,
            dir_okay=False,
            help="File of such lines.",
        ),
    ] = None,
) -> None:
    r"""Learn Kafka topics, each record once.

    Needs `pip install "hinged[kafka]"`. Start at most one process per partition: the consumer
    group assigns the partitions. The offset of each partition is kept with the model, in the same
    step as its records; the group's own offsets are written for your lag monitor and never read. If
    anything is killed, reassigned or set back, no record counts twice and none is left out.

    A value is an event in JSON, `{"x": {"f": 1.5}, "y": true}`; with --label a flat object, as
    `{"f": 1.5, "up": true}`. Confluent's JSON Schema values are read too; Avro and Protobuf are
    not. Null values (tombstones) are skipped. A record that is not an event goes to the stream
    `hinged:{S}:dead` with topic, partition and offset.

    TLS, SASL and the rest of librdkafka's options: --config, --config-file, or the environment,
    where HINGED_KAFKA_SASL_PASSWORD is `sasl.password`, and so on.

        hinged ingest kafka --bootstrap localhost:9092 --topic labels --model mail

        hinged ingest kafka --bootstrap b1:9093 --topic ticks --label up --id key --model ticks
        --learner perceptron --config security.protocol=SSL
    """
    from hinged_service.ingest.kafka.options import begin_of
    from hinged_service.ingest.kafka.values import KEY, Shape

    if label is None and (weight is not None or id not in (None, KEY)):
        raise typer.BadParameter("fields are named in flat objects only", param_hint="--label")
    try:
        first = begin_of(begin)
    except ValueError:
        raise typer.BadParameter(
            "beginning, end, or a time as 2026-11-01T06:00:00Z", param_hint="--from"
        ) from None
    try:
        from hinged_service.ingest.kafka.options import KafkaOptions, client_config
        from hinged_service.ingest.kafka.predictions import PredictionTopic
        from hinged_service.ingest.kafka.source import bring_kafka
    except ModuleNotFoundError as error:
        if error.name != "confluent_kafka":
            raise
        typer.echo('Kafka needs its client: pip install "hinged[kafka]"', err=True)
        raise typer.Exit(BAD_USAGE) from None

    async def bring(feeder: Feeder, reporter: Reporter) -> dict[str, Any]:
        options = KafkaOptions(
            bootstrap,
            tuple(dict.fromkeys(topic)),
            group or f"hinged-{target.model}",
            first,
            on_gap is OnGap.go_on,
            drain,
            client_config(config or (), config_file, os.environ),
        )
        predict_to(target, feeder, lambda topic: PredictionTopic(options, topic))
        return await bring_kafka(options, Shape(label, id, weight), feeder, reporter)

    run_source(
        target,
        bring,
        "Stopped. Run the same command to continue from here.",
        endless=not drain,
        wait_s=wait_s if drain else None,
    )
