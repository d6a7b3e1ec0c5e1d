"""Alive and ready: what each says when Redis is away, takes no writes or stands still."""

import signal
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from hinged import kernel
from tests.cli.conftest import run_hinged
from tests.support.checks import check_problem
from tests.support.machine_clock import Clock
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.running import serving
from tests.support.service import Service

SPEC = {"learner": {"type": "perceptron"}}


def not_ready(client: httpx.Client, part: str, reason: str) -> None:
    """The answer says which part is not ready and why; the worker is alive all the same."""
    answer = client.get("/readyz")
    check_problem(answer, 503)
    assert int(answer.headers["retry-after"]) >= 1
    found = {e["field"]: e["reason"] for e in answer.json()["errors"]}
    assert found.keys() == {part}
    assert reason in found[part], found
    assert client.get("/v2/health/ready").status_code == 503
    assert client.get("/healthz").json() == {"status": "alive", "kernel": kernel.kind()}


def ready(client: httpx.Client) -> bool:
    codes = {client.get(path).status_code for path in ("/readyz", "/v2/health/ready")}
    return codes == {200}


def test_a_redis_that_is_gone(own_server: RedisServer) -> None:
    with serving(own_server.url) as client:
        assert ready(client)
        own_server.kill()
        not_ready(client, "redis", "does not answer")
        own_server.start()
        wait_until(lambda: ready(client))


def test_a_replica_takes_no_writes(own_server: RedisServer, tmp_path: Path) -> None:
    other = RedisServer(tmp_path / "other")
    other.start()
    try:
        with serving(own_server.url) as client, own_server.client() as store:
            assert ready(client)
            store.replicaof("127.0.0.1", other.port)
            wait_until(lambda: client.get("/readyz").status_code == 503)
            not_ready(client, "redis", "takes no writes: ")
            store.replicaof("NO", "ONE")
            wait_until(lambda: ready(client))
    finally:
        other.kill()


def test_a_full_redis_takes_no_writes(own_server: RedisServer) -> None:
    with serving(own_server.url) as client, own_server.client() as store:
        store.config_set("maxmemory", 1)
        not_ready(client, "redis", "takes no writes: ")
        store.config_set("maxmemory", 0)
        assert ready(client)


def test_a_redis_that_cannot_save_takes_no_writes(tmp_path: Path) -> None:
    server = RedisServer(tmp_path / "redis")
    (tmp_path / "redis" / "dump.rdb" / "in-the-way").mkdir(parents=True)
    server.start("--save", "3600 1000000")
    try:
        with serving(server.url) as client, server.client() as store:
            assert ready(client)
            store.bgsave()
            wait_until(lambda: store.info("persistence")["rdb_last_bgsave_status"] == "err")
            not_ready(client, "redis", "takes no writes: ")
            store.config_set("stop-writes-on-bgsave-error", "no")
            assert ready(client)
    finally:
        server.kill()


def test_a_redis_without_its_replicas_takes_no_writes(own_server: RedisServer) -> None:
    with serving(own_server.url) as client, own_server.client() as store:
        store.config_set("min-replicas-to-write", 1)
        not_ready(client, "redis", "takes no writes: ")


@pytest.mark.alone
def test_a_redis_that_stands_still_is_told_within_a_second(
    own_server: RedisServer, clock: Clock
) -> None:
    bounded: dict[str, Any] = {"redis_timeout_ms": 800}
    with serving(own_server.url, **bounded) as client:
        assert ready(client)
        own_server.signal(signal.SIGSTOP)
        try:
            for path, status, most_s in (("/readyz", 503, 1.0), ("/healthz", 200, 0.5)):
                began_s = clock()
                assert client.get(path).status_code == status
                assert clock() - began_s < most_s, path
            not_ready(client, "redis", "does not answer")
        finally:
            own_server.signal(signal.SIGCONT)
        wait_until(lambda: ready(client))


def test_a_redis_of_the_wrong_kind_that_came_later(tmp_path: Path) -> None:
    server = RedisServer(tmp_path / "redis")
    with serving(server.url) as client:
        not_ready(client, "redis", "does not answer")
        server.start("--maxmemory-policy", "allkeys-lru")
        try:
            wait_until(lambda: "allkeys-lru" in client.get("/readyz").text)
            not_ready(client, "redis", "would evict the event log")
            with server.client() as store:
                store.config_set("maxmemory-policy", "noeviction")
            assert ready(client)
        finally:
            server.kill()


def test_no_answer_shows_the_address_or_its_password(
    own_server: RedisServer, own_db: redis.Redis
) -> None:
    own_db.config_set("requirepass", "the-secret")
    url = own_server.url.replace("//", "//:wrong-guess@")
    with serving(url) as client:
        text = client.get("/readyz").text
        assert "refuses the user or the password" in text
        for hidden in ("the-secret", "wrong-guess", str(own_server.port), "127.0.0.1"):
            assert hidden not in text


def test_a_worker_told_to_stop_is_not_ready(own_server: RedisServer) -> None:
    with Service(own_server.url) as service, service.client() as client:
        assert ready(client)
        service.app.state.registry.stopping.begin()  # what the handler of the signal calls
        not_ready(client, "worker", "is stopping")


def test_it_is_ready_when_what_was_to_be_loaded_is(own_server: RedisServer, proxy: Proxy) -> None:
    with Service(own_server.url) as service, service.client() as client:
        client.put("/v1/models/m", json=SPEC)
        client.post("/v1/models/m/learn", json={"x": {"a": 1}, "y": True})
        client.put("/v1/aliases/live", json={"model": "m"})
    proxy.refuse = True
    names: dict[str, Any] = {"preload": "m, live ,never-made"}
    with Service(proxy.url, **names) as service, service.client() as client:
        reasons = {e["field"]: e["reason"] for e in client.get("/readyz").json()["errors"]}
        assert reasons.keys() == {"models", "redis"}
        assert "live, m, never-made" in reasons["models"]
        proxy.refuse = False
        wait_until(lambda: ready(client))
        assert [a.name for a in service.app.state.registry._live.values()] == ["m"]
        assert client.post("/v1/models/m/predict", json={"x": {"a": 1}}).json()["score"] == 2.0


def test_serving_from_a_wrong_redis_ends_at_once_in_plain_words(tmp_path: Path) -> None:
    server = RedisServer(tmp_path / "redis")
    server.start("--maxmemory-policy", "allkeys-lru")
    try:
        ended = run_hinged("serve", "--port", "0", HINGED_REDIS_URL=server.url)
    finally:
        server.kill()
    output = ended.out + ended.err
    assert ended.code == 1, output
    assert "maxmemory-policy allkeys-lru" in output
    assert "set it to noeviction" in output
    assert "Traceback" not in output
