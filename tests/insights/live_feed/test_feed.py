"""The live feed over real workers: what is told, in which order, and how it ends."""

import socket
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.insights.live_feed.reading import Watcher
from tests.support.forked_worker import ForkedWorker
from tests.support.machine_clock import Clock
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service


@pytest.fixture(scope="module")
def two(module_server: RedisServer) -> Iterator[tuple[Service, Service]]:
    with Service(module_server.url) as one, Service(module_server.url, max_live_feeds=3) as other:
        yield one, other


def put(service: Service, name: str, **spec: Any) -> str:
    path = f"/v1/models/{name}"
    spec = {"learner": {"type": "perceptron"}, **spec}
    with service.client() as client:
        assert client.put(path, json=spec).status_code == 201
    return path


def order(data: dict[str, Any]) -> tuple[int, int, int]:
    ms, _, seq = data["position"].partition(".")[0].partition("-")
    return int(ms), int(seq), data["number"]


def test_events_of_one_worker_are_told_by_another(two: tuple[Service, Service]) -> None:
    one, other = two
    rolling = {"type": "rolling", "metric": "accuracy", "window": 1}
    path = put(one, "told", metrics=["accuracy", rolling])
    with Watcher(other.url, path, features=True) as watcher, one.client() as client:
        assert watcher.answer.headers["content-type"].startswith("text/event-stream")
        watcher.wait_for(lambda w: w.of("model") and w.of("metrics"))
        learned = client.post(f"{path}/learn", json={"x": {"a": 2}, "y": True, "id": "e1"}).json()
        watcher.wait_for(lambda w: w.of("outcome"))
        outcome = watcher.of("outcome")[0]
        for name in ("y_pred", "score", "mistake", "updated", "hinge_loss", "position"):
            assert outcome[name] == learned[name]
        assert outcome["id"] == "e1"
        assert outcome["y"] is True
        assert outcome["margin"] == 0
        assert outcome["x"] == {"a": 2.0}
        assert abs(outcome["at_ms"] / 1000 - time.time()) < 10
        assert ("outcome", outcome, learned["position"]) in watcher.messages
        watcher.wait_for(lambda w: w.of("metrics")[-1]["events"] == 1)
        last = watcher.of("metrics")[-1]
        assert (last["mistakes"], last["updates"], last["stale_s"] < 5) == (1, 1, True)
        client.post(f"{path}/learn", json={"x": {"a": 2}, "y": True}).raise_for_status()
        watcher.wait_for(lambda w: w.of("metrics")[-1]["events"] == 2)
        last = watcher.of("metrics")[-1]
        assert (last["accuracy"], last["metrics"]["accuracy"]) == (0.5, 0.5)
        assert (last["rolling_accuracy"], last["metrics"]["rolling_accuracy_1"]) == (1, 1)


def test_of_very_many_classes_some_are_told_and_how_many_there_are(
    two: tuple[Service, Service],
) -> None:
    one, other = two
    spec = {"learner": {"type": "multiclass_perceptron"}, "metrics": ["confusion_matrix"]}
    path = put(one, "many-classes", **spec)
    with one.client() as client:
        events = [{"x": {f"f{n}": 1}, "y": f"{n:0>200}"} for n in range(300)]
        for _ in range(2):
            assert client.post(f"{path}/learn", json=events).status_code == 200
        found = client.get(path).json()["metrics"]
        # 226 bytes for each at most: 34 squared times that is less than 256 KiB
        assert found["confusion_matrix_classes"] == {"shown": 34, "of": 300}
        stream = client.get("/v1/streams/many-classes").json()["models"][0]["metrics"]
        assert stream["confusion_matrix_classes"] == {"shown": 20, "of": 300}
        glances = client.get("/v1/overview").json()["models"]
        (glance,) = [one for one in glances if one["name"] == "many-classes"]
        assert glance["metrics"]["confusion_matrix_classes"] == {"shown": 10, "of": 300}
    with Watcher(other.url, path, weights=True) as watcher:
        watcher.wait_for(lambda w: w.of("metrics") and w.of("weights"))
        metrics, weights = watcher.of("metrics")[0]["metrics"], watcher.of("weights")[0]
        assert metrics["confusion_matrix_classes"] == {"shown": 20, "of": 300}
        assert (len(weights["classes"]), weights["all_classes"]) == (20, 300)


