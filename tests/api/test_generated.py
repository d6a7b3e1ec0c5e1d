"""Clients that programs generate from the OpenAPI document, used against the service."""

import importlib
import itertools
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from tests.support.service import Service

SPAM: dict[str, Any] = {"x": {"free": 1, "money": 0.5}, "y": "spam"}
HAM: dict[str, Any] = {"id": "e2", "x": {"lunch": 1}, "y": "ham"}
SPECS: list[dict[str, Any]] = [
    {"learner": {"type": "perceptron", "learning_rate": 0.5}, "labels": ["ham", "spam"]},
    {"learner": {"type": "arow"}, "labels": [3, 7]},
    {"learner": {"type": "multiclass_perceptron"}, "labels": "integers"},
    {"learner": {"type": "one_vs_rest", "learner": {"type": "hinge_sgd"}}},
    {"learner": {"type": "hedge", "models": [{"type": "perceptron"}, {"type": "linear_unit"}]}},
    {
        "learner": {"type": "averaged_perceptron"},
        "pipeline": [{"type": "StandardScaler"}],
        "metrics": ["accuracy", {"type": "rolling", "metric": "accuracy", "window": 10}],
        "drift": {"detector": {"type": "ADWIN"}, "action": "reset"},
    },
    {
        "learner": {"type": "multiclass_arow"},
        "pipeline": [
            {
                "type": "Union",
                "branches": [
                    [{"type": "BagOfWords", "on": "text"}],
                    [{"type": "Discard", "keys": ["text"]}, {"type": "OneHotEncoder"}],
                ],
            }
        ],
    },
    {"learner": {"type": "LogisticRegression"}, "labels": [False, True]},
    {"learner": {"type": "SoftmaxRegression", "optimizer": {"type": "Adam", "lr": 0.2}}},
    {"learner": {"type": "auto"}},
    {"learner": {"type": "auto"}, "labels": ["a", "b"]},
    {"learner": {"type": "multiclass_hedge", "models": [{"type": "multiclass_arow"}]}},
]
"""A spec for each way in which a field has several forms."""

names = itertools.count()


def imported(folder: Path, package: str) -> ModuleType:
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(package)
    finally:
        sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def document(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("document") / "openapi.json"
    path.write_bytes(httpx.get(f"{service.url}/openapi.json", verify=False).content)
    return path


@pytest.fixture
def name() -> str:
    return f"generated-{next(names)}"


class OpenAPIPythonClient:
    def __init__(self, document: Path, folder: Path, url: str) -> None:
        command = [
            "generate",
            "--path",
            str(document),
            "--meta",
            "none",
            "--output-path",
            "hinged_opc",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "openapi_python_client", *command],
            cwd=folder,
            capture_output=True,
            text=True,
        )
        self.output = done.stdout + done.stderr
        assert done.returncode == 0, self.output
        imported(folder, "hinged_opc")
        self.models: Any = importlib.import_module("hinged_opc.models")
        self.client = importlib.import_module("hinged_opc").Client(base_url=url)

    def call(self, path: str, *args: Any, **kwargs: Any) -> Any:
        module: Any = importlib.import_module(f"hinged_opc.api.{path}")
        return module.sync(*args, client=self.client, **kwargs)

    def put(self, name: str, spec: dict[str, Any]) -> Any:
        body = self.models.ModelSpec.from_dict(spec)
        return self.call("models.put_model", name, body=body)

    def event(self, x: dict[str, Any], **fields: Any) -> Any:
        return self.models.Event(x=self.models.EventX.from_dict(x), **fields)

    def question(self, x: dict[str, Any], **fields: Any) -> Any:
        return self.models.Question(x=self.models.QuestionX.from_dict(x), **fields)


@pytest.fixture(scope="module")
def first(
    service: Service, document: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenAPIPythonClient]:
    made = OpenAPIPythonClient(document, tmp_path_factory.mktemp("opc"), service.url)
    with made.client:
        yield made


