"""All that a model can live through, on a Redis of each shape."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

import hinged
from tests.store.transport.conftest import Shaped
from tests.support.engine import event, leaked_keys
from tests.support.fleet.served import bits
from tests.support.plain_fold import fold_log, model_uid, read_snapshot
from tests.support.processes import wait_until
from tests.support.running import serving
from tests.support.service import Service
from tests.telemetry.reading import scrape, until

PERCEPTRON = {"learner": {"type": "perceptron"}}


def weights_at(client: httpx.Client, name: str, position: str) -> dict[str, Any]:
    """Return what a worker's weights are at a position, bit for bit."""
    answer = client.get(f"/v1/models/{name}/weights", params={"at_least": position})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    return {"weights": bits(found["weights"]), "intercept": float(found["intercept"]).hex()}


def folded(shaped: Shaped, name: str) -> tuple[dict[str, Any], str, list[str]]:
    """Return what `hinged` alone makes of the log: weights, position, ids that counted."""
    with shaped.holder(f"hinged:{{{name}}}:log") as client:
        found = fold_log(client, name, hinged.Perceptron())
    state = {"weights": bits(found.weights), "intercept": float(found.accounts["intercept"]).hex()}
    return state, f"{found.position}.{found.chain}", found.counted_ids


def learn(client: httpx.Client, name: str, sent: Any) -> Any:
    answer = client.post(f"/v1/models/{name}/learn", json=sent)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_models_life(shaped: Shaped, workers: tuple[Service, Service], name: str) -> None:
    with workers[0].client() as one, workers[1].client() as two:
        assert one.get("/readyz").status_code == two.get("/readyz").status_code == 200
        assert one.put(f"/v1/models/{name}", json=PERCEPTRON).status_code == 201
        tie = learn(one, name, {"x": {"a": 1}, "y": False, "id": "first"})
        assert (tie["y_pred"], tie["mistake"], tie["updated"]) == (False, False, True)
        assert one.get(f"/v1/models/{name}").json()["updates"] == 1

        assert len(learn(two, name, [event(n) for n in range(1, 20)])) == 19
        lines = "\n".join(json.dumps(event(n)) for n in range(20, 60))
        headers = {"content-type": "application/x-ndjson"}
        reply = one.post(f"/v1/models/{name}/learn", content=lines, headers=headers)
        assert [json.loads(line)["duplicate"] for line in reply.text.splitlines()] == [False] * 40

        asked = two.post(f"/v1/models/{name}/predict", json={"x": {"late": 2.5}, "id": "later"})
        assert asked.status_code == 200, asked.text
        assert learn(one, name, {"id": "later", "y": True})["duplicate"] is False
        assert learn(two, name, event(7))["duplicate"] is True

        state, position, ids = folded(shaped, name)
        assert ids == ["first", *(f"e{n}" for n in range(1, 60)), "later"]
        assert weights_at(one, name, position) == weights_at(two, name, position) == state

        assert one.put("/v1/aliases/a" + name, json={"model": name}).status_code in {200, 201}
        through = {"at_least": position}
        assert two.get(f"/v1/models/a{name}/weights", params=through).status_code == 200
        assert one.delete("/v1/aliases/a" + name).status_code == 204

        with serving(workers[0].settings.redis_url or "") as fresh:
            assert weights_at(fresh, name, position) == state

        assert two.delete(f"/v1/models/{name}").status_code == 204
        assert one.get(f"/v1/models/{name}").status_code == 404
    for holder in shaped.primaries():
        with holder as client:
            assert [key for key in leaked_keys(client) if f"{{{name}}}" in key] == []


def test_a_snapshot_is_stored_at_the_logs_end(
    shaped: Shaped, workers: tuple[Service, Service], name: str
) -> None:
    with workers[0].client() as one:
        one.put(f"/v1/models/{name}", json=PERCEPTRON)
        for number in range(5):  # each changes little: all but the first are of what changed
            end = learn(one, name, event(number))["position"]
            wait_until(lambda at=end: _stored(shaped, name) == at)  # type: ignore[misc]


def _stored(shaped: Shaped, name: str) -> str:
    with shaped.holder("hinged:models") as index:
        uid = model_uid(index, name)
    with shaped.holder(f"hinged:{{{name}}}:meta") as client:
        found = read_snapshot(client, name, uid)
    return "" if found is None else f"{found.position}.{found.chain}"


