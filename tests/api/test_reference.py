"""Numbers of public data sets through HTTP, against counts computed elsewhere and in process."""

import math
from typing import Any

import httpx
import pytest
from river import datasets

import hinged
from tests.conftest import Event
from tests.support.shared_service import NewModel


def parts(bodies: list[dict[str, Any]], size: int) -> list[list[dict[str, Any]]]:
    return [bodies[i : i + size] for i in range(0, len(bodies), size)]


def learn(
    client: httpx.Client, model: str, events: list[Event], size: int, ids: bool = False
) -> list[dict[str, Any]]:
    """Send events in arrays of `size`, or one by one for size 0; return all answers."""
    bodies = [
        {"x": x, "y": y} | ({"id": f"e{n}"} if ids else {}) for n, (x, y) in enumerate(events)
    ]
    answers: list[dict[str, Any]] = []
    calls: list[Any] = [*parts(bodies, size)] if size else [*bodies]
    for part in calls:
        answer = client.post(f"{model}/learn", json=part)
        assert answer.status_code == 200, answer.text
        answers += answer.json() if size else [answer.json()]
    return answers


def test_electricity_in_arrays_of_500(client: httpx.Client, model: str, elec: list[Event]) -> None:
    answers = learn(client, model, elec, 500)
    info = client.get(model).json()
    assert (info["events"], info["mistakes"]) == (45_312, 6_461)
    assert info["hinge_loss"] == pytest.approx(18_708.283, abs=0.0005)
    assert client.get(f"{model}/weights").json()["intercept"] == -5.0
    assert sum(a["mistake"] for a in answers) == 6_461
    assert math.fsum(a["hinge_loss"] for a in answers) == pytest.approx(18_708.283, abs=0.0005)
    assert sum(a["updated"] for a in answers) == info["updates"]


def test_sms_spam_with_text_labels_and_ids_sent_twice(
    client: httpx.Client, new_model: NewModel, sms: list[Event]
) -> None:
    model = new_model(labels=["ham", "spam"])
    bodies = [{"x": x, "y": "spam" if y else "ham", "id": str(n)} for n, (x, y) in enumerate(sms)]
    for part in parts(bodies, 500):
        for duplicate in (False, True):
            answers = client.post(f"{model}/learn", json=part).json()
            assert {a["duplicate"] for a in answers} == {duplicate}
    info = client.get(model).json()
    assert (info["events"], info["mistakes"], info["hinge_loss"]) == (5_574, 219, 1_019.0)
    assert info["features"] == 2_259
    weights = client.get(f"{model}/weights").json()
    assert (len(weights["weights"]), weights["intercept"]) == (2_259, -8.0)


@pytest.mark.parametrize(
    ("size", "ids"), [(0, False), (0, True), (1, False), (7, True), (500, False)]
)
def test_every_door_gives_the_model_that_learns_in_process(
    client: httpx.Client, model: str, elec: list[Event], size: int, ids: bool
) -> None:
    events = elec[:500]
    learner = hinged.Perceptron()
    outcomes = [learner.predict_learn_one(x, y) for x, y in events]
    answers = learn(client, model, events, size, ids)
    assert [
        (a["y_pred"], a["score"], a["mistake"], a["updated"], a["hinge_loss"]) for a in answers
    ] == outcomes
    weights = client.get(f"{model}/weights").json()
    assert weights["weights"] == dict(learner.weights)
    assert weights["intercept"] == learner.intercept
    info = client.get(model).json()
    account = learner.accounting
    assert (info["mistakes"], info["updates"]) == (account.mistakes, account.updates)
    assert info["hinge_loss"] == account.hinge_loss


def test_probabilities_mirror_each_other_and_are_neither_0_nor_1(
    client: httpx.Client, model: str
) -> None:
    learn(client, model, [({"s": 1.0}, True), ({}, False)], 2)  # the score is s
    for score in (0.5, 36.9, 40.0, 800.0):
        asked = [{"x": {"s": score}}, {"x": {"s": -score}}]
        here, there = (a["proba"] for a in client.post(f"{model}/predict", json=asked).json())
        assert (here["true"], here["false"]) == (there["false"], there["true"])
        assert 0.0 < here["false"] < here["true"] < 1.0
        if score < 700.0:
            tail = math.exp(-score) / (1.0 + math.exp(-score))
            assert here["false"] == pytest.approx(tail, rel=1e-15)


def test_exported_weights_give_the_served_scores(client: httpx.Client, model: str) -> None:
    events = [(dict(x), bool(y)) for x, y in datasets.Phishing()]
    learn(client, model, events, 250)
    exported = client.get(f"{model}/weights").json()
    weights, intercept = exported["weights"], exported["intercept"]
    asked = [{"x": x} for x, _ in events]
    answers = client.post(f"{model}/predict", json=asked).json()
    assert len(answers) == 1_250
    for (x, _), answer in zip(events, answers, strict=True):
        score = math.fsum([weights[name] * value for name, value in x.items()]) + intercept
        assert answer["score"] == pytest.approx(score, abs=1e-9)
        assert answer["y"] is (answer["score"] > 0)
        assert answer["position"] == exported["position"]
        p = 1 / (1 + math.exp(-score))
        assert answer["proba"]["true"] == pytest.approx(p, abs=1e-9)
        assert answer["proba"]["false"] == pytest.approx(1 - p, abs=1e-9)
