"""`deploy/users.acl`: its users can do what they are for, and nothing else."""

import re
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
import redis

from hinged_service.follow import follow
from hinged_service.store.scripts import load
from tests.store.test_cluster import SCRIPTS
from tests.store.transport.workload import QUICK, clear, work
from tests.support.cluster import Cluster, Node
from tests.support.redis_server import RedisServer, server_binaries
from tests.support.running import serving
from tests.support.sentinel import SentinelTrio

ROOT = Path(__file__).parents[3]
PASSWORD = "not%a/secret?"
AS_HINGED = f"hinged:{'not%25a%2Fsecret%3F'}@"
BY_ITSELF = {
    *("eval", "evalsha", "eval_ro", "evalsha_ro"),
    *("hget", "hgetall", "hdel", "hscan", "xrange", "xrevrange", "xlen"),
    *("info", "ping", "role", "asking", "select", "cluster|slots", "cluster|info"),
    "client|tracking",
}
"""Commands that the service sends, to any form of Redis, and the probes of a container."""

IN_TROUBLE = {
    *("hold_snapshot", "release_follower", "upgrade"),
    *("index_replace_damaged", "note_damage", "repair_log", "repair_records", "read_snapshot"),
    "end_note",
}
"""Scripts that need a snapshot that moves, a broken model, another version, damage, a reader."""


def users_file() -> str:
    """Return what the file says, with a password."""
    return (ROOT / "deploy" / "users.acl").read_text("utf-8").replace("PASSWORD", PASSWORD)


def rights() -> list[list[str]]:
    """Return the name and the rules of each user but the default one."""
    lines = [line.split()[1:] for line in users_file().splitlines() if line.startswith("user ")]
    return [words for words in lines if words[0] != "default"]


def users(directory: Path) -> tuple[str, str]:
    """Return the option that gives a server these users, and one that may do anything."""
    text = users_file().replace("user default off", "user default on nopass ~* &* +@all")
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "users.acl").write_text(text)
    return "--aclfile", str(directory / "users.acl")


def login(url: str) -> str:
    """Return an address with the user and password of the service."""
    return url.replace("://", f"://{AS_HINGED}")


@pytest.fixture(params=sorted(server_binaries()))
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path / "redis", server_binaries()[request.param])
    server.start(*users(tmp_path))
    yield server
    server.kill()


def as_user(server: RedisServer, user: str) -> redis.Redis:
    return redis.Redis(
        port=server.port, username=user, password=PASSWORD, protocol=2, driver_info=None
    )


def refusals(client: redis.Redis) -> list[Any]:
    with client:
        found: list[Any] = client.acl_log()
        return found


def test_the_service_does_all_that_it_does_as_its_user(server: RedisServer) -> None:
    with serving(login(server.url), **QUICK) as client:
        work(client, as_user(server, "producer"), "m")
        with serving(login(server.url)) as second:
            assert second.get("/v1/models/m/weights").status_code == 200
        clear(client, "m")
    with server.client() as client_of_all:
        loaded: Any = client_of_all.script_exists(*(load(name).sha for name in SCRIPTS))
    unused = {name for name, used in zip(SCRIPTS, loaded, strict=True) if not used}
    assert unused <= IN_TROUBLE, "these scripts were not tried"
    assert refusals(server.client()) == []


def test_a_right_too_few_is_told(server: RedisServer) -> None:
    with server.client() as client_of_all:
        client_of_all.acl_setuser("hinged", enabled=True, commands=["-hset"])
    with serving(login(server.url)) as client:
        made = client.put("/v1/models/m", json={"learner": {"type": "perceptron"}})
    assert made.status_code == 503
    assert made.json()["detail"].startswith("Redis refuses the user or the password")


@pytest.fixture
def known_to(trio: SentinelTrio, cluster: Cluster) -> Iterator[list[Node]]:
    """The servers of both, which know the users for the time of one test."""
    servers: list[Node] = [*trio.servers, *cluster.nodes]
    for server in servers:
        server.ask("ACL", "LOG", "RESET")
        for name, *rules in rights():
            server.ask("ACL", "SETUSER", name, *rules)
    yield servers
    for server in servers:
        server.ask("ACL", "DELUSER", *(name for name, *_ in rights()))


