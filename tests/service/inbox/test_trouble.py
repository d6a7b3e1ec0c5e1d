"""Whatever is killed or set back: each entry that is still there is learned once."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

from tests.service.inbox.conftest import INBOX, Inbox, draw, make
from tests.support.ingest import events, learned
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service
from tests.support.worker import Worker


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


def test_workers_are_killed_and_redis_starts_anew(inbox: Inbox) -> None:
    random = draw(2)
    total, step = 4_000, 500
    workers = [Worker(inbox.server.url, inbox_poll_ms=20) for _ in range(2)]
    for worker in workers:
        worker.start()
    with Service(inbox.server.url, inbox_poll_ms=10**6) as maker:
        make(maker)
    try:
        for turn in range(total // step):
            add_nameless(inbox.server, turn * step, step)
            wanted = count(inbox) + random.randrange(step)
            deadline = time.monotonic() + 10
            while count(inbox) < min(wanted, (turn + 1) * step) and time.monotonic() < deadline:
                time.sleep(0.001)
            if turn == 3:
                inbox.server.stop()
                inbox.server.start()
            elif turn % 2:
                worker = workers[turn // 2 % 2]
                worker.kill()
                worker.start(wait=False)
        inbox.wait_until_empty(60)
    finally:
        for worker in workers:
            worker.kill()
    assert count(inbox) == total
    assert inbox.weights() == learned(events(total))


def test_what_was_fed_and_not_removed_is_removed_by_the_next(inbox: Inbox) -> None:
    with Service(inbox.server.url, inbox_poll_ms=10**6) as service:
        make(service)
    add_nameless(inbox.server, 0, 300)
    with inbox.server.client() as client:
        fed = client.xrange(INBOX)
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
