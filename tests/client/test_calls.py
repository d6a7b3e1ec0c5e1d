"""Each call against the running service: what goes in, what comes out, what is refused."""

import os
import pickle
import ssl
import subprocess
import sys
import tempfile
import threading
from typing import Any

import httpx
import pytest
import uvicorn

from hinged_service.app import create_app
from hinged_service.client import (
    AsyncClient,
    BadAnswer,
    Client,
    ClientError,
    Conflict,
    Duplicate,
    Early,
    Invalid,
    Label,
    Learned,
    LinearWeights,
    NotFound,
    Prediction,
    Retries,
    Unreachable,
)
from tests.client.conftest import NewName, Recorder
from tests.support.redis_server import free_port
from tests.support.service import Service

ONCE = Retries(deadline_s=0)


def test_a_label_is_sent_after_its_prediction(api: Client, new_name: NewName) -> None:
    name = new_name(late_labels={"early": True})
    api.predict(name, {"a": 2.0}, id="m7")
    learned = api.learn_label(name, "m7", True, 0.5)
    assert isinstance(learned, Learned)
    assert (learned.mistake, learned.updated) == (True, True)
    assert isinstance(api.learn_label(name, "m7", True, 0.5), Duplicate)
    assert isinstance(api.learn_label(name, "m8", True), Early)
    for y, w, field in (([], 1.0, "y"), (True, float("nan"), "w")):
        with pytest.raises(Invalid) as refused:
            api.learn_label(name, "m9", y, w)  # type: ignore[arg-type]
        assert refused.value.errors[0].field == field
    with pytest.raises(NotFound):
        api.learn_label(new_name(), "m9", True)


def test_a_model_from_its_creation_to_its_deletion(api: Client) -> None:
    spec = {"learner": {"type": "perceptron"}, "labels": ["ham", "spam"]}
    created = api.create_model("course", spec)
    assert created.name == "course"
    assert created.spec["labels"] == ["ham", "spam"]
    assert api.create_model("course", spec) == created
    with pytest.raises(Conflict) as refused:
        api.create_model("course", {"learner": {"type": "arow"}})
    assert refused.value.status == 409
    assert created in api.models()

    learned = api.learn("course", {"free": 1, "money": 1}, "spam")
    assert learned == Learned("ham", 0.0, True, True, 1.0, learned.position)
    info = api.model("course", at_least=learned.position)
    assert (info.events, info.mistakes, info.updates, info.hinge_loss) == (1, 1, 1, 1.0)
    assert info.classes == ("ham", "spam")
    assert info.position == learned.position

    found = api.predict("course", {"free": 1}, at_least=learned.position)
    assert isinstance(found, Prediction)
    assert (found.y, found.score, found.stale_s) == ("spam", 2.0, None)
    assert found.proba == {"ham": pytest.approx(0.1192, abs=1e-4), "spam": 1 - found.proba["ham"]}

    api.delete_model("course")
    with pytest.raises(NotFound) as missing:
        api.model("course")
    assert missing.value.status == 404
    assert "course" in str(missing.value)


def test_an_id_counts_once(api: Client, name: str) -> None:
    first = api.learn(name, {"a": 1.0}, True, id="one")
    again = api.learn(name, {"a": 1.0}, True, id="one")
    assert not first.duplicate
    assert isinstance(again, Duplicate)
    assert again.duplicate
    with pytest.raises(Conflict) as refused:
        api.learn(name, {"a": 2.0}, True, id="one")
    assert refused.value.event_ids == ("one",)
    assert api.model(name, at_least=again.position).events == 1


def test_events_without_an_id_are_each_given_one(
    api: Client, name: str, recorder: Recorder
) -> None:
    for _ in range(2):
        assert not api.learn(name, {"a": 1.0}, True).duplicate
    outcomes = list(api.learn_many(name, [({"a": 1.0}, True)] * 3))
    assert [o.duplicate for o in outcomes] == [False] * 3
    assert api.model(name, at_least=outcomes[-1].position).events == 5


def test_sample_weights_count(api: Client, new_name: NewName) -> None:
    name = new_name(learner={"type": "perceptron", "fit_intercept": False})
    outcome = api.learn(name, {"a": 1.0}, True, 0.5)
    assert api.weights(name, at_least=outcome.position).weights == {"a": 0.5}


@pytest.mark.parametrize(
    ("labels", "y"), [(None, True), ([0, 1], 1), ([3, 7], 7), (["no", "yes"], "yes")]
)
def test_labels_keep_their_type(
    api: Client, new_name: NewName, labels: list[Label] | None, y: Label
) -> None:
    name = new_name(labels=labels)
    position = api.learn(name, {"a": 1.0}, y).position
    found = api.predict(name, {"a": 1.0}, at_least=position).y
    assert (found, type(found)) == (y, type(y))


def test_weights(api: Client, name: str, new_name: NewName) -> None:
    position = api.learn(name, {"a": 1.0, "b": -3.0}, True).position
    top = api.weights(name, top=1, at_least=position)
    assert (top.weights, top.intercept) == ({"b": -3.0}, 1.0)
    assert top.classes is None
    many = new_name(learner={"type": "multiclass_perceptron"}, labels="integers")
    list(api.learn_many(many, [({"a": 1.0}, 3), ({"a": 1.0}, 5)]))
    position = api.learn(many, {"b": 1.0}, 3).position
    of_three = api.weights(many, label=3, at_least=position)
    assert of_three.classes is not None
    assert list(of_three.classes) == ["3"]
    assert isinstance(of_three.classes["3"], LinearWeights)
    with pytest.raises(NotFound):
        api.weights(many, label=4)


