"""Workers are replaced one after the other while events come: nothing is lost, nothing doubled."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest

import hinged
from tests.engine.upgrade import versions
from tests.support.fleet.load import Load
from tests.support.fleet.served import bits, served
from tests.support.forked_worker import ForkedWorker
from tests.support.plain_fold import fold_log, model_uid, read_snapshot
from tests.support.redis_server import RedisServer

SPEC = {"learner": {"type": "perceptron"}}
PATH = "/v1/models/m"
EVENTS, RESTARTS = 5_000, 6


def check(load: Load, counted: list[str]) -> None:
    """Check that all events were learned, each once."""
    assert len(counted) == len(set(counted)), "learned twice"
    assert load.acknowledged.keys() == set(counted), "lost, or learned unasked"
    assert max(map(len, load.counted.values())) == 1, "told twice what it did"
    assert "429" not in load.trouble


@pytest.fixture
def started(own_server: RedisServer) -> Iterator[Callable[..., ForkedWorker]]:
    """Start a worker; all are killed in the end."""
    made: list[ForkedWorker] = []

    def start(prepare: Callable[[], None] | None = None) -> ForkedWorker:
        # A worker that starts under load may hold the snapshot still this long, also from those
        # that stop meanwhile.
        settings = {"snapshot_every_events": 500, "hold_ms": 200}
        made.append(ForkedWorker(own_server.url, retention_bytes=10**9, **settings))
        made[-1].prepare = prepare
        made[-1].start()
        return made[-1]

    yield start
    for worker in made:
        worker.kill()


def test_a_rolling_restart_under_load(
    own_server: RedisServer, started: Callable[..., ForkedWorker]
) -> None:
    workers = [started(), started()]
    httpx.put(f"{workers[0].url}{PATH}", json=SPEC, verify=False).raise_for_status()
    urls = [worker.url for worker in workers]
    with Load(urls, PATH) as load:
        for number in range(RESTARTS):
            load.until_more(EVENTS // RESTARTS // 2)
            worker = workers[number % 2]
            assert worker.stop() in (0, -15)
            worker.start()
        load.until_more(max(200, EVENTS - len(load.acknowledged)))
    with own_server.client() as client:
        folded = fold_log(client, "m", hinged.Perceptron())
        check(load, folded.counted_ids)
        for worker in workers:
            weights, _ = served(worker, PATH, f"{folded.position}.{folded.chain}")
            assert bits(weights) == bits(folded.weights)
            worker.stop()
        stored = read_snapshot(client, "m", model_uid(client, "m"))
        assert stored is not None
        assert (stored.position, stored.weights) == (folded.position, folded.weights)


def test_a_rolling_upgrade_under_load(
    own_server: RedisServer, started: Callable[..., ForkedWorker]
) -> None:
    """While both versions run the old one goes on; then one command hands the model over."""
    workers = [started(versions.become_old), started(versions.become_old)]
    httpx.put(f"{workers[0].url}{PATH}", json=SPEC, verify=False).raise_for_status()
    urls = [worker.url for worker in workers]
    with Load(urls, PATH) as load:
        load.until_more(500)
        for number in range(2):
            old, workers[number] = workers[number], started(versions.become_new)
            urls[number] = workers[number].url
            old.stop()
            if number == 0:
                load.until_more(500)
        answer = (
            httpx.post(f"{workers[0].url}{PATH}/upgrade", timeout=30, verify=False)
            .raise_for_status()
            .json()
        )
        assert (answer["before"], answer["fold"]) == (versions.OLD, versions.NEW)
        load.until_more(1_000)
    with own_server.client() as client:
        plain = versions.Plain(client, "m", versions.OLD)
        check(load, plain.counted)
        assert plain.upgrades == 1
        for worker in workers:
            weights, _ = served(worker, PATH, plain.end)
            assert bits(weights) == plain.state()["weights"]
