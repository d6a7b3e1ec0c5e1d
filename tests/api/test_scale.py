"""The option `"scale": "auto"`: the same learner behind `hinged.AutoScaler`, through every door."""

import json
import random
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from river import compose

import hinged
from hinged_service.model.spec import ModelSpec
from tests.support.shared_service import NewModel

LINES = {"content-type": "application/x-ndjson"}


def events(n: int = 200) -> list[dict[str, Any]]:
    r = random.Random(1)
    made: list[dict[str, Any]] = []
    for i in range(n):
        x = {"area": r.gauss(900.0, 40.0), "flag": float(r.random() < 0.3), f"w{i % 23}": 2}
        if i % 4:
            x["temperature"] = r.gauss(-3.0, 0.01)
        made.append({"x": x, "y": x["area"] > 900.0})
    made[60]["x"]["area"] = 1e9
    return made


def in_process() -> Any:
    model: Any = compose.Pipeline(hinged.AutoScaler(), hinged.PassiveAggressive())
    for event in events():
        model.learn_one(event["x"], event["y"])
    return model


def test_every_door_makes_the_model_that_the_library_makes(
    client: httpx.Client, new_model: NewModel
) -> None:
    spec: dict[str, Any] = {"learner": {"type": "passive_aggressive"}, "metrics": ["accuracy"]}
    single, array, lines = (new_model(**spec, scale="auto") for _ in range(3))
    listed = new_model(**spec, pipeline=[{"type": "AutoScaler"}])
    for event in events():
        assert client.post(f"{single}/learn", json=event).status_code == 200
    for path in (array, listed):
        assert client.post(f"{path}/learn", json=events()).status_code == 200
    body = "\n".join(map(json.dumps, events()))
    assert client.post(f"{lines}/learn", content=body, headers=LINES).status_code == 200
    here = in_process()
    question = {"area": 950.5, "flag": 1.0, "w3": 2.0, "temperature": -3.01, "never seen": 5.0}
    accuracies = set()
    for path in (single, array, lines, listed):
        weights = client.get(f"{path}/weights").json()["weights"]
        assert weights == here["PassiveAggressive"].weights
        answer = client.post(f"{path}/predict", json={"x": question}).json()
        assert answer["proba"]["true"] == here.predict_proba_one(question)[True]
        explained = client.post(f"{path}/explain", json={"x": question}).json()
        assert set(explained["contributions"]) == set(question)
        total = explained["intercept"] + sum(explained["contributions"].values())
        assert total == pytest.approx(answer["score"], rel=1e-12)
        accuracies.add(client.get(path).json()["metrics"]["accuracy"])
    assert len(accuracies) == 1
    assert min(accuracies) > 0.85


def test_features_stay_numbers_and_a_fault_is_named(
    client: httpx.Client, new_model: NewModel
) -> None:
    path = new_model(scale="auto")
    for wrong in ("red", True, None, 1e200):
        answer = client.post(f"{path}/learn", json={"x": {"a": wrong}, "y": True})
        assert answer.status_code == 422, answer.text
        assert "x['a']" in answer.text or "x.a" in answer.text
    assert client.get(path).json()["events"] == 0
    encoded = new_model(scale="auto", pipeline=[{"type": "OneHotEncoder"}])
    event = {"x": {"colour": "red"}, "y": True}
    assert client.post(f"{encoded}/learn", json=event).status_code == 200
    assert client.get(f"{encoded}/weights").json()["weights"] == {"colour_red": 1.0}


def test_what_it_keeps_counts_in_bytes(client: httpx.Client, new_model: NewModel) -> None:
    path = new_model(scale="auto", max_bytes=8_192)
    many = [{"x": {f"feature {i}": 1.0}, "y": True} for i in range(25)]
    assert client.post(f"{path}/learn", json=many).status_code == 200
    info = client.get(path).json()
    # half is for the scaler: three records of 8 numbers; and one weight of the perceptron
    assert 25 * 128 < info["bytes"] < 26 * 128 + 99


def test_scaled_first_then_curved(client: httpx.Client, new_model: NewModel) -> None:
    curves = {"type": "FourierFeatures", "n_components": 20}
    path = new_model(learner={"type": "arow"}, scale="auto", pipeline=[curves])
    expert = {"type": "curved", "n_components": 20}
    alone = new_model(learner=expert, scale="auto")
    here: Any = hinged.AutoScaler() | hinged.FourierFeatures(20) | hinged.AROW()
    for event in events():
        here.learn_one(event["x"], event["y"])
    question = {"area": 950.5, "flag": 1.0}
    for one in (path, alone):
        assert client.post(f"{one}/learn", json=events()).status_code == 200
        assert client.get(f"{one}/weights").json()["weights"] == here["AROW"].weights
        answer = client.post(f"{one}/predict", json={"x": question}).json()
        assert answer["proba"]["true"] == here.predict_proba_one(question)[True]
    explained = client.post(f"{path}/explain", json={"x": question}).json()
    assert set(explained["contributions"]) == {f"cos_{j}" for j in range(20)}
    assert set(explained["features"]) == set(question)
    total = explained["intercept"] + sum(explained["features"].values())
    assert total == pytest.approx(explained["score"], rel=1e-9)


@pytest.mark.parametrize("scale", ["standard", True, {}])
def test_no_other_word_is_taken(scale: object) -> None:
    with pytest.raises(ValidationError, match="scale"):
        ModelSpec.model_validate_json(
            json.dumps({"learner": {"type": "perceptron"}, "scale": scale})
        )


def test_a_custom_model_takes_no_scale() -> None:
    learner = {"type": "custom", "name": "mine", "version": "1"}
    with pytest.raises(ValidationError, match="pipeline of its own"):
        ModelSpec.model_validate_json(json.dumps({"learner": learner, "scale": "auto"}))
