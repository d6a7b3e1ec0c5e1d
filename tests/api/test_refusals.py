"""A document that is no event is refused by name, changes nothing and uses up no id."""

import gzip
import json
from typing import Any

import httpx
import pytest

from tests.support.checks import check_problem
from tests.support.service import Service, post_bytes, send_raw
from tests.support.shared_service import NewModel

JSON = {"content-type": "application/json"}
GOOD = b'{"id":"n1","x":{"a":2},"y":true}'


def check_refused(
    client: httpx.Client,
    model: str,
    body: bytes,
    status: int,
    field: str | None,
    good: bytes = GOOD,
) -> dict[str, Any]:
    """Send a bad body with the id n1; nothing moves, and n1 still counts once afterwards."""
    before = client.get(model).json()
    problem = check_problem(client.post(f"{model}/learn", content=body, headers=JSON), status)
    if field is not None:
        assert field in [e["field"] for e in problem["errors"]], problem
    assert len(problem.get("errors", [])) <= 20
    after = client.get(model).json()
    for volatile in ("snapshot", "stale_s"):
        before.pop(volatile), after.pop(volatile)
    assert after == before
    retried = client.post(f"{model}/learn", content=good, headers=JSON)
    assert retried.status_code == 200, retried.text
    assert retried.json()["duplicate"] is False
    again = client.post(f"{model}/learn", content=good, headers=JSON)
    assert again.json()["duplicate"] is True
    assert client.get(model).json()["events"] == before["events"] + 1
    return problem


HUGE_400, HUGE_5000 = "1" * 400, "1" * 5000


NO_NUMBERS = ['"NaN"', '"inf"', "1e400", "-1e400", "1.0000001e100", "-1.0000001e100", HUGE_400]
NO_NUMBERS += ["-" + HUGE_400, '"1"', '"0.25"', '""', "true", "false", "null"]
NO_NUMBERS += ["[1]", "[]", '{"k":1}', "{}"]
NO_JSON_NUMBERS = ["NaN", "Infinity", "-Infinity", HUGE_5000, HUGE_5000 + ".5", "[NaN]"]


@pytest.mark.parametrize(
    ("value", "statuses"),
    [*((v, {422}) for v in NO_NUMBERS), *((v, {400, 422}) for v in NO_JSON_NUMBERS)],
)
@pytest.mark.parametrize("form", ["one", "array"])
def test_a_feature_value_that_is_no_finite_number_is_refused_by_name(
    client: httpx.Client, model: str, value: str, statuses: set[int], form: str
) -> None:
    body, at = '{"id":"n1","x":{"fine":1,"a":' + value + '},"y":true}', ""
    if form == "array":
        body, at = '[{"x":{"a":1},"y":true,"id":"n0"},' + body + "]", "[1]."
    path = f"{model}/predict"
    question = body.replace(',"y":true', "").replace('"id":"n1",', "").replace(',"id":"n0"', "")
    asked = client.post(path, content=question, headers=JSON)
    assert asked.status_code in statuses, asked.text
    assert f"{at}x['a']" in [e["field"] for e in asked.json().get("errors", [])]
    check_refused(client, model, body.encode(), asked.status_code, f"{at}x['a']")


@pytest.mark.parametrize("value", ["1e-400", "5e-324", "-0.0", "1e100", "-1e100", "1E+2", "0"])
def test_extreme_but_finite_numbers_are_learned(
    client: httpx.Client, model: str, value: str
) -> None:
    body = '{"x":{"a":' + value + '},"y":true}'
    assert client.post(f"{model}/learn", content=body, headers=JSON).status_code == 200
    weights = client.get(f"{model}/weights").json()
    assert weights["weights"] == {"a": float(value)}
    assert weights["intercept"] == 1.0


BAD_LABELS = ["null", "NaN", "1.5", '"1.5"', "-1", "2", "1.0", "0.0", '"true"', '"false"', '"1"']
BAD_LABELS += ['"0"', '""', '"spam"', "[true]", '{"a":1}', "1e400", HUGE_400, HUGE_5000]


