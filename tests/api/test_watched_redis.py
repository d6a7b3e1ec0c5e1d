"""Policy, persistence and replication of Redis are watched while the service runs."""

import logging
from pathlib import Path

import httpx
import pytest
import redis

from hinged_service.engine import housekeeping
from tests.api.test_startup import check, pretending
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer, server_binaries
from tests.support.running import serving

SPEC = {"learner": {"type": "perceptron"}}


def gauge(client: httpx.Client, name: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(f"{name} ")))


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
def test_a_policy_that_evicts_the_log_is_told_at_once(
    own_server: RedisServer, own_db: redis.Redis, caplog: pytest.LogCaptureFixture, policy: str
) -> None:
    with serving(own_server.url) as client:
        assert client.get("/readyz").json() == {"status": "ready"}
        assert gauge(client, "hinged_redis_evicts") == 0
        own_db.config_set("maxmemory-policy", policy)
        answer = client.get("/readyz")
        assert answer.status_code == 503
        [fault] = answer.json()["errors"]
        assert fault["field"] == "redis"
        assert policy in fault["reason"]
        assert "noeviction" in fault["reason"]
        client.get("/readyz")
        logged = [r for r in caplog.records if policy in r.getMessage()]
        assert [r.levelno for r in logged] == [logging.ERROR]
        assert gauge(client, "hinged_redis_evicts") == 1
        own_db.config_set("maxmemory-policy", "volatile-lru")
        assert client.get("/readyz").status_code == 200
        assert gauge(client, "hinged_redis_evicts") == 0
        assert "keeps the whole log again" in caplog.text


def test_it_is_told_without_anybody_asking(
    own_server: RedisServer,
    own_db: redis.Redis,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(housekeeping, "_WATCH_S", 0.05)
    with serving(own_server.url, housekeeping_ms=10):
        own_db.config_set("maxmemory-policy", "allkeys-lru")
        wait_until(lambda: "allkeys-lru" in caplog.text)
        own_db.config_set("maxmemory-policy", "noeviction")
        wait_until(lambda: "keeps the whole log again" in caplog.text)


def test_an_append_only_file_that_is_switched_off(
    own_server: RedisServer, own_db: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    with serving(own_server.url) as client:
        client.get("/readyz")
        assert gauge(client, "hinged_redis_append_only") == 1
        own_db.config_set("appendonly", "no")
        answer = client.get("/readyz")
        assert answer.status_code == 200, "learning goes on"
        [warning] = answer.json()["warnings"]
        assert "Set appendonly yes" in warning
        assert "Set appendonly yes" in caplog.text
        assert gauge(client, "hinged_redis_append_only") == 0
        own_db.config_set("appendonly", "yes")
        assert client.get("/readyz").json() == {"status": "ready"}
        assert gauge(client, "hinged_redis_append_only") == 1


def test_a_replica_that_leaves(
    own_server: RedisServer,
    own_db: redis.Redis,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    own_db.config_set("repl-diskless-sync-delay", 0)
    replica = RedisServer(tmp_path / "replica")
    with replica, serving(own_server.url) as client, replica.client() as other:
        other.replicaof("127.0.0.1", own_server.port)
        wait_until(lambda: own_db.info("replication")["connected_slaves"] == 1)
        assert client.get("/readyz").json() == {"status": "ready"}
        assert gauge(client, "hinged_redis_replicas") == 1
        other.replicaof("NO", "ONE")
        wait_until(lambda: "warnings" in client.get("/readyz").json())
        assert client.get("/readyz").json()["warnings"] == ["Redis has 0 replicas; it had 1."]
        assert "it had 1" in caplog.text
        assert gauge(client, "hinged_redis_replicas") == 0
        other.replicaof("127.0.0.1", own_server.port)
        wait_until(lambda: client.get("/readyz").json() == {"status": "ready"})


def test_a_replica_that_takes_writes_is_not_fit(own_server: RedisServer, tmp_path: Path) -> None:
    with (
        RedisServer(tmp_path / "replica") as replica,
        replica.client() as store,
        serving(replica.url) as client,
    ):
        assert client.get("/readyz").status_code == 200
        store.config_set("replica-read-only", "no")
        store.replicaof("127.0.0.1", own_server.port)
        wait_until(lambda: "takes writes" in client.get("/readyz").text)
        assert client.get("/readyz").status_code == 503


@pytest.mark.parametrize("kind", list(server_binaries()))
def test_a_server_that_brings_back_torn_transactions_is_named_as_it_behaves(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = RedisServer(tmp_path / "redis", server_binaries()[kind], fsync="always")
    with server:
        with server.client() as store:
            store.set("before", 1)
            store.eval("redis.call('SET', 'torn', 1) redis.call('SET', 'torn2', 1)", 0)
        server.kill()
        [file] = (tmp_path / "redis" / "appendonlydir").glob("*.incr.aof")
        file.write_bytes(file.read_bytes()[:-6])  # within its EXEC
        server.start()
        with server.client() as store:
            assert store.get("torn") is None
            store.eval("redis.call('SET', 'after', 1) redis.call('SET', 'after2', 1)", 0)
        server.kill()
        server.start()
        with server.client() as store:
            brought_back = store.get("torn") is not None
            whole = not brought_back and store.get("after") == "1"
        with caplog.at_level(logging.WARNING):
            check(server.url)
        assert ("may bring back an append" in caplog.text) == (not whole)
        assert whole == (kind == "valkey")


@pytest.mark.parametrize(
    ("version", "tears"),
    [
        ("redis_version:7.0.15", True),
        ("redis_version:8.4.3", True),
        ("redis_version:7.2.4\r\nvalkey_version:7.2.14", True),
        ("redis_version:7.2.4\r\nvalkey_version:7.2.15", False),
        ("redis_version:7.2.4\r\nvalkey_version:8.0.10", True),
        ("redis_version:7.2.4\r\nvalkey_version:8.0.11", False),
        ("redis_version:7.2.4\r\nvalkey_version:8.1.9", True),
        ("redis_version:7.2.4\r\nvalkey_version:8.1.10", False),
        ("redis_version:7.2.4\r\nvalkey_version:9.0.5", True),
        ("redis_version:7.2.4\r\nvalkey_version:9.1.1", True),
        ("redis_version:7.2.4\r\nvalkey_version:9.1.2", False),
        ("redis_version:7.2.4\r\nvalkey_version:9.2.0", False),
        ("redis_version:7.2.4\r\nvalkey_version:9.2.0-rc1", False),
    ],
)
def test_versions_with_that_defect(
    version: str, tears: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with pretending(f"{version}\r\naof_enabled:1") as url, caplog.at_level(logging.WARNING):
        check(url)
    assert ("may bring back an append" in caplog.text) == tears
