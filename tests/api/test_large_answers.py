"""Answers to predictions of many classes: as many probabilities as asked for, never too many."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hinged_service.client import RemoteClassifier
from hinged_service.client import TooLarge as AnswerTooLarge
from hinged_service.client.sync_client import Client
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service
from tests.support.shared_service import NewModel

MANY = 24
QUESTION = {"x": {f"f{number}": 1.0 + number for number in range(MANY)}}
NDJSON = {"content-type": "application/x-ndjson"}
FORMS = [
    ("", 10),
    ("proba=top:10", 10),
    ("proba=top:3", 3),
    ("proba=all", MANY),
    ("proba=none", 0),
    ("proba=top:999", MANY),
]


def teach(client: httpx.Client, model: str, labels: list[Any]) -> None:
    events = [{"x": {f"f{i}": 1.0}, "y": label} for i, label in enumerate(labels)]
    answer = client.post(f"{model}/learn", json=events * 3)
    assert answer.status_code == 200, answer.text


@pytest.fixture(params=["text", "integers", "one_vs_rest", "naive_bayes"])
def many(request: pytest.FixtureRequest, new_model: NewModel, client: httpx.Client) -> str:
    """The path of a model of 24 classes."""
    labels: list[Any] = [f"class {number}" for number in range(MANY)]
    spec: dict[str, Any] = {"learner": {"type": "multiclass_perceptron"}}
    if request.param == "integers":
        labels, spec["labels"] = list(range(MANY)), "integers"
    elif request.param == "one_vs_rest":
        spec["learner"] = {"type": "one_vs_rest", "learner": {"type": "perceptron"}}
    elif request.param == "naive_bayes":
        spec["learner"] = {"type": "GaussianNB"}
    model = new_model(**spec)
    teach(client, model, labels)
    return model


def likeliest(all_of_them: dict[str, float], count: int) -> list[tuple[str, float]]:
    """Return the largest, largest first; of equals the class that was seen first."""
    return sorted(all_of_them.items(), key=lambda pair: -pair[1])[:count]


@pytest.mark.parametrize(("query", "kept"), FORMS)
def test_probabilities_are_those_asked_for(
    client: httpx.Client, many: str, query: str, kept: int
) -> None:
    url = f"{many}/predict"
    whole = client.post(f"{url}?proba=all", json=QUESTION).json()
    assert len(whole["proba"]) == MANY
    assert sum(whole["proba"].values()) == pytest.approx(1.0)

    one = client.post(f"{url}?{query}", json=QUESTION).json()
    array = client.post(f"{url}?{query}", json=[QUESTION, QUESTION]).json()
    lines = client.post(f"{url}?{query}", content=json.dumps(QUESTION), headers=NDJSON).text

    for answer in (one, *array, json.loads(lines)):
        assert (answer["y"], answer["score"]) == (whole["y"], whole["score"])
        shares = list(answer["proba"].items())
        if kept < MANY:
            assert shares == likeliest(whole["proba"], kept)
        else:
            assert shares == list(whole["proba"].items())


@pytest.mark.parametrize(("query", "kept"), FORMS)
def test_tensors_have_the_probabilities_asked_for(
    client: httpx.Client, many: str, query: str, kept: int
) -> None:
    whole = client.post(f"{many}/predict?proba=all", json=QUESTION).json()
    name = many.rpartition("/")[2]
    inputs = [
        {"name": f, "shape": [2], "datatype": "FP64", "data": [v, v]}
        for f, v in QUESTION["x"].items()
    ]
    answer = client.post(f"/v2/models/{name}/infer?{query}", json={"inputs": inputs}).json()

    found = {tensor["name"]: tensor for tensor in answer["outputs"]}
    assert found["label"]["data"] == [whole["y"]] * 2
    if kept == 0:
        assert set(found) == {"label", "score"}
        return
    assert found["probabilities"]["shape"] == [2, kept]
    if kept == MANY:
        assert found["classes"]["shape"] == [MANY]
        assert found["classes"]["data"] == list(whole["proba"])
        assert found["probabilities"]["data"] == list(whole["proba"].values()) * 2
    else:
        best = likeliest(whole["proba"], kept)
        assert found["classes"]["shape"] == [2, kept]
        assert found["classes"]["data"] == [text for text, _ in best] * 2
        assert found["probabilities"]["data"] == [share for _, share in best] * 2


@pytest.mark.parametrize("learner", ["perceptron", "hedge", "LogisticRegression"])
def test_two_classes(client: httpx.Client, new_model: NewModel, learner: str) -> None:
    model = new_model(learner={"type": learner})
    client.post(f"{model}/learn", json=[{"x": {"a": 1.0}, "y": True}])
    found = {
        choice: client.post(f"{model}/predict?proba={choice}", json={"x": {"a": 2.0}}).json()
        for choice in ("all", "top:2", "top:1", "none")
    }
    whole = found["all"]["proba"]
    assert set(whole) == {"false", "true"}
    assert found["top:2"]["proba"] == whole
    label = json.dumps(found["all"]["y"])
    assert found["top:1"]["proba"] == {label: whole[label]}
    assert found["none"]["proba"] == {}


@pytest.mark.parametrize("choice", ["top:0", "top:-1", "top", "top:1e3", "some", "", "top:1000000"])
def test_another_choice_is_refused_at_every_door(
    client: httpx.Client, model: str, choice: str
) -> None:
    url = f"{model}/predict?proba={choice}"
    for answer in (
        client.post(url, json={"x": {}}),
        client.post(url, json=[{"x": {}}]),
        client.post(url, content='{"x": {}}', headers=NDJSON),
    ):
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == "proba"
    name = model.rpartition("/")[2]
    tensor = {"name": "a", "shape": [1], "datatype": "FP64", "data": [1.0]}
    answer = client.post(f"/v2/models/{name}/infer?proba={choice}", json={"inputs": [tensor]})
    assert answer.status_code == 422
    assert "proba must be" in answer.json()["error"]


def test_a_remote_classifier_gives_all_classes(service: Service, client: httpx.Client) -> None:
    spec = {"learner": {"type": "multiclass_perceptron"}, "labels": "integers"}
    with RemoteClassifier(service.url, "remote-of-many", spec=spec, batch=MANY) as remote:
        for number in range(MANY):
            remote.learn_one({f"f{number}": 1.0}, number)
        found = remote.predict_proba_one(QUESTION["x"])
        assert list(found) == list(range(MANY))
        assert sum(found.values()) == pytest.approx(1.0)
        assert remote.predict_one(QUESTION["x"]) == max(found, key=lambda label: found[label])


def test_the_client_asks_for_probabilities(
    service: Service, client: httpx.Client, new_model: NewModel
) -> None:
    model = new_model(learner={"type": "multiclass_perceptron"})
    teach(client, model, [f"class {number}" for number in range(MANY)])
    name, x = model.rpartition("/")[2], QUESTION["x"]
    with Client(service.url) as caller:
        assert len(caller.predict(name, x).proba) == 10
        assert len(caller.predict(name, x, proba="top:3").proba) == 3
        kept = [len(p.proba) for p in caller.predict_many(name, [x, x], proba="all")]
        assert kept == [MANY, MANY]


def test_many_events_are_answered_in_order_across_pieces(
    client: httpx.Client, new_model: NewModel
) -> None:
    model = new_model(learner={"type": "multiclass_perceptron"})
    labels = [f"class {number}" for number in range(MANY)]
    teach(client, model, labels)
    questions = [{"x": {f"f{i % MANY}": 1.0}} for i in range(3_000)]
    expected = [client.post(f"{model}/predict", json=one).json()["y"] for one in questions[:MANY]]
    assert len(set(expected)) > 1

    answers = client.post(f"{model}/predict?proba=all", json=questions).json()
    lines = client.post(
        f"{model}/predict?proba=all",
        content="\n".join(map(json.dumps, questions)),
        headers=NDJSON,
    ).text.splitlines()
    assert [answer["y"] for answer in answers] == [expected[i % MANY] for i in range(3_000)]
    assert [json.loads(line)["y"] for line in lines] == [answer["y"] for answer in answers]
    assert [json.loads(line)["line"] for line in lines] == list(range(1, 3_001))

    wrong = [*questions, {"x": {"a": "text"}}]
    assert client.post(f"{model}/predict", json=wrong).status_code == 422


def test_learned_events_are_answered_in_order_across_pieces(
    client: httpx.Client, model: str
) -> None:
    events = [{"id": f"e{i}", "x": {"a": 1.0}, "y": i % 3 == 0} for i in range(2_500)]
    outcomes = client.post(f"{model}/learn", json=events).json()
    again = client.post(f"{model}/learn", json=events[:5] + events).json()
    assert len(outcomes) == 2_500
    assert [o["duplicate"] for o in outcomes] == [False] * 2_500
    assert len(again) == 2_505
    assert all(o["duplicate"] for o in again)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that allows little."""
    with (
        RedisServer(tmp_path_factory.mktemp("redis")) as server,
        Service(
            server.url,
            max_answer_bytes=2**20,
            max_held_bytes=2**21,
            body_timeout_ms=3_000,
        ) as running,
    ):
        with running.client() as client:
            client.put("/v1/models/m", json={"learner": {"type": "multiclass_perceptron"}})
            teach(client, "/v1/models/m", [f"class {number}" for number in range(MANY)])
        yield running