@pytest.mark.parametrize("label", BAD_LABELS)
def test_a_label_other_than_true_false_1_and_0_is_refused(
    client: httpx.Client, model: str, label: str
) -> None:
    body = '{"id":"n1","x":{"a":1},"y":' + label + "}"
    allowed = (400, 422) if label in ("NaN", HUGE_5000) else (422,)
    status = client.post(f"{model}/learn", content=body, headers=JSON).status_code
    assert status in allowed
    check_refused(client, model, body.encode(), status, "y")
    array = f'[{{"x":{{}},"y":true}},{body.replace("n1", "n2")}]'
    fine = GOOD.replace(b"n1", b"n2")
    check_refused(client, model, array.encode(), status, "[1].y", fine)


@pytest.mark.parametrize(
    ("labels", "good", "bad"),
    [
        ([False, True], ["false", "true"], ["0", "1", '"true"', '"false"', "1.0", "null"]),
        ([True, False], ["true", "false"], ["0", "1", '"true"']),
        ([0, 1], ["0", "1"], ["false", "true", "1.0", "0.0", '"1"', "2", "null"]),
        ([1, -1], ["1", "-1"], ["true", "-1.0", '"-1"', "0"]),
        (["ham", "spam"], ['"ham"', '"spam"'], ["true", "1", '"Spam"', '"spam "', "null", '""']),
        (["0", "1"], ['"0"', '"1"'], ["0", "1", "true", "false", "1.0"]),
        (["", "x"], ['""', '"x"'], ["null", "false", '"X"']),
    ],
)
def test_only_the_labels_of_the_spec_are_taken_and_come_back_as_they_were_sent(
    client: httpx.Client, new_model: NewModel, labels: list[Any], good: list[str], bad: list[str]
) -> None:
    model = new_model(labels=labels)
    assert json.dumps(client.get(model).json()["classes"]) == json.dumps(labels)
    for label in bad:
        body = '{"id":"b","x":{"a":1},"y":' + label + "}"
        problem = check_problem(client.post(f"{model}/learn", content=body, headers=JSON), 422)
        assert [e["field"] for e in problem["errors"]] == ["y"]
    negative, positive = good
    for n, label in enumerate([negative, positive]):
        body = f'{{"id":"g{n}","x":{{"a":{n or -1}}},"y":{label}}}'
        assert client.post(f"{model}/learn", content=body, headers=JSON).status_code == 200
    # Learned a=-1 as negative: w = (1, b=-1). Then a=1 scores 0, a tie, so w = (2, b=0).
    assert client.get(f"{model}/weights").json()["weights"] == {"a": 2.0}
    for value, label in ((1, positive), (-1, negative), (0, negative)):
        answer = client.post(f"{model}/predict", json={"x": {"a": value}})
        assert f'"y":{label},' in answer.text
        assert list(answer.json()["proba"]) == [text.strip('"') for text in good]


@pytest.mark.parametrize("learner", ["perceptron", "hedge", "LogisticRegression"])
def test_labels_of_textbooks_are_refused_with_the_labels_to_give(
    client: httpx.Client, new_model: NewModel, learner: str
) -> None:
    event = {"x": {"a": 1}, "y": -1}
    refused = client.post(f"{new_model(learner={'type': learner})}/learn", json=event)
    (error,) = check_problem(refused, 422)["errors"]
    assert error["reason"].endswith('the negative one first, as in "labels": [-1, 1]')
    given = new_model(learner={"type": learner}, labels=[-1, 1])
    assert client.post(f"{given}/learn", json=event).json()["y_pred"] == -1


@pytest.mark.parametrize(
    ("labels", "label", "reason"),
    [
        (None, "t" * 257, "must be text of up to 256 characters"),
        ("integers", 2**63, "must be an integer of 64 bits"),
    ],
)
def test_a_label_that_is_too_large_is_refused_with_the_bound(
    client: httpx.Client, new_model: NewModel, labels: Any, label: Any, reason: str
) -> None:
    model = new_model(learner={"type": "multiclass_perceptron"}, labels=labels)
    refused = client.post(f"{model}/learn", json={"x": {}, "y": label})
    assert check_problem(refused, 422)["errors"] == [{"field": "y", "reason": reason}]


