"""Every learner through HTTP: event by event what the library does, on every worker, for good.

One file: all learners are learned by the same workers, which take seconds to start.
"""

import itertools
import json
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from river import datasets
from river.optim.schedulers import InverseScaling

import hinged
from tests.support.processes import wait_until_saved
from tests.support.redis_server import RedisServer
from tests.support.running import running
from tests.support.service import Service
from tests.support.shared_service import NewModel

Event = tuple[dict[str, float], Any]
Spec = dict[str, Any]

BINARY: dict[str, tuple[Spec, Callable[[], Any]]] = {
    "perceptron": (
        {"type": "perceptron", "learning_rate": 0.5, "margin": 0.25},
        lambda: hinged.Perceptron(0.5, margin=0.25),
    ),
    "perceptron-mistakes": (
        {"type": "perceptron", "update_on": "mistake", "label_at_zero": True},
        lambda: hinged.Perceptron(update_on="mistake", label_at_zero=True),
    ),
    "perceptron-schedule": (
        {"type": "perceptron", "learning_rate": {"type": "inverse_scaling", "rate": 1.0}},
        lambda: hinged.Perceptron(InverseScaling(1.0, 0.5)),
    ),
    "averaged": ({"type": "averaged_perceptron"}, hinged.AveragedPerceptron),
    "pocket": ({"type": "pocket_perceptron"}, hinged.PocketPerceptron),
    "pa": (
        {"type": "passive_aggressive", "C": 0.5, "mode": "II"},
        lambda: hinged.PassiveAggressive(0.5, "II"),
    ),
    "linear-unit": ({"type": "linear_unit"}, hinged.LinearUnit),
    "adagrad": (
        {"type": "hinge_sgd", "l2": 0.01, "l1": 0.001},
        lambda: hinged.HingeSGD(l2=0.01, l1=0.001),
    ),
    "pegasos": (
        {"type": "hinge_sgd", "steps": "pegasos", "l2": 0.1},
        lambda: hinged.HingeSGD(steps="pegasos", l2=0.1),
    ),
    "arow": ({"type": "arow", "r": 0.5}, lambda: hinged.AROW(0.5)),
    "arow-forgetting": (
        {"type": "arow", "forgetting": 0.01},
        lambda: hinged.AROW(forgetting=0.01),
    ),
    "scw": ({"type": "scw", "C": 0.5, "phi": 1.0}, lambda: hinged.SCW(0.5, 1.0)),
    "logistic": ({"type": "logistic_sgd"}, hinged.LogisticSGD),
    "logistic-constant": (
        {"type": "logistic_sgd", "steps": "constant", "learning_rate": 0.1},
        lambda: hinged.LogisticSGD(0.1, "constant"),
    ),
    "coin": ({"type": "coin_betting"}, hinged.CoinBetting),
    "ftrl": ({"type": "ftrl_proximal", "l1": 0.5}, lambda: hinged.FTRLProximal(l1=0.5)),
    "auto": ({"type": "auto"}, hinged.Auto),
    "curved": (
        {"type": "curved", "learner": {"type": "passive_aggressive"}, "n_components": 20},
        lambda: hinged.Curved(hinged.PassiveAggressive(), n_components=20),
    ),
    "quadratic": ({"type": "quadratic"}, hinged.Quadratic),
    "quadratic-arow": (
        {"type": "quadratic", "learner": {"type": "arow", "r": 10.0}},
        lambda: hinged.Quadratic(hinged.AROW(10.0)),
    ),
    "given-weights": (
        {
            "type": "passive_aggressive",
            "initial_weights": {"ip_in_url": -0.5, "never met": 2.0},
            "initial_intercept": 0.25,
            "label_at_zero": True,
        },
        lambda: hinged.PassiveAggressive(
            initial_weights={"ip_in_url": -0.5, "never met": 2.0},
            initial_intercept=0.25,
            label_at_zero=True,
        ),
    ),
    "random-weights": (
        {"type": "pocket_perceptron", "initial_weights": {"type": "random", "seed": 3}},
        lambda: hinged.PocketPerceptron(initial_weights=hinged.RandomWeights(3)),
    ),
    "hedge": ({"type": "hedge"}, hinged.Hedge),
    "hedge-curved": (
        {
            "type": "hedge",
            "models": [{"type": "arow"}, {"type": "curved", "n_components": 9, "bend": 1.5}],
            "curved": True,
        },
        lambda: hinged.Hedge([hinged.AROW(), hinged.Curved(n_components=9, bend=1.5)], curved=True),
    ),
    "hedge-of-two": (
        {"type": "hedge", "models": [{"type": "perceptron"}, {"type": "arow"}], "share": 0.0},
        lambda: hinged.Hedge([hinged.Perceptron(), hinged.AROW()], share=0.0),
    ),
}
MULTICLASS: dict[str, tuple[Spec, Callable[[], Any]]] = {
    "perceptron": ({"type": "multiclass_perceptron"}, hinged.MulticlassPerceptron),
    "averaged": ({"type": "multiclass_averaged_perceptron"}, hinged.MulticlassAveragedPerceptron),
    "pocket": ({"type": "multiclass_pocket_perceptron"}, hinged.MulticlassPocketPerceptron),
    "pa": (
        {"type": "multiclass_passive_aggressive", "mode": "I", "C": 0.1},
        lambda: hinged.MulticlassPassiveAggressive(0.1, "I"),
    ),
    "arow": ({"type": "multiclass_arow"}, hinged.MulticlassAROW),
    "softmax": (
        {"type": "multiclass_logistic_sgd", "learning_rate": 0.1, "least": 0.0},
        lambda: hinged.MulticlassLogisticSGD(0.1, 0.0),
    ),
    "random-weights": (
        {
            "type": "multiclass_pocket_perceptron",
            "initial_weights": {"type": "random", "seed": 1, "scale": 0.5},
        },
        lambda: hinged.MulticlassPocketPerceptron(initial_weights=hinged.RandomWeights(1, 0.5)),
    ),
    "ovr": (
        {"type": "one_vs_rest", "learner": {"type": "passive_aggressive"}},
        lambda: hinged.OneVsRest(hinged.PassiveAggressive()),
    ),
    "discriminant": ({"type": "multiclass_discriminant"}, hinged.MulticlassDiscriminant),
    "quadratic": ({"type": "multiclass_quadratic"}, hinged.MulticlassQuadratic),
    "quadratic-pa": (
        {"type": "multiclass_quadratic", "learner": {"type": "multiclass_passive_aggressive"}},
        lambda: hinged.MulticlassQuadratic(hinged.MulticlassPassiveAggressive()),
    ),
    "hedge": ({"type": "multiclass_hedge"}, hinged.MulticlassHedge),
    "auto": ({"type": "auto"}, hinged.Auto),
    "hedge-of-three": (
        {
            "type": "multiclass_hedge",
            "models": [
                {"type": "multiclass_arow"},
                {"type": "one_vs_rest", "learner": {"type": "arow"}},
                {"type": "multiclass_quadratic"},
            ],
            "share": 0.0,
        },
        lambda: hinged.MulticlassHedge(
            [
                hinged.MulticlassAROW(),
                hinged.OneVsRest(hinged.AROW()),
                hinged.MulticlassQuadratic(),
            ],
            share=0.0,
        ),
    ),
}


