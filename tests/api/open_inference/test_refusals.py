"""Refusals of the Open Inference Protocol: with the right status, in the protocol's form."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.redis_server import RedisServer
from tests.support.running import serving
from tests.support.shared_service import NewModel


def tensor(**changes: Any) -> dict[str, Any]:
    return {"name": "a", "shape": [2], "datatype": "FP64", "data": [1.0, 2.0], **changes}


def refused(answer: httpx.Response, status: int, *parts: str) -> None:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert list(answer.json()) == ["error"]
    for part in parts:
        assert part in answer.json()["error"], answer.text


def url_of(model: str) -> str:
    return f"/v2/models/{model.rpartition('/')[2]}/infer"


NAMES = {"feature_names": ["a", "b"]}
WRONG: list[tuple[list[Any], str]] = [
    ([], "inputs must hold a tensor"),
    ([tensor(shape=[3])], "inputs[0].data must have 3 elements"),
    ([tensor(shape=[2, 1], data=[[1.0], [2.0, 3.0]])], "inputs[0].data[1] must be an array of 1"),
    ([tensor(shape=[3, 1], data=[[1.0], [2.0]])], "inputs[0].data must have 3 rows, not 2"),
    ([tensor(shape=[2, 1], data=[[1.0], 2.0])], "inputs[0].data[1] must be an array"),
    ([tensor(shape=[])], "inputs[0].shape must be"),
    ([tensor(shape=[2, 1, 1])], "inputs[0].shape must be"),
    ([tensor(shape=[-2])], "inputs[0].shape must be"),
    ([tensor(shape=[1, 2])], "inputs[0].parameters.feature_names must name the 2 columns"),
    ([tensor(shape=[1, 2], parameters={"feature_names": "a,b"})], "must be an array of names"),
    ([tensor(shape=[1, 2], parameters={"feature_names": [1, 2]})], "must be an array of names"),
    ([tensor(shape=[2, 1], parameters=NAMES)], "has 2 names for 1 columns"),
    ([tensor(), tensor(shape=[1], data=[1.0], name="b")], "inputs[1].shape must be of 2 events"),
    ([tensor(), tensor()], "inputs[1] names the feature 'a' a second time"),
    ([tensor(name="n" * 257)], "over 256 characters"),
    ([tensor(data=[1.0, True])], "inputs[0].data[1] must be a number"),
    ([tensor(data=[1.0, "2"])], "inputs[0].data[1] must be a number"),
    ([tensor(data=[1.0, None])], "inputs[0].data[1] must be a number"),
    ([tensor(data=[1e101, 1.0])], "between -1e100 and 1e100, not 1e+101"),
    ([tensor(data=[10**200, 1.0])], "inputs[0].data[0] must be a number"),
    ([tensor(data=[[1.0], [2.0]])], "inputs[0].data[0] must be a number"),
    ([tensor(datatype="INT8", data=[1, 128])], "an integer from -128 to 127, not 128"),
    ([tensor(datatype="UINT16", data=[-1, 1])], "an integer from 0 to 65535, not -1"),
    ([tensor(datatype="INT64", data=[1.0, 2])], "inputs[0].data[0] must be an integer"),
    ([tensor(datatype="INT64", data=[True, 2])], "inputs[0].data[0] must be an integer"),
    ([tensor(datatype="BOOL", data=[1, 0])], "inputs[0].data[0] must be true or false"),
    ([tensor(datatype="BYTES", data=["a", "b"])], "text needs a pipeline"),
    ([tensor(datatype="FP128")], "inputs[0].datatype"),
    ([{"name": "a", "shape": [1], "data": [1.0]}], "datatype"),
    (["a"], "inputs[0]"),
]


@pytest.mark.parametrize(("inputs", "message"), WRONG)
def test_wrong_tensors_are_named(
    client: httpx.Client, model: str, inputs: list[Any], message: str
) -> None:
    refused(client.post(url_of(model), json={"inputs": inputs}), 422, message)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "not valid JSON"),
        (b"{", 400, "not valid JSON"),
        (b'{"inputs": [NaN]}', 400, "not valid JSON"),
        (b"\xff\xfe", 400, "UTF-16"),
        (b'{"inputs": [{"data": ' + b"[" * 100_000, 400, "it is nested too deeply"),
        (b"{}", 422, "inputs"),
        (b"[]", 422, "Expected `object`"),
        (b'{"inputs": [], "outputs": [{"name": "logits"}]}', 422, "outputs[0].name"),
        (b'{"inputs": [], "id": 5}', 422, "id"),
    ],
)
def test_wrong_bodies(
    client: httpx.Client, model: str, body: bytes, status: int, message: str
) -> None:
    headers = {"content-type": "application/json"}
    refused(client.post(url_of(model), content=body, headers=headers), status, message)


def test_other_media_types(client: httpx.Client, model: str) -> None:
    headers = {"content-type": "application/octet-stream"}
    refused(client.post(url_of(model), content=b"{}", headers=headers), 415, "JSON")


@pytest.mark.parametrize("below", ["", "/ready", "/versions/1-1.a", "/versions/1-1.a/ready"])
def test_unknown_models(client: httpx.Client, below: str) -> None:
    answer = client.get(f"/v2/models/nobody{below}")
    refused(answer, 422 if "versions" in below else 404)
    refused(client.post("/v2/models/nobody/infer", json={"inputs": [tensor()]}), 404, "nobody")


def test_a_version_that_is_none(client: httpx.Client, model: str) -> None:
    at = url_of(model).removesuffix("/infer") + "/versions"
    body = {"inputs": [tensor()]}
    refused(client.post(f"{at}/7/infer", json=body), 422, "version must be a position")
    refused(client.get(f"{at}/7"), 422, "version must be a position")
    refused(client.get(f"{at}/7/ready"), 422, "version must be a position")
    position = client.get(model).json()["position"]
    other = f"{position.partition('.')[0]}.{'0' * 40}"
    refused(client.post(f"{at}/{other}/infer", json=body), 409, "contradicts")


def test_a_model_without_classes_has_no_label_yet(
    client: httpx.Client, new_model: NewModel
) -> None:
    model = new_model(learner={"type": "multiclass_perceptron"})
    refused(client.post(url_of(model), json={"inputs": [tensor()]}), 409, "no class yet")


def test_a_refusal_of_the_pipeline_names_the_event(
    client: httpx.Client, new_model: NewModel
) -> None:
    model = new_model(pipeline=[{"type": "StandardScaler"}])
    inputs = [tensor(datatype="BYTES", data=["a", "b"])]
    through_v1 = client.post(f"{model}/predict", json=[{"x": {"a": "a"}}, {"x": {"a": "b"}}])
    assert through_v1.status_code == 422
    faults = [f"{e['field']} {e['reason']}" for e in through_v1.json()["errors"]]
    refused(client.post(url_of(model), json={"inputs": inputs}), 422, *faults)


def test_faults_are_shown_up_to_twenty(client: httpx.Client, model: str) -> None:
    many = tensor(shape=[30], data=["x"] * 30)
    answer = client.post(url_of(model), json={"inputs": [many]})
    refused(answer, 422, "20 of 30 shown")
    assert answer.json()["error"].count("must be a number") == 20


def test_the_limits_are_those_of_v1(redis_url: str) -> None:
    limits: dict[str, Any] = {"max_events_per_call": 3, "max_body_bytes": 200_000}
    with serving(redis_url, **limits) as client:
        client.put("/v1/models/m", json={"learner": {"type": "perceptron"}}).raise_for_status()
        url = "/v2/models/m/infer"
        three = {"inputs": [tensor(shape=[3], data=[1, 2, 3])]}
        assert client.post(url, json=three).status_code == 200
        four = {"inputs": [tensor(shape=[4], data=[1, 2, 3, 4])]}
        refused(client.post(url, json=four), 413, "at most 3")
        endless = {"inputs": [tensor(shape=[10**15, 0], data=[], parameters={"feature_names": []})]}
        refused(client.post(url, json=endless), 413, "at most 3")
        refused(client.post(url, json={"inputs": [tensor(name="n" * 200_000)]}), 413, "bytes")
        for features, status in ((10_000, 200), (10_001, 422)):
            names = {"feature_names": [f"{i}" for i in range(features)]}
            wide = tensor(shape=[1, features], data=[1] * features, parameters=names)
            assert client.post(url, json={"inputs": [wide]}).status_code == status


def test_without_redis_it_is_live_but_not_ready(tmp_path: Path) -> None:
    server = RedisServer(tmp_path / "redis")
    server.start()
    with serving(server.url) as client:
        client.put("/v1/models/m", json={"learner": {"type": "perceptron"}}).raise_for_status()
        body = {"inputs": [tensor()]}
        assert client.post("/v2/models/m/infer", json=body).status_code == 200
        server.kill()
        assert client.get("/v2/health/live").json() == {"live": True}
        refused(client.get("/v2/health/ready"), 503, "Redis")
        refused(client.get("/v2/models/other/ready"), 503)
        assert client.get("/v2/models/other/ready").headers["retry-after"].isdigit()
        assert client.post("/v2/models/m/infer", json=body).status_code == 200
