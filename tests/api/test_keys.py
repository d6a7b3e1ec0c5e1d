"""API keys: the rights of each; a refusal tells no more than that it is one."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hinged_service.api.api_keys import Keys, Right, Scope, needed, new_key
from hinged_service.errors import StartupError
from hinged_service.settings import Settings
from tests.support.redis_server import RedisServer
from tests.support.service import Service

SPEC = {"learner": {"type": "perceptron"}}
EVENT = {"x": {"a": 1}, "y": True}


def made(*keys: tuple[str, tuple[Scope, ...], tuple[str, ...]]) -> tuple[dict[str, str], str]:
    keys_by_name, records = {}, []
    for name, scopes, models in keys:
        keys_by_name[name], record = new_key(name, scopes, models)
        records.append(record.model_dump(mode="json"))
    return keys_by_name, json.dumps(records)


@pytest.fixture
def guarded(own_server: RedisServer) -> Iterator[dict[str, httpx.Client]]:
    keys_by_name, records = made(
        ("root", ("predict", "learn", "admin"), ("*",)),
        ("reader", ("predict",), ("spam*",)),
        ("teacher", ("learn",), ("spam",)),
        ("owner", ("predict", "learn", "admin"), ("a*",)),
    )
    settings: dict[str, Any] = {"keys": records}
    with Service(own_server.url, **settings) as service, service.client() as keyless:
        clients = {"keyless": keyless}
        for name, key in keys_by_name.items():
            clients[name] = service.client()
            clients[name].headers["authorization"] = f"Bearer {key}"
        assert clients["root"].put("/v1/models/spam", json=SPEC).status_code == 201
        yield clients
        for client in clients.values():
            client.close()


CALLS = [
    ("POST", "/v1/models/spam/predict", {"x": {}}, {"root", "reader"}),
    ("POST", "/v1/models/spam/learn", EVENT, {"root", "teacher"}),
    ("GET", "/v1/models/spam", None, {"root", "reader"}),
    ("GET", "/v1/models/spam/weights", None, {"root", "reader"}),
    ("POST", "/v1/models/spam/explain", {"x": {}}, {"root", "reader"}),
    ("PUT", "/v1/models/spam", SPEC, {"root"}),
    ("POST", "/v1/models/spam/freeze", None, {"root"}),
    ("POST", "/v1/models/spam/upgrade", None, {"root"}),
    ("POST", "/v1/models/spam/repair", None, {"root"}),
    ("GET", "/v1/streams", None, {"root"}),
    ("PUT", "/v1/aliases/live", {"model": "spam"}, {"root"}),
    ("DELETE", "/v1/models/spam/checkpoints/none", None, {"root"}),
]


@pytest.mark.parametrize(("method", "path", "body", "allowed"), CALLS)
def test_each_call_needs_its_scope_and_its_model(
    guarded: dict[str, httpx.Client], method: str, path: str, body: Any, allowed: set[str]
) -> None:
    for name, client in guarded.items():
        answer = client.request(method, path, json=body)
        if name in allowed:
            assert answer.status_code not in (401, 403), answer.text
            continue
        assert answer.status_code == (401 if name == "keyless" else 403), answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        if name == "keyless":
            assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer x",
        "Bearer hinged_root_",
        "Bearer hinged_root_wrong",
        "Bearer hinged_keyless_x",
        "Basic aGk6aGk=",
        "Bearer " + "x" * 5_000,
        "Bearer hinged_root_\xff",
    ],
)
def test_a_wrong_key_is_refused_and_changes_nothing(
    guarded: dict[str, httpx.Client], header: str
) -> None:
    answer = guarded["keyless"].post(
        "/v1/models/spam/learn", json=EVENT, headers={b"authorization": header.encode("latin-1")}
    )
    assert answer.status_code == 401
    assert guarded["root"].get("/v1/models/spam").json()["events"] == 0


def test_health_needs_no_key(guarded: dict[str, httpx.Client]) -> None:
    assert guarded["keyless"].get("/healthz").status_code == 200
    assert guarded["keyless"].get("/readyz").status_code == 200


def test_a_key_for_some_models_reaches_no_other_through_them(
    guarded: dict[str, httpx.Client],
) -> None:
    owner = guarded["owner"]
    assert owner.put("/v1/models/a1", json=SPEC).status_code == 201
    assert owner.put("/v1/models/a2", json={**SPEC, "stream": "spam"}).status_code == 403
    assert owner.put("/v1/models/a2", json={**SPEC, "start": {"model": "spam"}}).status_code == 403
    assert owner.post("/v1/models/a1/replay", json={"name": "b"}).status_code == 403
    assert [m["name"] for m in owner.get("/v1/models").json()] == ["a1"]
    assert {m["name"] for m in guarded["root"].get("/v1/models").json()} == {"a1", "spam"}


def test_every_answer_says_what_it_is_and_is_not_kept(guarded: dict[str, httpx.Client]) -> None:
    root = guarded["root"]
    for answer in (
        root.get("/v1/models"),
        root.get("/v1/models/none"),
        root.post("/v1/models/spam/predict", json={"x": {}}),
        root.post("/v1/models/spam/predict", content=b"{"),
        guarded["keyless"].get("/v1/models"),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


def test_the_stored_form_of_a_key_does_not_hold_it(tmp_path: Path) -> None:
    keys_by_name, records = made(("one", ("predict",), ("*",)))
    assert keys_by_name["one"].rpartition("_")[2] not in records
    file = tmp_path / "keys.json"
    file.write_text(records)
    keys = Keys.load(file, None)
    assert keys is not None
    assert keys.identify(f"bearer {keys_by_name['one']}".encode()).name == "one"


@pytest.mark.parametrize("text", ["", "{}", "[{}]", "[1]", '[{"name":"a b"}]'])
def test_keys_that_cannot_be_read_stop_the_start(text: str, tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text(text)
    with pytest.raises(StartupError, match="keys"):
        Keys.load(file, None)
    with pytest.raises(StartupError, match="HINGED_KEYS"):
        Keys.load(None, text)
    with pytest.raises(StartupError, match=r"missing\.json"):
        Keys.load(tmp_path / "missing.json", None)


def test_without_keys_no_caller_is_asked() -> None:
    settings = Settings()
    assert Keys.load(settings.keys_file, settings.keys) is None


def test_two_keys_of_one_name_stop_the_start() -> None:
    _, records = made(("a", ("predict",), ("*",)), ("a", ("learn",), ("*",)))
    with pytest.raises(StartupError, match="Two API keys"):
        Keys.load(None, records)


@pytest.mark.parametrize(
    ("method", "path", "right"),
    [
        ("GET", "/healthz", None),
        ("GET", "/v2/health/ready", None),
        ("GET", "/docs", None),
        ("GET", "/metrics", Right("predict", None)),
        ("GET", "/", None),
        ("GET", "/page/main.js", None),
        ("POST", "/pages", Right("admin", None)),
        ("POST", "/v2/models/m/infer", Right("predict", "m")),
        ("POST", "/v1/models/m/learn", Right("learn", "m")),
        ("POST", "/v1/models/m/import", Right("admin", "m")),
        ("DELETE", "/v1/models/m", Right("admin", "m")),
        ("POST", "/v1/aliases/a/promote", Right("admin", "a")),
        ("GET", "/v1/aliases", Right("predict", None)),
        ("POST", "/v1/models/learn", Right("admin", "learn")),
        ("GET", "/healthz/x", None),
    ],
)
def test_rights_of_paths(method: str, path: str, right: Right | None) -> None:
    assert needed(method, path) == right