@pytest.fixture(scope="module")
def binary_events() -> list[Event]:
    """Phishing, the first 400 pages."""
    return [(x, bool(y)) for x, y in datasets.Phishing().take(400)]


@pytest.fixture(scope="module")
def multiclass_events() -> list[Event]:
    """Image segments, the first 300, scaled to about 1."""
    return [
        ({name: value / 100.0 for name, value in x.items()}, str(y))
        for x, y in datasets.ImageSegments().take(300)  # type: ignore[no-untyped-call]
    ]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running(RedisServer(tmp_path_factory.mktemp("learners"))) as made:
        yield made


def start(server: RedisServer) -> Service:
    """Return a worker that saves a snapshot every few events."""
    worker = Service(
        server.url, snapshot_every_events=20, snapshot_every_ms=1_000, max_staleness_ms=0
    )
    worker.start()
    return worker


@pytest.fixture(scope="module")
def workers(server: RedisServer) -> Iterator[list[Service]]:
    both = [start(server), start(server)]
    yield both
    for worker in both:
        worker.stop()


def weights_of(learner: Any) -> dict[str, Any]:

    def linear(one: Any) -> dict[str, Any]:
        return {"weights": dict(one.weights), "intercept": 0.0 - one.threshold}

    if isinstance(learner, hinged.Auto):
        learner = learner.pool
    if isinstance(learner, hinged.Hedge):
        pairs = zip(learner.experts, learner.trust, strict=True)
        return {"experts": [{**linear(e), "trust": trust} for e, trust in pairs]}
    if isinstance(learner, hinged.BinaryLinearClassifier):
        return linear(learner)
    if isinstance(learner, hinged.MulticlassHedge):
        learner = max(zip(learner.trust, learner.experts, strict=True), key=lambda pair: pair[0])[1]
    return {
        "classes": {
            y: {"weights": dict(learner.weights[y]), "intercept": learner.intercepts[y]}
            for y in learner.classes
        }
    }


