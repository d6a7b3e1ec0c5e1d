"""The Kafka client: the cluster, its topics and partitions, and their records.

confluent-kafka, because librdkafka's own threads keep the group's heartbeats while Python
learns, its seeks and pauses throw away what was fetched before, and it returns topic ids.
Everything here blocks: call it in a thread. Its own errors end here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient

from hinged_service.ingest.kafka.options import KafkaOptions, redacted
from hinged_service.ingest.target import BAD_USAGE, Failed

__all__ = ["Away", "Found", "KafkaLog", "Part", "Record"]

_TIMEOUT_S = 5.0
_CONSUME_S = 0.05
_TAKE = 1_500
_PREFETCH_KB = 16 * 1024
_NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
_Error = ck.KafkaError
_UNAUTHORISED = {
    _Error.TOPIC_AUTHORIZATION_FAILED,
    _Error.GROUP_AUTHORIZATION_FAILED,
    _Error.CLUSTER_AUTHORIZATION_FAILED,
}
_FATAL = _UNAUTHORISED | {
    _Error._AUTHENTICATION,
    _Error.SASL_AUTHENTICATION_FAILED,
    _Error._SSL,
}
_OUT_OF_RANGE = {_Error._AUTO_OFFSET_RESET, _Error.OFFSET_OUT_OF_RANGE}


class Away(Exception):
    """The cluster does not answer (yet); the message states its last answer."""


class Part(NamedTuple):
    """A partition."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"


class Record(NamedTuple):
    """A record."""

    offset: int
    key: bytes | None
    value: bytes | None


class Found(NamedTuple):
    """The outcome of a look at the log.

    Parameters
    ----------
    records
        Records by partition, in order.
    ended, gaps
        Partitions read to their end; those that hold no record at the offset asked for.
    """

    records: dict[Part, list[Record]]
    ended: set[Part]
    gaps: set[Part]