def test_openapi_python_client_leaves_out_nothing_but_lines(first: OpenAPIPythonClient) -> None:
    assert "Unable to process schema" not in first.output
    assert "Endpoint will not be generated" not in first.output
    for warning in first.output.split("WARNING parsing ")[1:]:
        assert "Unsupported content type application/" in warning
        kind = warning.split("Unsupported content type application/")[1].split()[0]
        assert kind in ("x-ndjson", "ndjson", "jsonl", "x-jsonl", "jsonlines")


def test_openapi_python_client_creates_lists_and_shows(first: OpenAPIPythonClient) -> None:
    made = {f"generated-{next(names)}": spec for spec in SPECS}
    for name, spec in made.items():
        listed = first.put(name, spec)
        assert isinstance(listed, first.models.ModelListed), listed
        info = first.call("models.get_model", name)
        assert isinstance(info, first.models.ModelInfo), info
        assert (info.name, info.events) == (name, 0)
        assert info.spec.to_dict()["learner"]["type"] == spec["learner"]["type"]
        again = first.put(name, info.spec.to_dict())
        assert again.to_dict() == listed.to_dict(), "what it shows is not what was sent"
    found = first.call("models.list_models")
    assert set(made) <= {listed.name for listed in found}
    default = first.models.LogisticRegressionSpec.from_dict({"type": "LogisticRegression"})
    assert default.to_dict()["type"] == "LogisticRegression"


def test_openapi_python_client_learns_and_predicts_one_and_many(
    first: OpenAPIPythonClient, name: str
) -> None:
    first.put(name, SPECS[0])
    spam, ham = first.event(**SPAM), first.event(**HAM)
    one = first.call("events.learn", name, body=spam)
    assert isinstance(one, first.models.Learned)
    assert (one.y_pred, one.score, one.mistake, one.duplicate) == ("ham", 0.0, True, False)
    many = first.call("events.learn", name, body=[spam, ham, ham])
    assert [type(learned) for learned in many] == [first.models.Learned] * 3
    # free 0.5, money 0.25, intercept 0.5; then lunch -0.5, intercept 0
    assert [learned.score for learned in many[:2]] == [0.5 + 0.5 * 0.25 + 0.5, 0.5]
    assert [learned.duplicate for learned in many] == [False, False, True]
    assert isinstance(many[2].score, importlib.import_module("hinged_opc.types").Unset)
    predicted = first.call("events.predict", name, body=first.question({"free": 1}))
    assert (predicted.y, predicted.score) == ("spam", 0.5)
    assert predicted.proba.to_dict().keys() == {"ham", "spam"}
    asked = [first.question({"free": 2}), first.question({"lunch": 1}, id="later")]
    many = first.call("events.predict", name, body=asked)
    assert [(p.y, p.score) for p in many] == [("spam", 1.0), ("ham", -0.5)]
    late = first.call("events.learn", name, body=first.models.Event(id="later", y="ham"))
    assert (late.y_pred, late.mistake) == ("ham", False)
    wrong = first.call("events.learn", name, body=[spam, first.event({"a": 1}, y="eggs")])
    assert isinstance(wrong, first.models.Problem)
    assert (wrong.status, wrong.errors[0].field) == (422, "[1].y")
    info = first.call("models.get_model", name)
    assert (info.events, info.classes) == (4, ["ham", "spam"])


def test_openapi_python_client_takes_every_kind_of_label_and_value(
    first: OpenAPIPythonClient,
) -> None:
    kinds: list[tuple[dict[str, Any], dict[str, Any], list[Any]]] = [
        ({"learner": {"type": "perceptron"}}, {"a": 1.5}, [True, False]),
        ({"learner": {"type": "multiclass_arow"}, "labels": "integers"}, {"a": 1}, [3, -7]),
        (SPECS[6], {"text": "free entry", "hour": 3, "new": True}, ["a", "b"]),
    ]
    for spec, x, labels in kinds:
        name = f"generated-{next(names)}"
        first.put(name, spec)
        if "multiclass" in spec["learner"]["type"]:
            (unknown,) = first.call("events.predict", name, body=[first.question(x)])
            assert (unknown.y, unknown.proba.to_dict()) == (None, {})
        events = [first.event(x, y=y) for y in labels]
        first.call("events.learn", name, body=events)
        learned = first.call("events.learn", name, body=events)
        assert {type(outcome.y_pred) for outcome in learned} == {type(labels[0])}
        (predicted,) = first.call("events.predict", name, body=[first.question(x)])
        assert predicted.y in labels
        assert type(predicted.y) is type(labels[0])