def as_text(value: Any) -> Any:
    """Return JSON's view of a probability's key."""
    return json.dumps(value) if isinstance(value, bool) else value


def check_through_http(
    server: RedisServer,
    workers: list[Service],
    name: str,
    spec: Spec,
    learner: Any,
    events: list[Event],
) -> None:
    path = f"/v1/models/{name}"
    clients = [worker.client() for worker in workers]
    calibrated = isinstance(learner, hinged.Calibrated)
    plain = learner.calibrated if calibrated else learner
    body = {"learner": spec, "calibrate": calibrated}
    assert clients[0].put(path, json=body).status_code == 201
    turns = itertools.cycle(clients)
    for start_at in range(0, len(events), 7):
        chunk = events[start_at : start_at + 7]
        answers = next(turns).post(f"{path}/learn", json=[{"x": x, "y": y} for x, y in chunk])
        assert answers.status_code == 200, answers.text
        for (x, y), answer in zip(chunk, answers.json(), strict=True):
            outcome = learner.predict_learn_one(x, y)
            del answer["position"], answer["duplicate"]
            assert answer == outcome._asdict()
    third = start(server)
    wait_until_saved(clients[0], path)
    try:
        clients.append(third.client())
        for client in clients:
            account = client.get(path).json()
            for field in ("events", "mistakes", "updates", "hinge_loss", "perceptron_loss"):
                assert account[field] == getattr(learner.accounting, field), field
            if hasattr(plain, "classes"):  # in the order seen, which decides ties
                assert account["classes"] == learner.classes
            info = client.get(f"{path}/weights").json()
            del info["position"]
            assert info == weights_of(plain)
            for x, _ in events[:20]:
                answer = client.post(f"{path}/predict", json={"x": x}).json()
                assert answer["y"] == learner.predict_one(x)
                assert answer["score"] == learner.score_one(x)
                proba = learner.predict_proba_one(x)
                assert answer["proba"] == {as_text(y): p for y, p in proba.items()}
        more = events[:30]
        answers = clients[-1].post(f"{path}/learn", json=[{"x": x, "y": y} for x, y in more])
        for (x, y), answer in zip(more, answers.json(), strict=True):
            assert answer["score"] == learner.predict_learn_one(x, y).score
    finally:
        third.stop()
        for client in clients:
            client.close()


@pytest.mark.parametrize("name", BINARY)
def test_binary_learners_are_the_same_through_http(
    server: RedisServer, workers: list[Service], binary_events: list[Event], name: str
) -> None:
    spec, make = BINARY[name]
    check_through_http(server, workers, f"b-{name}", spec, make(), binary_events)


@pytest.mark.parametrize("name", MULTICLASS)
def test_multiclass_learners_are_the_same_through_http(
    server: RedisServer, workers: list[Service], multiclass_events: list[Event], name: str
) -> None:
    spec, make = MULTICLASS[name]
    check_through_http(server, workers, f"m-{name}", spec, make(), multiclass_events)


