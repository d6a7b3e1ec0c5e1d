"""Learning goes on while keys move to another server, or their server is gone for good."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
import pytest
import redis
from redis.crc import key_slot

import hinged
from hinged_service.store.connection import Connection
from tests.store.transport.conftest import running
from tests.support.cluster import Cluster, Node
from tests.support.engine import connected, event, until, worker
from tests.support.fleet.served import bits
from tests.support.plain_fold import fold_log
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer, server_binaries, valkey_binary
from tests.support.sentinel import SERVICE, SentinelTrio
from tests.support.service import Service

PATIENCE_S = 60.0
_PACE_S = 0.01
USUAL: dict[str, Any] = {"redis_timeout_ms": 800, "append_timeout_ms": 900, "read_wait_ms": 250}


class Learning:
    """Two workers that learn and predict all the time, until the block ends.

    Every event is sent until it is acknowledged, each time with the same id.
    """

    def __init__(self, url: str, name: str) -> None:
        self._name = name
        self._stack = ExitStack()
        self._url = url
        self._ended = threading.Event()
        self._counts = [0, 0]
        self.statuses: set[int] = set()
        self.clients: list[httpx.Client] = []
        self._done: list[Future[None]] = []

    def __enter__(self) -> Learning:
        for _ in range(2):
            service = self._stack.enter_context(Service(self._url, **USUAL))
            self.clients.append(self._stack.enter_context(service.client()))
        spec = {"learner": {"type": "perceptron"}}
        path = f"/v1/models/{self._name}"
        wait_until(lambda: self.clients[0].put(path, json=spec).is_success)
        pool = self._stack.enter_context(ThreadPoolExecutor(2))
        self._done = [pool.submit(self._learn, worker) for worker in range(2)]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._stack.close()

    def until_more(self, events: int = 20) -> None:
        """Wait until each worker has acknowledged so many events more."""
        goals = [count + events for count in self._counts]

        def reached() -> bool:
            for task in self._done:
                if task.done():
                    task.result()
            return all(c >= goal for c, goal in zip(self._counts, goals, strict=True))

        wait_until(reached, PATIENCE_S)

    def finish(self) -> list[str]:
        self._ended.set()
        for task in self._done:
            task.result()
        return [f"e{2 * n + worker}" for worker in range(2) for n in range(self._counts[worker])]

    def _learn(self, worker: int) -> None:
        client, path = self.clients[worker], f"/v1/models/{self._name}"
        while not self._ended.wait(_PACE_S):
            one = event(2 * self._counts[worker] + worker)
            deadline_s = time.monotonic() + PATIENCE_S
            while not self._taken(client.post(f"{path}/learn", json=one)):
                assert time.monotonic() < deadline_s, "it does not recover"
            self._counts[worker] += 1
            self._taken(client.post(f"{path}/predict", json={"x": one["x"]}))

    def _taken(self, answer: httpx.Response) -> bool:
        self.statuses.add(answer.status_code)
        if answer.status_code == 503:
            assert answer.headers["retry-after"]
            return False
        assert answer.status_code == 200, answer.text
        return True

    def judge(self, holder: Node, resend: bool = False) -> None:
        """Compare what is in the log, what was acknowledged and what both workers have."""
        acknowledged = self.finish()
        assert len(acknowledged) >= 40
        if resend:  # a failover may lose what no replica had yet; its id is lost with it
            for name in acknowledged:
                again = event(int(name.removeprefix("e")))
                path = f"/v1/models/{self._name}/learn"
                _taken(functools.partial(self.clients[0].post, path, json=again))
        with holder.client() as client:
            log = fold_log(client, self._name, hinged.Perceptron())
        assert sorted(log.counted_ids) == sorted(acknowledged), "an event is lost, or twice there"
        for client_of_worker in self.clients:
            at = {"at_least": f"{log.position}.{log.chain}"}
            path = f"/v1/models/{self._name}/weights"
            answer = _taken(functools.partial(client_of_worker.get, path, params=at))
            assert bits(answer.json()["weights"]) == bits(log.weights)


def _taken(call: Callable[[], httpx.Response]) -> httpx.Response:
    """Return the answer to a call that is made until Redis answers in time."""
    deadline_s = time.monotonic() + PATIENCE_S
    while (answer := call()).status_code == 503:
        assert time.monotonic() < deadline_s, answer.text
    assert answer.status_code == 200, answer.text
    return answer


def binary(kind: str) -> str:
    """Return a server of that kind, Valkey's if there is no other."""
    return server_binaries().get(kind, valkey_binary())


Fail = Callable[[SentinelTrio], Any]


def _killed(trio: SentinelTrio) -> Node:
    new = trio.replica
    trio.primary.kill()
    trio.until_primary(new)
    return new


