"""Freeze, unfreeze, reset, configure and restore as a client sees them."""

from typing import Any

import httpx
import pytest
import redis

import hinged
from hinged_service.store.keys import StreamKeys
from tests.support.checks import check_problem
from tests.support.service import Service
from tests.support.shared_service import NewModel

HIT: dict[str, Any] = {"x": {"a": 1.0}, "y": True}
MISS: dict[str, Any] = {"x": {"a": 1.0}, "y": False}


def _weights(client: httpx.Client, model: str) -> Any:
    found = client.get(f"{model}/weights").json()
    return found["weights"], found["intercept"]


def _command(client: httpx.Client, model: str, what: str, **body: Any) -> str:
    answer = client.post(f"{model}/{what}", json=body) if body else client.post(f"{model}/{what}")
    assert answer.status_code == 200, answer.text
    position: str = answer.json()["position"]
    assert client.get(model, params={"at_least": position}).status_code == 200
    return position


def test_a_frozen_model_is_scored_but_learns_nothing(
    client: httpx.Client, new_model: NewModel
) -> None:
    model = new_model(metrics=["accuracy"], pipeline=[{"type": "StandardScaler"}])
    client.post(f"{model}/learn", json=[HIT, MISS, {"x": {"a": 3.0}, "y": True}])
    _command(client, model, "freeze")
    before, info = _weights(client, model), client.get(model).json()
    answer = client.post(f"{model}/predict", json={"x": {"a": 5.0}}).json()
    wrong = not answer["y"]
    for n in range(1, 6):
        learned = client.post(f"{model}/learn", json={"x": {"a": 5.0}, "y": wrong}).json()
        assert (learned["mistake"], learned["updated"]) == (True, False)
        assert learned["score"] == answer["score"], "the scaler stands still too"
        now = client.get(model).json()
        assert now["frozen"]
        assert (now["events"], now["mistakes"]) == (info["events"] + n, info["mistakes"] + n)
        assert now["updates"] == info["updates"]
    rights = info["metrics"]["accuracy"] * 3
    assert now["metrics"]["accuracy"] == pytest.approx(rights / 8)
    assert _weights(client, model) == before
    _command(client, model, "freeze")
    _command(client, model, "unfreeze")
    assert not client.get(model).json()["frozen"]
    learned = client.post(f"{model}/learn", json={"x": {"a": 5.0}, "y": wrong}).json()
    assert learned["updated"]
    assert _weights(client, model) != before


def test_a_reset_forgets_what_was_learned_and_keeps_the_account(
    client: httpx.Client, new_model: NewModel
) -> None:
    model = new_model(metrics=["accuracy"])
    client.post(f"{model}/learn", json=[HIT, MISS, HIT, MISS])
    info = client.get(model).json()
    _command(client, model, "configure", set={"learning_rate": 0.5})
    _command(client, model, "reset")
    assert _weights(client, model) == ({}, 0.0)
    now = client.get(model).json()
    for part in ("events", "mistakes", "updates", "hinge_loss", "radius", "metrics"):
        assert now[part] == info[part], part
    client.post(f"{model}/learn", json=HIT)
    assert _weights(client, model) == ({"a": 0.5}, 0.5), "what was configured stays"
    assert client.get(model).json()["configured"] == {"learning_rate": 0.5}


def test_a_configured_rate_holds_from_there_on(client: httpx.Client, model: str) -> None:
    client.post(f"{model}/learn", json=HIT)
    assert _weights(client, model) == ({"a": 1.0}, 1.0)
    _command(client, model, "configure", set={"learning_rate": 0.25})
    assert _weights(client, model) == ({"a": 1.0}, 1.0)
    client.post(f"{model}/learn", json=MISS)
    assert _weights(client, model) == ({"a": 0.75}, 0.75)


BAD = {
    "an unknown name": b'{"set":{"rate":1}}',
    "a name of another learner": b'{"set":{"C":1}}',
    "one of two": b'{"set":{"learning_rate":1,"nope":1}}',
    "a name that is fixed": b'{"set":{"type":"arow"}}',
    "nothing": b'{"set":{}}',
    "no set": b"{}",
    "another part": b'{"set":{"learning_rate":1},"also":1}',
    "not a number": b'{"set":{"learning_rate":NaN}}',
    "negative": b'{"set":{"learning_rate":-1}}',
    "zero": b'{"set":{"learning_rate":0}}',
    "huge": b'{"set":{"learning_rate":1e999}}',
    "text": b'{"set":{"learning_rate":"1"}}',
    "true": b'{"set":{"learning_rate":true}}',
    "null": b'{"set":{"learning_rate":null}}',
    "a list": b'{"set":{"learning_rate":[1]}}',
    "nested": b'{"set":{"learning_rate":' + b"[" * 30 + b"]" * 30 + b"}}",
    "a list of names": b'{"set":["learning_rate"]}',
}