def test_auto_with_two_listed_labels_is_binary(
    client: httpx.Client, new_model: NewModel, binary_events: list[Event]
) -> None:
    labels = ["bad", "good"]
    path = new_model(learner={"type": "auto"}, labels=labels, metrics=["roc_auc", "log_loss"])
    learner = hinged.Auto(max_classes=2)
    for start_at in range(0, 100, 10):
        chunk = binary_events[start_at : start_at + 10]
        events = [{"x": x, "y": labels[bool(y)]} for x, y in chunk]
        answers = client.post(f"{path}/learn", json=events).json()
        for (x, y), answer in zip(chunk, answers, strict=True):
            outcome = learner.predict_learn_one(x, y)
            assert (answer["y_pred"], answer["score"]) == (
                labels[outcome.y_pred is True],
                outcome.score,
            )
    x = binary_events[0][0]
    assert client.post(f"{path}/predict", json={"x": x}).json()["proba"] == {
        label: learner.predict_proba_one(x)[y] for y, label in enumerate(labels)
    }
    assert client.get(path).json()["metrics"]["roc_auc"] > 0.8
    learned_nothing = client.post(f"{path}/learn", json={"x": x, "y": "ugly"})
    assert learned_nothing.status_code == 422


def test_the_first_label_of_auto_decides_the_type_of_all(
    client: httpx.Client, new_model: NewModel
) -> None:
    for first, second, others in (
        ("a", "b", (1, True, None)),
        (3, -4, ("3", False, 1.5)),
        (True, False, (1, "true", None)),
    ):
        path = new_model(learner={"type": "auto"})
        assert learn(client, path, first).status_code == 200
        for other in others:
            assert learn(client, path, other).status_code == 422, other
        assert learn(client, path, second).status_code == 200
        assert client.get(path).json()["classes"] == [first, second]
        assert client.get(path).json()["rejected"] == 0
        y = client.post(f"{path}/predict", json={"x": {"a": 1.0}}).json()["y"]
        assert (type(y), y in (first, second)) == (type(first), True)


def test_a_third_class_of_auto_after_a_snapshot_is_there_after_a_restart(
    server: RedisServer, workers: list[Service], multiclass_events: list[Event]
) -> None:
    path, learner = "/v1/models/late-class", hinged.Auto()
    labels = [str(y) for _, y in multiclass_events]
    two = [e for e in multiclass_events if e[1] in (labels[0], labels[1])]
    with workers[0].client() as client:
        client.put(path, json={"learner": {"type": "auto"}})
        for events in (two, multiclass_events[:100]):
            for x, y in events:
                learner.learn_one(x, y)
            body = [{"x": x, "y": y} for x, y in events]
            assert client.post(f"{path}/learn", json=body).status_code == 200
            wait_until_saved(client, path)
    third = start(server)
    try:
        with third.client() as client:
            for x, _ in multiclass_events[:20]:
                answer = client.post(f"{path}/predict", json={"x": x}).json()
                assert (answer["y"], answer["score"]) == (
                    learner.predict_one(x),
                    learner.score_one(x),
                )
            info = client.get(path).json()
            assert info["classes"] == learner.classes
            assert info["bytes"] == learner.stored_bytes()
    finally:
        third.stop()


def test_weights_of_classes_lie_in_redis_as_json_of_class_and_feature(
    server: RedisServer, workers: list[Service]
) -> None:
    with workers[0].client() as client, server.client() as redis:
        path = "/v1/models/layout"
        client.put(path, json={"learner": {"type": "multiclass_perceptron"}})
        odd = [{"x": {"y": 1, "x:y": 2}, "y": "A:x"}, {"x": {"x:y": 1}, "y": "A"}]
        client.post(f"{path}/learn", json=odd)
        wait_until_saved(client, path)
        uid = json.loads(str(redis.hget("hinged:models", "layout")))["uid"]
        stored: Any = redis.hgetall(f"hinged:{{layout}}:model:{uid}:weights")
        # the first event has no rival; the second moves A by +1 and its rival A:x by -1
        assert {tuple(json.loads(k)): float(v) for k, v in stored.items()} == {
            ("A", "x:y"): 1.0,
            ("A:x", "x:y"): -1.0,
        }


def learn(client: httpx.Client, path: str, y: Any, **event: Any) -> httpx.Response:
    return client.post(f"{path}/learn", json={"x": {"a": 1.0}, "y": y, **event})


