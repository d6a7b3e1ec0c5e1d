"""The OpenAPI document: complete, closed, and true: its own examples are taken by the service."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

CALLS = {
    "/v1/models": {"get"},
    "/v1/models/{model}": {"get", "put", "delete"},
    "/v1/models/{model}/learn": {"post"},
    "/v1/models/{model}/predict": {"post"},
    "/v1/models/{model}/weights": {"get"},
    "/v1/models/{model}/explain": {"post"},
    "/v1/models/{model}/live": {"get"},
    "/v1/models/{model}/bound": {"get"},
    "/v1/models/{model}/recent": {"get"},
    "/v1/models/{model}/history": {"get"},
    "/v1/overview": {"get"},
    **{
        f"/v1/models/{{model}}/{command}": {"post"}
        for command in [
            *("configure", "freeze", "unfreeze", "reset", "restore"),
            *("import", "replay", "upgrade", "repair"),
        ]
    },
    "/v1/models/{model}/checkpoints": {"get", "post"},
    "/v1/models/{model}/checkpoints/{checkpoint}": {"delete"},
    "/v1/models/{model}/checkpoints/{checkpoint}/export": {"get"},
    "/v1/streams": {"get"},
    "/v1/streams/{stream}": {"get"},
    "/v1/aliases": {"get"},
    "/v1/aliases/{alias}": {"put", "delete"},
    "/v1/aliases/{alias}/promote": {"post"},
    "/v2": {"get"},
    "/v2/health/live": {"get"},
    "/v2/health/ready": {"get"},
    **{
        f"/v2/models/{{model}}{version}{call}": {verb}
        for version in ("", "/versions/{version}")
        for call, verb in (("", "get"), ("/ready", "get"), ("/infer", "post"))
    },
    "/healthz": {"get"},
    "/readyz": {"get"},
    "/metrics": {"get"},
}


@pytest.fixture(scope="module")
def document(client: httpx.Client) -> dict[str, Any]:
    answer = client.get("/openapi.json")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for part in value.values():
            yield from nodes(part)
    elif isinstance(value, list):
        for part in value:
            yield from nodes(part)


def resolve(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        found: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema


def fits(document: dict[str, Any], schema: dict[str, Any], value: Any) -> bool:
    """Check a value against the parts of JSON Schema that the document uses."""
    schema = resolve(document, schema)
    if "anyOf" in schema:
        return any(fits(document, one, value) for one in schema["anyOf"])
    kinds = schema.get("type", [])
    if kinds and not any(_is(kind, value) for kind in ([kinds] if type(kinds) is str else kinds)):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "const" in schema and value != schema["const"]:
        return False
    if isinstance(value, dict):
        return _object_fits(document, schema, value)
    if isinstance(value, list) and "items" in schema:
        return all(fits(document, schema["items"], part) for part in value)
    return True


def _object_fits(document: dict[str, Any], schema: dict[str, Any], value: dict[str, Any]) -> bool:
    properties, extra = schema.get("properties", {}), schema.get("additionalProperties", {})
    for name, part in value.items():
        expected = properties.get(name, extra)
        if expected is False or (expected is not True and not fits(document, expected, part)):
            return False
    return set(schema.get("required", [])) <= set(value)


def _is(kind: str, value: object) -> bool:
    kinds: dict[str, tuple[type, ...]] = {
        "object": (dict,),
        "array": (list,),
        "string": (str,),
        "boolean": (bool,),
        "integer": (int,),
        "number": (int, float),
        "null": (type(None),),
    }
    return isinstance(value, kinds[kind]) and (kind == "boolean" or not isinstance(value, bool))


def test_every_call_is_described_and_nothing_else(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.")
    assert {path: set(calls) for path, calls in document["paths"].items()} == CALLS
    for path, calls in document["paths"].items():
        for call in calls.values():
            assert call["summary"]
            assert set(call["responses"]) & {"200", "201", "204"}
            named = {p["name"] for p in call.get("parameters", []) if p["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path))
    ids = [call["operationId"] for calls in document["paths"].values() for call in calls.values()]
    assert len(set(ids)) == len(ids)


def test_every_reference_leads_to_a_schema(document: dict[str, Any]) -> None:
    references = [node["$ref"] for node in nodes(document) if isinstance(node.get("$ref"), str)]
    assert references
    for reference in references:
        assert reference.startswith("#/components/schemas/")
        assert resolve(document, {"$ref": reference})


def test_every_error_is_described_in_the_form_it_has(document: dict[str, Any]) -> None:
    for path, calls in document["paths"].items():
        for verb, call in calls.items():
            for code, answer in call["responses"].items():
                if code[0] not in "45":
                    continue
                form = "Problem", "application/problem+json"
                if path.startswith("/v2") and code not in ("401", "403", "429"):  # they come first
                    form = "InferenceError", "application/json"
                schema = {"$ref": f"#/components/schemas/{form[0]}"}
                assert answer["content"] == {form[1]: {"schema": schema}}, (path, verb, code)


def bodies(document: dict[str, Any], path: str, verb: str) -> list[Any]:
    """Return the examples of a call's body, from the call and from its schema."""
    content = document["paths"][path][verb]["requestBody"]["content"]["application/json"]
    found = [example["value"] for example in content.get("examples", {}).values()]
    schema = resolve(document, content["schema"])
    for one in [schema, *schema.get("anyOf", [])]:
        found += resolve(document, one).get("examples", [])
    return found


