"""Bodies of lines: what a line is, what each is answered, and that it is learned like any other."""

import itertools
import json
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api.ndjson.sending import Sender, event, lines_of
from tests.support.checks import check_problem
from tests.support.running import serving
from tests.support.service import Service
from tests.support.shared_service import NewModel

NDJSON = {"content-type": "application/x-ndjson"}


def post(client: httpx.Client, path: str, body: bytes) -> list[dict[str, Any]]:
    answer = client.post(path, content=body, headers=NDJSON)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    return [json.loads(line) for line in answer.text.splitlines()]


def summary(client: httpx.Client, path: str, body: bytes, **more: str) -> dict[str, Any]:
    answer = client.post(path, content=body, headers=NDJSON, params={"results": "summary", **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


E = [json.dumps(event(n)).encode() for n in range(3)]


@pytest.mark.parametrize(
    ("body", "numbers"),
    [
        (b"\n".join(E) + b"\n", [1, 2, 3]),
        (b"\n\n".join(E) + b"\n \t\n", [1, 3, 5]),
        (b"\r\n".join(E) + b"\r\n", [1, 2, 3]),
        (b"\n".join(E), [1, 2, 3]),
        (b"\xef\xbb\xbf" + b"\n".join(E), [1, 2, 3]),
        (b"\xef\xbb\xbf\n\n" + E[0], [3]),
        (b" \n\t\r\n  ", []),
        (b"", []),
    ],
)
def test_blank_lines_are_no_lines_but_count_in_the_numbers(
    client: httpx.Client, model: str, body: bytes, numbers: list[int]
) -> None:
    assert [answer["line"] for answer in post(client, f"{model}/learn", body)] == numbers
    assert client.get(model).json()["events"] == len(numbers)
    found = summary(client, f"{model}/learn", body)
    assert (found["lines"], found["learned"], found["rejected"]) == (len(numbers), len(numbers), 0)


@pytest.mark.parametrize(
    "kind", ["ndjson", "jsonl", "x-jsonl", "jsonlines", "X-NDJSON; charset=UTF-8"]
)
def test_every_name_of_the_type_is_taken(client: httpx.Client, model: str, kind: str) -> None:
    headers = {"content-type": f"application/{kind}"}
    for call, body in (("learn", E[0]), ("predict", b'{"x":{}}')):
        answer = client.post(f"{model}/{call}", content=body + b"\n" + body, headers=headers)
        assert answer.status_code == 200
        assert len(answer.text.splitlines()) == 2


def test_faults_of_the_request_itself_are_told_by_its_status(
    client: httpx.Client, model: str
) -> None:
    def status(path: str, **headers: str) -> int:
        return client.post(path, content=E[0], headers=NDJSON | headers).status_code

    assert status(f"{model}-none/learn") == 404
    assert status(f"{model}/learn?results=some") == 422
    assert status(f"{model}/learn?source=") == 422
    assert status(f"{model}/predict?at_least=x") == 422
    assert (
        status(f"{model}/learn", **{"content-type": "application/x-ndjson; charset=latin1"}) == 415
    )
    assert status(f"{model}/learn", **{"content-encoding": "gzip"}) == 415
    assert client.get(model).json()["events"] == 0


def test_a_source_is_refused_with_a_body_that_is_not_lines(
    client: httpx.Client, model: str
) -> None:
    answer = client.post(f"{model}/learn?source=day", json=[{"x": {"a": 1}, "y": True}])
    (fault,) = check_problem(answer, 422)["errors"]
    assert fault["field"] == "source"
    assert client.get(model).json()["events"] == 0


def test_an_event_over_two_lines_is_told_by_the_lines_of_the_body(
    client: httpx.Client, model: str
) -> None:
    first, second = post(client, f"{model}/learn", b'{"x":{"a":1},\n"y":true}\n')
    assert (first["line"], second["line"]) == (1, 2)
    assert second["detail"] == "The line is not valid JSON: Extra data (character 3)."


def test_a_bad_line_is_told_and_the_rest_goes_on(client: httpx.Client, new_model: NewModel) -> None:
    model = new_model(labels=["no", "yes"])
    good = [json.dumps({"x": {"a": n}, "y": "yes", "id": f"i{n}"}) for n in range(4)]
    bad = [
        ('{"id":"c"', 400, []),
        ("[" + good[0] + "]", 400, []),
        ('{"x":{"a":1}},{"x":{"a":1}}', 400, []),
        ('{"x":{"a":1},"y":"maybe"}', 422, ["y"]),
        ('{"x":{"a":"text"},"y":"yes"}', 422, ["x['a']"]),
        ('{"x":{"a":1},"y":"yes","w":-1,"z":2}', 422, ["'z'", "w"]),
        ('{"x":{"a":9},"y":"yes","id":"i0"}', 409, ["id"]),
        ('{"y":"yes","id":"never-predicted"}', 404, ["id"]),
        ("[" * 50_000, 400, []),
        ('{"x":{"a":1e999},"y":"yes"}', 422, ["x['a']"]),
    ]
    body = [*good[:2], *(line for line, _, _ in bad), *good[2:], good[0]]
    answers = post(client, f"{model}/learn", "\n".join(body).encode() + b"\n\xff\xfe\n")
    assert [a["line"] for a in answers] == list(range(1, len(body) + 2))
    for (_, status, fields), answer in zip(bad, answers[2:12], strict=True):
        assert (answer["status"], [e["field"] for e in answer.get("errors", [])]) == (
            status,
            fields,
        )
        assert answer["detail"]
    assert answers[-1]["status"] == 400
    assert [a["duplicate"] for a in (*answers[:2], *answers[12:15])] == [False] * 4 + [True]
    assert client.get(model).json()["events"] == 4

    found = summary(client, f"{model}/learn", "\n".join(body).encode())
    assert (found["lines"], found["duplicates"], found["rejected"]) == (15, 5, 10)
    assert [f["line"] for f in found["faults"]] == list(range(3, 13))
    # C56: the repaired line only is learned
    body[2] = '{"x":{"a":5},"y":"no","id":"c"}'
    assert summary(client, f"{model}/learn", "\n".join(body).encode())["learned"] == 1


def test_a_refusal_by_the_fold_is_told_with_its_line(
    client: httpx.Client, new_model: NewModel
) -> None:
    model = new_model(learner={"type": "multiclass_perceptron", "max_classes": 2})
    body = lines_of({"x": {"a": n}, "y": y} for n, y in enumerate("abcab"))
    answers = post(client, f"{model}/learn", body)
    assert [a.get("logged", False) for a in answers] == [False, False, True, False, False]
    assert answers[2]["status"] == 422
    assert client.get(model).json()["events"] == 4


def test_the_summary_counts_and_shows_twenty_faults(client: httpx.Client, model: str) -> None:
    events = [event(n) for n in range(1200)]
    single = client.post(f"{model}/learn", json=events).json()
    lines = lines_of(events)
    client.delete(model)
    client.put(model, json={"learner": {"type": "perceptron"}})
    found = summary(client, f"{model}/learn", lines + b"no\n" * 30)
    mistakes = sum(answer["mistake"] for answer in single)
    assert found["mistakes"] == mistakes
    assert found["accuracy"] == pytest.approx(1 - mistakes / 1200)
    assert (found["lines"], found["learned"], found["rejected"]) == (1230, 1200, 30)
    assert [f["line"] for f in found["faults"]] == list(range(1201, 1221))
    assert client.get(model, params={"at_least": found["position"]}).status_code == 200


def test_single_array_and_lines_make_the_same_model_and_say_the_same(
    client: httpx.Client, new_model: NewModel
) -> None:
    spec = {"learner": {"type": "arow"}, "pipeline": [{"type": "StandardScaler"}]}
    events = [
        event(n, w=1 + n % 3, id=f"e{n}") | {"x": {"a": n / 7, "ü": n % 5}} for n in range(700)
    ]
    one, array, lines = (new_model(**spec) for _ in range(3))
    answers = [
        [client.post(f"{one}/learn", json=e).json() for e in events],
        client.post(f"{array}/learn", json=events).json(),
        post(client, f"{lines}/learn", lines_of(events)),
    ]
    for answer in answers[2]:
        del answer["line"]
    for found in answers:
        for answer in found:
            del answer["position"]
    assert answers[0] == answers[1] == answers[2]
    states = [
        client.get(f"{m}/weights").content.split(b'"position"')[0] for m in (one, array, lines)
    ]
    assert states[0] == states[1] == states[2]
    info = [client.get(m).json() for m in (one, array, lines)]
    assert len({(i["events"], i["mistakes"], i["hinge_loss"]) for i in info}) == 1

    questions = [{"x": e["x"]} for e in events]
    alone = [client.post(f"{one}/predict", json=q).json() for q in questions[:50]]
    streamed = post(client, f"{lines}/predict", lines_of([*questions[:50], {"x": 1}]))
    assert streamed.pop()["status"] == 422
    keep = ("y", "score", "proba")
    assert [[a[k] for k in keep] for a in alone] == [[a[k] for k in keep] for a in streamed]
    found = summary(client, f"{lines}/predict", lines_of(questions))
    assert sum(found["labels"].values()) == found["predicted"] == 700


def test_labels_that_come_later_join_through_lines(
    client: httpx.Client, new_model: NewModel
) -> None:
    model = new_model()
    questions = [{"x": {"a": n}, "id": f"q{n}"} for n in range(3)]
    assert len(post(client, f"{model}/predict", lines_of(questions))) == 3
    again = lines_of([questions[0], {"x": {"a": 9}, "id": "q1"}, questions[2]])
    assert [a.get("status") for a in post(client, f"{model}/predict", again)] == [None, 409, None]
    labels = lines_of({"id": f"q{n}", "y": True} for n in range(3))
    assert all(a["duplicate"] is False for a in post(client, f"{model}/learn", labels))
    assert summary(client, f"{model}/learn", labels)["duplicates"] == 3
    assert client.get(model).json()["events"] == 3


def test_a_line_too_long_is_a_bad_line(service: Service, model: str) -> None:
    url = service.settings.redis_url
    assert url is not None
    with serving(url, max_line_bytes=1024) as client:
        fits = E[0] + b" " * (1024 - len(E[0]))
        body = b"\n".join([fits, fits + b" ", b"x" * 300_000, E[1], b"y" * 2000])
        answers = post(client, f"{model}/learn", body)
        assert [a.get("status") for a in answers] == [None, 413, 413, None, 413]


def test_each_line_is_answered_before_the_next_one_is_sent(service: Service, model: str) -> None:
    with Sender(service.port, f"{model}/learn") as sender:
        for n in range(5):
            sender.send(lines_of([event(n)]))
            assert sender.line()["line"] == n + 1
        sender.end()
        assert sender.all() == []


WEIRD = [
    {"x": {"中": 1, "\u2028\u0085": 2, '"\\\n': 3}, "y": True},
    {"x": {"é\U0001f600": -1}, "y": False},
]
FUZZED = (
    b"\xef\xbb\xbf"
    + json.dumps(WEIRD[0], ensure_ascii=False).encode()
    + b"\r\n\r\n{bad\n"
    + json.dumps(WEIRD[1]).encode()
    + b"\n"
    + json.dumps(WEIRD[1], ensure_ascii=False).encode()
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cuts=st.lists(st.integers(1, len(FUZZED) - 1), max_size=40))
def test_chunks_may_end_anywhere(
    service: Service, client: httpx.Client, new_model: NewModel, cuts: list[int]
) -> None:
    model = new_model()
    bounds = [0, *sorted(set(cuts)), len(FUZZED)]
    with Sender(service.port, f"{model}/learn") as sender:
        for start, end in itertools.pairwise(bounds):
            sender.send(FUZZED[start:end])
        sender.end()
        answers = sender.all()
    assert [a["line"] for a in answers] == [1, 3, 4, 5]
    assert [a.get("status") for a in answers] == [None, 400, None, None]
    array = new_model()
    client.post(f"{array}/learn", json=[WEIRD[0], WEIRD[1], WEIRD[1]])
    weights = [client.get(f"{m}/weights").json()["weights"] for m in (model, array)]
    assert weights[0] == weights[1]


def test_the_document_describes_lines(client: httpx.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    for call, parameters in (("learn", {"results", "source"}), ("predict", {"results"})):
        post_call = paths[f"/v1/models/{{model}}/{call}"]["post"]
        assert parameters <= {p["name"] for p in post_call["parameters"]}
        assert {"application/x-ndjson", "application/jsonl"} <= set(
            post_call["requestBody"]["content"]
        )
        assert "application/x-ndjson" in post_call["responses"]["200"]["content"]