def test_a_model_that_knows_no_class_answers_null(
    client: httpx.Client, new_model: NewModel
) -> None:
    path = new_model(learner={"type": "multiclass_perceptron"})
    answer = client.post(f"{path}/predict", json={"x": {"a": 1}})
    assert answer.status_code == 200
    assert (answer.json()["y"], answer.json()["proba"]) == (None, {})
    assert learn(client, path, "A").json()["y_pred"] is None


@pytest.mark.parametrize(
    ("labels", "good", "bad"),
    [
        (None, ["1", "true", "", "spam"], [1, True, 1.0, None]),
        ("integers", [1, 0, -5, 2**62], ["1", True, 1.0, 2**63, None]),
        (["a", "b", "c"], ["a", "c"], ["d", "A", 1, True]),
        ([1, 2, 3], [3, 1], ["1", True, 4, 1.0]),
    ],
)
def test_labels_of_a_model_are_of_one_type_and_come_back_as_they_were(
    client: httpx.Client, new_model: NewModel, labels: Any, good: list[Any], bad: list[Any]
) -> None:
    spec = {} if labels is None else {"labels": labels}
    path = new_model(learner={"type": "multiclass_perceptron"}, **spec)
    for y in good:
        assert learn(client, path, y).status_code == 200
    for y in bad:
        refused = learn(client, path, y, id="kept")
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["field"] == "y"
    assert learn(client, path, good[0], id="kept").json()["duplicate"] is False
    assert json.dumps(client.get(path).json()["classes"]) == json.dumps(good)


@pytest.mark.parametrize(
    ("sort", "name"), [("b", "pa"), ("b", "hedge"), ("m", "perceptron"), ("m", "ovr")]
)
def test_calibrated_learners_are_the_same_through_http(
    server: RedisServer,
    workers: list[Service],
    binary_events: list[Event],
    multiclass_events: list[Event],
    sort: str,
    name: str,
) -> None:
    spec, make = BINARY[name] if sort == "b" else MULTICLASS[name]
    events = binary_events if sort == "b" else multiclass_events
    check_through_http(server, workers, f"c-{sort}-{name}", spec, hinged.Calibrated(make()), events)


@pytest.mark.parametrize(
    ("learner", "labels", "steps"),
    [
        ({"type": "perceptron"}, (False, True), []),
        ({"type": "perceptron"}, (False, True), [{"type": "StandardScaler"}]),
        ({"type": "LogisticRegression"}, (False, True), []),
        ({"type": "multiclass_perceptron"}, ("no", "yes"), []),
        ({"type": "GaussianNB"}, ("no", "yes"), []),
    ],
    ids=["binary", "scaled", "river", "multiclass", "river-multiclass"],
)
def test_calibrated_probabilities_are_those_of_the_labels(
    client: httpx.Client, new_model: NewModel, learner: Spec, labels: Any, steps: list[Any]
) -> None:
    chance = random.Random(6)
    events = []
    for _ in range(1_500):
        x = {name: chance.gauss(0.0, 1.0) for name in "ab"}
        truth = (x["a"] > x["b"]) is not (chance.random() < 0.3)
        events.append({"x": x, "y": labels[truth]})
    metrics = ["accuracy", {"type": "rolling", "metric": "log_loss"}, "reliability"]
    shape = {"learner": learner, "pipeline": steps, "metrics": metrics}
    plain, path = new_model(**shape), new_model(**shape, calibrate=True)
    for one in (plain, path):
        client.post(f"{one}/learn", json=events).raise_for_status()
    before, after = (client.get(one).json()["metrics"] for one in (plain, path))
    assert before["accuracy"] == after["accuracy"], "the labels are the same"
    loss = after["rolling_log_loss_1000"]
    assert loss < min(before["rolling_log_loss_1000"] + 0.005, math.log(2.0))
    assert sum(one["events"] for one in after["reliability"]) >= 1_499
    question = {"x": {"a": 1.0, "b": -1.0}}
    predicted = client.post(f"{path}/predict", json=question).json()
    assert predicted["score"] == client.post(f"{plain}/predict", json=question).json()["score"]
    client.post(f"{path}/checkpoints", json={"name": "then"}).raise_for_status()
    document = client.get(f"{path}/checkpoints/then/export").content
    again = f"{path}-again"
    made = client.post(f"{again}/import", content=document)
    assert made.status_code == 201, made.text
    for body in ({"x": {"a": 1.0, "b": -1.0}}, {"x": {"a": 0.25}}):
        answers = [client.post(f"{one}/predict", json=body).json() for one in (path, again)]
        assert answers[0]["proba"] == answers[1]["proba"]
    client.post(f"{path}/freeze").raise_for_status()
    client.post(f"{path}/learn", json=events[:50]).raise_for_status()
    assert client.post(f"{path}/predict", json=question).json()["proba"] == predicted["proba"]


