"""The member of the group by itself."""

from __future__ import annotations

import time

import confluent_kafka as ck

from hinged_service.ingest.kafka.client import KafkaLog, Part
from hinged_service.ingest.kafka.options import KafkaOptions
from tests.ingest.kafka.broker import Broker
from tests.ingest.kafka.reading import FAST

PART = Part("t", 0)


def first_offset(log: KafkaLog) -> int:
    """Wait until the partition is the member's; read it; return the offset of what comes first."""
    deadline_s = time.monotonic() + 30
    while log.assigned != frozenset({PART}):
        assert time.monotonic() < deadline_s
        log.read()
    log.read_from({PART: 0})
    while True:
        assert time.monotonic() < deadline_s, "nothing comes"
        for record in log.read().records.get(PART, ()):
            return record.offset


def test_what_went_away_while_it_was_paused_is_read_when_it_comes_back(broker: Broker) -> None:
    broker.create("t")
    broker.put("t", [{"n": n} for n in range(3)])
    log = KafkaLog(KafkaOptions(broker.bootstrap, ("t",), "g", client=FAST), lambda _: None)
    log.join()
    assert first_offset(log) == 0

    shared = {"bootstrap.servers": broker.bootstrap, "group.id": "g", "log_level": 0, **FAST}
    other = ck.Consumer({**shared, "partition.assignment.strategy": "range,roundrobin"})
    other.subscribe(["t"])
    deadline_s = time.monotonic() + 30
    while log.assigned is not None:  # all is taken away to be assigned again
        assert time.monotonic() < deadline_s
        log.idle()
        time.sleep(0.05)
    log.go_on()
    other.close()

    assert first_offset(log) == 0
    log.close()