class OpenAPIGenerator:
    def __init__(self, document: Path, folder: Path, url: str) -> None:
        command = ["generate", "-g", "python", "-i", str(document), "-o", str(folder)]
        done = subprocess.run(
            ["openapi-generator-cli", *command, "--package-name", "hinged_og"],
            cwd=folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.made: Any = imported(folder, "hinged_og")
        self.api = self.made.ApiClient(self.made.Configuration(host=url))
        self.models, self.events = self.made.ModelsApi(self.api), self.made.EventsApi(self.api)

    def put(self, name: str, spec: dict[str, Any]) -> Any:
        body = self.made.ModelSpec.from_dict(spec)
        return self.models.put_model(name, body)

    def learn(self, name: str, body: Any) -> Any:
        return self.events.learn(name, self.made.LearnRequest(body)).actual_instance

    def predict(self, name: str, body: Any) -> Any:
        return self.events.predict(name, self.made.PredictRequest(body)).actual_instance


@pytest.fixture(scope="module")
def second(
    service: Service, document: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenAPIGenerator]:
    if shutil.which("openapi-generator-cli") is None:
        pytest.skip("openapi-generator-cli, which needs Java, is not there")
    pytest.importorskip("dateutil", reason="what it generates needs python-dateutil")
    client = OpenAPIGenerator(document, tmp_path_factory.mktemp("og"), service.url)
    yield client
    client.api.rest_client.pool_manager.clear()


def test_openapi_generator_creates_lists_and_shows(second: OpenAPIGenerator) -> None:
    made = {f"generated-{next(names)}": spec for spec in SPECS}
    for name, spec in made.items():
        listed = second.put(name, spec)
        info = second.models.get_model(name)
        assert (info.name, info.events) == (name, 0)
        assert json.loads(info.spec.to_json())["learner"]["type"] == spec["learner"]["type"]
        assert second.put(name, info.spec.to_dict()).to_json() == listed.to_json()
    found = second.models.list_models()
    assert set(made) <= {listed.name for listed in found}


def test_openapi_generator_learns_and_predicts_one_and_many(
    second: OpenAPIGenerator, name: str
) -> None:
    second.put(name, SPECS[0])
    event, question = second.made.Event, second.made.Question
    spam, ham = event(**SPAM), event(**HAM)
    one = second.learn(name, spam)
    assert (one.y_pred, one.score, one.mistake, one.duplicate) == ("ham", 0.0, True, False)
    many = second.learn(name, [spam, ham, ham])
    assert [learned.score for learned in many] == [0.5 + 0.5 * 0.25 + 0.5, 0.5, None]
    assert [learned.duplicate for learned in many] == [False, False, True]
    predicted = second.predict(name, question(x={"free": 1}))
    assert (predicted.y, predicted.score) == ("spam", 0.5)
    many = second.predict(name, [question(x={"free": 2}), question(x={"lunch": 1}, id="later")])
    assert [(p.y, p.score) for p in many] == [("spam", 1.0), ("ham", -0.5)]
    assert many[0].proba.keys() == {"ham", "spam"}
    assert second.learn(name, event(id="later", y="ham")).y_pred == "ham"
    with pytest.raises(second.made.ApiException) as caught:
        second.learn(name, [spam, event(x={"a": 1}, y="eggs")])
    assert (caught.value.status, caught.value.data.errors[0].var_field) == (422, "[1].y")
    assert second.models.get_model(name).events == 4
    body = second.made.LearnRequest.from_dict([SPAM, {"id": "later", "y": "ham"}])
    again = second.events.learn(name, body).actual_instance
    assert [learned.duplicate for learned in again] == [False, True]
