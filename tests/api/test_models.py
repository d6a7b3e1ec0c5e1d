"""Creation, reading and deletion of models."""

import json
from typing import Any

import httpx
import pytest

from tests.support.checks import check_problem
from tests.support.shared_service import NewModel

JSON = {"content-type": "application/json"}
PERCEPTRON = {"type": "perceptron"}


def test_a_model_is_made_once_confirmed_and_not_replaced(client: httpx.Client) -> None:
    path = "/v1/models/made.once-1_A"
    spec = {"learner": {"type": "perceptron", "learning_rate": 0.5}, "labels": ["ham", "spam"]}
    first = client.put(path, json=spec)
    assert first.status_code == 201
    client.post(f"{path}/learn", json={"x": {"a": 1}, "y": "spam"})
    for same in (
        spec,
        {"labels": ["ham", "spam"], "learner": spec["learner"]},
        spec | {"stream": "made.once-1_A"},
        spec | {"learner": {**PERCEPTRON, "learning_rate": 0.5, "fit_intercept": True}},
        spec | {"max_features": 1_000_000},
    ):
        again = client.put(path, json=same)
        assert again.status_code == 200, same
        assert again.json() == first.json()
    for other in (
        {"learner": spec["learner"]},
        spec | {"labels": ["spam", "ham"]},
        spec | {"learner": {**PERCEPTRON, "learning_rate": 0.25}},
        spec | {"learner": {**PERCEPTRON, "learning_rate": 0.5, "fit_intercept": False}},
        spec | {"stream": "elsewhere"},
        spec | {"max_features": 10},
    ):
        check_problem(client.put(path, json=other), 409)
    info = client.get(path).json()
    assert (info["events"], info["classes"]) == (1, ["ham", "spam"])
    assert client.get(f"{path}/weights").json()["weights"] == {"a": 0.5}


@pytest.mark.parametrize(("one", "other"), [([0, 1], [False, True]), ([0, 1], ["0", "1"])])
def test_labels_of_another_type_make_another_spec(
    client: httpx.Client, new_model: NewModel, one: list[Any], other: list[Any]
) -> None:
    path = new_model(labels=one)
    assert client.put(path, json={"learner": PERCEPTRON, "labels": one}).status_code == 200
    check_problem(client.put(path, json={"learner": PERCEPTRON, "labels": other}), 409)


def test_excluded_events_that_end_before_they_begin(
    client: httpx.Client, new_model: NewModel
) -> None:
    day, night = "2026-03-01T12:00:00Z", "2026-03-01T13:00:00+02:00"
    exclude: dict[str, list[Any]] = {
        "entries": ["7-0", {"first": "7-0", "last": "7-0"}, {"first": "10-0", "last": "9-99"}],
        "times": [{"start": night, "end": day}, {"start": day, "end": night}],
    }
    replayed = {"name": "excluding", "exclude": exclude}
    spec = {"learner": PERCEPTRON, "exclude": exclude}
    for answer in (
        client.put("/v1/models/excluding", json=spec),
        client.post(f"{new_model()}/replay", json=replayed),
    ):
        check_problem(answer, 422)
        fields = [error["field"] for error in answer.json()["errors"]]
        assert fields == ["exclude.entries.2.last", "exclude.times.1.end"]
    assert client.get("/v1/models/excluding").status_code == 404
    exclude["entries"].pop()
    exclude["times"].pop()
    assert client.put("/v1/models/excluding", json=spec).status_code == 201


def rate(text: str) -> str:
    return '{"learner":{"type":"perceptron","learning_rate":' + text + "}}"


def bad(field: str, *values: str) -> list[tuple[str, int | None, str | None]]:
    """Specs with these values of one field; each is refused by the field's name."""
    return [(f'{{"learner":{{"type":"perceptron"}},"{field}":{v}}}', 422, field) for v in values]


