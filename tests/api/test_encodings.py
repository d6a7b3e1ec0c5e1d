"""Byte order marks and other encodings of a JSON body: one rule for every call that takes one."""

import json
from typing import Any

import httpx
import pytest

from tests.support.shared_service import NewModel

MARK = b"\xef\xbb\xbf"
JSON = {"content-type": "application/json"}


def calls(client: httpx.Client) -> list[tuple[str, str]]:
    """Return method and path of every call that takes a JSON body."""
    paths = client.get("/openapi.json").json()["paths"]
    found = [
        (method, path)
        for path, methods in paths.items()
        for method, call in methods.items()
        if "application/json" in call.get("requestBody", {}).get("content", {})
    ]
    assert len(found) > 10
    return found


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("{}".encode("utf-16"), "UTF-16"),
        (b"\xfe\xff" + "{}".encode("utf-16-be"), "UTF-16"),
        ('{"x":{}}'.encode("utf-16-le"), "UTF-16"),
        ("[1]".encode("utf-16-be"), "UTF-16"),
        ("{}".encode("utf-32"), "UTF-32"),
        (b"\x00\x00\xfe\xff" + "{}".encode("utf-32-be"), "UTF-32"),
        ("{}".encode("utf-32-le"), "UTF-32"),
        ("{}".encode("utf-32-be"), "UTF-32"),
    ],
)
def test_every_call_names_an_encoding_that_it_does_not_take(
    client: httpx.Client, new_model: NewModel, text: bytes, name: str
) -> None:
    model = new_model().rpartition("/")[2]
    for method, path in calls(client):
        at = path.format(model=model, alias="a", version="1-1." + "0" * 40)
        answer = client.request(method.upper(), at, content=text, headers=JSON)
        assert answer.status_code == 400, (method, path)
        assert f"is {name}" in answer.text, (method, path)


def test_every_call_passes_over_marks_in_front(client: httpx.Client, new_model: NewModel) -> None:
    bodies: list[Any] = [{}, [], {"x": {"a": 1}}, {"learner": {"type": "arow"}}, {"inputs": 1}]
    for method, path in calls(client):
        for body in bodies:
            codes = []
            for mark in (b"", MARK, b" " + MARK + MARK):
                model = new_model().rpartition("/")[2]
                at = path.format(model=model, alias=f"{model}-a", version="1-1." + "0" * 40)
                content = mark + json.dumps(body).encode()
                answer = client.request(method.upper(), at, content=content, headers=JSON)
                errors = answer.json().get("errors") if not answer.is_success else None
                codes.append((answer.status_code, errors))
            assert codes[1:] == [codes[0]] * 2, (method, path, body)


def test_a_model_moves_and_predicts_with_a_mark_in_front(
    client: httpx.Client, new_model: NewModel
) -> None:
    one = new_model()
    client.post(f"{one}/learn", json={"x": {"a": 1}, "y": True}).raise_for_status()
    other = f"{one}-moved"
    taken = client.post(f"{one}/checkpoints", json={"name": "c"}).json()["name"]
    document = client.get(f"{one}/checkpoints/{taken}/export").content
    made = client.post(f"{other}/import", content=MARK + document, headers=JSON)
    assert made.status_code == 201
    asked = b'{"inputs":[{"name":"a","shape":[1],"datatype":"FP64","data":[2]}]}'
    name = other.rpartition("/")[2]
    answer = client.post(f"/v2/models/{name}/infer", content=MARK + asked, headers=JSON)
    scores = {tensor["name"]: tensor["data"] for tensor in answer.json()["outputs"]}
    assert scores["score"] == [3.0]  # 2 * 1 and the intercept
    question = client.post(f"{other}/predict", content=MARK + b'{"x":{"a":2}}', headers=JSON)
    assert question.json()["score"] == 3.0
