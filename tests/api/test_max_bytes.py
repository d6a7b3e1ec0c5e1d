"""A model takes no more memory for names than `max_bytes`, however they come.

A number counts 128 bytes and its name; so with a name of two letters 130.
"""

import json

import httpx
import pytest

from tests.support.checks import check_problem
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service
from tests.support.shared_service import NewModel

LINES = {"content-type": "application/x-ndjson"}


def names(first: int, count: int) -> dict[str, float]:
    return {f"{n:02d}": 1.0 for n in range(first, first + count)}


def taken(client: httpx.Client, model: str) -> tuple[int, int, int, int]:
    info = client.get(model).json()
    return info["events"], info["rejected"], info["bytes"], info["max_bytes"]


def test_new_names_beyond_the_bytes_are_refused_and_known_ones_learned(
    client: httpx.Client, new_model: NewModel
) -> None:
    model = new_model(max_bytes=4_096)
    assert client.post(f"{model}/learn", json={"x": names(0, 31), "y": True}).status_code == 200
    assert taken(client, model) == (1, 0, 31 * 130, 4_096)
    problem = check_problem(client.post(f"{model}/learn", json={"x": names(30, 2), "y": True}), 422)
    assert [e["field"] for e in problem["errors"]] == ["x"]
    assert "130 bytes" in problem["errors"][0]["reason"]
    assert "66 of max_bytes 4096" in problem["errors"][0]["reason"]
    assert client.post(f"{model}/learn", json={"x": names(7, 9), "y": False}).status_code == 200
    assert client.post(f"{model}/predict", json={"x": names(0, 99)}).status_code == 200
    assert taken(client, model) == (2, 0, 31 * 130, 4_096)
    name = model.rpartition("/")[2]
    exposed = client.get("/metrics").text
    assert f'hinged_model_bytes{{model="{name}"}} 4030.0' in exposed
    assert f'hinged_model_max_bytes{{model="{name}"}} 4096.0' in exposed


@pytest.mark.parametrize(
    ("learner", "numbers", "longer"),
    [
        ({"type": "arow"}, 2, 0),
        ({"type": "hinge_sgd"}, 2, 0),
        ({"type": "pocket_perceptron"}, 2, 0),
        ({"type": "scw"}, 2, 0),
        ({"type": "logistic_sgd"}, 2, 0),
        ({"type": "ftrl_proximal"}, 3, 0),
        ({"type": "coin_betting"}, 5, 0),
        # 1, 2, 2, 2 and 2 of the linear experts, 4 of squares: two under a name with "²" behind it
        ({"type": "hedge"}, 13, 4),
    ],
)
def test_every_number_of_a_name_counts(
    client: httpx.Client, new_model: NewModel, learner: dict[str, str], numbers: int, longer: int
) -> None:
    most = 40 * (numbers * 130 + longer)
    model = new_model(learner=learner, max_bytes=most)
    answer = client.post(f"{model}/learn", json={"x": names(0, 41), "y": True})
    (error,) = check_problem(answer, 422)["errors"]
    assert f"may store {most // 40 * 41} bytes" in error["reason"]
    assert client.post(f"{model}/learn", json={"x": names(0, 40), "y": True}).status_code == 200
    assert taken(client, model)[2] <= most


def test_classes_times_names_count(client: httpx.Client, new_model: NewModel) -> None:
    learner = {"type": "one_vs_rest", "learner": {"type": "perceptron"}}
    model = new_model(learner=learner, max_bytes=20 * 50 * 130)
    for label in range(20):
        event = {"x": {"00": 1}, "y": f"c{label}"}
        assert client.post(f"{model}/learn", json=event).status_code == 200
    before = taken(client, model)
    wide = {"x": names(1, 50), "y": "c0"}
    check_problem(client.post(f"{model}/learn", json=wide), 422)
    assert taken(client, model) == before
    assert client.post(f"{model}/learn", json={"x": names(1, 45), "y": "c0"}).status_code == 200


def test_events_that_only_together_are_too_many(client: httpx.Client, new_model: NewModel) -> None:
    events = [{"x": names(0, 20), "y": True}, {"x": names(20, 20), "y": True}]
    model = new_model(max_bytes=4_096)
    problem = check_problem(client.post(f"{model}/learn", json=events), 422)
    assert [e["field"] for e in problem["errors"]] == ["[1].x"]
    assert taken(client, model) == (0, 0, 0, 4_096)
    twice = [events[0], events[0]]
    assert client.post(f"{model}/learn", json=twice).status_code == 200


def test_of_lines_those_are_taken_that_fit(client: httpx.Client, new_model: NewModel) -> None:
    model = new_model(max_bytes=4_096)
    sent = [(names(0, 1), True), (names(10, 40), True), (names(1, 1), False)]
    lines = [json.dumps({"x": x, "y": y}) for x, y in sent]
    answer = client.post(f"{model}/learn", content="\n".join(lines), headers=LINES)
    assert "max_bytes 4096" in answer.text.splitlines()[1]
    assert taken(client, model) == (2, 0, 260, 4_096)


def test_an_event_of_the_log_that_does_not_fit_is_skipped_by_all_alike(
    own_server: RedisServer,
) -> None:
    with Service(own_server.url) as one, one.client() as client:
        perceptron = {"type": "perceptron"}
        client.put("/v1/models/wide", json={"learner": perceptron})
        narrow = {"learner": perceptron, "stream": "wide", "max_bytes": 4_096}
        client.put("/v1/models/narrow", json=narrow)
        for first in range(0, 90, 10):
            x, y = names(first, 10), first % 20 == 0
            assert client.post("/v1/models/wide/learn", json={"x": x, "y": y}).status_code == 200
        client.put("/v1/models/later", json={**narrow, "start": "log"})
        found = [taken(client, f"/v1/models/{m}") for m in ("wide", "narrow")]
        assert found == [(9, 0, 90 * 130, 2**29), (3, 6, 30 * 130, 4_096)]
        wait_until(lambda: taken(client, "/v1/models/later") == found[1])
        with Service(own_server.url) as two, two.client() as other:
            assert [taken(other, f"/v1/models/{m}") for m in ("wide", "narrow")] == found
            answers = [
                c.get(f"/v1/models/{m}/weights").json()["weights"]
                for c, m in ((client, "narrow"), (other, "narrow"), (client, "later"))
            ]
            assert answers[0] == answers[1] == answers[2]


def test_the_spec_keeps_the_bytes_that_the_setting_gave(own_server: RedisServer) -> None:
    spec = {"learner": {"type": "perceptron"}}
    with Service(own_server.url, max_model_bytes=5_000) as service, service.client() as client:
        made = client.put("/v1/models/a", json=spec)
        assert (made.status_code, made.json()["spec"]["max_bytes"]) == (201, 5_000)
        problem = check_problem(client.put("/v1/models/b", json={**spec, "max_bytes": 5_001}), 422)
        assert [e["field"] for e in problem["errors"]] == ["max_bytes"]
        assert "5000" in problem["errors"][0]["reason"]
        assert client.put("/v1/models/b", json={**spec, "max_bytes": 4_500}).status_code == 201
    with Service(own_server.url) as service, service.client() as client:
        assert client.put("/v1/models/a", json=spec).json()["spec"]["max_bytes"] == 5_000
        assert client.put("/v1/models/a", json={**spec, "max_bytes": 4_096}).status_code == 409
        assert client.get("/v1/models/b").json()["max_bytes"] == 4_500