def test_an_answer_that_would_be_too_large_is_refused(small: Service) -> None:
    questions = [QUESTION] * 1_500
    with small.client() as client:
        url = "/v1/models/m/predict"
        refused = client.post(f"{url}?proba=all", json=questions)
        assert refused.status_code == 413
        detail = refused.json()["detail"]
        assert "max_answer_bytes allows 1048576" in detail
        assert "proba=top:3" in detail
        assert client.post(f"{url}?proba=top:3", json=questions).status_code == 200
        assert client.post(f"{url}?proba=all", json=questions[:500]).status_code == 200
        data = [1.0] * 1_500
        tensor = {"name": "a", "shape": [1_500], "datatype": "FP64", "data": data}
        body = {"inputs": [tensor]}
        refused = client.post("/v2/models/m/infer?proba=all", json=body)
        assert refused.status_code == 413
        assert "proba=top:3" in refused.json()["error"]
        body["outputs"] = [{"name": "label"}]
        assert client.post("/v2/models/m/infer?proba=all", json=body).status_code == 200
        events = [{"x": {}, "y": "class 1"}] * 6_000
        before = client.get("/v1/models/m").json()["events"]
        assert client.post("/v1/models/m/learn", json=events).status_code == 413
        assert client.get("/v1/models/m").json()["events"] == before
    with Client(small.url) as caller, pytest.raises(AnswerTooLarge, match="proba"):
        list(caller.predict_many("m", [QUESTION["x"]] * 1_000, proba="all"))