@pytest.mark.parametrize("form", ["one", "array"])
@pytest.mark.parametrize(
    "weight",
    ["-1", "-1e-300", "NaN", "-Infinity", "1e400", "-1e400", "null", '"1"', "true", "[1]", "1e101"],
)
def test_a_sample_weight_that_is_negative_or_no_finite_number_is_refused(
    client: httpx.Client, model: str, weight: str, form: str
) -> None:
    body, field = '{"id":"n1","x":{"a":1},"y":true,"w":' + weight + "}", "w"
    if form == "array":
        body, field = f"[{body}]", "[0].w"
    status = client.post(f"{model}/learn", content=body, headers=JSON).status_code
    assert status in ((400, 422) if weight in ("NaN", "-Infinity") else (422,))
    check_refused(client, model, body.encode(), status, field)


def test_an_event_of_weight_0_is_seen_and_moves_nothing(client: httpx.Client, model: str) -> None:
    answer = client.post(f"{model}/learn", json={"x": {"a": 1}, "y": True, "w": 0}).json()
    assert (answer["mistake"], answer["updated"], answer["hinge_loss"]) == (False, False, 0.0)
    state = client.get(model).json()
    assert (state["events"], state["mistakes"], state["updates"]) == (1, 0, 0)
    assert (state["hinge_loss"], state["features"]) == (0.0, 0)
    assert client.get(f"{model}/weights").json()["intercept"] == 0.0


EVENT = b'{"x":{"a":1},"y":true,"id":"n1"}'
TEXT = EVENT.decode()
NO_IDS = [b"9007199254740993", b'""', b"1.5", b"true", b'["n1"]', b'"' + b"i" * 257 + b'"']
NO_JSON = [
    *(b"", b" \r\n\t", b"{", b"[", b"[" + EVENT, b"[" + EVENT + b",]", EVENT + b",", EVENT + b"}"),
    *(EVENT + b"\x00", EVENT + b'{"x":{},"y":true}', b"{'x':{'a':1},'y':true}", b"\xff\xfe\x00"),
    *(b'{"x":{"a":' + v + b'},"y":true}' for v in (b"01", b"+1", b".5", b"1_000", b"0x10")),
    b'{"x":{"a\x01":1},"y":true}',
    *(b'{"x":{"' + name + b'":1},"y":true,"id":"n1"}' for name in (b"\xff\xfe", b"\xed\xa0\x80")),
    b'{"x":{"\\ud800":1},"y":true,"id":"n1"}',
    b'{"x":{"a":1},"y":"\\udfff","id":"n1"}',
    b'{"x":{"a":1},"y":true,"id":"n1\\ud83d"}',
    b'{"x":{"a":1}\xef\xbb\xbf,"y":true,"id":"n1"}',
    *(TEXT.encode("utf-16"), TEXT.encode("utf-32-le"), gzip.compress(EVENT, mtime=0)),
    *(b'{"x":' + b'{"a":' * 20_000, b"[" * 100_000, b'{"id":' + b"[" * 100_000),
]
NO_EVENTS: list[tuple[bytes, int | None, str | None]] = [
    *((b'{"y":true}', 422, "x"), (b'{"x":{"a":1}}', 422, "y"), (b"{}", 422, "x")),
    *((EVENT.replace(b'{"a":1}', x), 422, "x") for x in (b"null", b"[1,2]", b'"a"')),
    (EVENT[:-1] + b',"X":1}', 422, "'X'"),
    (EVENT[:-1] + b',"__class__":"os"}', 422, "'__class__'"),
    (EVENT[:-1] + b',"a\\u0000":1}', 422, "'a\\x00'"),
    *((EVENT.replace(b'"n1"', value), 422, "id") for value in NO_IDS),
    *((b"[" + EVENT + b",7]", 422, "[1]"), (b"[" + EVENT + b",null]", 422, "[1]")),
    (b"[[" + EVENT + b"]]", 422, "[0]"),
    *((body, 422, "body") for body in (b"null", b"true", b'"text"', b"7")),
    *((body, 400, None) for body in NO_JSON),
    # malformed and well-formed but wrong are both right answers
    (b'{"id":"n1","y":true,"x":' + b'{"a":' * 20_000 + b"1" + b"}" * 20_001, None, None),
    (b"[" * 100_000 + b"]" * 100_000, None, None),
    (b'{"id":NaN,"x":{"a":1},"y":true}', None, "id"),
    (b'{"id":"n1","x":{"a":[NaN]},"y":true}', None, "x['a']"),
]