def test_ready(api: Client) -> None:
    assert api.ready() is True
    with Client(f"http://127.0.0.1:{free_port()}") as client:
        assert client.ready() is False


def test_a_refusal_of_the_service_names_the_field(api: Client, name: str) -> None:
    with pytest.raises(Invalid) as refused:
        api.learn(name, {"a": 1.0}, "spam")
    assert refused.value.status == 422
    assert [fault.field for fault in refused.value.errors] == ["y"]
    assert refused.value.errors[0].index is None
    assert "must be true or false" in str(refused.value)
    assert refused.value.logged is False
    assert len(refused.value.event_ids) == 1


def test_a_refusal_after_logging_says_so(api: Client, new_name: NewName) -> None:
    name = new_name(learner={"type": "multiclass_perceptron", "max_classes": 2})
    list(api.learn_many(name, [({"a": 1.0}, "p"), ({"a": 1.0}, "q")]))
    with pytest.raises(Invalid) as refused:
        api.learn(name, {"a": 1.0}, "r")
    assert refused.value.logged is True


def test_an_odd_model_name_stays_one_part_of_the_path(api: Client) -> None:
    for odd in ("a/weights", "a?top=1", "ü"):
        with pytest.raises(ClientError) as refused:
            api.create_model(odd, {"learner": {"type": "perceptron"}})
        assert refused.value.status in (404, 405, 422)
    for empty in ("", ".", ".."):
        with pytest.raises(Invalid) as local:
            api.delete_model(empty)
        assert local.value.status is None


def test_a_spec_that_is_no_json_is_refused(api: Client) -> None:
    for value in (object(), "\ud800"):
        with pytest.raises(Invalid, match="spec is not JSON"):
            api.create_model("m", {"learner": value})


def test_an_address_of_something_else_is_said_to_be_one(name: str) -> None:
    def page(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200 if request.method == "GET" else 500, text="<h1>Welcome</h1>")

    with Client("http://other", transport=httpx.MockTransport(page)) as client:
        with pytest.raises(BadAnswer, match=r"http://other/v1/models .*cannot read"):
            client.models()
        with pytest.raises(ClientError, match=r"500: <h1>Welcome"):
            client.learn(name, {}, True)


def test_answers_that_do_not_fit_what_was_sent_are_not_taken() -> None:
    prediction = {"y": True, "score": 1.0, "proba": {}, "position": "1-1.a"}

    def answer(request: httpx.Request) -> httpx.Response:
        short = request.url.path.endswith("/predict")
        return httpx.Response(200, json=[prediction] if short else {"duplicate": False})

    with Client("http://other", transport=httpx.MockTransport(answer)) as client:
        with pytest.raises(BadAnswer, match="2 events were sent, 1 were answered"):
            list(client.predict_many("m", [{}, {}]))
        with pytest.raises(BadAnswer) as lacking:
            client.learn("m", {}, True, id="one")
        assert lacking.value.event_ids == ("one",)


def test_the_key_goes_as_a_bearer_token_and_nowhere_else() -> None:
    seen: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("authorization"))
        return httpx.Response(200, json=[])

    transport = httpx.MockTransport(answer)
    with Client("http://a/base", api_key="secret", transport=transport) as client:
        client.models()
        assert "secret" not in repr(client)
    with Client("http://a", transport=transport) as client:
        client.models()
    assert seen == ["Bearer secret", None]


def test_a_path_in_the_address_is_kept(recorder: Recorder, service: Service) -> None:
    with Client(f"{service.url}/below/", transport=recorder) as client, pytest.raises(NotFound):
        client.models()
    assert recorder.requests[0].url.path == "/below/v1/models"


def test_a_client_can_be_pickled_unless_it_has_a_transport(service: Service, api: Client) -> None:
    with Client(service.url) as client, pickle.loads(pickle.dumps(client)) as other:
        assert other is not client
        assert other.ready()
    with pytest.raises(TypeError, match="transport"):
        pickle.dumps(api)


def test_errors_survive_pickling() -> None:
    with (
        Client(f"http://127.0.0.1:{free_port()}", retries=ONCE) as client,
        pytest.raises(Unreachable) as lost,
    ):
        client.learn("m", {}, True)
    copy = pickle.loads(pickle.dumps(lost.value))
    assert (str(copy), copy.event_ids) == (str(lost.value), lost.value.event_ids)
    assert len(copy.event_ids) == 1


def test_it_does_not_import_the_service() -> None:
    code = (
        "import sys, hinged_service.client; print('fastapi' in sys.modules, 'redis' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_certificates_are_read_unless_none_can_be_met(
    monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    read: list[str] = []

    def made(**_: Any) -> ssl.SSLContext:
        read.append("")
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    monkeypatch.setattr(ssl, "create_default_context", made)
    kind("http://127.0.0.1:1")
    assert not read
    kind("https://127.0.0.1:1")
    assert read
    read.clear()
    monkeypatch.setenv("http_proxy", "https://127.0.0.1:2")
    kind("http://127.0.0.1:1")
    assert read


def test_over_a_unix_socket(service: Service, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:  # short: such paths end at 108 characters
        path = f"{folder}/s"
        config = uvicorn.Config(create_app(service.settings), uds=path, log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            with Client("http://service", transport=httpx.HTTPTransport(uds=path)) as client:
                position = client.learn(name, {"a": 1.0}, True).position
                assert client.predict(name, {"a": 1.0}, at_least=position).y is True
        finally:
            server.should_exit = True
            thread.join(30)