def test_positions_come_in_order_and_once(two: tuple[Service, Service]) -> None:
    one, other = two
    path = put(one, "ordered")
    with Watcher(other.url, path) as watcher, one.client() as a, other.client() as b:
        for turn in range(60):
            client = (a, b)[turn % 2]
            client.post(f"{path}/learn", json=[{"x": {"a": n}, "y": True} for n in range(3)])
        watcher.wait_for(
            lambda w: len(w.of("outcome")) + sum(s["left_out"] for s in w.of("sample")) == 180
        )
        places = [order(data) for data in watcher.of("outcome")]
        assert places == sorted(set(places))
        assert "x" not in watcher.of("outcome")[0]


def test_events_that_come_too_fast_are_counted(two: tuple[Service, Service]) -> None:
    one, other = two
    path = put(one, "fast")
    with Watcher(other.url, path) as watcher, one.client() as client:
        client.post(f"{path}/learn", json=[{"x": {"a": 1}, "y": True}] * 5000)
        watcher.wait_for(lambda w: w.of("sample"))
        assert len(watcher.of("outcome")) == 20
        assert watcher.of("sample") == [{"shown": 20, "left_out": 4980}]


def test_commands_and_drift_are_told(two: tuple[Service, Service]) -> None:
    one, other = two
    path = put(one, "marked", drift={"detector": {"type": "ADWIN"}, "action": "mark"})
    with Watcher(other.url, path) as watcher, one.client() as client:
        client.post(f"{path}/freeze", json={}).raise_for_status()
        client.post(f"{path}/unfreeze", json={}).raise_for_status()
        watcher.wait_for(lambda w: len(w.of("command")) == 2)
        assert [c["do"] for c in watcher.of("command")] == ["freeze", "unfreeze"]
        assert "model" not in watcher.of("command")[0]
        for y in (True, False):  # nothing but mistakes after nothing but right answers
            for i in range(10):
                x = {"a": 1.0} if y else {f"n{i}": 1.0}
                client.post(f"{path}/learn", json=[{"x": x, "y": y}] * 200)
        events = [{"x": {"a": 1}, "y": bool(i % 2)} for i in range(2000)]
        client.post(f"{path}/learn", json=events)
        found = client.get(path).json()["detections"]
        assert found
        watcher.wait_for(lambda w: len(w.of("drift")) >= len(found))
        assert watcher.of("drift")[-1]["entry"] == found[-1]["entry"]


def test_the_end_of_the_model_is_the_end(two: tuple[Service, Service]) -> None:
    one, other = two
    path = put(one, "mortal")
    with Watcher(other.url, path) as watcher, one.client() as client:
        watcher.wait_for(lambda w: w.of("metrics"))
        assert client.delete(path).status_code == 204
        watcher.wait_for(lambda w: w.done)
        assert watcher.of("end") == [{"reason": "deleted"}]
        assert httpx.get(f"{other.url}{path}/live", verify=False).status_code == 404


def test_an_alias_is_followed(two: tuple[Service, Service]) -> None:
    one, other = two
    put(one, "champion", stream="race")
    challenger = put(one, "challenger", stream="race")
    with one.client() as client:
        client.put("/v1/aliases/best", json={"model": "champion"}).raise_for_status()
        with Watcher(other.url, "/v1/models/best") as watcher:
            watcher.wait_for(lambda w: w.of("model"))
            client.post(
                "/v1/aliases/best/promote", json={"from": "champion", "to": "challenger"}
            ).raise_for_status()
            watcher.wait_for(lambda w: len(w.of("model")) == 2)
            assert [m["model"] for m in watcher.of("model")] == ["champion", "challenger"]
            client.post(f"{challenger}/learn", json={"x": {"a": 1}, "y": True})
            watcher.wait_for(lambda w: w.of("outcome"))


def test_too_many_are_refused_and_a_hang_up_frees_a_place(two: tuple[Service, Service]) -> None:
    one, other = two
    path = put(one, "crowded")
    watchers = [Watcher(other.url, path) for _ in range(3)]
    with other.client() as client:
        refused = client.get(f"{path}/live")
        assert refused.status_code == 429
        assert refused.headers["retry-after"]
        for watcher in watchers:
            watcher.close()

        def free() -> bool:
            with client.stream("GET", f"{path}/live") as answer:
                return answer.status_code == 200

        wait_until(free, 5)


