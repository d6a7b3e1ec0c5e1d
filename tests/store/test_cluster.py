"""Every script keeps to the keys it declares, all of one slot: so a cluster can hold a stream."""

import asyncio
import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest

from hinged_service.store import followers, snapshot_writer
from hinged_service.store.scripts import load
from tests.support.engine import event, fold_of, leaked_keys, stored_state, until, worker
from tests.support.redis_server import RedisServer, free_port

SCRIPTS = sorted(
    file.name.removesuffix(".lua")
    for file in resources.files("hinged_service").joinpath("lua").iterdir()
    if file.name.endswith(".lua") and file.read_text("utf-8").startswith("#!lua")
)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path / "redis")
    server.start("--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    with server.client() as client:
        client.execute_command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        asyncio.run(until(lambda: "cluster_state:ok" in _info(server)))
    yield server
    server.kill()


def _info(server: RedisServer) -> str:
    with server.client() as client:
        return str(client.execute_command("CLUSTER", "INFO"))


async def test_a_models_whole_life_in_a_cluster(cluster: RedisServer) -> None:
    async with worker(cluster.url) as one, worker(cluster.url) as two:
        await one.create("m")
        await one.create("other", stream="m")
        await one.learn("m", event(0), event(1))
        await one.save("m")
        await two.learn("other", event(2))
        live_model = await two.read("m")
        replica, keys = live_model.replica, live_model.keys
        whole = replica.take_snapshot(followers.Retention(None, 10**6), full=True)
        assert (await snapshot_writer.save_full(two.connection, keys, whole, 2)).became == "ok"
        held = [keys.on.meta, keys.on.followers]
        await two.connection.run(load("hold_snapshot"), held, keys.uid, 100)
        await followers.release(two.connection, keys.on, keys.uid)
        await one.housekeeping.sweep()
        with cluster.client() as client:
            assert stored_state(client) == fold_of(client)
            for name in ("m", "other"):
                await one.lifecycle.delete(name)
            assert leaked_keys(client) == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_up_a_key(name: str) -> None:
    code = re.sub(r"--.*", "", load(name).source)
    assert "hinged:" not in code
    assert not re.search(r"redis\.p?call\(\s*'\w+'\s*,\s*'", code), "a key written out"
    assert not re.search(r"redis\.p?call\(\s*'\w+'\s*,\s*[\w.\[\]]+\s*\.\.", code), (
        "a key put together"
    )


def test_there_are_scripts_to_look_at() -> None:
    assert {
        "append",
        "catch_up",
        "snapshot_changes",
        "snapshot_full",
        "index_compare_and_set",
    } <= set(SCRIPTS)