def test_many_callers_of_two_workers_lose_nothing(
    shaped: Shaped, workers: tuple[Service, Service], name: str
) -> None:
    with workers[0].client() as one, workers[1].client() as two:
        one.put(f"/v1/models/{name}", json=PERCEPTRON)
        with ThreadPoolExecutor(8) as pool:
            answers = pool.map(lambda n: learn((one, two)[n % 2], name, event(n)), range(200))
            mistakes = sum(answer["mistake"] for answer in answers)
        state, position, ids = folded(shaped, name)
        assert sorted(ids) == sorted(f"e{n}" for n in range(200))
        for client in (one, two):
            assert weights_at(client, name, position) == state
            about = client.get(f"/v1/models/{name}", params={"at_least": position}).json()
            assert (about["events"], about["mistakes"]) == (200, mistakes)


def test_metrics_are_the_same_whichever_worker_is_asked(
    workers: tuple[Service, Service], name: str
) -> None:
    def seen_by(client: httpx.Client) -> float:
        return scrape(client).value("hinged_events_total", model=name)

    with workers[0].client() as one, workers[1].client() as two:
        one.put(f"/v1/models/{name}", json=PERCEPTRON)
        seen = 0.0
        for number in range(30):
            learn((one, two)[number % 2], name, event(number))
            if number % 5 == 0:
                before, seen = seen, seen_by((two, one)[number // 5 % 2])
                assert before <= seen <= number + 1
        until(one, "", "hinged_events_total", 30, model=name)
        assert [seen_by((one, two)[turn % 2]) for turn in range(20)] == [30] * 20


def test_the_inbox_is_a_door_too(
    shaped: Shaped, workers: tuple[Service, Service], name: str
) -> None:
    other = f"{name}-other"
    with workers[0].client() as one:
        for stream in (name, other):
            one.put(f"/v1/models/{stream}", json=PERCEPTRON)
            inbox = f"hinged:{{{stream}}}:inbox"
            with shaped.holder(inbox) as client:
                client.xadd(inbox, {"id": "from outside", "event": '{"x": {"a": 1}, "y": true}'})
        for stream in (name, other):
            wait_until(lambda s=stream: _events(one, s) == 1)  # type: ignore[misc]


def _events(client: httpx.Client, name: str) -> int:
    return int(client.get(f"/v1/models/{name}").json()["events"])


def test_names_beyond_the_cap_are_counted(workers: tuple[Service, Service], name: str) -> None:
    with workers[0].client() as one, workers[1].client() as two:
        one.put(f"/v1/models/{name}", json=PERCEPTRON | {"max_features": 10})
        learn(one, name, [{"x": {f"user_{n}": 1}, "y": n % 2 == 0} for n in range(60)])
        end = learn(two, name, {"x": {"user_0": 1}, "y": True})["position"]
        for client in (one, two):
            about = client.get(f"/v1/models/{name}", params={"at_least": end}).json()
            assert (about["features"], about["ignored_features"]) == (10, 50)


def test_forgotten_scripts_are_loaded_again(
    shaped: Shaped, workers: tuple[Service, Service], name: str
) -> None:
    with workers[0].client() as one:
        one.put(f"/v1/models/{name}", json=PERCEPTRON)
        for number in range(4):
            for holder in shaped.primaries():
                with holder as client:
                    client.script_flush()
            assert learn(one, name, event(number))["duplicate"] is False
        assert folded(shaped, name)[2] == [f"e{n}" for n in range(4)]


def test_cut_connections_neither_lose_nor_double(
    shaped: Shaped, workers: tuple[Service, Service], name: str
) -> None:
    with workers[0].client() as one:
        one.put(f"/v1/models/{name}", json=PERCEPTRON)
        with ThreadPoolExecutor(4) as pool:
            answers = [pool.submit(_until_learned, one, name, event(n)) for n in range(120)]
            for some in range(0, 120, 5):
                answers[some].result()
                for holder in shaped.primaries():
                    with holder as client:
                        client.client_kill_filter(_type="normal", skipme=True)
        assert all(answer.result() for answer in answers)
        assert sorted(folded(shaped, name)[2]) == sorted(f"e{n}" for n in range(120))


def _until_learned(client: httpx.Client, name: str, sent: Any) -> bool:
    while (answer := client.post(f"/v1/models/{name}/learn", json=sent)).status_code == 503:
        assert answer.headers["retry-after"]
    return answer.status_code == 200
