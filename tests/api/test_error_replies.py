"""Any error of Redis: predictions go on, learning waits, and all comes back."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import redis

from hinged_service.store.transport.errors import OF_SERVER
from tests.support.checks import check_problem
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer, server_binaries
from tests.support.running import serving

SPEC = {"learner": {"type": "perceptron"}}
MODEL = "/v1/models/m"
EVENT: dict[str, Any] = {"x": {"a": 1}, "y": True}
QUICK: dict[str, Any] = {"append_timeout_ms": 300, "max_staleness_ms": 0, "housekeeping_ms": 50}

TEXTS = {
    "MOVED": "MOVED 1 127.0.0.1:1",
    "ASK": "ASK 1 127.0.0.1:1",
    "REDIRECT": "REDIRECT 127.0.0.1:1",
}
OTHERS = [
    "NEWWORD that no version of today knows",
    "ERR max number of clients reached",
    "ERR max number of clients + cluster connections reached",
    "ERR operation not permitted",
    "ERR invalid password",
    "ERR unknown command 'EVALSHA', with args beginning with: ",
    "ERR Error running script: @user_script:1: Script killed by user with SCRIPT KILL.",
    "ERR This instance has cluster support disabled",
    "ERR DB index is out of range",
    "WITHOUTASPACE",
]


def check_away(client: httpx.Client) -> None:
    """Learning is refused for a second, predictions come from memory, readyz names Redis."""
    refused = client.post(f"{MODEL}/learn", json=EVENT)
    check_problem(refused, 503)
    assert refused.headers["retry-after"] == "1", refused.text
    answer = client.post(f"{MODEL}/predict", json={"x": {"a": 1}})
    assert answer.status_code == 200, answer.text
    assert answer.json()["score"] == 2.0
    unready = client.get("/readyz")
    check_problem(unready, 503)
    assert [e["field"] for e in unready.json()["errors"]] == ["redis"]
    for status in (
        client.get("/v1/models").status_code,
        client.put("/v1/models/other", json=SPEC).status_code,
        client.post("/v1/models/never-open/predict", json={"x": {}}).status_code,
    ):
        assert status == 503


def check_back(client: httpx.Client, path: str = MODEL) -> None:
    wait_until(lambda: client.post(f"{path}/learn", json=EVENT).status_code == 200)
    question = {"x": {"a": 1}}
    wait_until(lambda: "stale_s" not in client.post(f"{path}/predict", json=question).json())
    wait_until(lambda: client.get("/readyz").status_code == 200)


def begin(client: httpx.Client) -> None:
    assert client.put(MODEL, json=SPEC).status_code == 201
    assert client.post(f"{MODEL}/learn", json=EVENT).status_code == 200


def test_no_error_reply_takes_predictions_away(proxy: Proxy) -> None:
    with serving(proxy.url, **QUICK) as client:
        begin(client)
        for text in [*(TEXTS.get(word, f"{word} as told") for word in OF_SERVER), *OTHERS]:
            proxy.error = text
            try:
                check_away(client)
            except AssertionError as error:
                raise AssertionError(f"after {text!r}") from error
            proxy.error = ""
            check_back(client)


@pytest.fixture(params=list(server_binaries()))
def server(request: pytest.FixtureRequest, tmp_path: Any) -> Iterator[RedisServer]:
    with RedisServer(tmp_path / "redis", server_binaries()[request.param]) as one:
        yield one


def kill_connections(store: Any) -> None:
    store.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


def set_password(store: Any) -> Callable[[], object]:
    store.config_set("requirepass", "secret")
    kill_connections(store)
    return lambda: store.config_set("requirepass", "")


def take_scripts_away(store: Any) -> Callable[[], object]:
    store.acl_setuser("default", enabled=True, commands=["-evalsha", "-eval"], reset=False)
    return lambda: store.acl_setuser("default", enabled=True, categories=["+@all"])


def take_a_command_of_scripts_away(store: Any) -> Callable[[], object]:
    store.execute_command("ACL", "SETUSER", "default", "-hget")
    return lambda: store.execute_command("ACL", "SETUSER", "default", "+@all")


def take_the_keys_away(store: Any) -> Callable[[], object]:
    store.execute_command("ACL", "SETUSER", "default", "resetkeys", "~other:*")
    return lambda: store.execute_command("ACL", "SETUSER", "default", "allkeys")


def fill(store: Any) -> Callable[[], object]:
    store.config_set("maxmemory", 1)
    return lambda: store.config_set("maxmemory", 0)


def want_replicas(store: Any) -> Callable[[], object]:
    store.config_set("min-replicas-to-write", 1)
    return lambda: store.config_set("min-replicas-to-write", 0)


def follow_a_silent_primary(store: Any) -> Callable[[], object]:
    store.config_set("replica-serve-stale-data", "no")
    store.replicaof("127.0.0.1", 1)
    return lambda: store.replicaof("NO", "ONE")


@pytest.mark.parametrize(
    "trouble",
    [
        set_password,
        take_scripts_away,
        take_a_command_of_scripts_away,
        take_the_keys_away,
        fill,
        want_replicas,
        follow_a_silent_primary,
    ],
)
def test_trouble_of_a_real_server_takes_no_predictions_away(
    server: RedisServer, trouble: Callable[[Any], Callable[[], object]]
) -> None:
    with serving(server.url, **QUICK) as client, server.client() as store:
        begin(client)
        end = trouble(store)
        for _ in range(2):
            refused = client.post(f"{MODEL}/learn", json=EVENT)
            check_problem(refused, 503)
            assert refused.headers["retry-after"] == "1", refused.text
            answer = client.post(f"{MODEL}/predict", json={"x": {"a": 1}})
            assert answer.status_code == 200, answer.text
        check_problem(client.get("/readyz"), 503)
        end()
        check_back(client)


@pytest.mark.parametrize("stopped", ["SCRIPT KILL", "by itself"])
def test_a_script_of_another_client_that_does_not_end(server: RedisServer, stopped: str) -> None:
    with serving(server.url, **QUICK) as client, server.client() as store:
        begin(client)
        store.config_set("busy-reply-threshold", 1)
        seconds = 30 if stopped == "SCRIPT KILL" else 2
        text = (
            "local function now() local t = redis.call('TIME') return t[1] + t[2] / 1e6 end "
            f"local began = now() while now() < began + {seconds} do end"
        )

        def run() -> None:
            with server.client() as other, contextlib.suppress(redis.ResponseError):  # killed
                other.eval(text, 0)

        running = threading.Thread(target=run)
        running.start()
        wait_until(lambda: client.get("/readyz").status_code == 503)
        answer = client.post(f"{MODEL}/predict", json={"x": {"a": 1}})
        assert answer.status_code == 200, answer.text
        if stopped == "SCRIPT KILL":
            store.script_kill()
        check_back(client)
        running.join()


def test_a_key_of_another_type_is_trouble_of_its_model_alone(own_server: RedisServer) -> None:
    with serving(own_server.url, **QUICK) as client, own_server.client() as store:
        begin(client)
        client.put("/v1/models/n", json=SPEC)
        store.delete("hinged:{n}:log")
        store.set("hinged:{n}:log", "no log")
        assert client.post("/v1/models/n/learn", json=EVENT).status_code == 503
        assert client.get("/readyz").status_code == 200
        check_back(client)