def test_a_subscriber_that_does_not_read_is_dropped_and_learning_goes_on(
    two: tuple[Service, Service], caplog: pytest.LogCaptureFixture, clock: Clock
) -> None:
    one, _ = two
    path = put(one, "slow")
    deaf = socket.socket()
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.connect(("127.0.0.1", one.port))
    deaf.sendall(f"GET {path}/live?features=true HTTP/1.1\r\nHost: test\r\n\r\n".encode())
    x = {f"{'n' * 200}{i}": 1.0 for i in range(200)}
    slowest = 0.0
    with one.client() as client, Watcher(one.url, path) as watcher:
        for _ in range(150):
            began_s = clock()
            client.post(f"{path}/learn", json=[{"x": x, "y": True}] * 5).raise_for_status()
            slowest = max(slowest, clock() - began_s)
            time.sleep(0.05)
        wait_until(lambda: "feed of slow was too slow" in caplog.text, 20)
        assert not watcher.of("end")
    assert slowest < 1.0
    deaf.settimeout(20)
    last = b""  # what was sent before, then the end of the answer, or of the connection
    while not last.endswith(b"\r\n0\r\n\r\n") and (part := deaf.recv(65536)):
        last = last[-100:] + part
    deaf.close()


def test_a_stop_ends_the_feeds_at_once(two: tuple[Service, Service]) -> None:
    one, _ = two
    path = put(one, "stopping")
    worker = ForkedWorker(one.settings.redis_url or "")
    worker.start()
    with Watcher(worker.url, path) as watcher:
        watcher.wait_for(lambda w: w.of("metrics"))
        began = time.monotonic()
        worker.stop()
        assert time.monotonic() - began < 5
        watcher.wait_for(lambda w: w.done)
        assert watcher.of("end") == [{"reason": "shutdown"}]


def test_no_such_model(two: tuple[Service, Service]) -> None:
    assert httpx.get(f"{two[0].url}/v1/models/none/live", verify=False).status_code == 404


def hubs(service: Service) -> dict[str, Any]:
    found: dict[str, Any] = service.app.state.feeds._hubs
    return found


def test_the_last_who_leaves_frees_the_hub(two: tuple[Service, Service]) -> None:
    one, _ = two
    path = put(one, "left")
    with one.client() as client:
        client.put("/v1/aliases/leaving", json={"model": "left"}).raise_for_status()
        watchers = [Watcher(one.url, p) for p in (path, path, "/v1/models/leaving")]
        for watcher in watchers:
            watcher.wait_for(lambda w: w.of("metrics"))
        assert {name: len(hubs(one)[name]) for name in ("left", "leaving")} == {
            "left": 2,
            "leaving": 1,
        }
        tasks = [weakref.ref(hubs(one)[name]._task) for name in ("left", "leaving")]
        replica = hubs(one)["left"]._live_model.replica
        assert len(replica.watchers) == 2
        watchers[0].close()
        wait_until(lambda: len(hubs(one)["left"]) == 1)
        for watcher in watchers[1:]:
            watcher.close()
        wait_until(lambda: not hubs(one).keys() & {"left", "leaving"})
        assert replica.watchers == ()
        wait_until(lambda: all((task := ref()) is None or task.done() for ref in tasks))
        with Watcher(one.url, path) as again:
            client.post(f"{path}/learn", json={"x": {"a": 1}, "y": True}).raise_for_status()
            again.wait_for(lambda w: w.of("outcome"))


def test_a_failover_while_watching(tmp_path: Path) -> None:
    """The replica is ahead of the log and rebuilt; the feed goes on with what is learned then."""
    server = RedisServer(tmp_path / "redis")
    server.start()
    try:
        with Service(server.url) as one, Service(server.url) as other, one.client() as client:
            path = put(one, "m")
            event = {"x": {"a": 1}, "y": True}
            watchers = [Watcher(service.url, path) for service in (one, other)]

            def check(ids: list[str]) -> None:
                for watcher in watchers:
                    watcher.wait_for(lambda w: [o["id"] for o in w.of("outcome")] == ids)

            client.post(f"{path}/learn", json={**event, "id": "kept"}).raise_for_status()
            check(["kept"])
            server.copy_data(tmp_path / "copy")
            client.post(f"{path}/learn", json={**event, "id": "lost"}).raise_for_status()
            check(["kept", "lost"])
            server.set_back(tmp_path / "copy")

            def learned() -> bool:
                return client.post(f"{path}/learn", json={**event, "id": "then"}).is_success

            wait_until(learned)
            check(["kept", "lost", "then"])
            for watcher in watchers:
                watcher.wait_for(lambda w: w.of("metrics")[-1]["events"] == 2)
                assert not watcher.of("end")
                watcher.close()
    finally:
        server.kill()
