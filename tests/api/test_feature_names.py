"""Names that transformers make, seen in the weights; what OpenAPI says of them and of kernels."""

from typing import Any

import httpx

from tests.support.shared_service import NewModel


def weights(client: httpx.Client, model: str, *events: dict[str, Any]) -> dict[str, float]:
    """Return the weights once the model has learned the events, all of them true."""
    for x in events:
        answer = client.post(f"{model}/learn", json={"x": x, "y": True})
        assert answer.status_code == 200, answer.text
    at_least = answer.json()["position"]
    found: dict[str, float] = client.get(f"{model}/weights", params={"at_least": at_least}).json()[
        "weights"
    ]
    return found


def test_one_hot_names_collide_as_in_river_unless_a_separator_is_given(
    client: httpx.Client, new_model: NewModel
) -> None:
    event = {"a": "x_y", "a_x": "y"}
    rivers = new_model(pipeline=[{"type": "OneHotEncoder"}])
    assert weights(client, rivers, event) == {"a_x_y": 1.0}
    explained = client.post(f"{rivers}/explain", json={"x": event}).json()
    assert "a_x_y" in str(explained)
    ours = new_model(pipeline=[{"type": "OneHotEncoder", "separator": "="}])
    assert weights(client, ours, event) == {"a=x_y": 1.0, "a_x=y": 1.0}


def test_a_spec_with_the_default_separator_is_the_one_without(
    client: httpx.Client, new_model: NewModel
) -> None:
    learner = {"type": "perceptron"}
    steps: list[dict[str, Any]] = [{"type": "OneHotEncoder"}, {"type": "PolynomialExtender"}]
    model = new_model(pipeline=steps)
    named_steps = [{**steps[0], "separator": "_"}, {**steps[1], "separator": "*"}]
    assert client.put(model, json={"learner": learner, "pipeline": named_steps}).status_code == 200
    other = [{**steps[0], "separator": "="}, steps[1]]
    assert client.put(model, json={"learner": learner, "pipeline": other}).status_code == 409


def test_products_and_words_keep_apart_too(client: httpx.Client, new_model: NewModel) -> None:
    event: dict[str, Any] = {"a*b": 1.0, "a": 2.0, "b": 3.0}
    of = {"type": "PolynomialExtender", "interaction_only": True}
    assert weights(client, new_model(pipeline=[of]), event)["a*b"] == 6.0
    apart = weights(client, new_model(pipeline=[{**of, "separator": "·"}]), event)
    assert (apart["a*b"], apart["a·b"]) == (1.0, 6.0)
    branches = [
        [{"type": "BagOfWords", "on": "title", "prefix": "title "}],
        [{"type": "BagOfWords", "on": "body"}],
    ]
    model = new_model(pipeline=[{"type": "Union", "branches": branches}])
    event = {"title": "free lunch", "body": "free free"}
    assert weights(client, model, event) == {"title free": 1.0, "title lunch": 1.0, "free": 2.0}


def test_a_bad_separator_is_named(client: httpx.Client) -> None:
    for bad in ("", "x" * 17, 1):
        spec = {"pipeline": [{"type": "OneHotEncoder", "separator": bad}]}
        answer = client.put("/v1/models/bad", json={"learner": {"type": "perceptron"}, **spec})
        assert answer.status_code == 422
        assert "separator" in answer.text


def test_nan_is_refused_at_the_door_though_the_learners_take_it(
    client: httpx.Client, new_model: NewModel
) -> None:
    for pipeline in ([], [{"type": "MinMaxScaler"}], [{"type": "OneHotEncoder"}]):
        model = new_model(pipeline=pipeline)
        for value, allowed in (("NaN", (400, 422)), ("1e999", (422,)), ("null", (422,))):
            answer = client.post(
                f"{model}/predict",
                content=f'{{"x": {{"a": {value}}}}}',
                headers={"Content-Type": "application/json"},
            )
            assert answer.status_code in allowed, answer.text
        # a fresh scaler of the service gives 0 where River's gives NaN
        answer = client.post(f"{model}/predict", json={"x": {"a": 1.0}})
        assert (answer.status_code, answer.json()["score"]) == (200, 0.0)


def test_the_document_tells_of_collisions_and_of_the_kernel(client: httpx.Client) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]

    def text(name: str) -> str:
        return " ".join(schemas[name]["description"].split())

    assert "exp(-gamma (x_1 - z_1)^2) + exp(-gamma (x_2 - z_2)^2)" in text("RBFSamplerSpec")
    assert "`a_x_y`" in text("OneHotEncoderSpec")
    assert "separator" in text("PolynomialExtenderSpec")
    assert "prefix" in text("UnionSpec")
