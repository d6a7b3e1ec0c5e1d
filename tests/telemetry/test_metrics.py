"""/metrics of one worker: every number against hand arithmetic."""

import json
import math
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics

from hinged_service.api.api_keys import new_key
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.running import serving
from tests.support.service import Service
from tests.telemetry.reading import scrape, until

SPEC = {"learner": {"type": "perceptron"}}
LEARN, PREDICT = "/v1/models/{model}/learn", "/v1/models/{model}/predict"
NDJSON = {"content-type": "application/x-ndjson"}


@pytest.fixture
def client(redis_url: str) -> Iterator[httpx.Client]:
    with serving(redis_url) as client:
        yield client


def learn(client: httpx.Client, model: str, *events: dict[str, object]) -> httpx.Response:
    return client.post(f"/v1/models/{model}/learn", json=list(events))


def test_the_account_of_a_model(client: httpx.Client) -> None:
    client.put("/v1/models/m", json=SPEC)
    # score 0: the negative label is predicted, loss 1, wrong; then score 2: right, loss 0
    learn(client, "m", {"x": {"a": 1}, "y": True, "id": "1"}, {"x": {"a": 1}, "y": True, "id": "2"})
    # score 2: wrong, loss 3
    learn(client, "m", {"x": {"a": 1}, "y": False, "id": "3"})
    learn(
        client, "m", {"x": {"a": 1}, "y": False, "id": "3"}, {"x": {"a": 1}, "y": True, "id": "2"}
    )
    metrics = scrape(client)
    expected = {
        "hinged_events_total": 3,
        "hinged_mistakes_total": 2,
        "hinged_updates_total": 2,
        "hinged_hinge_loss_total": 4,
        "hinged_duplicates_total": 2,
        "hinged_replica_position_events": 3,
        "hinged_queue_events": 0,
        "hinged_replica_staleness_seconds": 0,
    }
    assert {name: metrics.value(name, model="m") for name in expected} == expected
    assert metrics.value("hinged_append_seconds_count") == 3
    assert metrics.value("hinged_batch_events_sum") == 5
    assert metrics.value("hinged_batch_events_bucket", le="1.0") == 1
    assert metrics.value("hinged_batch_events_bucket", le="2.0") == 3
    assert metrics.value("hinged_replicas") == metrics.value("hinged_workers") == 1
    assert 0 < metrics.value("hinged_append_seconds_sum") < 30


def test_refusals_by_their_reason(client: httpx.Client) -> None:
    client.put("/v1/models/m", json=SPEC)
    learn(client, "m", {"x": {"a": 1}, "y": True, "id": "1"})
    assert learn(client, "m", {"x": {"a": 1}, "y": "no label"}).status_code == 422
    assert client.post("/v1/models/m/learn", content=b"{").status_code == 400
    assert learn(client, "m", {"x": {"a": 2}, "y": True, "id": "1"}).status_code == 409
    assert learn(client, "m", {"y": True, "id": "never predicted"}).status_code == 404
    lines = b'{"x":{"a":1},"y":true}\n{"x":1}\n{"x":{"a":3},"y":true,"id":"1"}\n'
    client.post("/v1/models/m/learn", content=lines, headers=NDJSON)
    metrics = scrape(client)
    found = {
        labels["reason"]: metrics.value("hinged_rejected_total", **labels)
        for labels in metrics.labels("hinged_rejected_total")
    }
    assert found == {"fold": 0, "invalid": 3, "conflict": 2, "unknown": 1}
    assert metrics.value("hinged_duplicates_total", model="m") == 0
    assert metrics.value("hinged_events_total", model="m") == 2


def test_events_that_only_the_fold_can_refuse(client: httpx.Client) -> None:
    client.put("/v1/models/numbers", json={**SPEC, "stream": "s"})
    client.put("/v1/models/words", json={**SPEC, "stream": "s", "labels": ["ham", "spam"]})
    learn(client, "words", {"x": {"a": 1}, "y": "spam"}, {"x": {"a": 1}, "y": "ham"})
    client.get("/v1/models/numbers")
    metrics = until(client, "", "hinged_replica_position_events", 2, model="numbers")
    assert metrics.value("hinged_rejected_total", model="numbers", reason="fold") == 2
    assert metrics.value("hinged_events_total", model="numbers") == 0


def test_labels_of_a_stream(client: httpx.Client) -> None:
    client.put("/v1/models/m", json={**SPEC, "stream": "s"})
    for name in ("p1", "p2", "p3"):
        client.post("/v1/models/m/predict", json={"id": name, "x": {"a": 1}})
    learn(client, "m", {"id": "p1", "y": True})
    metrics = until(client, "", "hinged_labels_joined_total", 1, stream="s")
    assert metrics.value("hinged_labels_pending", stream="s") == 2
    assert metrics.value("hinged_labels_late_total", stream="s") == 0
    assert metrics.value("hinged_label_delay_seconds_count", model="m") == 1


