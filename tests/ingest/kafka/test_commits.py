"""The group's own offsets: for monitoring of its lag, and reported if they cannot be kept."""

from __future__ import annotations

import signal
import time

import confluent_kafka as ck
import pytest

from hinged_service.ingest.kafka.client import KafkaLog
from hinged_service.ingest.target import Failed
from tests.ingest.kafka.broker import ALONE
from tests.ingest.kafka.conftest import Kafka
from tests.ingest.kafka.stored import logged
from tests.support.ingest import Ingest, events, taken
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

UNAUTHORISED = [
    ck.KafkaError.GROUP_AUTHORIZATION_FAILED,
    ck.KafkaError.TOPIC_AUTHORIZATION_FAILED,
]


@pytest.mark.parametrize("error", UNAUTHORISED)
def test_offsets_that_the_user_may_not_keep_are_told_at_the_end(kafka: Kafka, error: int) -> None:
    kafka.create("t")
    kafka.put("t", events(10))
    kafka.refuse_commits(error)
    with pytest.raises(Failed, match="learned, but Kafka refused to keep the group's offsets"):
        kafka.bring(group="g")
    assert len(logged(kafka.server)) == 10


def test_commits_that_fail_for_a_while_are_no_failure(kafka: Kafka) -> None:
    kafka.create("t")
    kafka.put("t", events(10))
    kafka.refuse_commits(ck.KafkaError.NOT_COORDINATOR)
    assert kafka.bring(group="g").tally.learned == 10


def test_an_endless_reader_tells_it_at_once_and_by_its_exit_code(
    kafka: Kafka, own_server: RedisServer
) -> None:
    kafka.create("t")
    kafka.put("t", events(10))
    kafka.refuse_commits(UNAUTHORISED[0])

    running = kafka.ingest(*ALONE, redis_url=own_server.url)
    wait_until(lambda: taken(own_server) == 10)
    time.sleep(1.5)
    running.process.send_signal(signal.SIGTERM)
    code, summary, stderr = running.end()
    assert (code, summary["learned"]) == (1, 10), stderr
    assert "Kafka refuses to keep the group's offsets" in stderr
    assert "Allow the user to read the group" in stderr


def test_what_a_killed_reader_fed_is_committed_at_the_start_of_the_next(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.create("t", 2)
    kafka.put("t", events(10), 0)
    with monkeypatch.context() as killed:
        killed.setattr(KafkaLog, "commit", lambda _: None)
        assert kafka.bring(group="g").tally.learned == 10
    assert kafka.committed("g", "t") < 0
    assert kafka.bring(group="g").tally.records == 0
    assert kafka.committed("g", "t") == 10
    assert kafka.committed("g", "t", 1) == 0


def test_a_drain_waits_for_a_cluster_that_is_away_only_so_long(
    kafka: Kafka, own_server: RedisServer
) -> None:
    kafka.create("t")
    kafka.down()
    began_s = time.monotonic()
    running: Ingest = kafka.ingest("--drain", "--wait-s", "1", redis_url=own_server.url)
    code, _, stderr = running.end(60)
    assert code == 1, stderr
    assert f"Kafka at {kafka.bootstrap} gave no answer for 1 seconds" in stderr
    assert time.monotonic() - began_s < 30
