"""A broker that speaks Kafka's protocol on a loopback port: librdkafka's mock cluster.

It comes with confluent-kafka. Its C interface does what the Python one does not: make, delete
and trim topics, and take the broker down and up.
"""

from __future__ import annotations

import ctypes
import json
import select
import signal
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import confluent_kafka as ck

from tests.support.ingest import Ingest

_PRODUCER = 0
_BROKER = 1
_OFFSET_COMMIT = 8
PATIENCE_S = 120.0
"""A busy machine may take a while to come to what is waited for."""
FAST_GROUP = ("--config", "session.timeout.ms=6000", "--config", "heartbeat.interval.ms=500")
"""A member that was killed is missed soon.

One that only stood still must not be: this broker does not always let it join again.
"""
ALONE = ("--config", "session.timeout.ms=60000")
"""A member whose group has no other: no reader waits until it is missed."""


def _library() -> Any:
    folder = Path(ck.__file__).parent.parent / "confluent_kafka.libs"
    library = ctypes.CDLL(str(next(folder.glob("librdkafka*"))))
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32
    for name, result, arguments in (
        ("new", pointer, [ctypes.c_int, pointer, text, ctypes.c_size_t]),
        ("destroy", None, [pointer]),
        ("mock_cluster_new", pointer, [pointer, ctypes.c_int]),
        ("mock_cluster_destroy", None, [pointer]),
        ("mock_cluster_bootstraps", text, [pointer]),
        ("mock_set_controller_id", ctypes.c_int, [pointer, number]),
        ("mock_group_initial_rebalance_delay_ms", None, [pointer, number]),
        ("mock_topic_create", ctypes.c_int, [pointer, text, ctypes.c_int, ctypes.c_int]),
        ("mock_topic_delete", ctypes.c_int, [pointer, text]),
        ("mock_partition_delete_records", ctypes.c_int, [pointer, text, number, ctypes.c_int64]),
        ("mock_broker_set_down", ctypes.c_int, [pointer, number]),
        ("mock_broker_set_up", ctypes.c_int, [pointer, number]),
        (
            "mock_push_request_errors_array",
            None,
            [pointer, ctypes.c_int16, ctypes.c_size_t, ctypes.POINTER(ctypes.c_int)],
        ),
    ):
        function = getattr(library, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
    return library


class Broker:
    """A cluster of one broker; its topics live as long as it does."""

    def __init__(self) -> None:
        self._library = _library()
        error = ctypes.create_string_buffer(512)
        self._handle = self._library.rd_kafka_new(_PRODUCER, None, error, 512)
        self._cluster = self._library.rd_kafka_mock_cluster_new(self._handle, 1)
        self.bootstrap: str = self._library.rd_kafka_mock_cluster_bootstraps(self._cluster).decode()
        self._do("set_controller_id", _BROKER)
        self._library.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, 0)
        self._producer = ck.Producer({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def close(self) -> None:
        """End it."""
        self._library.rd_kafka_mock_cluster_destroy(self._cluster)
        self._library.rd_kafka_destroy(self._handle)

    def create(self, topic: str, partitions: int = 1) -> None:
        """Make a topic."""
        self._do("topic_create", topic.encode(), partitions, 1)

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        self._do("topic_delete", topic.encode())

    def trim(self, topic: str, partition: int, before: int) -> None:
        """Delete the records before an offset."""
        self._do("partition_delete_records", topic.encode(), partition, before)

    def down(self) -> None:
        """Refuse connections."""
        self._do("broker_set_down", _BROKER)

    def up(self) -> None:
        """Take connections again."""
        self._do("broker_set_up", _BROKER)

    def refuse_commits(self, error: int) -> None:
        """Answer the next thousand commits of offsets with an error."""
        errors = (ctypes.c_int * 1_000)(*[error] * 1_000)
        self._library.rd_kafka_mock_push_request_errors_array(
            self._cluster, _OFFSET_COMMIT, 1_000, errors
        )

    def put(
        self, topic: str, values: Iterable[Any], partition: int = 0, key: bytes | None = None
    ) -> None:
        """Write records: bytes, `None`, or what JSON can hold."""
        for value in values:
            body = value if value is None or isinstance(value, bytes) else json.dumps(value)
            self._producer.produce(topic, value=body, partition=partition, key=key)
            self._producer.poll(0)
        assert self._producer.flush(30) == 0

    def spread(self, topic: str, values: Iterable[Any], partitions: int) -> None:
        """Write records to partitions in turn."""
        values = list(values)
        for partition in range(partitions):
            self.put(topic, values[partition::partitions], partition)

    def committed(self, group: str, topic: str, partition: int = 0) -> int:
        """Return the group's own offset, as a lag monitor reads it."""
        consumer = ck.Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": group, "log_level": 0}
        )
        try:
            found = consumer.committed([ck.TopicPartition(topic, partition)], 10)[0].offset
        finally:
            consumer.close()
        return int(found)

    def ingest(self, *words: str, redis_url: str, topic: str = "t") -> Ingest:
        """Start `hinged ingest kafka` for the model `m`."""
        return Ingest(
            *("kafka", "--bootstrap", self.bootstrap, "--topic", topic, "--model", "m"),
            *("--learner", "perceptron", *FAST_GROUP, *words),
            redis_url=redis_url,
        )

    def _do(self, name: str, *arguments: Any) -> None:
        answer = getattr(self._library, f"rd_kafka_mock_{name}")(self._cluster, *arguments)
        assert answer == 0, f"{name}: {answer}"


def stop(one: Ingest) -> tuple[dict[str, Any], str]:
    """Stop an ingestion in order; return its summary and what it told."""
    one.process.send_signal(signal.SIGTERM)
    code, summary, stderr = one.end()
    assert (code, summary["state"]) == (0, "stopped"), stderr
    return summary, stderr


def wait_until_it_reads(one: Ingest) -> None:
    """Wait until an ingestion has partitions."""
    assert one.process.stderr is not None
    while select.select([one.process.stderr], [], [], PATIENCE_S)[0]:
        line = one.process.stderr.readline()
        assert line, "it ended"
        if line.startswith("Reading"):
            return
    raise AssertionError("it reads nothing")