@pytest.mark.parametrize("bad", BAD)
def test_names_and_values_that_cannot_be_set_are_refused(
    client: httpx.Client, model: str, bad: str
) -> None:
    before = client.get(model).json()
    answer = client.post(
        f"{model}/configure", content=BAD[bad], headers={"content-type": "application/json"}
    )
    assert answer.status_code == 422, answer.text
    found = answer.json()["errors"][0]
    assert found["field"].startswith(("set", "also"))
    assert "pydantic" not in found["reason"]
    now = client.get(model).json()
    assert (now["position"], now["configured"]) == (before["position"], {})


@pytest.mark.parametrize("body", [b"", b"{", b"learning_rate=1", b"[" * 900 + b"]" * 900])
def test_a_body_that_is_not_json_is_malformed(
    client: httpx.Client, model: str, body: bytes
) -> None:
    answer = client.post(
        f"{model}/configure", content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400, answer.text


def test_a_learner_without_such_parameters_says_so(
    client: httpx.Client, new_model: NewModel
) -> None:
    model = new_model(learner={"type": "LogisticRegression"})
    answer = client.post(f"{model}/configure", json={"set": {"l2": 0.1}})
    assert answer.status_code == 422
    assert "no parameter of this learner may change" in answer.json()["errors"][0]["reason"]


@pytest.mark.parametrize(
    ("rule", "learner", "change"),
    [
        ("arow", hinged.AROW(), {"r": 0.5, "forgetting": 0.1}),
        ("scw", hinged.SCW(), {"C": 1.0, "phi": 1.5}),
        ("logistic_sgd", hinged.LogisticSGD(), {"learning_rate": 0.5}),
        ("ftrl_proximal", hinged.FTRLProximal(), {"learning_rate": 0.5}),
    ],
)
def test_a_configured_rule_learns_as_the_changed_learner(
    client: httpx.Client, new_model: NewModel, rule: str, learner: Any, change: dict[str, float]
) -> None:
    path = new_model(learner={"type": rule})
    for number in range(6):
        event = {"x": {"a": 1.0 + number, "b": 0.5}, "y": number % 3 == 0}
        if number == 3:
            _command(client, path, "configure", set=change)
            learner.mutate(change)
        client.post(f"{path}/learn", json=event).raise_for_status()
        learner.learn_one(event["x"], event["y"])
    assert _weights(client, path) == (dict(learner.weights), learner.intercept)


@pytest.mark.parametrize("what", ["freeze", "unfreeze", "reset", "configure", "restore"])
def test_a_command_to_an_unknown_model_is_not_found(client: httpx.Client, what: str) -> None:
    body = {"configure": {"set": {"C": 1}}, "restore": {"checkpoint": "c"}}.get(what, {})
    assert client.post(f"/v1/models/nobody/{what}", json=body).status_code == 404


def test_only_a_checkpoint_of_such_a_model_can_be_restored(
    client: httpx.Client, new_model: NewModel
) -> None:
    model = new_model()
    other = new_model(stream=model.rpartition("/")[2], pipeline=[{"type": "StandardScaler"}])
    client.post(f"{model}/checkpoints", json={"name": "c"}).raise_for_status()
    assert client.post(f"{model}/restore", json={"checkpoint": "d"}).status_code == 404
    answer = client.post(f"{other}/restore", json={"checkpoint": "c"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "checkpoint"
    assert client.post(f"{model}/restore", json={"checkpoint": "c"}).status_code == 200


@pytest.mark.parametrize("other", [{"calibrate": True}, {"scale": "auto"}])
def test_a_checkpoint_goes_only_to_a_model_of_the_same_options(
    client: httpx.Client, new_model: NewModel, other: dict[str, Any]
) -> None:
    learner = {"type": "perceptron"}
    plain = new_model(learner=learner)
    stream = client.get(plain).json()["spec"]["stream"]
    paths = {"plain": plain, "other": new_model(learner=learner, stream=stream, **other)}
    client.post(f"{plain}/learn", json={"x": {"a": 2.5}, "y": True}).raise_for_status()
    for name, path in paths.items():
        client.post(f"{path}/checkpoints", json={"name": name}).raise_for_status()
    for name, path in (("other", plain), ("plain", paths["other"])):
        problem = check_problem(client.post(f"{path}/restore", json={"checkpoint": name}), 422)
        assert [error["field"] for error in problem["errors"]] == ["checkpoint"]
        assert client.get(path).json()["rejected"] == 0


def test_a_checkpoint_that_cannot_be_read_is_not_restored(
    client: httpx.Client, service: Service, model: str
) -> None:
    """Refuse a command that in the log would set the model aside for good."""
    client.post(f"{model}/learn", json=[HIT, MISS, HIT])
    uid = client.post(f"{model}/checkpoints", json={"name": "c"}).json()["uid"]
    keys = StreamKeys(model.rpartition("/")[2])
    with redis.Redis.from_url(str(service.settings.redis_url)) as meddler:
        meddler.hset(keys.checkpoint(uid).state, "scalars", "{}")
    before = client.get(model).json()
    answer = client.post(f"{model}/restore", json={"checkpoint": "c"})
    assert answer.status_code == 409, answer.text
    assert "cannot be read" in answer.json()["detail"]
    assert client.get(model).json()["position"] == before["position"]
    assert client.post(f"{model}/learn", json=HIT).status_code == 200