def answer_schema(document: dict[str, Any], path: str, verb: str, code: int) -> dict[str, Any]:
    responses = document["paths"][path][verb]["responses"]
    schema: dict[str, Any] = responses[str(code)]["content"]["application/json"]["schema"]
    return schema


def test_the_examples_are_taken_and_the_answers_are_as_described(
    client: httpx.Client, document: dict[str, Any], model: str
) -> None:
    specs = bodies(document, "/v1/models/{model}", "put")
    assert specs
    for n, spec in enumerate(specs):
        path = f"/v1/models/example-{n}"
        for code in (201, 200):
            answer = client.put(path, json=spec)
            assert answer.status_code == code, answer.text
            schema = answer_schema(document, "/v1/models/{model}", "put", code)
            assert fits(document, schema, answer.json())
        client.delete(path)
    for call in ("learn", "learn", "predict"):  # twice: the second answer is the duplicate's
        path = f"/v1/models/{{model}}/{call}"
        examples = bodies(document, path, "post")
        assert len(examples) >= 2
        for body in examples:
            assert not fits(document, {"$ref": "#/components/schemas/ModelInfo"}, body)
            request = document["paths"][path]["post"]["requestBody"]["content"]
            assert fits(document, request["application/json"]["schema"], body)
            answer = client.post(f"{model}/{call}", json=body)
            assert answer.status_code == 200, answer.text
            assert fits(document, answer_schema(document, path, "post", 200), answer.json())
    for path, url in (
        ("/v1/models/{model}", model),
        ("/v1/models/{model}/weights", f"{model}/weights"),
        ("/v1/models", "/v1/models"),
        ("/healthz", "/healthz"),
        ("/readyz", "/readyz"),
    ):
        answer = client.get(url)
        assert fits(document, answer_schema(document, path, "get", 200), answer.json()), url


def test_problems_are_as_described(
    client: httpx.Client, document: dict[str, Any], model: str
) -> None:
    problem = {"$ref": "#/components/schemas/Problem"}
    for answer, path, verb in (
        (client.get("/v1/models/nobody"), "/v1/models/{model}", "get"),
        (client.put(model, json={"learner": 1}), "/v1/models/{model}", "put"),
        (client.put(model, content=b"{"), "/v1/models/{model}", "put"),
        (client.put(model, content=b"{}", headers={"content-type": "a/b"}), None, "put"),
        (client.post(f"{model}/learn", content=b"{"), "/v1/models/{model}/learn", "post"),
        (client.post(f"{model}/learn", json={}), "/v1/models/{model}/learn", "post"),
        (client.get(f"{model}?at_least=x"), "/v1/models/{model}", "get"),
        (client.get(f"{model}/weights?top=0"), "/v1/models/{model}/weights", "get"),
    ):
        described = document["paths"][path or "/v1/models/{model}"][verb]["responses"]
        assert str(answer.status_code) in described, (path, verb, answer.status_code)
        assert fits(document, problem, answer.json())
    assert not fits(document, problem, {"title": "x"})


def test_the_docs_page_is_there(client: httpx.Client) -> None:
    answer = client.get("/docs")
    assert answer.status_code == 200
    assert "/openapi.json" in answer.text
