"""A primary dies whose replica never got the last entries, and the replica takes its place."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx
import pytest

from tests.e2e.drills.drill import Drill
from tests.e2e.drills.fleet import Fleet
from tests.support.fleet.load import Load
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.slow


@pytest.fixture
def link(fleet: Fleet) -> Iterator[Proxy]:
    """The way from the fleet's Redis to its replica."""
    proxy = Proxy(fleet.server.port)
    proxy.start()
    yield proxy
    proxy.stop()


@pytest.fixture
def replica(fleet: Fleet, link: Proxy) -> Iterator[RedisServer]:
    """A replica of the fleet's Redis, which has all of it."""
    server = fleet.new_server()
    options = ("--repl-diskless-sync-delay", "0", "--replicaof", f"127.0.0.1 {link.port}")
    server.start(*options)
    wait_until(lambda: _is_synced(server))
    yield server
    if fleet.server is not server:
        server.kill()


def test_a_failover_that_loses_the_tail_loses_no_more_and_no_worker_writes_it_back(
    fleet: Fleet, drill: Drill, link: Proxy, replica: RedisServer
) -> None:
    old = fleet.server
    with old.client() as client:  # its file tells what it had alone
        client.config_set("appendfsync", "always")
    with drill.load() as load:
        link.hold = True
        load.until_more(40)
        old.kill()
        link.stop()
        with replica.client() as client:
            client.replicaof("NO", "ONE")
        fleet.move_to(replica)
        recover_s = load.recovered(time.monotonic())
        load.until_more()
    done = (
        "replication stalled, primary killed with {} events of its own, replica promoted; what is "
        "lost is learned when it is sent again"
    )
    balance = drill.judge_loss("failover with a lost tail", done, load, recover_s, old.directory)
    assert balance.lost, "the replica had everything: nothing was tried"
    _send_anew(drill, load, balance.lost)
    again = drill.weigh(load)
    assert (again.lost, again.learned) == (frozenset(), again.sent)


def _send_anew(drill: Drill, load: Load, names: frozenset[str]) -> None:
    for number, name in enumerate(sorted(names)):
        url = drill.workers[number % len(drill.workers)].url
        answer = httpx.post(
            f"{url}{drill.path}/learn", json=load.sent[name], timeout=30, verify=False
        )
        assert answer.json()["duplicate"] is False, "its id was lost with it"


def _is_synced(server: RedisServer) -> bool:
    with server.client() as client:
        return bool(client.info("replication").get("master_link_status") == "up")
