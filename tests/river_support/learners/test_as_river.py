"""A pipeline through HTTP is River's in process: every answer, every weight, to the bit."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

import hinged
from tests.conftest import data_file
from tests.river_support.learners.cases import AS_TEXT, BINARY_TEXT, CASES, Case, Event, fx, nb
from tests.river_support.learners.conftest import Start
from tests.support.processes import wait_until_saved

Clients = tuple[httpx.Client, httpx.Client]
Create = Callable[..., str]


def texts(labels: dict[Any, float], case: Case) -> dict[str, float]:
    named = {case.label(y): p for y, p in labels.items()}
    return {y if isinstance(y, str) else json.dumps(y): p for y, p in named.items()}


def expected(pipeline: Any, case: Case, x: dict[str, Any]) -> dict[str, Any]:
    """Return label, score and probabilities of the pipeline in process."""
    proba = pipeline.predict_proba_one(x)
    learner = pipeline[-1] if hasattr(pipeline, "steps") else pipeline
    if isinstance(learner, hinged.LinearClassifier):
        y, score = pipeline.predict_one(x), pipeline.score_one(x)
    elif set(proba) == {False, True} and "labels" not in case.spec:
        y, score = pipeline.predict_one(x), 2.0 * proba[True] - 1.0
    else:
        y, score = pipeline.predict_one(x) if proba else None, max(proba.values(), default=0.0)
    return {"y": case.label(y), "score": score, "proba": texts(proba, case)}


def check(answer: Any, wanted: dict[str, Any]) -> None:
    assert {name: answer[name] for name in wanted} == wanted


def weights_of(learner: Any) -> dict[str, Any]:
    if not isinstance(learner, hinged.LinearClassifier):
        return {"weights": dict(learner.weights), "intercept": learner.intercept}
    one: Any = learner
    if isinstance(learner, hinged.BinaryLinearClassifier):
        return {"weights": dict(one.weights), "intercept": 0.0 - one.threshold}
    pairs = {y: (dict(one.weights[y]), one.intercepts[y]) for y in one.classes}
    return {"classes": {y: {"weights": w, "intercept": b} for y, (w, b) in pairs.items()}}


def learn(client: httpx.Client, path: str, case: Case, pipeline: Any, chunk: list[Event]) -> None:
    """Ask about the first event, learn all of them, and compare every answer."""
    asked = client.post(f"{path}/predict", json={"x": chunk[0][0]})
    assert asked.status_code == 200, asked.text
    check(asked.json(), expected(pipeline, case, chunk[0][0]))
    body = [{"x": x, "y": case.label(y)} for x, y in chunk]
    answers = client.post(f"{path}/learn", json=body)
    assert answers.status_code == 200, answers.text
    for (x, y), answer in zip(chunk, answers.json(), strict=True):
        wanted = expected(pipeline, case, x)
        mistake = wanted["y"] is not None and wanted["y"] != case.label(y)
        check(answer, {"y_pred": wanted["y"], "score": wanted["score"], "mistake": mistake})
        pipeline.learn_one(x, y)


def check_case(clients: Clients, start: Start, path: str, case: Case, events: list[Event]) -> None:
    """Learn on two workers in turn; after half of it on one that was started meanwhile."""
    pipeline = case.river()
    chunks = [events[i : i + case.chunk] for i in range(0, len(events), case.chunk)]
    half = len(chunks) // 2
    for client, chunk in zip(itertools.cycle(clients), chunks[:half]):
        learn(client, path, case, pipeline, chunk)
    wait_until_saved(clients[0], path)
    restarted = start()
    with restarted.client() as late:
        for client, chunk in zip(itertools.cycle((late, clients[1])), chunks[half:]):
            learn(client, path, case, pipeline, chunk)
        wait_until_saved(late, path)
        after = start()
        with after.client() as last:
            for client in (*clients, late, last):
                check_end(client, path, case, pipeline, events)
    restarted.stop()
    after.stop()


def check_end(
    client: httpx.Client, path: str, case: Case, pipeline: Any, events: list[Event]
) -> None:
    model = client.get(path).json()
    assert model["events"] == len(events)
    assert (model["rejected"], model["overflows"], model["ignored_features"]) == (0, 0, 0)
    learner = pipeline[-1]
    reply = client.get(f"{path}/weights")
    if isinstance(learner, hinged.LinearClassifier):
        account: Any = learner.accounting
        for name in ("events", "updates", "hinge_loss", "perceptron_loss", "radius"):
            assert model[name] == getattr(account, name), name
    if hasattr(learner, "weights"):
        answer = reply.json()
        del answer["position"]
        assert bits(answer) == bits(weights_of(learner))
    else:
        assert reply.status_code == 409
    for x, _ in events[:15]:
        check(client.post(f"{path}/predict", json={"x": x}).json(), expected(pipeline, case, x))


def bits(part: Any) -> Any:
    """Return numbers in a form that is equal only if they are, the sign of zero included."""
    if isinstance(part, dict):
        return {name: bits(value) for name, value in part.items()}
    return float(part).hex()


@pytest.mark.parametrize("name", CASES)
def test_a_pipeline_through_http_is_rivers_in_process(
    clients: Clients, start: Start, create: Create, name: str
) -> None:
    case = CASES[name]
    check_case(clients, start, create(**case.spec), case, case.events())


def _sms(n: int) -> list[Event]:
    with data_file("sms_spam.tsv").open(newline="", encoding="utf-8") as file:
        rows = itertools.islice(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE), n)
        return [({"text": row["SMS"]}, row["Label"] == "spam") for row in rows]


@pytest.mark.parametrize("learner", ["perceptron", "MultinomialNB"])
def test_sms_spam_through_http_is_rivers_in_process(
    clients: Clients, start: Start, create: Create, learner: str
) -> None:
    if learner == "perceptron":
        steps = [{"type": "TFIDF", "on": "text"}]
        spec = {"learner": {"type": learner}, "pipeline": steps, **BINARY_TEXT}
        case = Case(spec, lambda: fx.TFIDF(on="text") | hinged.Perceptron(), list, 20, AS_TEXT)
    else:
        steps = [{"type": "BagOfWords", "on": "text"}]
        spec = {"learner": {"type": learner}, "pipeline": steps, **BINARY_TEXT}
        case = Case(spec, lambda: fx.BagOfWords(on="text") | nb.MultinomialNB(), list, 20, AS_TEXT)
    check_case(clients, start, create(**spec), case, _sms(1_500))