RATE = "learner.learning_rate"
HUGE = "1" * 400
BAD_RATES = ["0", "-1", "-0.0", "1e400", HUGE, '"0.1"', "true", "null", "[0.1]"]
BAD_LEARNERS = [
    ('{"type":"perceptron","rate":1}', "learner.rate"),
    ('{"type":"perceptron","fit_intercept":1}', "learner.fit_intercept"),
    ('{"type":"perceptron","fit_intercept":"yes"}', "learner.fit_intercept"),
    *((f'{{"type":{v}}}', "learner.type") for v in ('"Perceptron"', '"os.system"', "null")),
    ("{}", "learner.type"),
    *((v, "learner") for v in ("null", '"perceptron"', '["perceptron"]')),
]
NO_JSON = ["", "{", rate("1") + "x", rate("1") + "\ufeff", '{"learner":' + '{"a":' * 20_000]
BAD_SPECS = [
    *((rate(value), 422, RATE) for value in BAD_RATES),
    *((rate(value), None, RATE) for value in ("NaN", "Infinity")),
    (rate("1" * 5000), None, None),
    *(('{"learner":' + text + "}", 422, field) for text, field in BAD_LEARNERS),
    ("{}", 422, "learner"),
    *((text, 422, "body") for text in ("[]", "null", '"perceptron"')),
    *((text, 400, None) for text in (*NO_JSON, "[" * 100_000)),
    *bad("name", '"m"'),
    ('{"learner":{"type":"perceptron"},"pipeline":[{"type":"os.system"}]}', 422, "pipeline.0.type"),
    *bad("labels", '["a","a"]', "[1,1]", "[true,true]", '["a"]', '["a","b","c"]', "[]", '["a",1]'),
    *bad("labels", "[true,1]", "[0,true]", '["true",true]', "[0.0,1.0]", "[0,1.5]", '[null,"a"]'),
    *bad("labels", '[["a"],["b"]]', '"ab"', '{"a":1,"b":2}', '["a","' + "b" * 257 + '"]'),
    *bad("labels", "[0,9223372036854775808]", f"[0,{HUGE}]"),
    ('{"learner":{"type":"perceptron"},"labels":["a","\\ud800"]}', None, None),
    *bad("stream", '""', '"a b"', '"{a}"', '"a:b"', '"a\\u0000"', '"a\\n"', f'"{"s" * 129}"', "1"),
    *bad("max_features", "0", "-1", "1000001", "1.5", '"10"', "null", "true"),
]


@pytest.mark.parametrize(("body", "status", "field"), BAD_SPECS, ids=lambda v: str(v)[:70])
def test_a_wrong_spec_is_refused_by_name_and_makes_nothing(
    client: httpx.Client, body: str, status: int | None, field: str | None
) -> None:
    path = "/v1/models/never-made"
    answer = client.put(path, content=body.encode(), headers=JSON)
    if status is None:  # malformed and well-formed but wrong are both right answers
        status = answer.status_code
        assert status in (400, 422)
    problem = check_problem(answer, status)
    if field is not None and status == 422:
        named = [e["field"] for e in problem["errors"]]
        assert field in [name.split(".")[0] if field == "labels" else name for name in named]
    assert len(problem.get("errors", [])) <= 20
    assert len(answer.content) < 5_000
    check_problem(client.get(path), 404)


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({}, ("learner", "is missing")),
        ({"learner": {}}, ("learner.type", "is missing")),
        ({"learner": PERCEPTRON, "color": 1}, ("color", "is not a field here")),
        (
            {"learner": {"type": "perceptrom"}},
            ("learner.type", "must be one of 'auto', 'perceptron'"),
        ),
        (
            {"learner": PERCEPTRON, "metrics": ["f1"] * 21},
            ("metrics", "must have at most 20 entries"),
        ),
    ],
)
def test_the_fault_of_a_spec_says_what_must_hold(
    client: httpx.Client, spec: dict[str, Any], fault: tuple[str, str]
) -> None:
    (found,) = check_problem(client.put("/v1/models/x", json=spec), 422)["errors"]
    assert found["field"] == fault[0]
    assert found["reason"].startswith(fault[1])


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (["a"], "must be 2 to 1,000 labels of one type: "),
        ([1, True], "must be 2 to 1,000 labels of one type: "),
        ({}, "must be 2 to 1,000 labels of one type: "),
        (["a", "a"], "labels must be different values"),
    ],
)
def test_wrong_labels_are_refused_in_one_sentence(
    client: httpx.Client, labels: Any, reason: str
) -> None:
    refused = client.put("/v1/models/x", json={"learner": PERCEPTRON, "labels": labels})
    (fault,) = check_problem(refused, 422)["errors"]
    assert fault["field"] == "labels"
    assert fault["reason"].startswith(reason)


