"""Models of the service in MLflow: saved, loaded as `python_function`, and their metrics."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hinged_service.client import Client
from hinged_service.follow import Follower
from tests.support.service import Service

pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(find_spec("mlflow") is None, reason="MLflow is not installed"),
]

SPEC = {
    "learner": {"type": "logistic_sgd"},
    "pipeline": [{"type": "StandardScaler"}],
    "labels": ["ham", "spam"],
    "metrics": ["accuracy"],
}
EVENTS = [
    {"x": {"a": float(n % 5), "b": float(n % 3)}, "y": "spam" if n % 5 > n % 3 else "ham"}
    for n in range(40)
]
FRAME = pd.DataFrame([{"a": 3.0, "b": 1.0}, {"a": 0.0, "b": 2.0}, {"a": 4.0}])


@pytest.fixture
def mlflow() -> Any:
    """The library, whose import takes seconds that only these tests shall spend."""
    import mlflow

    return mlflow


@pytest.fixture
def api(service: Service) -> Iterator[Client]:
    """A client; the model `flavoured` has learned the events."""
    with Client(service.url) as client:
        client.create_model("flavoured", SPEC)
        list(client.learn_many("flavoured", EVENTS))
        yield client
        client.delete_model("flavoured")


@pytest.fixture
def run(mlflow: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A run of MLflow in a folder of the test's own."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # instead of a database
    mlflow.set_tracking_uri(tmp_path.as_uri())
    mlflow.set_experiment("test")
    with mlflow.start_run() as made:
        yield made
    mlflow.set_tracking_uri(None)


def expected(api: Client) -> tuple[list[Any], list[dict[str, float]]]:
    """Return labels and probabilities of the frame, as the service tells them."""
    rows = [{k: v for k, v in row.items() if v == v} for row in FRAME.to_dict("records")]
    answers = list(api.predict_many("flavoured", rows))
    return [one.y for one in answers], [dict(one.proba) for one in answers]


def test_a_saved_model_predicts_as_the_service(mlflow: Any, api: Client, tmp_path: Path) -> None:
    from hinged_service import mlflow as flavour

    folder = tmp_path / "model"
    flavour.save_model(folder, flavour.export_model(api, "flavoured"))
    loaded = mlflow.pyfunc.load_model(str(folder))
    labels, probas = expected(api)
    assert loaded.predict(FRAME) == labels
    assert loaded.predict(FRAME, params={"output": "proba"}).to_dict("records") == probas
    with pytest.raises(ValueError, match="output"):
        loaded.predict(FRAME, params={"output": "score"})
    river: Any = flavour.load_model(str(folder))
    assert [river.predict_one(x) for x in ({"a": 3.0, "b": 1.0}, {"a": 0.0, "b": 2.0})] == labels[
        :2
    ]
    files = {path.name for path in folder.iterdir()}
    assert files == {"MLmodel", "model.json", "requirements.txt", "python_env.yaml"}
    both: dict[str, Any] = {"document": b"{}", "follow": "m"}
    for wrong in ({}, both):
        with pytest.raises(ValueError, match="either"):
            flavour.save_model(tmp_path / "wrong", **wrong)
    assert not (tmp_path / "wrong").exists()


def test_a_followed_model_learns_on_and_holds_no_address(
    mlflow: Any, api: Client, service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hinged_service import mlflow as flavour

    folder, url = tmp_path / "model", str(service.settings.redis_url)
    flavour.save_model(folder, follow="flavoured")
    assert not any(url in path.read_text() for path in folder.iterdir())
    monkeypatch.delenv("HINGED_REDIS_URL", raising=False)
    with pytest.raises(ValueError, match="HINGED_REDIS_URL"):
        mlflow.pyfunc.load_model(str(folder))
    monkeypatch.setenv("HINGED_REDIS_URL", url)
    loaded = mlflow.pyfunc.load_model(str(folder))
    with loaded._model_impl as model:
        assert isinstance(model.model, Follower)
        *_, last = api.learn_many("flavoured", EVENTS)
        model.model.wait_for(last.position, 20)
        assert loaded.predict(FRAME) == expected(api)[0]


def test_a_run_has_model_and_metrics(mlflow: Any, api: Client, run: Any) -> None:
    from hinged_service import mlflow as flavour

    flavour.log_metrics(api, "flavoured")
    logged = flavour.log_model(flavour.export_model(api, "flavoured"))
    found = mlflow.get_run(run.info.run_id).data
    info = api.model("flavoured")
    assert found.metrics["events"] == len(EVENTS)
    assert found.metrics["mistakes"] == info.mistakes
    assert found.metrics["accuracy"] == info.accuracy
    assert found.tags["hinged.position"] == info.position
    loaded = mlflow.pyfunc.load_model(logged.model_uri)
    assert loaded.predict(FRAME) == expected(api)[0]
    assert logged.flavors["python_function"]["loader_module"] == "hinged_service.mlflow"