def test_clients_that_do_not_read_leave_room_for_others(small: Service) -> None:
    path = "/v1/models/m/predict?proba=all"
    large = [QUESTION] * 600
    with small.client() as client:
        assert client.post(path, json=large).status_code == 200
        with contextlib.ExitStack() as stack:

            def is_refused() -> bool:  # a slow machine lets go of the first before the last comes
                for _ in range(4):
                    stack.enter_context(_silent(small.port, path, json.dumps(large).encode()))
                return client.post(path, json=large).status_code == 429

            wait_until(is_refused)
            assert client.post(path, json=QUESTION).status_code == 200
            assert client.post(path, json=[QUESTION] * 20).status_code == 200
            learned = client.post("/v1/models/m/learn", json={"x": {}, "y": "class 1"})
            assert learned.status_code == 200
            # what is not read in time is held no more, though the clients are still there
            wait_until(lambda: client.post(path, json=large).status_code == 200)


@contextlib.contextmanager
def _silent(port: int, path: str, body: bytes) -> Iterator[None]:
    """Have a client send a request and read nothing."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**12)
        connection.connect(("127.0.0.1", port))
        head = (
            f"POST {path} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        connection.sendall(head.encode() + body)
        yield


def test_weights_come_page_by_page(small: Service) -> None:
    names = [f"feature {number:05d}" for number in range(30_000)]
    with small.client() as client:
        client.put("/v1/models/wide", json={"learner": {"type": "perceptron"}})
        for start in range(0, len(names), 5_000):
            x = {name: float(1 + start + i) for i, name in enumerate(names[start : start + 5_000])}
            client.post("/v1/models/wide/learn", json={"x": x, "y": start % 10_000 == 0})
        refused = client.get("/v1/models/wide/weights")
        assert refused.status_code == 413
        assert "?top=1000&skip=1000" in refused.json()["detail"]
    with Client(small.url) as caller:
        pages = [
            caller.weights("wide", top=12_000, skip=skip).weights for skip in (0, 12_000, 24_000)
        ]
    found = {name: value for page in pages for name, value in (page or {}).items()}
    sizes = [abs(value) for value in found.values()]
    assert set(found) == set(names)
    assert sizes == sorted(sizes, reverse=True)


def test_an_export_in_pieces_is_the_model(small: Service) -> None:
    with small.client() as client:
        client.put("/v1/models/wide2", json={"learner": {"type": "arow"}})
        for start in range(0, 20_000, 5_000):
            x = {f"feature \u00e9 {start + i}": 0.1 + i for i in range(5_000)}
            client.post("/v1/models/wide2/learn", json={"x": x, "y": start > 5_000})
        client.post("/v1/models/wide2/checkpoints", json={"name": "c"})
        exported = client.get("/v1/models/wide2/checkpoints/c/export")
        assert exported.status_code == 200
        assert exported.json()["vectors"]
        made = client.post("/v1/models/copy/import", content=exported.content)
        assert made.status_code == 201, made.text
        question = {"x": {"feature \u00e9 1": 1.0, "feature \u00e9 19999": 2.0}}
        one, other = (
            client.post(f"/v1/models/{name}/predict", json=question).json()["score"]
            for name in ("wide2", "copy")
        )
        assert one == other
