"""The Open Inference Protocol answers the predictions of `/v1`, in tensors."""

import json
import random
from typing import Any

import httpx
import pytest

from tests.support.shared_service import NewModel

Row = dict[str, Any]


def infer(client: httpx.Client, model: str, inputs: list[Any], **more: Any) -> dict[str, Any]:
    answer = client.post(f"/v2/models/{name_of(model)}/infer", json={"inputs": inputs, **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def name_of(model: str) -> str:
    return model.rpartition("/")[2]


def feature(name: str, datatype: str, data: list[Any], shape: list[int] | None = None) -> Any:
    return {"name": name, "shape": shape or [len(data)], "datatype": datatype, "data": data}


def outputs(answer: dict[str, Any]) -> dict[str, Any]:
    return {tensor["name"]: tensor["data"] for tensor in answer["outputs"]}


def check_equal(client: httpx.Client, model: str, rows: list[Row], answer: dict[str, Any]) -> None:
    """Compare the tensors with what `/v1` predicts for the rows."""
    expected = client.post(f"{model}/predict", json=[{"x": row} for row in rows]).json()
    tensors = {tensor["name"]: tensor for tensor in answer["outputs"]}
    classes, n = tensors["classes"]["data"], len(rows)
    assert tensors["label"]["data"] == [p["y"] for p in expected]
    assert [type(y) for y in tensors["label"]["data"]] == [type(p["y"]) for p in expected]
    assert tensors["score"]["data"] == [p["score"] for p in expected]
    assert tensors["label"]["shape"] == tensors["score"]["shape"] == [n]
    assert tensors["probabilities"]["shape"] == [n, len(classes)]
    assert tensors["classes"]["shape"] == [len(classes)]
    assert tensors["probabilities"]["data"] == [p["proba"][c] for p in expected for c in classes]
    assert set(classes) == set(expected[0]["proba"])
    assert answer["model_version"] == expected[0]["position"]


SPECS: list[tuple[dict[str, Any], list[Any], str]] = [
    ({}, [True, False], "BOOL"),
    ({"labels": [0, 1]}, [1, 0], "INT64"),
    ({"labels": ["ham", "spam"]}, ["spam", "ham"], "BYTES"),
    ({"learner": {"type": "arow"}}, [True, False], "BOOL"),
    ({"learner": {"type": "hedge"}}, [True, False], "BOOL"),
    ({"learner": {"type": "multiclass_perceptron"}}, ["a", "b", "c"], "BYTES"),
    ({"learner": {"type": "multiclass_arow"}, "labels": "integers"}, [3, 1, 2], "INT64"),
    ({"learner": {"type": "auto"}}, [3, 1, 2], "INT64"),
    ({"learner": {"type": "auto"}}, [True, False], "BOOL"),
    ({"learner": {"type": "GaussianNB"}}, ["a", "b", "c"], "BYTES"),
    ({"learner": {"type": "LogisticRegression"}}, [True, False], "BOOL"),
    ({"pipeline": [{"type": "StandardScaler"}]}, [True, False], "BOOL"),
]


@pytest.mark.parametrize(("spec", "labels", "datatype"), SPECS)
def test_every_kind_of_model_predicts_as_through_v1(
    client: httpx.Client,
    new_model: NewModel,
    spec: dict[str, Any],
    labels: list[Any],
    datatype: str,
) -> None:
    model = new_model(**spec)
    chance = random.Random(7)
    rows = [{"a": chance.gauss(0, 1), "b": float(chance.randrange(9))} for _ in range(40)]
    events = [{"x": row, "y": labels[i % len(labels)]} for i, row in enumerate(rows)]
    client.post(f"{model}/learn", json=events).raise_for_status()
    columns = [
        feature("a", "FP64", [row["a"] for row in rows]),
        feature("b", "INT32", [int(row["b"]) for row in rows], [40, 1]),
    ]
    answer = infer(client, model, columns)
    check_equal(client, model, rows, answer)
    assert answer["outputs"][0]["datatype"] == datatype
    table: dict[str, Any] = {
        "name": "x",
        "shape": [40, 2],
        "datatype": "FP64",
        "parameters": {"feature_names": ["a", "b"]},
        "data": [[row["a"], row["b"]] for row in rows],
    }
    assert infer(client, model, [table])["outputs"] == answer["outputs"]
    flat = {
        **table,
        "data": [value for row in table["data"] for value in row],
        "parameters": {"feature_names": json.dumps(["a", "b"])},
    }
    assert infer(client, model, [flat])["outputs"] == answer["outputs"]
    about = client.get(f"/v2/models/{name_of(model)}").json()
    assert [t["name"] for t in about["outputs"]] == [t["name"] for t in answer["outputs"]]
    for described, tensor in zip(about["outputs"], answer["outputs"], strict=True):
        assert described["datatype"] == tensor["datatype"]
        assert len(described["shape"]) == len(tensor["shape"])
        assert all(d in (-1, s) for d, s in zip(described["shape"], tensor["shape"], strict=True))


def test_by_hand(client: httpx.Client, model: str) -> None:
    client.post(f"{model}/learn", json={"x": {"a": 2.0}, "y": True}).raise_for_status()
    answer = infer(client, model, [feature("a", "FP32", [1, -2.0])])
    assert outputs(answer) == {
        "label": [True, False],
        "score": [3.0, -3.0],
        "probabilities": [
            pytest.approx(0.0474258732, abs=1e-9),
            pytest.approx(0.9525741268, abs=1e-9),
            pytest.approx(0.9525741268, abs=1e-9),
            pytest.approx(0.0474258732, abs=1e-9),
        ],
        "classes": ["false", "true"],
    }


def test_true_and_false_are_numbers_to_a_model_of_numbers(client: httpx.Client, model: str) -> None:
    client.post(f"{model}/learn", json={"x": {"a": 1.0}, "y": True}).raise_for_status()
    answer = infer(client, model, [feature("a", "BOOL", [True, False])])
    check_equal(client, model, [{"a": 1}, {"a": 0}], answer)


def test_text_and_flags_and_gaps_go_to_a_pipeline(
    client: httpx.Client, new_model: NewModel
) -> None:
    model = new_model(pipeline=[{"type": "OneHotEncoder"}])
    rows = [{"city": "Bern", "new": True}, {"city": "Wien", "new": False}]
    events = [{"x": row, "y": i == 0} for i, row in enumerate(rows)]
    client.post(f"{model}/learn", json=events).raise_for_status()
    inputs = [
        feature("city", "BYTES", ["Bern", "Wien"]),
        feature("new", "BOOL", [True, False], [2, 1]),
    ]
    check_equal(client, model, rows, infer(client, model, inputs))
    gaps = new_model(
        pipeline=[{"type": "StatImputer", "imputers": [{"feature": "a", "statistic": "Mean"}]}]
    )
    client.post(f"{gaps}/learn", json={"x": {"a": 4.0}, "y": True}).raise_for_status()
    answer = infer(client, gaps, [feature("a", "FP64", [None, 2.0])])
    check_equal(client, gaps, [{"a": None}, {"a": 2.0}], answer)


def test_only_the_outputs_that_are_asked_for_and_the_id(client: httpx.Client, model: str) -> None:
    wanted = [{"name": "score"}, {"name": "label", "parameters": {}}]
    answer = infer(client, model, [feature("a", "FP64", [1.0])], id="42", outputs=wanted)
    assert [tensor["name"] for tensor in answer["outputs"]] == ["score", "label"]
    assert (answer["id"], answer["model_name"]) == ("42", name_of(model))
    assert "id" not in infer(client, model, [feature("a", "FP64", [1.0])], outputs=[])


def test_a_version_is_what_the_model_has_learned_at_least(client: httpx.Client, model: str) -> None:
    learned = client.post(f"{model}/learn", json={"x": {"a": 2.0}, "y": True}).json()
    path = f"/v2/models/{name_of(model)}/versions/{learned['position']}"
    body = {"inputs": [feature("a", "FP64", [1.0])]}
    answer = client.post(f"{path}/infer", json=body).json()
    assert answer["model_version"] == learned["position"]
    assert outputs(answer)["score"] == [3.0]
    assert client.get(path).json()["versions"] == [learned["position"]]
    ready = {"name": name_of(model), "ready": True}
    assert client.get(f"{path}/ready").json() == ready
    assert client.get(f"/v2/models/{name_of(model)}/ready").json() == ready
    later = client.post(f"{model}/learn", json={"x": {"a": 2.0}, "y": True}).json()["position"]
    assert client.post(f"{path}/infer", json=body).status_code == 200
    assert later != learned["position"]


def test_an_alias_is_a_model_here_too(client: httpx.Client, model: str) -> None:
    alias = f"alias-of-{name_of(model)}"
    client.put(f"/v1/aliases/{alias}", json={"model": name_of(model)}).raise_for_status()
    assert infer(client, alias, [feature("a", "FP64", [1.0])])["model_name"] == alias


def test_the_server_tells_about_itself(client: httpx.Client) -> None:
    about = client.get("/v2").json()
    assert about["name"] == "hinged"
    assert about["extensions"] == []
    assert about["version"] == client.get("/openapi.json").json()["info"]["version"]
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").json() == {"ready": True}


def test_a_model_tells_about_itself(client: httpx.Client, new_model: NewModel) -> None:
    model = new_model(pipeline=[{"type": "OneHotEncoder"}])
    about = client.get(f"/v2/models/{name_of(model)}").json()
    assert about["name"] == name_of(model)
    assert about["platform"] == "hinged_perceptron"
    assert [(t["datatype"], t["shape"]) for t in about["inputs"]] == [
        ("FP64", [-1, -1]),
        ("BYTES", [-1, -1]),
    ]
    assert about["versions"] == [client.get(model).json()["position"]]


def test_the_document_describes_every_call(client: httpx.Client, model: str) -> None:
    document = client.get("/openapi.json").json()
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/InferenceError"}}}
    paths = {path: calls for path, calls in document["paths"].items() if path.startswith("/v2")}
    assert len(paths) == 9
    for calls in paths.values():
        for call in calls.values():
            assert call["summary"]
            for code, answer in call["responses"].items():
                if code >= "400" and code not in ("401", "403", "429"):  # an admitted caller
                    assert answer["content"] == error
    examples = document["components"]["schemas"]["InferenceRequest"]["examples"]
    assert len(examples) >= 2
    for example in examples:
        answer = client.post(f"/v2/models/{name_of(model)}/infer", json=example)
        assert answer.status_code == 200, answer.text
