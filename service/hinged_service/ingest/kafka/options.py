"""Options for reading Kafka topics, and the client's; secrets are never displayed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from hinged_service.ingest.target import BAD_USAGE, Failed

__all__ = ["Begin", "KafkaOptions", "begin_of", "client_config", "redacted"]

ENV_PREFIX = "HINGED_KAFKA_"
ENV_FILE = "HINGED_KAFKA_CONFIG_FILE"

Begin = Literal["beginning", "end"] | int
"""The beginning of a partition if nothing of it was taken yet; a number is a time in ms."""

_OURS = {
    "bootstrap.servers": "give --bootstrap",
    "metadata.broker.list": "give --bootstrap",
    "group.id": "give --group",
    "auto.offset.reset": "give --from, and --on-gap",
    "enable.auto.commit": "offsets are kept with the model",
    "enable.auto.offset.store": "offsets are kept with the model",
    "enable.partition.eof": "it is always on",
    "group.protocol": "partitions are assigned by the classic protocol",
    "partition.assignment.strategy": "partitions are assigned eagerly",
}
_SECRET = re.compile(r"password|secret|token|jaas|\.pem$|key$|oauthbearer\.config")


@dataclass(frozen=True)
class KafkaOptions:
    """The topics to read, and how.

    Parameters
    ----------
    bootstrap
        Addresses of brokers: `host:port,host:port`.
    topics, group
        Names of topics; the consumer group.
    begin
        Where a partition begins if nothing of it was taken yet.
    over_gaps
        Whether to go on where records are gone that were not learned.
    drain
        Whether to end once every partition is read to its end.
    client
        Further options of librdkafka.
    """

    bootstrap: str
    topics: tuple[str, ...]
    group: str
    begin: Begin = "beginning"
    over_gaps: bool = False
    drain: bool = False
    client: Mapping[str, str] = field(default_factory=dict, repr=False)


def begin_of(text: str) -> Begin:
    """Return the beginning that `--from` names; a time without a zone is UTC.

    A `ValueError` if it is neither `beginning`, nor `end`, nor a time in ISO form.
    """
    if text == "beginning":
        return "beginning"
    if text == "end":
        return "end"
    time = datetime.fromisoformat(text)
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def client_config(
    texts: Sequence[str], file: Path | None, environment: Mapping[str, str]
) -> dict[str, str]:
    """Gather the client's options; the command line goes before the environment and the file.

    `texts` are options as `key=value`, `file` has such lines (`#` begins a comment line); in the
    environment `HINGED_KAFKA_SASL_PASSWORD` is `sasl.password`, and so on. `Failed` if one cannot
    be read, or would break the promise to learn each record once.
    """
    try:
        lines = file.read_text("utf-8").splitlines() if file is not None else []
    except (OSError, UnicodeDecodeError) as error:
        raise Failed(f"The options in {file} cannot be read: {error}.", BAD_USAGE) from None
    lines = [line.strip() for line in lines]
    found = dict(_pair(line) for line in lines if line and not line.startswith("#"))
    for name, value in environment.items():
        if name.startswith(ENV_PREFIX) and name != ENV_FILE:
            found[name.removeprefix(ENV_PREFIX).lower().replace("_", ".")] = value
    found |= dict(map(_pair, texts))
    for key in found:
        if key in _OURS:
            raise Failed(f"The option {key} of Kafka cannot be set: {_OURS[key]}.", BAD_USAGE)
    return found


def redacted(text: str, client: Mapping[str, str]) -> str:
    """Return a message without the secrets among the client's options."""
    for key, value in client.items():
        if value and _SECRET.search(key):
            text = text.replace(value, "…")
    return text


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign:
        raise Failed(f"Options of Kafka are key=value; {key[:20]!r} has no '='.", BAD_USAGE)
    return key.strip(), value.strip()
