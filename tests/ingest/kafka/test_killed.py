"""Exactly once over three partitions: killed, restarted, joined, left, and a zombie."""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from typing import Any

import pytest

from tests.ingest.kafka.broker import ALONE, Broker, stop, wait_until_it_reads
from tests.ingest.kafka.stored import folded, logged
from tests.support.ingest import Event, Ingest, events, kill_often, letters, taken
from tests.support.plain_fold import model_uid, read_snapshot
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

PARTITIONS = 3


def named(count: int) -> list[Event]:
    """Return events that can be told apart in the log, without being ids."""
    return [event | {"w": 1 + n / 2**20} for n, event in enumerate(events(count))]


def texts(rows: list[Any]) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True) for row in rows)


def in_order(log: list[Event], rows: list[Event]) -> bool:
    """Return whether each partition's records are in the log in their order."""
    number = {row["w"]: n for n, row in enumerate(rows)}
    found = [number[event["w"]] for event in log]
    parts = [[n for n in found if n % PARTITIONS == p] for p in range(PARTITIONS)]
    return all(part == sorted(part) for part in parts)


def check(server: RedisServer, rows: list[Event]) -> None:
    """The log holds every row once; the model's snapshot is the plain fold of it."""
    log = logged(server)
    assert len(log) == len(rows)
    assert texts(log) == texts(rows)
    assert in_order(log, rows)
    assert letters(server) == []
    learner = folded(server)
    with server.client() as client:
        stored = read_snapshot(client, "m", model_uid(client, "m"))
    assert stored is not None
    assert stored.weights == dict(learner.weights)


COUNT = 6_000
KILLS = 3


@pytest.mark.slow
def test_killed_often_it_learns_every_record_once(broker: Broker, own_server: RedisServer) -> None:
    rows = named(COUNT)
    broker.create("t", PARTITIONS)
    broker.spread("t", rows, PARTITIONS)

    def start() -> Ingest:
        return broker.ingest(redis_url=own_server.url)

    def restart_redis(number: int) -> None:
        if number == KILLS // 2:
            own_server.stop()
            own_server.start()

    last = kill_often(start, lambda: taken(own_server), COUNT, restart_redis, KILLS)
    other = start()  # joins, takes partitions over, and leaves
    wait_until_it_reads(other)
    wait_until(lambda: taken(own_server) == COUNT)
    stop(other)
    stop(last)
    check(own_server, rows)


def test_a_zombie_is_refused_and_members_join_and_leave_while_records_come(
    broker: Broker, own_server: RedisServer
) -> None:
    rows = named(1_800)
    broker.create("t", PARTITIONS)
    broker.spread("t", rows[:300], PARTITIONS)
    zombie = broker.ingest(redis_url=own_server.url)
    wait_until(lambda: taken(own_server) == 300)
    zombie.process.send_signal(signal.SIGSTOP)  # its session ends; it does not know
    other = broker.ingest(redis_url=own_server.url)
    broker.spread("t", rows[300:900], PARTITIONS)
    wait_until(lambda: taken(own_server) == 900)
    zombie.process.send_signal(signal.SIGCONT)
    for number in range(900, 1_800, 30):
        broker.spread("t", rows[number : number + 30], PARTITIONS)
        time.sleep(0.1)
        if number == 1_500:
            assert stop(other)[0]["records"] >= 600
    wait_until(lambda: taken(own_server) == 1_800)
    stop(zombie)
    check(own_server, rows)
    wait_until(lambda: broker.committed("hinged-m", "t", 2) == 600)


def test_a_topic_created_again_at_once(broker: Broker, own_server: RedisServer) -> None:
    """The new topic has more records than the old one had before the reader looks again."""
    rows = named(300)
    broker.create("t")
    broker.put("t", rows[:100])
    reader = broker.ingest(*ALONE, redis_url=own_server.url)
    wait_until(lambda: taken(own_server) == 100)
    time.sleep(0.5)  # it asks for what comes next
    reader.process.send_signal(signal.SIGSTOP)
    broker.delete("t")
    broker.create("t")
    broker.put("t", rows[100:])
    reader.process.send_signal(signal.SIGCONT)
    wait_until(lambda: taken(own_server) >= 300)
    stop(reader)
    assert logged(own_server) == rows


def test_two_readers_who_both_believe_that_all_is_theirs(
    broker: Broker, own_server: RedisServer
) -> None:
    """Run two zombies: each has a group of its own and is refused often."""
    rows = named(3_600)
    broker.create("t", PARTITIONS)
    both = [broker.ingest("--group", f"g{n}", *ALONE, redis_url=own_server.url) for n in range(2)]
    for one in both:
        wait_until_it_reads(one)
    for number in range(0, 3_000, 30):
        broker.spread("t", rows[number : number + 30], PARTITIONS)
    wait_until(lambda: taken(own_server) == 3_000)
    for end, idle in ((3_300, both[0]), (3_600, both[1])):  # the other one passes what was taken
        idle.process.send_signal(signal.SIGSTOP)
        broker.spread("t", rows[end - 300 : end], PARTITIONS)
        wait_until(lambda: taken(own_server) == end)  # noqa: B023 - called within the turn
        idle.process.send_signal(signal.SIGCONT)
    summaries = [stop(one)[0] for one in both]
    # Fewer if an answer came too late: by then the other one may have moved on.
    assert 0 < sum(summary["learned"] for summary in summaries) <= len(rows)
    assert sum(summary["seeks"] + summary["unseen"] for summary in summaries) > 0
    check(own_server, rows)
