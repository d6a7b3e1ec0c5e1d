"""The newest events of a stream, with what a model says of them now."""

from typing import Any

import httpx
import pytest

from tests.support.shared_service import NewModel


def learn(client: httpx.Client, model: str, *events: dict[str, Any]) -> None:
    assert client.post(f"{model}/learn", json=list(events)).status_code == 200


def recent(client: httpx.Client, model: str, **query: Any) -> list[dict[str, Any]]:
    answer = client.get(f"{model}/recent", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


def test_the_newest_come_first_with_the_answers_of_now(client: httpx.Client, model: str) -> None:
    learn(client, model, {"id": "1", "x": {"a": 1}, "y": True}, {"x": {"b": 2}, "y": False})
    learn(client, model, {"id": "3", "x": {"a": -1, "b": 1}, "y": False, "w": 0.5})
    found = recent(client, model)
    assert [(one["id"], one["number"]) for one in found] == [("3", 0), (None, 1), ("1", 0)]
    assert [one["x"] for one in found] == [{"a": -1, "b": 1}, {"b": 2}, {"a": 1}]
    assert [(one["y"], one["w"]) for one in found] == [(False, 0.5), (False, 1.0), (True, 1.0)]
    asked = [{"x": one["x"]} for one in found]
    predicted = client.post(f"{model}/predict", json=asked).json()
    assert [(one["y_pred"], one["score"]) for one in found] == [
        (t["y"], t["score"]) for t in predicted
    ]
    assert found[0]["position"] == predicted[0]["position"], "the last entry"
    assert [one["id"] for one in recent(client, model, count=1)] == ["3"]


def test_events_that_did_not_count_are_not_told(client: httpx.Client, new_model: NewModel) -> None:
    model = new_model(labels=["no", "yes"])
    other = new_model(stream=model.rpartition("/")[2])
    learn(client, model, {"id": "a", "x": {"n": 1}, "y": "yes"}, {"x": {"n": 2}, "y": "no"})
    learn(client, model, {"id": "a", "x": {"n": 1}, "y": "yes"})  # a duplicate
    learn(client, other, {"x": {"n": 3}, "y": True})  # no label of the first
    client.post(f"{model}/freeze")  # an entry without events
    assert [one["x"]["n"] for one in recent(client, model)] == [2, 1]
    assert [one["x"]["n"] for one in recent(client, other)] == [3]


def test_features_that_a_model_cannot_take(client: httpx.Client, new_model: NewModel) -> None:
    mixed = new_model(pipeline=[{"type": "BagOfWords", "on": "text"}])
    plain = new_model(stream=mixed.rpartition("/")[2])
    learn(client, mixed, {"x": {"text": "a b"}, "y": True})
    learn(client, plain, {"x": {"n": 1}, "y": True})
    assert [one["x"] for one in recent(client, mixed)] == [{"n": 1}, {"text": "a b"}]
    assert [one["x"] for one in recent(client, plain)] == [{"n": 1}]


def test_late_labels_come_with_the_features_of_their_prediction(
    client: httpx.Client, model: str
) -> None:
    client.post(f"{model}/predict", json={"id": "p", "x": {"n": 5}}).raise_for_status()
    learn(client, model, {"id": "p", "y": True})
    assert [(one["id"], one["x"]) for one in recent(client, model)] == [("p", {"n": 5})]


@pytest.mark.parametrize("sizes", [[1] * 70, [50, 1, 300, 1], [500]])
def test_entries_of_any_size(client: httpx.Client, model: str, sizes: list[int]) -> None:
    n = 0
    for size in sizes:
        sent = [{"x": {"n": k}, "y": True} for k in range(n, n + size)]
        learn(client, model, *sent)
        n += size
    assert [one["x"]["n"] for one in recent(client, model, count=500)] == [*range(n)][::-1][:500]
    assert [one["x"]["n"] for one in recent(client, model, count=2)] == [n - 1, n - 2]


def test_large_events_are_not_read_without_end(client: httpx.Client, model: str) -> None:
    wide = {f"feature-{k}": 1.5 for k in range(5_000)}  # about 100 kB
    for _ in range(20):
        learn(client, model, {"x": wide, "y": True})
    assert 10 <= len(recent(client, model, count=500)) < 20


def test_wrong_questions(client: httpx.Client, model: str) -> None:
    assert client.get("/v1/models/nobody/recent").status_code == 404
    for count in ("0", "501", "x"):
        assert client.get(f"{model}/recent", params={"count": count}).status_code == 422