def test_behind_sentinels_and_in_a_cluster_too(
    trio: SentinelTrio, cluster: Cluster, known_to: list[Node], name: str
) -> None:
    holder = cluster.primary_of(f"{{{name}}}")
    for url, node in ((trio.url, trio.servers[0]), (cluster.url, holder)):
        with serving(login(url), **QUICK) as client:
            work(client, as_user(node, "producer"), name)
            with follow(login(url).replace("hinged:", "follower:"), name) as model:
                assert model.status == "live"
            clear(client, name)
    for server in known_to:
        assert refusals(server.client()) == []


def test_the_user_of_the_service_has_no_right_too_many() -> None:
    line = next(
        line
        for line in (ROOT / "deploy" / "users.acl").read_text("utf-8").splitlines()
        if line.startswith("user hinged ")
    )
    commands = {word[1:] for word in line.split() if word.startswith("+")}
    in_scripts = {
        name.lower()
        for file in resources.files("hinged_service").joinpath("lua").iterdir()
        for name in re.findall(r"redis\.p?call\(\s*'(\w+)'", file.read_text("utf-8"))
    }
    in_scripts = (in_scripts - {"xinfo"}) | {"xinfo|stream"}
    assert commands == in_scripts | BY_ITSELF
    assert "@" not in line.replace("-@all", "")


@pytest.mark.parametrize(
    "command",
    [
        "FLUSHALL",
        "FLUSHDB",
        "KEYS *",
        "SCAN 0",
        "CONFIG GET requirepass",
        "DEBUG SLEEP 0",
        "SHUTDOWN",
        "MONITOR",
        "SCRIPT FLUSH",
        "ACL LIST",
        "CLIENT LIST",
        "CLUSTER RESET",
        "PUBLISH hinged:models x",
        "GET hinged:models",
        "HGET other f",
        "HSET other f v",
        "DEL hinged:models other",
        "EVAL return(1) 1 other",
        "EVAL return(redis.call('FLUSHALL')) 0",
        "EVAL return(redis.call('HGETALL','other')) 0",
    ],
)
def test_what_the_user_of_the_service_may_not(shared: RedisServer, command: str) -> None:
    with as_user(shared, "hinged") as client, pytest.raises(redis.ResponseError) as refused:
        client.execute_command(*command.split(" "))
    assert re.search("NOPERM|permission|can't run this command|ACL failure", str(refused.value))


def test_a_producer_writes_into_inboxes_only(shared: RedisServer) -> None:
    with as_user(shared, "producer") as client:
        assert client.xadd("hinged:{m}:inbox", {"event": "{}"})
        for key in ("hinged:{m}:log", "other"):
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.xadd(key, {"event": "{}"})
        for command in ("XRANGE hinged:{m}:inbox - +", "DEL hinged:{m}:inbox", "FLUSHALL"):
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.execute_command(*command.split(" "))


def test_a_follower_reads_only(shared: RedisServer) -> None:
    with as_user(shared, "follower") as client:
        assert client.xrange("hinged:{m}:log") == []
        assert client.execute_command("EVAL_RO", "return 1", 1, "hinged:models") == 1
        for command in (
            "HSET hinged:models m x",
            "HDEL hinged:models m",
            "XADD hinged:{m}:log * event {}",
            "XADD hinged:{m}:inbox * event {}",
            "DEL hinged:models",
            "EVAL return(1) 1 hinged:models",
            "EVAL_RO return(redis.call('DEL',KEYS[1])) 1 hinged:models",
            "HGETALL other",
            "KEYS *",
        ):
            with pytest.raises(redis.ResponseError):
                client.execute_command(*command.split(" "))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    directory = tmp_path_factory.mktemp("users")
    server = RedisServer(directory / "redis")
    server.start(*users(directory))
    yield server
    server.kill()