def test_wrong_parameters_to_configure_are_named(client: httpx.Client, model: str) -> None:
    parameters = {"learning_rate": 0, "margin": "wide"}
    refused = client.post(f"{model}/configure", json={"set": parameters})
    faults = check_problem(refused, 422)["errors"]
    assert [fault["field"] for fault in faults] == ["set.learning_rate", "set.margin"]


def test_a_spec_with_many_faults_is_answered_in_short(client: httpx.Client) -> None:
    long = "u" * 100_000
    spec: dict[str, Any] = {"learner": PERCEPTRON, long: 1, "labels": [long, long]}
    spec |= {f"extra{n}": long[:5_000] for n in range(1_000)}
    answer = client.put("/v1/models/never-made", json=spec)
    problem = check_problem(answer, 422)
    assert len(problem["errors"]) == 20
    assert len(answer.content) < 10_000


def test_a_fresh_model_predicts_its_negative_label_at_even_odds(
    client: httpx.Client, new_model: NewModel
) -> None:
    for labels, texts in (
        (None, ["false", "true"]),
        (["ham", "spam"], ["ham", "spam"]),
        ([3, 7], ["3", "7"]),
    ):
        path = new_model(labels=labels)
        answers = client.post(f"{path}/predict", json=[{"x": {}}, {"x": {"a": 1}}]).json()
        assert len(answers) == 2
        for answer in answers:
            assert answer["proba"] == dict.fromkeys(texts, 0.5)
            assert answer["y"] == (labels or [False, True])[0]
            assert answer["score"] == 0.0
            assert "stale_s" not in answer
        assert client.get(path).json()["events"] == 0
        assert client.get(f"{path}/weights").json()["weights"] == {}


def test_a_tie_moves_the_weights_and_is_a_mistake_only_for_the_positive_label(
    client: httpx.Client, new_model: NewModel
) -> None:
    for y, weight, mistakes in ((True, 1.0, 1), (False, -1.0, 0), (1, 1.0, 1), (0, -1.0, 0)):
        path = new_model()
        x = {"a": 1, "b": 1, "c": 1}
        answer = client.post(f"{path}/learn", json={"x": x, "y": y}).json()
        assert answer["y_pred"] is False
        assert (answer["mistake"], answer["updated"]) == (bool(mistakes), True)
        assert answer["hinge_loss"] == 1.0
        info = client.get(path).json()
        assert (info["mistakes"], info["updates"], info["hinge_loss"]) == (mistakes, 1, 1.0)
        weights = client.get(f"{path}/weights").json()
        assert weights["weights"] == dict.fromkeys("abc", weight)
        assert weights["intercept"] == weight


def test_reading_and_predicting_change_nothing(client: httpx.Client, model: str) -> None:
    client.post(f"{model}/learn", json={"x": {"a": 1}, "y": True})
    before = client.get(f"{model}/weights").json()
    for n in range(50):
        client.post(f"{model}/predict", json={"x": {f"unseen{n}": 1, "a": 2}})
        client.get(model)
    assert client.get(f"{model}/weights").json() == before


def test_the_list_shows_every_model_and_a_deleted_one_is_gone(
    client: httpx.Client, new_model: NewModel
) -> None:
    path = new_model(labels=["no", "yes"])
    name = path.rsplit("/", 1)[1]
    client.post(f"{path}/learn", json={"x": {"a": 1}, "y": "yes", "id": "e"})
    listed = {m["name"]: m for m in client.get("/v1/models").json()}
    assert listed[name]["spec"]["labels"] == ["no", "yes"]
    deleted = client.delete(path)
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert name not in [m["name"] for m in client.get("/v1/models").json()]
    for answer in (
        client.get(path),
        client.delete(path),
        client.post(f"{path}/learn", json={"x": {"a": 1}, "y": "yes"}),
        client.post(f"{path}/predict", json={"x": {"a": 1}}),
    ):
        check_problem(answer, 404)
    assert client.put(path, json={"learner": PERCEPTRON}).status_code == 201
    answer = client.post(f"{path}/learn", json={"x": {"a": 1}, "y": True, "id": "e"})
    assert answer.json()["duplicate"] is False
    assert client.get(path).json()["events"] == 1


