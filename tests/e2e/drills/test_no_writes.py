"""Redis answers, but takes no writes: its memory or disk is full, or its replicas are away."""

from __future__ import annotations

import resource
import time

import httpx
import pytest

from tests.e2e.drills.drill import Drill
from tests.e2e.drills.fleet import Fleet
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.slow

_NO_LIMIT = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
_ROOM = 4096


def test_a_redis_whose_memory_is_full(fleet: Fleet, drill: Drill) -> None:
    _refused_by_setting(fleet, drill, "maxmemory", "1", "memory full", "OOM")


def test_a_redis_that_misses_its_replicas(fleet: Fleet, drill: Drill) -> None:
    name = "min-replicas-to-write"
    _refused_by_setting(fleet, drill, name, "1", "replicas away", "NOREPLICAS")


def _refused_by_setting(
    fleet: Fleet, drill: Drill, setting: str, value: str, name: str, word: str
) -> None:
    with drill.load() as load, fleet.server.client() as client:
        client.config_set(setting, value)
        load.until_refused(10)
        _expect_predictions_only(drill)
        assert load.trouble["503"]
        client.config_set(setting, "0")
        recover_s = load.recovered(time.monotonic())
        load.until_more()
    done = f"{setting} {value}: every write answered {word}; predictions go on; then 0"
    drill.judge(name, done, load, recover_s)


def test_a_full_disk(fleet: Fleet, drill: Drill) -> None:
    server = fleet.server
    with drill.load() as load:
        _rewrite(server)
        _limit_files(server)
        load.until_refused(10)
        _expect_predictions_only(drill)
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, _NO_LIMIT)
        recover_s = load.recovered(time.monotonic())
        # A server that rewrote its file since it started leaves a hole in it where a write ended
        # too early, and cannot read it again: so it has to be rewritten once there is room.
        _rewrite(server)
        load.until_more()
        with server.client() as client:  # so that it holds nothing back when it dies
            client.config_set("appendfsync", "always")
        load.until_more(20)
        server.kill()
        server.start()
        load.until_more()
    assert load.trouble["503"]
    done = (
        "writes to the append-only file fail: MISCONF; predictions go on; then there is room, "
        "BGREWRITEAOF, and kill -9"
    )
    drill.judge("disk full, appendfsync everysec", done, load, recover_s)


def test_a_full_disk_that_ends_redis(fleet: Fleet, drill: Drill) -> None:
    server = fleet.server
    server.fsync = "always"
    with server.client() as client:
        client.config_set("appendfsync", "always")
    with drill.load() as load:
        _limit_files(server)
        wait_until(lambda: not server.alive)
        load.until_refused(10)
        server.start()
        recover_s = load.recovered(time.monotonic())
        load.until_more()
    done = "Redis gives up at the first failed write; started again when there is room"
    drill.judge("disk full, appendfsync always", done, load, recover_s)


def _expect_predictions_only(drill: Drill) -> None:
    for worker in drill.workers:
        answer = httpx.post(
            f"{worker.url}{drill.path}/predict", json={"x": {"a": 1}}, timeout=10, verify=False
        )
        assert answer.status_code == 200, answer.text
        assert httpx.get(f"{worker.url}/healthz", timeout=10, verify=False).status_code == 200
        assert httpx.get(f"{worker.url}/readyz", timeout=10, verify=False).status_code == 503


def _rewrite(server: RedisServer) -> None:
    with server.client() as client:
        client.bgrewriteaof()

        def done() -> bool:
            about = client.info("persistence")
            running = about["aof_rewrite_in_progress"] or about["aof_rewrite_scheduled"]
            return not running and about["aof_last_bgrewrite_status"] == "ok"

        wait_until(done, 60)


def _limit_files(server: RedisServer) -> None:
    files = (server.directory / "appendonlydir").glob("*.incr.aof")
    size = max(file.stat().st_size for file in files) + _ROOM
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