class KafkaLog:
    """A member of a consumer group, whose partitions are read from the offsets passed.

    `write_line` takes a line for people, from another thread. An option that the client refuses
    raises `Failed`. Calls raise `Away` if there is no answer, `Failed` if the cluster refuses for
    good.

    Attributes
    ----------
    assigned
        The partitions that are this member's; `None` while the group deals them out.
    generation
        Another number whenever that changes.
    commit_refused
        Why the brokers never take the group's offsets from this member; `None` if they do.
    """

    def __init__(self, options: KafkaOptions, write_line: Callable[[str], None]) -> None:
        self.assigned: frozenset[Part] | None = None
        self.generation = 0
        self.commit_refused: str | None = None
        self._options = options
        self._write_line = write_line
        self._troubled = False
        self._refused: ck.KafkaError | None = None
        self._passed: dict[Part, int] = {}
        self._held: list[ck.Message] = []
        quiet = logging.getLogger("hinged_service.librdkafka")
        quiet.propagate = "debug" in options.client
        quiet.addHandler(logging.NullHandler())
        shared: dict[str, Any] = {
            "client.id": "hinged",
            **options.client,
            "bootstrap.servers": options.bootstrap,
            "logger": quiet,
        }
        ours = {
            "allow.auto.create.topics": False,
            "queued.max.messages.kbytes": _PREFETCH_KB,
            **shared,
            "group.id": options.group,
            "partition.assignment.strategy": "range,roundrobin",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "error_cb": self._note_error,
            "on_commit": self._committed,
        }
        try:
            self._consumer = ck.Consumer(ours)
            self._admin = AdminClient(shared)
        except (ck.KafkaException, TypeError, ValueError) as error:
            text = error.args[0].str() if isinstance(error, ck.KafkaException) else str(error)
            raise Failed(f"Kafka's client: {redacted(text, options.client)}", BAD_USAGE) from None

    def cluster(self) -> str:
        """Return the cluster's id."""
        try:
            with self._translated():
                found: str | None = self._consumer.list_topics(timeout=_TIMEOUT_S).cluster_id
        except Away:
            self._consumer.poll(0)  # brings the cause
            if self._refused is not None:
                raise self._failed(self._refused) from None
            raise
        if not found:
            raise Failed("The brokers send no cluster id, by which offsets are kept.")
        return found

    def topic_ids(self) -> dict[str, str]:
        """Return the topics that are there, and their ids; empty if the brokers give none."""
        with self._translated():
            asked = self._admin.describe_topics(
                ck.TopicCollection(list(self._options.topics)), request_timeout=_TIMEOUT_S
            )
        found = {}
        for name, answer in asked.items():
            with self._translated(), _there():
                topic_id = str(answer.result().topic_id)
                found[name] = "" if topic_id.startswith(_NO_ID) else topic_id
        return found

    def join(self) -> None:
        """Become a member of the group."""
        self._consumer.subscribe(
            list(self._options.topics),
            on_assign=self._assigned,
            on_revoke=self._revoked,
            on_lost=self._revoked,
        )

    def span(self, part: Part) -> tuple[int, int]:
        """Return the first offset that a partition holds, and the one after its last."""
        with self._translated():
            found = self._consumer.get_watermark_offsets(ck.TopicPartition(*part), _TIMEOUT_S)
        if found is None:
            raise Away("the partition's leader does not answer")
        low, high = found
        return low, high

    def at(self, part: Part, time_ms: int) -> int | None:
        """Return the offset of the first record of that time or later."""
        asked = [ck.TopicPartition(*part, time_ms)]
        with self._translated():
            offset: int = self._consumer.offsets_for_times(asked, _TIMEOUT_S)[0].offset
        return offset if offset >= 0 else None

    def read_from(self, offsets: Mapping[Part, int]) -> None:
        """Read these partitions, from there; forget all that was fetched before."""
        self._held.clear()
        parts = [ck.TopicPartition(*part, at) for part, at in offsets.items()]
        self._consumer.assign(parts)
        # One that went away while it was paused comes back paused, if it does.
        self._consumer.resume(parts)

    def read(self) -> Found:
        """Return the records that have arrived, without a long wait."""
        messages, self._held = self._held + self._consumer.consume(_TAKE, _CONSUME_S), []
        found = Found({}, set(), set())
        for message in messages:
            part = Part(message.topic() or "", message.partition() or 0)
            error = message.error()
            if error is None:
                record = Record(message.offset() or 0, message.key(), message.value())
                found.records.setdefault(part, []).append(record)
            elif error.code() == _Error._PARTITION_EOF:
                found.ended.add(part)
            elif error.code() in _OUT_OF_RANGE:
                found.gaps.add(part)
            else:
                self._note_error(error)
                if error.fatal() or error.code() in _FATAL:
                    raise self._failed(error)
        if found.records or found.ended:
            self.well()
        return found

    def trouble(self, text: str) -> None:
        """Report a fault, once until there is none any more."""
        if not self._troubled:
            self._troubled = True
            self._write_line(f"Waiting for Kafka: {redacted(text, self._options.client)}")

    def well(self) -> None:
        """Report the end of trouble."""
        if self._troubled:
            self._troubled = False
            self._write_line("Going on.")

    def idle(self) -> None:
        """Stay a member of the group, but fetch nothing until `go_on`."""
        self._consumer.pause(self._consumer.assignment())
        self._held += self._consumer.consume(1, 0)

    def go_on(self) -> None:
        """Fetch again."""
        self._consumer.resume(self._consumer.assignment())

    def passed(self, part: Part, offset: int) -> None:
        """Note how far a partition is learned, for monitoring of the group's lag."""
        self._passed[part] = offset

    def commit(self) -> None:
        """Commit how far it is to the group; nothing is ever read from there."""
        passed, self._passed = self._passed, {}
        if passed:
            with suppress(ck.KafkaException):
                self._consumer.commit(
                    offsets=[ck.TopicPartition(*part, at) for part, at in passed.items()],
                    asynchronous=True,
                )

    def close(self) -> None:
        """Leave the group."""
        self.commit()
        self._consumer.close()

    def _assigned(self, consumer: ck.Consumer, parts: list[ck.TopicPartition]) -> None:
        consumer.assign([])  # until the start of each is found
        self.assigned = frozenset(Part(p.topic, p.partition) for p in parts)
        self.generation += 1

    def _revoked(self, consumer: ck.Consumer, parts: list[ck.TopicPartition]) -> None:
        consumer.unassign()
        self.assigned = None
        self.generation += 1

    def _committed(self, error: ck.KafkaError | None, parts: list[ck.TopicPartition]) -> None:
        """Let a commit fail, as it is only for monitoring, but report one that is never allowed."""
        for failed in (error, *(part.error for part in parts)):
            if failed is not None and failed.code() in _UNAUTHORISED and not self.commit_refused:
                self.commit_refused = redacted(failed.str(), self._options.client)
                self._write_line(
                    f"Kafka refuses to keep the group's offsets: {self.commit_refused}. Reading "
                    "goes on; monitors of the group's lag see none of it."
                )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except ck.KafkaException as error:
            cause = error.args[0]
            if cause.code() in _FATAL:
                raise self._failed(cause) from None
            raise Away(cause.str()) from None

    def _failed(self, error: ck.KafkaError) -> Failed:
        return Failed(f"Kafka refuses: {redacted(error.str(), self._options.client)}")

    def _note_error(self, error: ck.KafkaError) -> None:
        if error.code() in _FATAL:
            self._refused = error
        self.trouble(error.str())


@contextmanager
def _there() -> Iterator[None]:
    """Leave out a topic that does not exist."""
    try:
        yield
    except ck.KafkaException as error:
        if error.args[0].code() != _Error.UNKNOWN_TOPIC_OR_PART:
            raise