def test_no_answer_is_ever_infinite(client: httpx.Client, new_model: NewModel) -> None:
    path = new_model(learner={**PERCEPTRON, "learning_rate": 1e200})
    for n in range(6):
        event = {"x": {"a": 1e100 * (-1) ** n, "b": 1e100}, "y": n % 3 == 0, "w": 1e8}
        text = client.post(f"{path}/learn", json=event).text
        assert "null" not in text
        assert abs(json.loads(text)["score"]) < float("inf")
    for x in ({"a": 1e100, "b": 1e100}, {"a": -1e100}, {"a": 1e100, "b": -1e100}):
        asked = client.post(f"{path}/predict", json={"x": x})
        assert "null" not in asked.text
        answer = asked.json()
        assert abs(answer["score"]) < float("inf")
        assert sum(answer["proba"].values()) == pytest.approx(1.0, abs=2.0**-52)
        assert all(0.0 < p < 1.0 for p in answer["proba"].values())
        assert answer["y"] is (answer["score"] > 0)
    overflowing = new_model(learner={**PERCEPTRON, "learning_rate": 1e300})
    learned = client.post(f"{overflowing}/learn", json={"x": {"a": 1e100, "b": 1}, "y": True})
    assert learned.json()["updated"] is False
    info = client.get(overflowing).json()
    assert (info["overflows"], info["updates"], info["features"]) == (1, 0, 0)
    assert (
        "null"
        not in client.get(f"{path}/weights").text + client.get(f"{overflowing}").json()["position"]
    )


def test_models_on_one_stream_learn_the_same_events_once_through_any_door(
    client: httpx.Client, new_model: NewModel
) -> None:
    one = new_model(stream="shared")
    first = [{"x": {"a": 1}, "y": True, "id": "e1"}, {"x": {"a": 2}, "y": False, "id": "e2"}]
    client.post(f"{one}/learn", json=first)
    two = new_model(stream="shared", learner={**PERCEPTRON, "learning_rate": 0.5})
    assert client.get(two).json()["events"] == 0
    answer = client.post(f"{two}/learn", json={"x": {"a": 1}, "y": True, "id": "e3"}).json()
    assert (answer["duplicate"], answer["score"]) == (False, 0.0)
    again = client.post(f"{one}/learn", json={"x": {"a": 1}, "y": True, "id": "e3"}).json()
    assert again["duplicate"] is True
    assert client.post(f"{two}/learn", json=first[0]).json()["duplicate"] is True
    # One: (a 1, b 1), then 2a scores 3 against false: (-1, 0), then a scores -1: (0, 1).
    at_least = {"at_least": answer["position"]}
    weights = client.get(f"{one}/weights", params=at_least).json()
    assert (weights["weights"], weights["intercept"]) == ({"a": 0.0}, 1.0)
    weights = client.get(f"{two}/weights", params=at_least).json()
    assert (weights["weights"], weights["intercept"]) == ({"a": 0.5}, 0.5)
    assert client.delete(one).status_code == 204
    assert client.post(f"{two}/learn", json=first[0]).json()["duplicate"] is True
    assert client.get(two).json()["events"] == 1


def test_a_model_counts_and_skips_what_its_stream_holds_for_others(
    client: httpx.Client, new_model: NewModel
) -> None:
    truth, spam = new_model(stream="mixed"), new_model(stream="mixed", labels=["ham", "spam"])
    client.post(f"{truth}/learn", json=[{"x": {"a": 1}, "y": True}, {"x": {"a": 1}, "y": 0}])
    last = client.post(f"{spam}/learn", json={"x": {"b": 1}, "y": "spam"}).json()["position"]
    for path, events, rejected, weights in ((truth, 2, 1, {"a": 0.0}), (spam, 1, 2, {"b": 1.0})):
        info = client.get(path, params={"at_least": last}).json()
        assert (info["events"], info["rejected"]) == (events, rejected)
        assert client.get(f"{path}/weights").json()["weights"] == weights
