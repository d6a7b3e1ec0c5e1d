"""Every JSON answer ends with one newline: a terminal shows the next prompt on its own line."""

from __future__ import annotations

import httpx

LINES = {"content-type": "application/x-ndjson"}


def test_every_json_answer_ends_with_one_newline(client: httpx.Client) -> None:
    path = "/v1/models/newline"
    event = {"x": {"a": 1}, "y": True}
    inputs = [{"name": "a", "datatype": "FP64", "shape": [1, 1], "data": [1.0]}]
    calls: list[tuple[str, str, object]] = [
        ("PUT", path, {"learner": {"type": "perceptron"}}),
        ("GET", path, None),
        ("GET", "/v1/models", None),
        ("POST", f"{path}/learn", event),
        ("POST", f"{path}/learn", [event] * 3_000),  # in pieces
        ("POST", f"{path}/learn", []),
        ("POST", f"{path}/learn", {"x": {"a": "text"}, "y": True}),
        ("POST", f"{path}/learn?wrong=1", event),
        ("POST", f"{path}/predict", {"x": {"a": 1}}),
        ("POST", f"{path}/predict", {"x": {"a": 1}, "id": "p1"}),
        ("POST", f"{path}/predict?proba=none", {"x": {"a": 1}}),
        ("POST", f"{path}/predict", [{"x": {"a": 1}}] * 3_000),
        ("POST", f"{path}/predict", [{"x": {"a": "text"}}]),
        ("POST", f"{path}/checkpoints", {"name": "kept"}),
        ("GET", f"{path}/checkpoints/kept/export", None),
        ("GET", f"{path}/weights", None),
        ("GET", f"{path}/nothing", None),
        ("GET", "/v1/models/missing", None),
        ("POST", f"/v2{path[3:]}/infer", {"inputs": inputs}),
        ("POST", f"/v2{path[3:]}/infer", {"inputs": []}),
        ("GET", "/v2", None),
        ("GET", f"/v2{path[3:]}", None),
        ("GET", "/healthz", None),
        ("GET", "/readyz", None),
        ("DELETE", "/v1/models", None),
    ]
    for method, at, body in calls:
        answer = client.request(method, at, json=body)
        assert answer.headers["content-type"].split(";")[0].endswith("json"), (method, at)
        assert answer.content[-1:] == b"\n", (method, at, answer.text[-80:])
        assert answer.content[-2:-1] in (b"}", b"]"), (method, at, answer.text[-80:])
        if "content-length" in answer.headers:
            assert int(answer.headers["content-length"]) == len(answer.content)
    line = b'{"x": {"a": 1}, "y": true}'
    for query in ("", "?results=summary"):
        answer = client.post(f"{path}/learn{query}", content=line, headers=LINES)
        assert answer.content[-2:] == b"}\n"