@pytest.mark.parametrize("kind", ["perceptron", "arow", "hedge"])
def test_minus_one_is_a_label_where_the_spec_lists_it(
    client: httpx.Client, new_model: NewModel, kind: str
) -> None:
    listed = new_model(learner={"type": kind}, labels=[-1, 1])
    plain = new_model(learner={"type": kind})
    for y in (1, -1, 1):
        answer = client.post(f"{listed}/learn", json={"x": {"a": float(y)}, "y": y})
        truth = client.post(f"{plain}/learn", json={"x": {"a": float(y)}, "y": y == 1}).json()
        assert answer.json()["y_pred"] == (1 if truth["y_pred"] else -1)
        assert answer.json()["score"] == truth["score"]
    for a, y in ((3.0, 1), (-3.0, -1)):
        answer = client.post(f"{listed}/predict", json={"x": {"a": a}})
        assert answer.json()["y"] == y
        assert list(answer.json()["proba"]) == ["-1", "1"]
    for path, bad in ((listed, 0), (listed, True), (listed, -1.0), (plain, -1)):
        refused = client.post(f"{path}/learn", json={"x": {"a": 1.0}, "y": bad})
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["field"] == "y"


def test_a_class_too_many_is_refused_by_the_fold_and_its_id_is_used_up(
    client: httpx.Client, new_model: NewModel
) -> None:
    path = new_model(learner={"type": "multiclass_arow", "max_classes": 2})
    events = [{"x": {"a": i}, "y": y, "id": y} for i, y in enumerate("ABCA")]
    refused = client.post(f"{path}/learn", json=events[:3])
    assert refused.status_code == 422
    assert refused.json()["logged"] is True
    assert [e["field"] for e in refused.json()["errors"]] == ["[2].y"]
    model = client.get(path).json()
    assert (model["classes"], model["events"], model["rejected"]) == (["A", "B"], 2, 1)
    assert client.post(f"{path}/learn", json=events[2]).json()["duplicate"] is True
    assert client.get(path).json()["rejected"] == 1


def test_a_new_class_wins_no_tie_against_one_seen_before_also_after_a_restart(
    server: RedisServer, workers: list[Service]
) -> None:
    with workers[0].client() as one, workers[1].client() as other:
        path = "/v1/models/ties"
        one.put(path, json={"learner": {"type": "multiclass_perceptron", "fit_intercept": False}})
        for y in ("zebra", "apple"):  # no feature: every score stays 0
            one.post(f"{path}/learn", json={"x": {}, "y": y})
        wait_until_saved(one, path)
        third = start(server)
        with third.client() as restarted:
            for client in (one, other, restarted):
                answer = client.post(f"{path}/predict", json={"x": {"new": 1}}).json()
                assert (answer["y"], list(answer["proba"])) == ("zebra", ["zebra", "apple"])
        third.stop()


def test_one_class_can_be_looked_at(client: httpx.Client, new_model: NewModel) -> None:
    path = new_model(learner={"type": "multiclass_perceptron"}, labels="integers")
    for y in (7, 8):
        learn(client, path, y)
    info = client.get(f"{path}/weights", params={"class": "8"}).json()
    assert info["classes"] == {"8": {"weights": {"a": 1.0}, "intercept": 1.0}}
    assert client.get(f"{path}/weights", params={"class": "9"}).status_code == 404


