"""Keys for some models reach nothing else: by no route, alias, checkpoint, stream or drift."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from starlette.routing import Route

from hinged_service.api.api_keys import new_key
from hinged_service.app import create_app
from hinged_service.settings import Settings
from tests.support.redis_server import RedisServer
from tests.support.service import Service

LEARNER = {"type": "perceptron"}
SPEC: dict[str, Any] = {"learner": LEARNER}
EVENT = {"x": {"a": 1.0}, "y": True}


def drift(alias: str) -> dict[str, Any]:
    action = {"promote": {"alias": alias}}
    return {"drift": {"detector": {"type": "DDM"}, "action": action}}


class Scene:
    """A service with models `a-3` and `b-3` on one stream and `b-secret` on its own.

    The alias `live` is `a-3`, `a-secret` and `a-out` are `b-secret` and `b-3`. Both models on
    the stream have a checkpoint of their name. `a` has a key for `a-*`, `root` for all.
    """

    def __init__(self, service: Service, keys: dict[str, str]) -> None:
        self.root, self.a, self.keyless = (service.client() for _ in range(3))
        self.root.headers["authorization"] = f"Bearer {keys['root']}"
        self.a.headers["authorization"] = f"Bearer {keys['a']}"
        self.done("PUT", "/v1/models/a-3", SPEC)
        self.done("PUT", "/v1/models/b-3", {**SPEC, "stream": "a-3"})
        self.done("PUT", "/v1/models/b-secret", SPEC)
        for alias, model in (("live", "a-3"), ("a-out", "b-3"), ("a-secret", "b-secret")):
            self.done("PUT", f"/v1/aliases/{alias}", {"model": model})
        for model in ("a-3", "b-3", "b-secret"):
            self.done("POST", f"/v1/models/{model}/learn", EVENT)
            self.done("POST", f"/v1/models/{model}/checkpoints", {"name": model})
        self.position = self.done("GET", "/v1/models/b-secret")["position"]
        of_a = "/v1/models/a-3/checkpoints/a-3/export"
        self.exported: dict[str, Any] = self.done("GET", of_a)

    def done(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.root.request(method, path, json=body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def everything(self) -> Any:
        """Return all that a key could have changed."""
        found = [self.done("GET", path) for path in ("/v1/models", "/v1/aliases", "/v1/streams")]
        for model in ("a-3", "b-3", "b-secret"):
            state = self.done("GET", f"/v1/models/{model}")
            found.append({k: v for k, v in state.items() if k not in ("stale_s", "snapshot")})
            found.append(self.done("GET", f"/v1/models/{model}/weights"))
            found.append(self.done("GET", f"/v1/models/{model}/checkpoints"))
        return found


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    keys, records = {}, []
    for name, models in (("root", ("*",)), ("a", ("a-*",))):
        keys[name], record = new_key(name, ("predict", "learn", "admin"), models)
        records.append(record.model_dump(mode="json"))
    with RedisServer(tmp_path_factory.mktemp("reach")) as server:
        settings: dict[str, Any] = {"keys": json.dumps(records), "max_staleness_ms": 1}
        with Service(server.url, **settings) as service:
            made = Scene(service, keys)
            yield made
            for client in (made.root, made.a, made.keyless):
                client.close()


def routes() -> list[tuple[str, str]]:
    found = []
    for route in create_app(Settings()).routes:
        assert isinstance(route, Route), f"say here how keys hold for {route}"
        found += [(method, route.path) for method in sorted(route.methods or ())]
    return sorted(set(found))


ROUTES = routes()
NAMED = [(m, p) for m, p in ROUTES if "{model}" in p or "{alias}" in p]
OTHERS = [route for route in ROUTES if route not in NAMED]
TENSORS = {"inputs": [{"name": "a", "shape": [1], "datatype": "FP64", "data": [1.0]}]}
BODIES: dict[str, Any] = {
    "predict": {"x": {}},
    "learn": EVENT,
    "explain": {"x": {}},
    "infer": TENSORS,
    "configure": {"set": {"learning_rate": 0.5}},
    "restore": {"checkpoint": "b-secret"},
    "checkpoints": {},
    "replay": {"name": "a-9"},
    "promote": {"from": "a-3", "to": "a-3"},
    "{model}": SPEC,
    "{alias}": {"model": "a-3"},
}
TAKEN = {
    ("PUT", "/v1/models/{model}"),
    ("DELETE", "/v1/models/{model}"),
    ("POST", "/v1/models/{model}/import"),
}
"""Calls that only see that the name is an alias."""
FOR_ALL = {"/v1/models", "/v1/overview"}
"""Lists in which each key sees its own."""
FREE = {
    *("/", "/page/{path:path}", "/healthz", "/readyz"),
    *("/docs", "/docs/oauth2-redirect", "/redoc", "/openapi.json"),
    *("/v2", "/v2/health/live", "/v2/health/ready"),
}


def test_there_are_routes() -> None:
    assert len(NAMED) > 30
    assert {p for _, p in OTHERS} > FREE | FOR_ALL


@pytest.mark.parametrize(("method", "path"), NAMED)
@pytest.mark.parametrize("name", ["b-secret", "a-secret", "live"])
def test_a_key_reaches_no_other_model(scene: Scene, method: str, path: str, name: str) -> None:
    """By its name, by an alias that fits the key, nor its own one by an alias that does not."""
    before = scene.everything()
    last = path.rpartition("/")[2]
    body = scene.exported if last == "import" else BODIES.get(last)
    at = path.replace("{model}", name).replace("{alias}", name).replace("{version}", scene.position)
    at = at.replace("{checkpoint}", "b-secret")
    assert "{" not in at, "a new part of a path: say here what it may be"
    answer = scene.a.request(method, at, json=body)
    taken = name == "a-secret" and (method, path) in TAKEN
    assert answer.status_code == (409 if taken else 403), answer.text
    assert name == "b-secret" or "b-secret" not in answer.text
    assert scene.keyless.request(method, at, json=body).status_code == 401
    assert scene.everything() == before


@pytest.mark.parametrize(("method", "path"), OTHERS)
def test_calls_about_no_single_model_are_for_keys_for_all(
    scene: Scene, method: str, path: str
) -> None:
    at = path.replace("{path:path}", "main.js").replace("{stream}", "a-3")
    answer, unknown = (c.request(method, at) for c in (scene.a, scene.keyless))
    if path in FREE:
        assert answer.status_code == unknown.status_code == 200
    else:
        assert unknown.status_code == 401
        assert answer.status_code == (200 if path in FOR_ALL else 403)
    assert "b-" not in answer.text or path in FREE


@pytest.mark.parametrize("called", ["b-3", "uid"])
def test_a_checkpoint_is_of_its_model_not_of_the_stream(scene: Scene, called: str) -> None:
    listed = scene.done("GET", "/v1/models/a-3/checkpoints")
    assert {c["model"] for c in listed} == {"a-3", "b-3"}
    uid = next(c["uid"] for c in listed if c["model"] == "b-3")
    name = uid if called == "uid" else called
    before = scene.everything()
    seen = scene.a.get("/v1/models/a-3/checkpoints")
    assert {c["model"] for c in seen.json()} == {"a-3"}
    start = {"model": "a-3", "checkpoint": name}
    for method, path, body in [
        *((m, p, None) for m, p in NAMED if "{checkpoint}" in p),
        ("POST", "/v1/models/{model}/restore", {"checkpoint": name}),
        ("POST", "/v1/models/{model}/replay", {"name": "a-9", "checkpoint": name}),
        ("PUT", "/v1/models/a-9", {**SPEC, "start": start}),
    ]:
        at = path.replace("{model}", "a-3").replace("{checkpoint}", name)
        answer = scene.a.request(method, at, json=body)
        assert answer.status_code == 403, (method, at, answer.text)
        assert called == "b-3" or "b-3" not in answer.text
    assert scene.everything() == before


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/v1/models/a-9", {**SPEC, "stream": "b-secret"}),
        ("PUT", "/v1/models/a-9", {**SPEC, "start": {"model": "b-3"}}),
        ("PUT", "/v1/models/a-9", {**SPEC, "start": {"model": "a-out"}}),
        ("PUT", "/v1/models/a-9", {**SPEC, "start": {"model": "live"}}),
        ("PUT", "/v1/models/a-9", {**SPEC, **drift("live")}),
        ("PUT", "/v1/models/a-9", {**SPEC, "stream": "a-3", **drift("live")}),
        ("PUT", "/v1/models/a-9", {**SPEC, "stream": "a-3", **drift("a-new")}),
        ("PUT", "/v1/models/a-9", {**SPEC, "start": {"model": "a-3"}, **drift("a-new")}),
        ("POST", "/v1/models/a-3/replay", {"name": "b-9"}),
        ("POST", "/v1/models/a-out/replay", {"name": "a-9"}),
        ("PUT", "/v1/aliases/a-new", {"model": "b-3"}),
        ("PUT", "/v1/aliases/new", {"model": "a-3"}),
        ("PUT", "/v1/aliases/a-out", {"model": "a-3"}),
        ("POST", "/v1/aliases/a-out/promote", {"from": "a-3", "to": "a-3"}),
        ("POST", "/v1/aliases/a-out/promote", {"from": "b-3", "to": "a-3"}),
        ("POST", "/v1/aliases/live/promote", {"from": "a-3", "to": "b-3"}),
        ("POST", "/v1/models/a-9/import", "drift"),
    ],
)
def test_a_body_names_nothing_out_of_reach(scene: Scene, method: str, path: str, body: Any) -> None:
    if body == "drift":
        scene.done("PUT", "/v1/models/drifts", {**SPEC, **drift("live")})
        scene.done("POST", "/v1/models/drifts/checkpoints", {"name": "c"})
        body = scene.done("GET", "/v1/models/drifts/checkpoints/c/export")
        scene.done("DELETE", "/v1/models/drifts")
    before = scene.everything()
    answer = scene.a.request(method, path, json=body)
    assert answer.status_code == 403, answer.text
    assert scene.everything() == before


def test_a_model_on_a_stream_out_of_reach_makes_no_other_there(scene: Scene) -> None:
    scene.done("PUT", "/v1/models/a-guest", {**SPEC, "stream": "b-secret"})
    scene.done("PUT", "/v1/models/a-drifts", {**SPEC, **drift("live")})
    scene.done("PUT", "/v1/aliases/a-means", {"model": "a-guest"})
    for path, body in [
        ("/v1/models/a-9", {**SPEC, "start": {"model": "a-guest"}}),
        ("/v1/models/a-9", {**SPEC, "start": {"model": "a-means"}}),
    ]:
        assert scene.a.put(path, json=body).status_code == 403
    for model in ("a-guest", "a-means", "a-drifts"):  # the last one's copy would promote, too
        assert scene.a.post(f"/v1/models/{model}/replay", json={"name": "a-9"}).status_code == 403
    assert scene.a.get("/v1/models/a-9").status_code == 404
    for path in ("aliases/a-means", "models/a-guest", "models/a-drifts"):
        scene.done("DELETE", f"/v1/{path}")


def test_a_key_does_with_its_own_what_it_may(scene: Scene) -> None:
    """The same calls within its reach are carried out."""
    a = scene.a

    def ok(method: str, path: str, body: Any = None) -> Any:
        answer = a.request(method, path, json=body)
        assert answer.is_success, (path, answer.text)
        return answer.json() if answer.content else None

    ok("PUT", "/v1/models/a-5", {**SPEC, **drift("a-live")})
    ok("PUT", "/v1/aliases/a-live", {"model": "a-5"})
    ok("POST", "/v1/models/a-live/learn", [EVENT, {"x": {"b": 1.0}, "y": False}])
    ok("POST", "/v1/models/a-live/checkpoints", {"name": "one"})
    document = ok("GET", "/v1/models/a-live/checkpoints/one/export")
    ok("POST", "/v1/models/a-live/restore", {"checkpoint": "one"})
    ok("POST", "/v1/models/a-live/replay", {"name": "a-6"})
    start = {"model": "a-live", "checkpoint": "one"}
    ok("PUT", "/v1/models/a-7", {**SPEC, **drift("a-live"), "start": start})
    ok("POST", "/v1/models/a-8/import", document)
    move = {"from": "a-5", "to": "a-6", "decision": "d"}
    assert ok("POST", "/v1/aliases/a-live/promote", move) == {"result": "promoted", "model": "a-6"}
    assert ok("POST", "/v2/models/a-live/infer", TENSORS)["model_name"] == "a-live"
    assert ok("POST", "/v1/models/a-live/freeze")
    ok("POST", "/v1/models/a-live/upgrade")
    ok("DELETE", "/v1/aliases/a-live")
    ok("DELETE", "/v1/models/a-5")
    made = [m["name"] for m in ok("GET", "/v1/models")]
    assert made == ["a-3", "a-6", "a-7", "a-8"]
    for name in made[1:]:
        ok("DELETE", f"/v1/models/{name}")


def _message(lines: Iterator[str], kind: str) -> Any:
    """Read a feed until a message of that kind, and return its data."""
    for line in lines:
        assert "b-3" not in line or kind == "model"
        if line == f"event: {kind}":
            return json.loads(next(lines).removeprefix("data: "))
    raise AssertionError("the feed ended")


def test_a_feed_ends_when_its_alias_is_moved_out_of_reach(scene: Scene) -> None:
    scene.done("PUT", "/v1/aliases/a-feed", {"model": "a-3"})
    path = "/v1/models/a-feed/live"
    with scene.a.stream("GET", path) as feed, scene.root.stream("GET", path) as other:
        mine, all_of_it = feed.iter_lines(), other.iter_lines()
        assert _message(mine, "model")["model"] == "a-3"
        assert _message(all_of_it, "model")["model"] == "a-3"
        scene.done("POST", "/v1/aliases/a-feed/promote", {"from": "a-3", "to": "b-3"})
        assert _message(mine, "end") == {"reason": "forbidden"}
        assert _message(all_of_it, "model")["model"] == "b-3"
        assert scene.a.get(path).status_code == 403
    scene.done("DELETE", "/v1/aliases/a-feed")
