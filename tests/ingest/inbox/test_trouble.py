"""Kills and rollbacks: each entry that is still there is learned once."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from redis.exceptions import RedisError

from hinged_service.engine.live_model import SourceAppendResult
from hinged_service.store.inbox import take
from hinged_service.store.keys import StreamKeys
from hinged_service.store.log_types import Span
from hinged_service.wire.events import Event
from tests.ingest.inbox.conftest import INBOX, Inbox, draw, make
from tests.support.engine import worker
from tests.support.forked_worker import ForkedWorker
from tests.support.ingest import events, learned
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service


def count(inbox: Inbox) -> int:
    """Return how many events the log ever took."""
    with inbox.server.client() as client:
        return int(str(client.hget("hinged:{m}:meta", "count") or 0))


def add_nameless(server: RedisServer, first: int, rows: int) -> None:
    """Write events without ids: nothing but the offset keeps them from counting twice."""
    with server.client() as client, client.pipeline(transaction=False) as pipe:
        for row in events(first + rows)[first:]:
            pipe.xadd(INBOX, {"event": json.dumps(row)})
        pipe.execute()


TOTAL = 20_000
KILLS = {0, 1, 4, 5, 8, 9, 12, 13, 16, 17}


@pytest.mark.slow
def test_workers_are_killed_and_redis_starts_again(inbox: Inbox) -> None:
    random, step = draw(2), 1_000
    workers = [ForkedWorker(inbox.server.url, inbox_poll_ms=20) for _ in range(2)]
    for one in workers:
        one.start()
    with Service(inbox.server.url, inbox_poll_ms=10**6) as maker:
        make(maker)
    try:
        for turn in range(TOTAL // step):
            add_nameless(inbox.server, turn * step, step)
            wanted = count(inbox) + random.randrange(step)
            deadline = time.monotonic() + 10
            while count(inbox) < min(wanted, (turn + 1) * step) and time.monotonic() < deadline:
                time.sleep(0.001)
            if turn == 3:
                inbox.server.stop()
                inbox.server.start()
            elif turn in KILLS:
                one = workers[turn % 2]
                one.kill()
                one.start(wait=False)
        inbox.wait_until_empty()
    finally:
        for one in workers:
            one.kill()
    assert count(inbox) == TOTAL
    assert inbox.weights() == learned(events(TOTAL))


def test_what_was_fed_and_not_removed_is_removed_by_the_next(inbox: Inbox) -> None:
    with Service(inbox.server.url, inbox_poll_ms=10**6) as service:
        make(service)
    add_nameless(inbox.server, 0, 300)
    with inbox.server.client() as client:
        fed: Any = client.xrange(INBOX)
        with Service(inbox.server.url):
            inbox.wait_until_empty()
        assert inbox.offset() == fed[-1][0]
        client.delete(INBOX)  # as if the worker had died between the two
        for entry_id, fields in fed:
            client.xadd(INBOX, fields, id=entry_id)
    with Service(inbox.server.url):
        inbox.wait_until_empty()
        add_nameless(inbox.server, 300, 10)
        inbox.wait_until_empty()
    assert inbox.weights() == learned(events(310))


def test_a_rollback_of_redis_doubles_nothing_and_loses_nothing_that_survives(
    inbox: Inbox, tmp_path: Path
) -> None:
    with Service(inbox.server.url) as service:
        make(service)
        add_nameless(inbox.server, 0, 100)
        inbox.wait_until_empty()
    add_nameless(inbox.server, 100, 100)
    inbox.server.copy_data(tmp_path / "copy")  # 100 learned, 100 in the inbox
    with Service(inbox.server.url), Service(inbox.server.url):
        inbox.wait_until_empty()
        assert count(inbox) == 200
        inbox.server.set_back(tmp_path / "copy")
        inbox.wait_until_empty()
        wait_until(lambda: count(inbox) == 200)

        def produce() -> None:
            with inbox.server.client() as client:
                for row in events(1_200)[200:]:
                    client.xadd(INBOX, {"event": json.dumps(row)})

        producer = threading.Thread(target=produce)
        producer.start()
        producer.join()
        inbox.wait_until_empty()
    assert count(inbox) == 1_200
    assert inbox.weights() == learned(events(1_200))


def test_producers_go_on_through_rollbacks(inbox: Inbox, tmp_path: Path) -> None:
    safe: set[int] = set()
    sent: set[int] = set()
    stopping = threading.Event()
    life, lock = 0, threading.Lock()

    def produce() -> None:
        for number in itertools.count():
            if stopping.is_set():
                return
            begun = life
            row = {"x": {"n": number, "b": 1}, "y": number % 3 == 0}
            try:
                inbox.write({"event": json.dumps(row)})
            except RedisError:  # it may have been written all the same
                time.sleep(0.01)
                continue
            with lock:
                if begun == life:  # else it may be lost
                    sent.add(number)

    def new_life() -> None:
        nonlocal life
        with lock:
            life += 1
            sent.clear()

    def enough() -> None:
        wait_until(lambda: len(sent) >= 40)

    url = inbox.server.url
    with Service(url, inbox_poll_ms=20) as service, Service(url, inbox_poll_ms=20):
        make(service)
        producer = threading.Thread(target=produce)
        producer.start()
        try:
            for _ in range(3):
                enough()
                safe |= sent
                inbox.server.copy_data(tmp_path / "copy")
                time.sleep(0.5)
                new_life()
                inbox.server.set_back(tmp_path / "copy")
                new_life()
            enough()
        finally:
            stopping.set()
            producer.join()
        safe |= sent
        inbox.wait_until_empty()
    learned_numbers = numbers_in_log(inbox)
    assert len(learned_numbers) == len(set(learned_numbers))
    assert len(safe) > 100
    assert safe <= set(learned_numbers)


def numbers_in_log(inbox: Inbox) -> list[int]:
    """Return the feature `n` of every event in the log."""
    with inbox.server.client() as client:
        log: Any = client.xrange("hinged:{m}:log")
    found: list[int] = []
    for _, fields in log:
        skip = set(json.loads(fields.get("skip", "[]")))
        rows = json.loads(fields.get("events", "[]"))
        found += [row["x"]["n"] for index, row in enumerate(rows) if index not in skip]
    return found


def test_a_batch_is_taken_only_while_it_lies_in_the_inbox(inbox: Inbox) -> None:
    rows = [Event({"a": 1.0}, True)]

    async def run() -> None:
        async with worker(inbox.server.url) as one:
            await one.create("m")
            model = await one.open("m")

            async def feed(start: str, end: str) -> SourceAppendResult:
                return await model.learn_each(
                    rows, b'{"x":{"a":1},"y":true}', Span("inbox", start, end)
                )

            assert await feed("", "1-0") == SourceAppendResult("", None)  # set back in between
            first = inbox.write({"event": "{}"})
            assert (await feed("", first)).learned is not None
            assert await feed("", first) == SourceAppendResult(first, None)
            assert (await take(one.connection, model.keys.on, 9, 9, 9)) == (first, [])
            with inbox.server.client() as client:
                client.delete(INBOX)
            second = inbox.write({"event": "{}"}, "1-0")
            again = await take(one.connection, model.keys.on, 9, 9, 9)
            assert (again.offset, again.end) == ("0-0/1", "1-0/1")
            assert await feed(first, second) == SourceAppendResult("0-0/1", None)
            assert (await feed("0-0/1", "1-0/1")).offset == "1-0/1"
            assert (await one.read("m")).state.events == 2

    asyncio.run(run())


def test_batches_are_bounded(inbox: Inbox) -> None:
    async def run() -> None:
        async with worker(inbox.server.url) as one:
            for size in (10, 600_000, 600_000, 10, 2_000_000, *[10] * 30):
                inbox.write({"event": "x" * size, "id": "i"})
            keys = StreamKeys("m")
            found = await take(one.connection, keys, 500, 2**20, 10**6)
            assert [len(item.event) for item in found.items if isinstance(item.event, bytes)] == [
                10,
                600_000,
                600_000,
            ]
            found = await take(one.connection, keys, 20, 2**30, 10**6)
            assert len(found.items) == 20
            assert found.items[4].event == 2_000_000

    asyncio.run(run())