def test_a_sample_weight_that_the_rule_does_not_know_is_refused_before_the_log(
    client: httpx.Client, new_model: NewModel
) -> None:
    path = new_model(learner={"type": "passive_aggressive", "mode": "uncapped"})
    refused = learn(client, path, True, w=0.5, id="e")
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "w"
    assert refused.json().get("logged") is None
    assert learn(client, path, True, w=1.0, id="e").json()["duplicate"] is False


def test_a_reset_model_starts_from_its_initial_weights(
    server: RedisServer, workers: list[Service]
) -> None:
    given = {"type": "perceptron", "initial_weights": {"a": 2.0, "b": -1.0, "type": 0.5}}
    path = "/v1/models/reset-start"
    with workers[0].client() as client:
        assert client.put(path, json={"learner": given}).status_code == 201
        assert client.get(f"{path}/weights").json()["weights"] == given["initial_weights"]
        for _ in range(30):
            learn(client, path, False, x={"a": 1.0, "c": 1.0})
        assert client.get(f"{path}/weights").json()["weights"]["a"] < 2.0
        wait_until_saved(client, path)
        assert client.post(f"{path}/reset").status_code == 200
        for number in range(30):
            learn(client, path, number % 2 == 0, x={"c": 1.0})
        wait_until_saved(client, path)
    restarted = start(server)
    with restarted.client() as client:
        weights = client.get(f"{path}/weights").json()["weights"]
    restarted.stop()
    assert {name: weights[name] for name in ("a", "b", "type")} == given["initial_weights"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"learner": {"type": "multiclass_perceptron"}, "labels": ["a"]}, "labels"),
        ({"learner": {"type": "perceptron"}, "labels": "integers"}, "labels"),
        ({"learner": {"type": "hinge_sgd", "steps": "pegasos"}}, "learner"),
        ({"learner": {"type": "arow", "initial_weights": {"a": "1"}}}, "learner.initial_weights.a"),
        (
            {"learner": {"type": "arow", "initial_weights": {"type": "random", "seed": 0.5}}},
            "learner.initial_weights.seed",
        ),
        (
            {"learner": {"type": "arow", "initial_weights": {"type": "normal"}}},
            "learner.initial_weights.type",
        ),
        (
            {"learner": {"type": "arow", "initial_intercept": 1.0, "fit_intercept": False}},
            "learner",
        ),
        (
            {
                "learner": {
                    "type": "hinge_sgd",
                    "l2": 0.1,
                    "initial_weights": {"type": "random"},
                }
            },
            "learner",
        ),
        (
            {
                "learner": {"type": "arow", "initial_weights": {"a": 1.0, "b": 1.0}},
                "max_features": 1,
            },
            "max_features",
        ),
        ({"learner": {"type": "hedge", "models": []}}, "learner.models"),
        ({"learner": {"type": "hedge", "models": [{"type": "hedge"}]}}, "learner.models.0.type"),
        (
            {"learner": {"type": "multiclass_hedge", "models": [{"type": "arow"}]}},
            "learner.models.0.type",
        ),
        ({"learner": {"type": "auto", "max_classes": 2}}, "learner.max_classes"),
        ({"learner": {"type": "one_vs_rest"}}, "learner.learner"),
        (
            {"learner": {"type": "curved", "learner": {"type": "curved"}}},
            "learner.learner.type",
        ),
        ({"learner": {"type": "curved", "n_components": 1001}}, "learner.n_components"),
        ({"learner": {"type": "passive_aggressive", "C": 0}}, "learner.C"),
        ({"learner": {"type": "multiclass_arow", "max_classes": 1001}}, "learner.max_classes"),
    ],
)
def test_a_wrong_learner_is_refused_by_field(client: httpx.Client, spec: Spec, field: str) -> None:
    refused = client.put("/v1/models/wrong", json=spec)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == field
    assert client.get("/v1/models/wrong").status_code == 404


def test_the_default_hedge_keeps_to_max_features(client: httpx.Client, new_model: NewModel) -> None:
    path = new_model(learner={"type": "hedge"}, max_features=2)
    client.post(f"{path}/learn", json=[{"x": {"a": 1, "b": 1, "c": 1}, "y": True}])
    model = client.get(path).json()
    assert model["features"] == 3  # the expert of squares has room for twice as many
    assert model["ignored_features"] == 5  # one for each other expert