@pytest.mark.parametrize(
    ("body", "status", "field"),
    NO_EVENTS,
    ids=lambda v: repr(v)[:40] if isinstance(v, bytes) else None,
)
def test_a_body_that_is_no_event_is_refused(
    client: httpx.Client, model: str, body: bytes, status: int | None, field: str | None
) -> None:
    if status is None:
        status = client.post(f"{model}/learn", content=body, headers=JSON).status_code
        assert status in (400, 422)
    check_refused(client, model, body, status, field)
    if body != b'{"x":{"a":1}}':
        asked = client.post(f"{model}/predict", content=body, headers=JSON)
        wrong = status == 422 or not body.endswith(b"}")
        check_problem(asked, status if wrong else asked.status_code)
        assert asked.status_code in (400, 422)


@pytest.mark.parametrize("field", ["y", "w", "label"])
def test_a_question_with_a_field_that_is_not_for_questions_is_refused(
    client: httpx.Client, model: str, field: str
) -> None:
    body = json.dumps({"x": {"a": 1}, field: 1})
    problem = check_problem(client.post(f"{model}/predict", content=body, headers=JSON), 422)
    assert [e["field"] for e in problem["errors"]] == [repr(field)]


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "application/octet-stream"},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "multipart/form-data; boundary=x"},
        {"content-type": "application/json; charset=utf-16"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/jsonp"},
        {"content-type": ""},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {"content-type": "application/json", "content-encoding": "br"},
    ],
)
def test_a_body_of_another_type_is_answered_415(
    client: httpx.Client, model: str, headers: dict[str, str]
) -> None:
    bodies = [b"\xff\xfe\x00", gzip.compress(GOOD, mtime=0), GOOD]
    for body in bodies:
        for call in ("learn", "predict"):
            check_problem(client.post(f"{model}/{call}", content=body, headers=headers), 415)
    spec = b'{"learner":{"type":"perceptron"}}'
    check_problem(client.put("/v1/models/wrong-type", content=spec, headers=headers), 415)
    assert client.get(model).json()["events"] == 0


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
        "application/vnd.example+json",
        None,
    ],
)
def test_json_is_taken_under_every_name_it_has(
    service: Service, client: httpx.Client, model: str, kind: str | None
) -> None:
    headers = [] if kind is None else [f"Content-Type: {kind}"]
    answer = send_raw(service.port, post_bytes(f"{model}/learn", GOOD, *headers))
    assert answer.status == 200
    assert client.get(model).json()["events"] == 1


def test_the_errors_of_a_huge_array_are_counted_and_the_first_are_shown(
    client: httpx.Client, model: str
) -> None:
    long = "v" * 100_000
    over_4_mb = {"x": {"a": 1}, "y": "v" * 5_000_000, "unknown" + long: 1}
    answer = client.post(f"{model}/learn", json=over_4_mb)
    check_problem(answer, 422)
    assert len(answer.content) < 2_000
    bad = json.dumps({"x": {"a": "1"}, "y": True}, separators=(",", ":"))
    body = "[" + ",".join([bad] * 100_000) + "]"
    assert len(body) < 4 * 2**20
    problem = check_refused(client, model, body.encode(), 422, "[0].x['a']")
    assert len(problem["errors"]) == 20
    assert "100000" in problem["detail"]
    many_in_one = {"x": {f"f{i}": None for i in range(5_000)}, "y": True, long: 1}
    problem = check_problem(client.post(f"{model}/learn", json=many_in_one), 422)
    assert len(problem["errors"]) == 20
    assert "5001" in problem["detail"]
    for event in ({"x": {"a": long}, "y": True}, {"x": {long: 1}, "y": True}):
        answer = client.post(f"{model}/learn", json=event)
        check_problem(answer, 422)
        assert len(answer.content) < 2_000
    wrong = [{"x": {}, "y": "no"} for _ in range(10_000)]
    problem = check_problem(client.post(f"{model}/learn", json=wrong), 422)
    assert len(problem["errors"]) == 20
    assert "10000" in problem["detail"]
    assert problem["errors"][3]["field"] == "[3].y"


