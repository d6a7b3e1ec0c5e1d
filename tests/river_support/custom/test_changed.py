"""A change of code without a new version is reported, and nothing is folded."""

from __future__ import annotations

from pathlib import Path

from tests.support.service import Service

MODELS = """
from river import preprocessing
import hinged
from hinged_service.custom import CustomModel

def models():
    return {"mine": CustomModel(lambda: preprocessing.StandardScaler() | hinged.Perceptron(), "2")}
"""
LEARNER = {"type": "custom", "name": "mine", "version": "2"}


def test_code_that_changed_without_a_new_version_is_found_out(
    redis_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "my_models.py"
    file.write_text(MODELS)
    with Service(redis_url, models=str(file)) as service, service.client() as client:
        assert client.put("/v1/models/changed", json={"learner": LEARNER}).status_code == 201
        event = {"x": {"a": 1.0}, "y": True}
        assert client.post("/v1/models/changed/learn", json=event).status_code == 200
    file.write_text(MODELS.replace("Perceptron()", "Perceptron(2.0)"))
    with Service(redis_url, models=str(file)) as service, service.client() as client:
        answer = client.post("/v1/models/changed/predict", json={"x": {"a": 1.0}})
        assert answer.status_code == 503
        assert "its code builds something else" in answer.json()["detail"]
    file.write_text(MODELS)
    with Service(redis_url, models=str(file)) as service, service.client() as client:
        assert client.post("/v1/models/changed/predict", json={"x": {"a": 1.0}}).is_success
        assert client.get("/v1/models/changed").json()["events"] == 1
