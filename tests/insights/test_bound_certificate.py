"""The bound certificate over HTTP: updates never exceed it, and it says where it does not apply."""

import random
import time
from typing import Any

import httpx
import pytest

from tests.support.redis_server import RedisServer
from tests.support.running import serving
from tests.support.service import Service
from tests.support.shared_service import NewModel


def events(seed: int, count: int = 400, noise: float = 0.1) -> list[dict[str, Any]]:
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        x = {n: draw.gauss(3.0, 2.0) for n in "abc"}
        y = (x["a"] - x["b"] + 0.5 * x["c"] > 1.0) is not (draw.random() < noise)
        made.append({"x": x, "y": y})
    return made


def certificate(client: httpx.Client, path: str, **at: str) -> dict[str, Any]:
    answer = client.get(f"{path}/bound", params=at)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert found["holds"] is True
    for name, bound in found["bounds"].items():
        assert found["updates"] <= bound["value"] * (1 + 1e-9), name
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("pipeline", [[], [{"type": "StandardScaler"}]])
@pytest.mark.parametrize("learner", ["perceptron", "averaged_perceptron", "pocket_perceptron"])
def test_updates_stay_within_the_bound(
    client: httpx.Client, new_model: NewModel, seed: int, pipeline: list[Any], learner: str
) -> None:
    path = new_model(pipeline=pipeline, learner={"type": learner})
    client.post(f"{path}/learn", json=events(seed)).raise_for_status()
    found, info = certificate(client, path), client.get(path).json()
    assert found["events"] == 400
    assert found["updates"] == info["updates"]
    assert found["end"] == info["position"]
    assert found["radius"] == pytest.approx(info["radius"])
    assert set(found["bounds"]) >= {"general", "hinge", "sharp"}
    hinge = found["bounds"]["hinge"]
    by_hand = found["radius"] ** 2 * hinge["norm"] ** 2 + 2 * hinge["loss"]
    assert hinge["value"] == pytest.approx(by_hand)


def test_a_separable_stream_has_novikoffs_bound(client: httpx.Client, model: str) -> None:
    rows = [{"x": {"a": s * 2.0}, "y": s > 0} for s in (1, -1)] * 20
    client.post(f"{model}/learn", json=rows).raise_for_status()
    assert "separable" in certificate(client, model)["bounds"]


def test_margin_and_commands_inside(client: httpx.Client, new_model: NewModel) -> None:
    path = new_model(learner={"type": "perceptron", "margin": 0.5, "learning_rate": 0.3})
    client.post(f"{path}/learn", json=events(1)).raise_for_status()
    assert set(certificate(client, path)["bounds"]) == {"general"}
    client.post(f"{path}/configure", json={"set": {"learning_rate": 0.1}}).raise_for_status()
    client.post(f"{path}/learn", json=events(2, 50)).raise_for_status()
    found = certificate(client, path)
    assert found["events"] == 50
    assert found["learning_rate"] == 0.1
    assert found["start_norm"] > 0
    client.post(f"{path}/reset", json={}).raise_for_status()
    client.post(f"{path}/learn", json=events(3, 60)).raise_for_status()
    found = certificate(client, path)
    assert found["events"] == 60
    assert found["start_norm"] == 0
    client.post(f"{path}/learn", json={"x": {"a": 1}, "y": True, "w": 2}).raise_for_status()
    client.post(f"{path}/learn", json=events(4, 30)).raise_for_status()
    assert certificate(client, path)["events"] == 30


def test_events_of_a_frozen_model_are_not_in_the_window(
    client: httpx.Client, new_model: NewModel
) -> None:
    path = new_model(pipeline=[{"type": "StandardScaler"}])
    client.post(f"{path}/learn", json=events(8, 100)).raise_for_status()
    for number in (1, 2):
        client.post(f"{path}/freeze", json={}).raise_for_status()
        client.post(f"{path}/learn", json=events(9, 50)).raise_for_status()
        assert certificate(client, path)["events"] == 100 * number
        client.post(f"{path}/unfreeze", json={}).raise_for_status()
        client.post(f"{path}/learn", json=events(10 + number, 100)).raise_for_status()
    found, info = certificate(client, path), client.get(path).json()
    assert found["events"] == 300
    assert found["updates"] == info["updates"]
    assert info["events"] == 400
    assert found["end"] == info["position"]