def test_requests_by_the_template_of_their_route(client: httpx.Client) -> None:
    client.put("/v1/models/m", json=SPEC)
    for _ in range(3):
        client.post("/v1/models/m/predict", json={"x": {"a": 1}})
    client.post("/v1/models/m/predict", content=b'{"x":{"a":1}}\n', headers=NDJSON)
    client.get("/v1/models/m")
    client.delete("/healthz")
    metrics = scrape(client)

    def requests(method: str, route: str, status: int) -> float:
        labels = {"method": method, "route": route, "status": str(status)}
        return metrics.value("hinged_http_requests_total", **labels)

    assert requests("PUT", "/v1/models/{model}", 201) == 1
    assert requests("POST", PREDICT, 200) == 4
    assert requests("GET", "/v1/models/{model}", 200) == 1
    assert requests("DELETE", "/healthz", 405) == 1
    assert metrics.value("hinged_http_request_seconds_count", route=PREDICT) == 4
    assert metrics.value("hinged_http_request_seconds_count", route="/v1/models/{model}") == 2


def test_invented_paths_of_clients_make_no_series(client: httpx.Client) -> None:
    client.put("/v1/models/m", json=SPEC)
    scrape(client)
    before = scrape(client)
    for i in range(30):
        client.get(f"/v1/models/made-up-{i}")
        learn(client, f"made-up-{i}", {"x": {"a": 1}, "y": True})
        client.get(f"/made/up/{i}")
        client.request("MKCOL", f"/made/up/{i}")
    after = scrape(client)
    new = {key for key in after.samples.keys() - before.samples.keys() if "bucket" not in key[0]}
    assert "made-up" not in str(after.samples).lower()
    assert len(new) < 12, new
    other = {"method": "(other)", "route": "(other)", "status": "404"}
    assert after.value("hinged_http_requests_total", **other) == 30


def test_models_beyond_the_setting_are_counted_not_named(redis_url: str) -> None:
    with serving(redis_url, metrics_models=3) as client:
        for i in range(5):
            client.put(f"/v1/models/m{i}", json=SPEC)
            learn(client, f"m{i}", {"x": {"a": 1}, "y": True})
            learn(client, f"m{i}", {"x": {"a": 1}, "y": "wrong"})
        metrics = scrape(client)
        named = {labels["model"] for labels in metrics.labels("hinged_events_total")}
        assert len(named) == 3
        assert metrics.value("hinged_models_left_out") == 2
        again = scrape(client)
        assert {labels["model"] for labels in again.labels("hinged_events_total")} == named
        assert {labels["model"] for labels in again.labels("hinged_rejected_total")} == named


def test_a_deleted_model_goes_and_another_takes_its_place(redis_url: str) -> None:
    with serving(redis_url, metrics_models=1, housekeeping_ms=10) as client:
        client.put("/v1/models/one", json=SPEC)
        learn(client, "one", {"x": {"a": 1}, "y": True})
        assert scrape(client).value("hinged_events_total", model="one") == 1
        client.delete("/v1/models/one")
        client.put("/v1/models/two", json=SPEC)
        learn(client, "two", {"x": {"a": 1}, "y": True})
        metrics = until(client, "", "hinged_events_total", 1, model="two")
        assert metrics.labels("hinged_events_total") == [{"model": "two"}]


def test_redis_errors_by_kind_and_the_age_of_what_is_served(proxy: Proxy) -> None:
    service = Service(proxy.url, max_staleness_ms=0, read_wait_ms=50)
    with service, service.client() as client:
        client.put("/v1/models/m", json=SPEC)
        learn(client, "m", {"x": {"a": 1}, "y": True})
        assert scrape(client).labels("hinged_redis_errors_total") == []
        proxy.refuse = True
        proxy.cut()

        def stale() -> bool:
            answer = client.post("/v1/models/m/predict", json={"x": {"a": 1}})
            assert answer.status_code == 200
            metrics = scrape(client)
            return metrics.value("hinged_replica_staleness_seconds", model="m") > 0

        wait_until(stale, 30)
        metrics = scrape(client)
        kinds = {labels["kind"] for labels in metrics.labels("hinged_redis_errors_total")}
        assert "connection" in kinds
        assert metrics.value("hinged_events_total", model="m") == 1
        proxy.refuse = False
        wait_until(lambda: not stale(), 30)


def test_both_formats(client: httpx.Client) -> None:
    client.put("/v1/models/m", json=SPEC)
    learn(client, "m", {"x": {"a": 1}, "y": True})
    plain = client.get("/metrics")
    assert plain.headers["content-type"].startswith("text/plain; version=")
    assert "# TYPE hinged_events_total counter" in plain.text
    accept = {"accept": "application/openmetrics-text; version=1.0.0"}
    answer = client.get("/metrics", headers=accept)
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    families = {family.name: family for family in openmetrics(answer.text)}  # type: ignore[no-untyped-call]
    assert families["hinged_events"].samples[0].value == 1
    buckets = families["hinged_http_request_seconds"].samples
    assert math.inf in {float(s.labels["le"]) for s in buckets if s.name.endswith("_bucket")}
    nonsense = client.get("/metrics", headers={"accept": "application/openmetrics-text; version=x"})
    assert nonsense.status_code == 200


def test_a_scrape_needs_a_key_to_read_all_models(redis_url: str, tmp_path: Path) -> None:
    made = {
        "reader": new_key("reader", ["predict"], ["*"]),
        "some": new_key("some", ["predict"], ["m*"]),
        "writer": new_key("writer", ["learn"], ["*"]),
    }
    records = [record.model_dump(mode="json") for _, record in made.values()]
    with serving(redis_url, keys=json.dumps(records)) as client:
        assert client.get("/metrics").status_code == 401
        for name, status in {"reader": 200, "some": 403, "writer": 403}.items():
            bearer = {"authorization": f"Bearer {made[name][0]}"}
            assert client.get("/metrics", headers=bearer).status_code == status, name