def test_an_array_is_taken_whole_or_not_at_all(client: httpx.Client, model: str) -> None:
    events: list[dict[str, Any]] = [{"x": {"a": 1}, "y": True, "id": f"n{i}"} for i in range(10)]
    events[9]["y"] = "maybe"
    problem = check_problem(client.post(f"{model}/learn", json=events), 422)
    assert [e["field"] for e in problem["errors"]] == ["[9].y"]
    assert client.get(model).json()["events"] == 0
    events[9]["y"] = True
    answers = client.post(f"{model}/learn", json=events).json()
    assert [a["duplicate"] for a in answers] == [False] * 10
    # Two rows in one call are learned one after the other: one update, w = (1, b=1).
    assert client.get(model).json()["updates"] == 1
    assert client.get(f"{model}/weights").json()["weights"] == {"a": 1.0}


def test_an_id_used_for_another_event_is_answered_409_and_nothing_is_taken(
    client: httpx.Client, model: str
) -> None:
    first = {"x": {"a": 1.0, "b": 2}, "y": True, "id": "e"}
    assert client.post(f"{model}/learn", json=first).status_code == 200
    same = {"id": "e", "y": True, "x": {"b": 2.0, "a": 1}}
    assert client.post(f"{model}/learn", json=same).json()["duplicate"] is True
    for other in (
        {**first, "y": False},
        {**first, "w": 2},
        {**first, "x": {"a": 1.0}},
        {**first, "x": {"a": 1.0, "b": 3}},
    ):
        problem = check_problem(client.post(f"{model}/learn", json=other), 409)
        assert [e["field"] for e in problem["errors"]] == ["id"]
        batch = [{"x": {"z": 1}, "y": True, "id": "fresh"}, other]
        problem = check_problem(client.post(f"{model}/learn", json=batch), 409)
        assert [e["field"] for e in problem["errors"]] == ["[1].id"]
    assert client.get(model).json()["events"] == 1
    fresh = client.post(f"{model}/learn", json={"x": {"z": 1}, "y": True, "id": "fresh"})
    assert fresh.json()["duplicate"] is False


def test_one_id_twice_in_an_array_counts_once(client: httpx.Client, model: str) -> None:
    event = {"x": {"a": 1}, "y": True, "id": "e"}
    answers = client.post(f"{model}/learn", json=[event, event, event]).json()
    assert [a["duplicate"] for a in answers] == [False, True, True]
    clash = [{**event, "id": "f"}, {**event, "id": "f", "y": False}]
    check_problem(client.post(f"{model}/learn", json=clash), 409)
    assert client.get(model).json()["events"] == 1


def test_a_json_key_that_comes_twice_counts_as_its_last(client: httpx.Client, model: str) -> None:
    body = b'{"x":{"a":5,"a":1},"x":{"b":1,"b":3},"y":true,"y":false,"id":"e","id":"f"}'
    answer = client.post(f"{model}/learn", content=body, headers=JSON)
    assert answer.status_code == 200
    weights = client.get(f"{model}/weights").json()
    assert (weights["weights"], weights["intercept"]) == ({"b": -3.0}, -1.0)
    event = {"x": {"b": 3}, "y": False, "id": "f"}
    assert client.post(f"{model}/learn", json=event).json()["duplicate"] is True
    bad_first = b'{"x":{"b":1e999,"b":3},"y":false,"id":"","id":"f"}'
    answer = client.post(f"{model}/learn", content=bad_first, headers=JSON)
    assert answer.json()["duplicate"] is True
    bad_last = b'{"x":{"a":1,"a":"no"},"y":true}'
    problem = check_problem(client.post(f"{model}/learn", content=bad_last, headers=JSON), 422)
    assert [e["field"] for e in problem["errors"]] == ["x['a']"]


def test_an_empty_array_is_no_event_and_an_empty_object_of_features_is_one(
    client: httpx.Client, model: str
) -> None:
    for call in ("learn", "predict"):
        answer = client.post(f"{model}/{call}", content=b" [ ] ", headers=JSON)
        assert (answer.status_code, answer.json()) == (200, [])
    assert client.get(model).json()["events"] == 0
    assert client.post(f"{model}/predict", json={"x": {}}).json()["score"] == 0.0
    assert client.post(f"{model}/learn", json={"x": {}, "y": True}).json()["updated"] is True
    weights = client.get(f"{model}/weights").json()
    assert (weights["weights"], weights["intercept"]) == ({}, 1.0)