def test_a_pocket_perceptron_from_a_checkpoint(client: httpx.Client, new_model: NewModel) -> None:
    path = new_model(learner={"type": "pocket_perceptron"})
    client.post(f"{path}/learn", json=events(13, 100)).raise_for_status()
    client.post(f"{path}/checkpoints", json={"name": "then"}).raise_for_status()
    client.post(f"{path}/learn", json=events(14, 100)).raise_for_status()
    client.post(f"{path}/restore", json={"checkpoint": "then"}).raise_for_status()
    client.post(f"{path}/learn", json=events(15, 60)).raise_for_status()
    found = certificate(client, path)
    assert found["events"] == 60
    assert found["start_norm"] > 0


def test_the_search_on_wide_data_ends_in_time(own_server: RedisServer) -> None:
    draw = random.Random(16)
    names = [f"n{n}" for n in range(20_000)]
    wide = [
        {
            "x": {"same": 100.0} | {n: draw.gauss(0, 1) for n in draw.sample(names, 500)},
            "y": draw.random() < 0.5,
        }
        for _ in range(200)
    ]
    with serving(own_server.url, bound_timeout_ms=1000) as client:
        path = "/v1/models/m"
        client.put(path, json={"learner": {"type": "perceptron"}}).raise_for_status()
        for first in range(0, 200, 50):
            client.post(f"{path}/learn", json=wide[first : first + 50]).raise_for_status()
        began_s = time.process_time()  # the service runs in this process
        found = certificate(client, path)
        assert time.process_time() - began_s < 6  # some 15 if it were to go on
        assert found["events"] == 200
        assert "bound_timeout_ms ended the search" in " ".join(found["notes"])
        assert set(found["bounds"]) >= {"general", "hinge", "sharp"}


def test_after_a_restore_and_for_a_challenger(client: httpx.Client, new_model: NewModel) -> None:
    path = new_model(pipeline=[{"type": "StandardScaler"}])
    name = path.rpartition("/")[2]
    client.post(f"{path}/learn", json=events(5, 100)).raise_for_status()
    client.post(f"{path}/checkpoints", json={"name": "then"}).raise_for_status()
    client.post(f"{path}/learn", json=events(6, 100)).raise_for_status()
    assert certificate(client, path)["events"] == 200
    client.post(f"{path}/restore", json={"checkpoint": "then"}).raise_for_status()
    other = new_model(pipeline=[{"type": "StandardScaler"}], stream=name, start={"model": name})
    learned = client.post(f"{path}/learn", json=events(7, 70)).raise_for_status().json()
    for one in (path, other):
        found = certificate(client, one, at_least=learned[-1]["position"])
        assert found["events"] == 70
        assert found["start_norm"] > 0


def test_others_are_refused_with_a_reason(client: httpx.Client, new_model: NewModel) -> None:
    path = new_model(learner={"type": "arow"})
    answer = client.get(f"{path}/bound")
    assert answer.status_code == 409
    assert "no bound is known" in answer.json()["detail"]


def test_a_trimmed_log_asks_for_a_checkpoint_also_after_a_restart(own_server: RedisServer) -> None:
    path = "/v1/models/m"
    few: dict[str, Any] = {"snapshot_every_ms": 50, "housekeeping_ms": 20, "max_bound_events": 100}
    with Service(own_server.url, **few) as service, service.client() as client:
        spec = {"learner": {"type": "perceptron"}, "retention": {"events": 160}}
        client.put(path, json=spec).raise_for_status()
        for seed in range(30):
            client.post(f"{path}/learn", json=events(seed, 20)).raise_for_status()
            if seed == 5:
                assert certificate(client, path)["events"] <= 120
        deadline = time.monotonic() + 20
        while (answer := client.get(f"{path}/bound")).status_code == 200:
            assert time.monotonic() < deadline
            client.post(f"{path}/learn", json=events(1, 20)).raise_for_status()
            time.sleep(0.1)
        assert answer.status_code == 409
        assert "checkpoint" in answer.json()["detail"]
        client.post(f"{path}/checkpoints", json={}).raise_for_status()
        client.post(f"{path}/learn", json=events(99, 40)).raise_for_status()
        assert certificate(client, path)["events"] == 40
    with Service(own_server.url, **few) as service, service.client() as client:
        assert certificate(client, path)["events"] == 40
