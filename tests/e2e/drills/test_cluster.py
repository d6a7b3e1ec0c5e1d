"""A cluster moves a slot that is in use, and loses the node that has it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import cast

import pytest
import redis

from tests.e2e.drills.drill import Drill
from tests.e2e.drills.serving import Serving, workers_on
from tests.support.cluster import Cluster
from tests.support.processes import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"), replicas=True)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="module")
def workers(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Serving]]:
    shared = tmp_path_factory.mktemp("shared")  # so they hand calls to each other
    with workers_on(cluster.url, metrics_dir=shared) as started:
        yield started


@pytest.fixture
def drill(
    cluster: Cluster, workers: list[Serving], record_property: Callable[[str, object], None]
) -> Iterator[Drill]:
    yield Drill(workers, lambda: cast("redis.Redis", cluster.client()), record_property)
    for node in cluster.nodes:
        if not node.alive:
            node.start()
        node.ask("CONFIG", "SET", "cluster-node-timeout", 10_000)
    cluster.until_ok()


def test_a_slot_that_moves_while_it_is_used(cluster: Cluster, drill: Drill) -> None:
    log = f"hinged:{{{drill.model}}}:log"
    with drill.load() as load:
        source = cluster.primary_of(log)
        to = next(n for n in cluster.nodes if n is not source and _is_primary(cluster, n))
        cluster.move(log, to, at_once=1, pause_s=0.05)
        recover_s = load.recovered(time.monotonic())
        load.until_more()
    assert cluster.primary_of(log) is to
    done = "the stream's slot moved to another node, key by key, under load"
    drill.judge("cluster: slot migration", done, load, recover_s)


def test_a_node_that_dies_and_whose_replica_takes_over(cluster: Cluster, drill: Drill) -> None:
    log = f"hinged:{{{drill.model}}}:log"
    with drill.load() as load:
        dead = cluster.primary_of(log)
        cluster.replica_of(dead).until_synced()
        for node in cluster.nodes:
            node.ask("CONFIG", "SET", "cluster-node-timeout", 1_000)
        dead.ask("CONFIG", "SET", "appendfsync", "always")  # its file tells what it had alone
        dead.kill()
        killed_s = time.monotonic()
        wait_until(lambda: cluster.primary_of(log) is not dead, 60)
        took_over_s = time.monotonic() - killed_s
        recover_s = load.recovered(killed_s)
        load.until_more()
    done = (
        f"kill -9 of the node that has the stream; its replica took over after {took_over_s:.1f} s"
    )
    drill.judge_loss("cluster: node lost", done, load, recover_s, dead.directory)


def _is_primary(cluster: Cluster, node: object) -> bool:
    return any(cluster.primary_of(f"{{{number}}}") is node for number in range(100))
