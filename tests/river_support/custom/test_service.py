"""An operator's own pipelines through HTTP: as in process, event by event, on every worker."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from river import linear_model

from tests.river_support.custom.pipelines import BUILDS, SIZES, mails
from tests.support.forked_command import ForkedCommand
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service

FILE = str(Path(__file__).with_name("pipelines.py"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    made = RedisServer(tmp_path_factory.mktemp("custom"))
    made.start()
    yield made
    made.kill()


@pytest.fixture(scope="module")
def client(server: RedisServer) -> Iterator[httpx.Client]:
    with Service(server.url, models=FILE) as service, service.client() as made:
        yield made


@pytest.fixture(scope="module")
def second(server: RedisServer, client: httpx.Client) -> Iterator[httpx.Client]:
    """Another worker."""
    with Service(server.url, models=FILE) as service, service.client() as made:
        yield made


@pytest.fixture(scope="module")
def late(server: RedisServer, client: httpx.Client) -> Iterator[httpx.Client]:
    """A worker that opens a model only when others have done with it, as after a restart."""
    with Service(server.url, models=FILE) as service, service.client() as made:
        yield made


def put(client: httpx.Client, path: str, name: str, version: str = "1", **more: Any) -> None:
    learner = {"type": "custom", "name": name, "version": version}
    classes = BUILDS[name][2] if name in BUILDS else None
    if classes is not None:
        learner["classes"] = classes  # type: ignore[assignment]
    answer = client.put(f"/v1/models/{path}", json={"learner": learner, **more})
    assert answer.status_code == 201, answer.text


def ask(client: httpx.Client, path: str, x: Any) -> dict[str, Any]:
    answer = client.post(f"/v1/models/{path}/predict", json={"x": x})
    assert answer.status_code == 200, answer.text
    return answer.json()  # type: ignore[no-any-return]


def learn(client: httpx.Client, path: str, x: Any, y: Any) -> dict[str, Any]:
    answer = client.post(f"/v1/models/{path}/learn", json={"x": x, "y": y})
    assert answer.status_code == 200, answer.text
    return answer.json()  # type: ignore[no-any-return]


@contextlib.contextmanager
def other_process(url: str, models: str) -> Iterator[httpx.Client]:
    """A worker that is another process."""
    command = ["serve", "--port", "0", "--models", models]
    process = ForkedCommand(command, {**os.environ, "HINGED_REDIS_URL": url})
    try:
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address is not None
        with httpx.Client(base_url=address[0], timeout=30, trust_env=False, verify=False) as client:
            wait_until(lambda: ready(client), 60)
            yield client
    finally:
        process.terminate()
        process.communicate()


def ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").is_success
    except httpx.TransportError:
        return False


def same_answer(answer: dict[str, Any], reference: Any, x: dict[str, Any]) -> None:
    """Check an answer against the pipeline in process."""
    label, proba = reference.predict_one(x), reference.predict_proba_one(x)
    if label is None:  # nothing learned yet
        return
    if isinstance(label, bool):
        assert answer["y"] is label
        assert answer["proba"] == {"false": proba[False], "true": proba[True]}
    else:
        assert answer["y"] == label
        assert answer["proba"] == {label: proba.get(label, 0.0) for label in answer["proba"]}
        assert {label for label, p in proba.items() if p > 0.0} <= answer["proba"].keys()


@pytest.mark.parametrize("name", BUILDS)
def test_it_is_the_same_pipeline_as_in_process_on_every_worker_and_after_a_restart(
    client: httpx.Client, second: httpx.Client, late: httpx.Client, name: str
) -> None:
    build, stream, _ = BUILDS[name]
    events, reference = stream(), build()
    put(client, name, name)
    half = len(events) // 2
    for x, y in events[:half]:
        same_answer(ask(client, name, x), reference, x)
        y_pred = reference.predict_one(x)
        answer = learn(client, name, x, y)
        assert answer["mistake"] is (answer["y_pred"] not in (None, y))
        if y_pred is not None:
            assert answer["y_pred"] == y_pred
        reference.learn_one(x, y)
    for x, y in events[half:-20]:  # by turns, on two workers
        position = learn(second, name, x, y)["position"]
        reference.learn_one(x, y)
        url = f"/v1/models/{name}/predict?at_least={position}"
        same_answer(client.post(url, json={"x": x}).json(), reference, x)
    for x, y in events[-20:]:
        same_answer(ask(late, name, x), reference, x)
        position = learn(late, name, x, y)["position"]
        reference.learn_one(x, y)
    info = client.get(f"/v1/models/{name}?at_least={position}").json()
    assert info["events"] == len(events)
    assert info["rejected"] == 0


def test_weights_are_those_of_the_last_step(client: httpx.Client) -> None:
    put(client, "weights", "arow")
    reference = BUILDS["arow"][0]()
    for x, y in mails(30):
        learn(client, "weights", x, y)
        reference.learn_one(x, y)
    last = list(reference.steps.values())[-1]
    served = client.get("/v1/models/weights/weights").json()
    assert served["weights"] == dict(last.weights)
    assert served["intercept"] == last.intercept


def test_metrics_score_it_as_any_other_learner(client: httpx.Client) -> None:
    put(client, "measured", "logistic", metrics=["accuracy"])
    right = 0
    for x, y in mails(50):
        right += learn(client, "measured", x, y)["y_pred"] is y
    assert client.get("/v1/models/measured").json()["metrics"]["accuracy"] == right / 50


def other_version(tmp_path: Path) -> str:
    file = tmp_path / "other.py"
    file.write_text(
        "from river import preprocessing\n"
        "import hinged\n"
        "from hinged_service.custom import CustomModel\n"
        "def models():\n"
        "    def build():\n"
        "        return preprocessing.StandardScaler() | hinged.Perceptron()\n"
        "    return {'plain': CustomModel(build, '2')}\n"
    )
    return str(file)


def test_a_worker_with_another_version_answers_503_for_that_model_only(
    server: RedisServer, client: httpx.Client, tmp_path: Path
) -> None:
    put(client, "versioned", "plain")
    learn(client, "versioned", {"a": 1.0}, True)
    client.put("/v1/models/other", json={"learner": {"type": "perceptron"}})
    put(client, "unnamed", "arow")
    before = client.get("/v1/models/versioned").json()["position"]
    with other_process(server.url, other_version(tmp_path)) as other:
        for call in ("predict", "learn"):
            body = {"x": {"a": 1.0}} | ({"y": True} if call == "learn" else {})
            answer = other.post(f"/v1/models/versioned/{call}", json=body)
            assert answer.status_code == 503
            assert "version '1' of the custom model 'plain'" in answer.json()["detail"]
            assert "this worker has version '2'" in answer.json()["detail"]
        gone = other.post("/v1/models/unnamed/predict", json={"x": {}})
        assert gone.status_code == 503
        assert "this worker has none of that name" in gone.json()["detail"]
        learn(other, "other", {"a": 1.0}, True)
        learner = {"type": "custom", "name": "plain", "version": "2"}
        again = other.put("/v1/models/versioned", json={"learner": learner})
        assert again.status_code == 409
        assert other.put("/v1/models/second", json={"learner": learner}).status_code == 201
        learn(other, "second", {"a": 1.0}, True)
        assert client.post("/v1/models/second/predict", json={"x": {}}).status_code == 503
        learn(client, "versioned", {"a": 2.0}, False)
    info = client.get("/v1/models/versioned").json()
    assert info["events"] == 2
    assert info["position"] != before


@pytest.mark.parametrize(
    ("learner", "field", "reason"),
    [
        (
            {"name": "nobody", "version": "1"},
            "learner.name",
            "its custom models are: arow, logistic",
        ),
        ({"name": "arow", "version": "7"}, "learner.version", "not the one served here, '1'"),
        ({"name": "arow", "version": "1", "classes": 3}, "learner.classes", "is binary"),
        ({"name": "one_vs_rest", "version": "1"}, "learner.classes", "how many classes"),
    ],
)
def test_a_new_model_must_be_one_that_is_served_here(
    client: httpx.Client, learner: dict[str, Any], field: str, reason: str
) -> None:
    answer = client.put("/v1/models/wrong", json={"learner": {"type": "custom", **learner}})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["field"] == field
    assert reason in error["reason"]
    assert client.get("/v1/models/wrong").status_code == 404


def test_a_pipeline_before_a_custom_model_is_refused(client: httpx.Client) -> None:
    learner = {"type": "custom", "name": "arow", "version": "1"}
    spec = {"learner": learner, "pipeline": [{"type": "StandardScaler"}]}
    answer = client.put("/v1/models/wrong", json=spec)
    assert answer.status_code == 422
    assert "a pipeline of its own" in answer.text


def test_an_event_that_the_pipeline_does_not_take_is_refused_and_changes_nothing(
    client: httpx.Client,
) -> None:
    put(client, "picky", "logistic")
    for x, y in mails(10):
        learn(client, "picky", x, y)
    x = mails(1)[0][0]
    before = ask(client, "picky", x)
    wrong = [{"text": "no numbers"}, {**x, "text": 3.0}, {**x, "size": "large"}, {}]
    for one in wrong:
        for call in ("predict", "learn"):
            body = {"x": one} | ({"y": True} if call == "learn" else {})
            answer = client.post(f"/v1/models/picky/{call}", json=body)
            assert answer.status_code == 422, (one, call)
            (error,) = answer.json()["errors"]
            assert error["field"] == "x"
            assert "refused by the custom model 'logistic'" in error["reason"]
    assert ask(client, "picky", x) == before


def test_values_that_only_learning_refuses_are_refused_before_anything_changes(
    client: httpx.Client,
) -> None:
    """A new name with text is no matter to the scaler's transform, but to its learning."""
    put(client, "unlearnable", "plain")
    learn(client, "unlearnable", {"a": 1.0}, True)
    assert ask(client, "unlearnable", {"a": 1.0, "b": "text"})["y"] is not None
    answer = client.post("/v1/models/unlearnable/learn", json={"x": {"b": "text"}, "y": True})
    assert answer.status_code == 422
    assert "TypeError" in answer.text
    learn(client, "unlearnable", {"a": 2.0, "b": 1.0}, True)
    info = client.get("/v1/models/unlearnable").json()
    assert (info["events"], info["rejected"]) == (2, 1)


def test_a_pipeline_that_fails_while_it_learns_is_set_aside_alone(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(client, "failing", "logistic")
    x, y = mails(1)[0]
    learn(client, "failing", x, y)

    def fail(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(linear_model.LogisticRegression, "learn_one", fail)
        answer = client.post("/v1/models/failing/learn", json={"x": x, "y": y})
        assert answer.status_code == 503
        assert "ZeroDivisionError" in answer.json()["detail"]
        assert client.get("/v1/models").status_code == 200
    wait_until(lambda: client.post("/v1/models/failing/predict", json={"x": x}).is_success)
    assert client.get("/v1/models/failing").json()["events"] == 2  # the log has it


def test_numbers_of_every_size_are_answered_with_finite_ones(client: httpx.Client) -> None:
    put(client, "large", "logistic")
    for number in range(12):
        size = (-1.0) ** number * 1e100
        x = {"text": "far", **dict.fromkeys(SIZES, size)}
        answer = learn(client, "large", x, number % 3 == 0)
        assert -1.0 <= answer["score"] <= 1.0
