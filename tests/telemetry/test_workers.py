"""/metrics of several processes: any of them answers for all, the killed ones included."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from tests.support.forked_worker import ForkedWorker
from tests.support.processes import PROC, wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service
from tests.telemetry.reading import Metrics, scrape, until

MODEL = "/v1/models/m"
LEARN = "/v1/models/{model}/learn"


class Fleet(NamedTuple):
    one: Service
    two: ForkedWorker
    client: httpx.Client

    def learn(self, worker: Service | ForkedWorker, times: int = 1) -> str:
        """Learn by calls of a worker; return the position of the last."""
        for _ in range(times):
            event = {"x": {"a": 1}, "y": True}
            answer = self.client.post(f"{worker.url}{MODEL}/learn", json=event)
            assert answer.status_code == 200
        # A call is counted after its answer is sent, but before the next one is looked at.
        assert self.client.get(f"{worker.url}/healthz").status_code == 200
        position: str = answer.json()["position"]
        return position

    def learned(self, worker: Service | ForkedWorker) -> float:
        labels = {"method": "POST", "route": LEARN, "status": "200"}
        return scrape(self.client, worker.url).value("hinged_http_requests_total", **labels)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    shelf = tmp_path_factory.mktemp("metrics")
    two = ForkedWorker(server.url, metrics_dir=shelf)
    two.start(wait=False)
    with (
        Service(server.url, metrics_dir=shelf) as one,
        httpx.Client(timeout=30, verify=False) as client,
    ):
        two.wait_until_alive()
        answer = client.put(f"{one.url}{MODEL}", json={"learner": {"type": "perceptron"}})
        assert answer.status_code == 201
        yield Fleet(one, two, client)
        two.kill()
    server.kill()


def assert_nothing_fell(before: Metrics, after: Metrics) -> None:
    now = after.growing()
    fell = {key: (old, now.get(key)) for key, old in before.growing().items() if key in now}
    fell = {key: pair for key, pair in fell.items() if pair[1] is not None and pair[1] < pair[0]}
    assert not fell
    assert before.growing().keys() <= now.keys()


def test_every_worker_tells_the_same(fleet: Fleet) -> None:
    started = fleet.learned(fleet.one)
    fleet.learn(fleet.one, 20)
    fleet.learn(fleet.two, 10)
    for worker in (fleet.one, fleet.two, fleet.one):
        assert fleet.learned(worker) == started + 30
    metrics = until(fleet.client, fleet.one.url, "hinged_events_total", started + 30, model="m")
    other = scrape(fleet.client, fleet.two.url)
    for name in ("hinged_events_total", "hinged_mistakes_total", "hinged_updates_total"):
        assert metrics.value(name, model="m") == other.value(name, model="m")
    assert metrics.value("hinged_workers") == other.value("hinged_workers") == 2
    assert other.value("hinged_append_seconds_count") == started + 30


def test_nothing_falls_from_one_worker_to_the_other(fleet: Fleet) -> None:
    before = scrape(fleet.client, fleet.one.url)
    for turn in range(20):
        fleet.learn((fleet.one, fleet.two)[turn % 2])
        after = scrape(fleet.client, (fleet.two, fleet.one)[turn // 2 % 2].url)
        assert_nothing_fell(before, after)
        before = after


def test_a_killed_worker_takes_nothing_and_its_gauges_go(fleet: Fleet) -> None:
    for worker in (fleet.one, fleet.two):
        fleet.learn(worker)  # the owner of the stream does that for both
        assert fleet.client.get(f"{worker.url}{MODEL}").status_code == 200
    metrics = until(fleet.client, fleet.one.url, "hinged_replicas", 2)
    learned = fleet.learned(fleet.one)
    fleet.learn(fleet.two, 7)
    fleet.two.kill()
    after = scrape(fleet.client, fleet.one.url)
    assert_nothing_fell(metrics, after)
    assert fleet.learned(fleet.one) == learned + 7
    assert after.value("hinged_workers") == after.value("hinged_replicas") == 1

    fleet.two.start()
    assert_nothing_fell(after, scrape(fleet.client, fleet.two.url))
    now = {"at_least": fleet.learn(fleet.two, 2)}
    assert fleet.learned(fleet.one) == learned + 9
    account = fleet.client.get(f"{fleet.two.url}{MODEL}", params=now).json()
    metrics = until(
        fleet.client, fleet.one.url, "hinged_events_total", account["events"], model="m"
    )
    assert metrics.value("hinged_workers") == 2


def _workers(supervisor: int) -> list[int]:
    """Process ids of the workers: children that were spawned to run the service."""
    children = (PROC / str(supervisor) / "task" / str(supervisor) / "children").read_text()
    found = [int(pid) for pid in children.split()]
    return [pid for pid in found if b"spawn_main" in (PROC / str(pid) / "cmdline").read_bytes()]


def test_hinged_serve_counts_its_workers_together(own_server: RedisServer) -> None:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HINGED_")}
    with subprocess.Popen(
        [sys.executable, "-m", "hinged_service.cli.main", "serve", "--workers", "2", "--port", "0"],
        env=kept | {"HINGED_REDIS_URL": own_server.url, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found is not None
            url = found[0]
            workers = _two(process.pid)
            shelf = _shelf(workers[0])
            assert len({_shelf(pid) for pid in workers}) == 1
            wait_until(lambda: _counted_workers(url) == 2, 60)
        finally:
            process.send_signal(signal.SIGTERM)
    assert not shelf.exists()


def _two(supervisor: int) -> list[int]:
    wait_until(lambda: len(_workers(supervisor)) == 2, 60)
    return _workers(supervisor)


def _counted_workers(url: str) -> float:
    try:
        with httpx.Client(timeout=30, verify=False) as client:
            return scrape(client, url).value("hinged_workers")
    except httpx.TransportError:
        return 0


def _shelf(pid: int) -> Path:
    variables = (PROC / str(pid) / "environ").read_bytes().split(b"\0")
    found = next(v for v in variables if v.startswith(b"HINGED_METRICS_DIR="))
    return Path(os.fsdecode(found.partition(b"=")[2]))
