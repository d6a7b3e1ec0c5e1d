"""Counts of what sources bring in vain, by door and reason, as often as records came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from hinged_service.engine.long_work import at_once
from hinged_service.errors import Unavailable
from hinged_service.ingest.records import Raw, gather
from tests.ingest.kafka.broker import Broker
from tests.support.engine import Worker
from tests.support.ingest import Ingest, up_to_date
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service
from tests.telemetry.reading import scrape

GOOD = '{"x":{"a":1},"y":true,"id":"e"}'
OTHER = '{"x":{"a":2},"y":true,"id":"e"}'
RECORDS = [
    *(GOOD, GOOD, GOOD),  # two duplicates
    OTHER,  # a conflict
    '{"y":true,"id":"never predicted"}',  # unknown
    *("{", '{"x":{"a":"text"},"y":true}', '{"x":{"a":1},"y":7}'),  # no events of the model
    '{"x":{"b":1},"y":false,"id":"f"}',
]
IN_VAIN = {"conflict": 1, "duplicates": 2, "invalid": 3, "unknown": 1}


def _file(server: RedisServer, path: Path, broker: Broker) -> list[str]:
    lines = path / "records.ndjson"
    lines.write_text("\n".join(RECORDS) + "\n")
    return ["file", str(lines)]


def _redis_stream(server: RedisServer, path: Path, broker: Broker) -> list[str]:
    with server.client() as client:
        for text in RECORDS:
            client.xadd("s", {"event": text})
    # a name of the user's own says nothing of the kind of source
    words = ["--url", server.url, "--stream", "s", "--source", "inbox:of mine"]
    return ["redis-stream", *words, "--drain"]


def _kafka(server: RedisServer, path: Path, broker: Broker) -> list[str]:
    broker.create("t")
    broker.put("t", [text.encode() for text in RECORDS])
    return ["kafka", "--bootstrap", broker.bootstrap, "--topic", "t", "--drain"]


def counts_of(client: httpx.Client, model: str = "m") -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the counts by door of the model's document, and of the metrics."""
    doors: dict[str, Any] = client.get(f"/v1/models/{model}").json()["doors"]
    metrics: dict[str, Any] = {}
    for (name, pairs), count in scrape(client).samples.items():
        labels = dict(pairs)
        if labels.get("model") == model and "door" in labels:
            what = labels.get("reason", "duplicates")
            assert (name == "hinged_duplicates_total") == (what == "duplicates")
            metrics.setdefault(labels["door"], {})[what] = count
    return doors, metrics


@pytest.mark.parametrize(
    ("door", "source"), [("file", _file), ("redis-stream", _redis_stream), ("kafka", _kafka)]
)
def test_processes_without_the_service_are_told_by_it(
    own_server: RedisServer, tmp_path: Path, door: str, source: Any
) -> None:
    broker = Broker()
    words = source(own_server, tmp_path, broker)
    with Service(own_server.url) as service, service.client() as client:
        client.put("/v1/models/m", json={"learner": {"type": "perceptron"}})
        for _ in range(2):  # the second run brings nothing
            code, _, stderr = Ingest(*words, "--model", "m", redis_url=own_server.url).end()
            assert code in (0, 1), stderr
            wait_until(lambda: counts_of(client) == ({door: IN_VAIN}, {door: IN_VAIN}), 5)
        info = client.get("/v1/models/m", params=up_to_date(own_server.url, "m")).json()
        assert info["events"] == 2
        client.post("/v1/models/m/learn", json=json.loads(GOOD))
        found = scrape(client)
        assert found.value("hinged_duplicates_total", model="m") == 1  # over HTTP
        assert found.value("hinged_duplicates_total", model="m", door=door) == 2
    with Service(own_server.url) as service, service.client() as client:  # they outlive it
        wait_until(lambda: counts_of(client) == ({door: IN_VAIN}, {door: IN_VAIN}), 5)
        assert client.delete("/v1/models/m").status_code == 204
        client.put("/v1/models/m", json={"learner": {"type": "perceptron"}})
        wait_until(lambda: counts_of(client) == ({}, {}), 5)
    broker.close()


async def test_a_batch_is_counted_once_however_often_it_is_sent(
    one: Worker, two: Worker, db: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    await one.create("m")
    await one.create("other", stream="m")
    live_model = await one.open("m")
    whole = one.connection.share
    lost = 0

    async def losing(script: Any, *args: Any, **more: Any) -> Any:
        nonlocal lost
        reply = await whole(script, *args, **more)
        if script.name == "append" and not lost:
            lost += 1
            raise Unavailable("The reply got lost.")
        return reply

    monkeypatch.setattr(one.connection, "share", losing)
    records = [Raw(str(at), text.encode()) for at, text in enumerate(RECORDS)]
    batch = at_once(gather([live_model.state], records))
    span = batch.span("file", "file:x", "", "9")
    fed = await live_model.learn_each(batch.events, batch.payload, span)
    assert (lost, fed.offset, fed.learned) == (1, "9", None)
    zombie = await two.open("m")
    assert (await zombie.learn_each(batch.events, batch.payload, span)).learned is None
    for live_model in (await one.open("m"), zombie):
        assert await live_model.doors() == {"file": IN_VAIN}
    assert await (await one.open("other")).doors() == {}
    await one.lifecycle.delete("m")
    fields: Any = db.hkeys("hinged:{m}:meta")
    assert not [field for field in fields if field.startswith("door:")]
