"""All models at a glance."""

import json
from typing import Any

import httpx
import pytest

from hinged_service.api.api_keys import new_key
from hinged_service.wire import codec
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.running import serving
from tests.support.service import Service
from tests.support.shared_service import NewModel

SPEC = {"learner": {"type": "perceptron"}}


def look(client: httpx.Client, **query: Any) -> dict[str, Any]:
    answer = client.get("/v1/overview", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_numbers_are_those_of_the_model(client: httpx.Client, new_model: NewModel) -> None:
    model = new_model(metrics=["accuracy"], drift={"detector": {"type": "ADWIN"}})
    name = model.rpartition("/")[2]
    client.post(f"{model}/learn", json=[{"x": {"a": 1}, "y": True}] * 4).raise_for_status()
    info = client.get(model).json()

    def seen() -> dict[str, Any]:
        found = (m for m in look(client, match=name, count=100)["models"] if m["name"] == name)
        return dict(next(found, {}))

    wait_until(lambda: seen().get("events") == 4)  # the names are read every second
    one = seen()
    assert one["stream"] == name
    last = client.get(f"{model}/history").json()["points"][-1]
    assert one["rolling_accuracy"] == last["rolling_accuracy"] == 0.75
    assert one["learner"] == "perceptron"
    for part in ("mistakes", "updates", "metrics", "drifts", "frozen"):
        assert one[part] == info[part]
    assert one["at_ms"] == int(info["position"].partition("-")[0])
    assert one["stale_s"] >= 0
    assert one["problem"] is None


def test_models_are_counted_and_cut(own_server: RedisServer) -> None:
    with serving(own_server.url) as client:
        for name in ("b2", "a1", "b1", "c1"):
            client.put(f"/v1/models/{name}", json=SPEC).raise_for_status()
        wait_until(lambda: look(client)["total"] == 4)
        assert [one["name"] for one in look(client)["models"]] == ["a1", "b1", "b2", "c1"]
        cut = look(client, match="b", count=1)
        assert (cut["total"], [one["name"] for one in cut["models"]]) == (2, ["b1"])
        client.delete("/v1/models/a1").raise_for_status()
        wait_until(lambda: look(client)["total"] == 3)
        for wrong in ({"count": 0}, {"count": 101}, {"match": "x" * 129}):
            assert client.get("/v1/overview", params=wrong).status_code == 422


def test_a_key_sees_its_own_models(own_server: RedisServer) -> None:
    tokens, records = {}, []
    for name, models in (("root", ("*",)), ("some", ("mine-*",))):
        tokens[name], record = new_key(name, ("predict", "admin"), models)
        records.append(record.model_dump(mode="json"))
    with serving(own_server.url, keys=json.dumps(records)) as client:
        assert client.get("/v1/overview").status_code == 401
        client.headers["authorization"] = f"Bearer {tokens['root']}"
        for name in ("mine-1", "theirs"):
            client.put(f"/v1/models/{name}", json=SPEC).raise_for_status()
        wait_until(lambda: look(client)["total"] == 2)
        client.headers["authorization"] = f"Bearer {tokens['some']}"
        assert [one["name"] for one in look(client)["models"]] == ["mine-1"]
        assert look(client)["total"] == 1


@pytest.mark.alone
def test_many_who_look_cost_redis_no_more_than_one(own_server: RedisServer) -> None:
    with serving(own_server.url) as client, own_server.client() as redis:
        client.put("/v1/models/m", json=SPEC).raise_for_status()
        look(client)

        def reads() -> int:
            stats: Any = redis.info("commandstats")
            return int(stats["cmdstat_hgetall"]["calls"])

        before = reads()
        for _ in range(30):
            look(client)
        assert reads() - before <= 5


def test_a_model_that_cannot_be_served_says_why(
    own_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Service(own_server.url) as service, service.client() as client:
        client.put("/v1/models/m", json=SPEC).raise_for_status()
        client.post("/v1/models/m/learn", json={"x": {"a": 1}, "y": True}).raise_for_status()
    monkeypatch.setattr(codec, "fold_tag", lambda: "another version")
    with Service(own_server.url) as service, service.client() as client:
        (one,) = look(client)["models"]
        assert one["events"] is None
        assert one["problem"] == client.get("/v1/models/m").json()["detail"]