def _in_order(trio: SentinelTrio) -> Node:
    old, new = trio.primary, trio.failover()
    wait_until(lambda: old.info("replication")["role"] == "slave", PATIENCE_S)
    return new


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "fail"), [("valkey", _killed), ("redis", _in_order)], ids=["killed", "in order"]
)
def test_a_sentinel_failover_under_learning(kind: str, tmp_path: Path, fail: Fail) -> None:
    with (
        running(SentinelTrio(tmp_path, binary(kind), down_after_ms=1_000)) as trio,
        Learning(trio.url, "m") as learning,
    ):
        learning.until_more()
        new = fail(trio)
        learning.until_more()
        learning.judge(new, resend=True)
        assert learning.statuses <= {200, 503}


def test_a_primary_that_is_none_to_the_sentinels_is_left(
    tmp_path: Path, own_server: RedisServer, own_db: redis.Redis
) -> None:
    """Leave a primary that answers and takes writes: it does not know yet that it is none."""

    async def course(trio: SentinelTrio) -> None:
        async with connected(trio.url) as connection:
            await connection.check_writable()
            for sentinel in trio.sentinels:
                sentinel.ask("SENTINEL", "REMOVE", SERVICE)
                sentinel.ask("SENTINEL", "MONITOR", SERVICE, "127.0.0.1", own_server.port, 2)
            own_db.hset("hinged:models", "here", "yes")
            await until(lambda: _is_there(connection))

    with running(SentinelTrio(tmp_path)) as trio:
        asyncio.run(course(trio))


async def _is_there(connection: Connection) -> bool:
    return await connection.hget("hinged:models", "here") == "yes"


def test_a_slot_moves_under_learning(tmp_path: Path) -> None:
    with running(Cluster(tmp_path, binary("redis"))) as cluster:
        holder = cluster.primary_of("{m}")
        other, third = (node for node in cluster.nodes if node is not holder)
        with Learning(cluster.url, "m") as learning:
            learning.until_more()
            cluster.move("{m}", other)
            learning.until_more()
            cluster.move("{m}", third)
            learning.until_more()
            learning.judge(third)
            assert learning.statuses <= {200, 503}


def test_a_slot_that_valkey_moves_at_once_is_refused_to_no_caller(
    cluster: Cluster, name: str
) -> None:
    holder, slot = cluster.primary_of(f"{{{name}}}"), key_slot(name.encode())
    other = next(node for node in cluster.nodes if node is not holder)
    where = ("SLOTSRANGE", slot, slot, "NODE", cluster.id_of(other))
    with Learning(cluster.url, name) as learning:
        learning.until_more()
        holder.ask("CLUSTER", "MIGRATESLOTS", *where)
        wait_until(lambda: cluster.primary_of(f"{{{name}}}") is other, PATIENCE_S)
        learning.until_more()
        learning.judge(other)


@pytest.mark.parametrize("at_once", [False, True], ids=["key by key", "at once"])
async def test_a_worker_that_only_predicts_goes_with_a_slot_that_moves(
    cluster: Cluster, name: str, at_once: bool
) -> None:
    """Read only what was announced; a model of the next slot keeps the node heard."""
    slot, quick = key_slot(name.encode()), {"max_staleness_ms": 20}
    beside = next(
        n for n in (f"{name}{i}" for i in range(10**6)) if key_slot(n.encode()) == slot - 1
    )
    async with worker(cluster.url) as one, worker(cluster.url, **quick) as two:
        for model in (name, beside):
            await one.create(model)
            await two.open(model)
        for n in range(4):
            holder = cluster.primary_of(f"{{{name}}}")
            other = next(node for node in cluster.nodes if node is not holder)
            if at_once:
                where = ("SLOTSRANGE", slot, slot, "NODE", cluster.id_of(other))
                await asyncio.to_thread(holder.ask, "CLUSTER", "MIGRATESLOTS", *where)
                await until(functools.partial(_holds, cluster, name, other))
            else:
                await asyncio.to_thread(cluster.move, f"{{{name}}}", other)
            await one.learn(name, event(n))
            await asyncio.sleep(0.04)
            await two.open(beside)
            assert (await two.open(name)).log_events == n + 1


def _holds(cluster: Cluster, name: str, node: Node) -> bool:
    return cluster.primary_of(f"{{{name}}}") is node


def test_a_slot_half_moved_is_waited_for(cluster: Cluster, name: str) -> None:
    holder = cluster.primary_of(f"{{{name}}}")
    other = next(node for node in cluster.nodes if node is not holder)
    with Learning(cluster.url, name) as learning:
        learning.until_more()
        settle = cluster.begin_move(f"{{{name}}}", other)
        wait_until(lambda: 503 in learning.statuses, PATIENCE_S)
        settle()
        learning.until_more()
        learning.judge(other)


@pytest.mark.slow
def test_a_node_is_lost_under_learning(tmp_path: Path) -> None:
    with running(
        Cluster(tmp_path, binary("valkey"), replicas=True, node_timeout_ms=1_500)
    ) as cluster:
        holder = cluster.primary_of("{m}")
        heir = cluster.replica_of(holder)
        with Learning(cluster.url, "m") as learning:
            learning.until_more()
            holder.kill()
            wait_until(lambda: heir.info("replication")["role"] == "master", PATIENCE_S)
            learning.until_more()
            learning.judge(heir, resend=True)
            assert learning.statuses <= {200, 503}
