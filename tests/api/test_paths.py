"""Paths and methods: names in a path, unknown paths, methods that a path does not have."""

import httpx
import pytest

from tests.support.checks import check_problem
from tests.support.service import Service, post_bytes, send_raw

PERCEPTRON = {"type": "perceptron"}
BAD_NAMES = ["{a}", "a{b", "a%7Bb%7D", "a%20b", "a%00", "a%0A", "%0Aa", "-a", ".a", "_a", "a:b"]
BAD_NAMES += ["a*", "%C3%A9", "%FF%FE", "%ED%A0%80", "a" * 129, "a,b", "a%25b", "%7B%7D", "a;b"]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_name_that_a_key_could_not_hold_is_refused(service: Service, name: str) -> None:
    body = b'{"learner":{"type":"perceptron"}}'
    request = post_bytes(f"/v1/models/{name}", body, "Content-Type: application/json")
    answer = send_raw(service.port, request.replace(b"POST", b"PUT", 1))
    check_problem(answer, 422)
    assert [e["field"] for e in answer.json()["errors"]] == ["path.model"]
    for call in ("learn", "predict"):
        asked = send_raw(service.port, post_bytes(f"/v1/models/{name}/{call}", b'{"x":{}}'))
        check_problem(asked, 404)


@pytest.mark.parametrize("name", ["a%2Fb", "a/b", "..%2Fa", "%2E%2E/a", "", "/", "a/b/c/d"])
def test_a_path_that_leads_nowhere_is_404(service: Service, name: str) -> None:
    for method in (b"PUT", b"POST", b"GET", b"DELETE"):
        for call in ("", "/learn", "/weights"):
            request = post_bytes(f"/v1/models/{name}{call}", b"{}")
            answer = send_raw(service.port, request.replace(b"POST", method, 1))
            assert answer.status in (404, 405), (method, call, answer)
            assert answer.headers["content-type"] == "application/problem+json"


def test_percent_encoding_of_a_plain_character_is_that_character(
    service: Service, client: httpx.Client
) -> None:
    client.put("/v1/models/plain-a", json={"learner": PERCEPTRON})
    for path in ("/v1/models/plain%2Da/predict", "/v1/models/plain-%61/%70redict"):
        assert send_raw(service.port, post_bytes(path, b'{"x":{}}')).status == 200


def test_an_unknown_model_is_404_in_every_call(client: httpx.Client) -> None:
    path = "/v1/models/nobody"
    for answer in (
        client.get(path),
        client.get(f"{path}/weights"),
        client.delete(path),
        client.post(f"{path}/learn", json={"x": {}, "y": True}),
        client.post(f"{path}/learn", json=[]),
        client.post(f"{path}/predict", json={"x": {}}),
        client.post(f"{path}/predict", content=b"\xff"),
    ):
        problem = check_problem(answer, 404)
        assert "nobody" in problem["detail"]
    long = client.get("/v1/models/" + "n" * 50_000)
    assert check_problem(long, 404)
    assert len(long.content) < 2_000
    for unknown in ("/page", "/v1/", "/v2/models", "/v1/models/nobody/forget", "/favicon.ico"):
        assert "/docs" in check_problem(client.get(unknown), 404)["detail"]


def test_a_method_that_a_path_has_not_is_405_and_says_which_it_has(
    client: httpx.Client, model: str
) -> None:
    wrong = [
        ("POST", "/v1/models", {"GET", "HEAD"}),
        ("POST", model, {"PUT", "GET", "HEAD", "DELETE"}),
        ("PATCH", model, {"PUT", "GET", "HEAD", "DELETE"}),
        ("GET", f"{model}/learn", {"POST"}),
        ("PUT", f"{model}/learn", {"POST"}),
        ("DELETE", f"{model}/predict", {"POST"}),
        ("POST", f"{model}/weights", {"GET", "HEAD"}),
        ("POST", "/healthz", {"GET", "HEAD"}),
        ("PROPFIND", f"{model}/predict", {"POST"}),
    ]
    for method, path, allowed in wrong:
        answer = client.request(method, path)
        assert check_problem(answer, 405)["detail"].startswith("This path takes ")
        assert set(answer.headers["allow"].replace(" ", "").split(",")) == allowed, (method, path)
    for path in (model, f"{model}/learn", "/healthz", "/v1/models"):
        assert client.request("OPTIONS", path).status_code in (200, 204, 405)
    assert client.get(model).status_code == 200


def test_a_path_with_a_slash_too_many_is_404_not_sent_elsewhere(
    client: httpx.Client, model: str
) -> None:
    for path in ("/v1/models/", f"{model}/", f"{model}/weights/", "/healthz/"):
        check_problem(client.get(path), 404)
    check_problem(client.post(f"{model}/learn/", json={"x": {"a": 1}, "y": True}), 404)
    assert client.get(model).json()["events"] == 0
