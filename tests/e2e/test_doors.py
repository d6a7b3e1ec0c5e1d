"""One stream of events through every door: identical weights, counters and metrics."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from river import datasets

from hinged_service.client import Client, RemoteClassifier
from tests.conftest import data_file
from tests.ingest.kafka.broker import Broker
from tests.support.ingest import Ingest, up_to_date
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service

Row = dict[str, Any]
ROWS = 500
SPEC = {
    "learner": {"type": "passive_aggressive"},
    "metrics": ["accuracy", "f1", "roc_auc", {"type": "rolling", "metric": "accuracy"}],
}


def phishing() -> list[Row]:
    """The rows that ship with River."""
    return [{"x": x, "y": bool(y)} for x, y in datasets.Phishing().take(ROWS)]


def elec() -> list[Row]:
    """The first rows of Elec2: eight numbers and whether the price went up."""
    with data_file("elec.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1 : ROWS + 1]
    return [
        {"x": {f"x{i}": float(v) for i, v in enumerate(row[:-1])}, "y": row[-1] in ("UP", "1")}
        for row in rows
    ]


@pytest.fixture
def places(own_server: RedisServer, tmp_path: Path) -> Iterator[Places]:
    """Everything that the doors need."""
    with RedisServer(tmp_path / "queue") as queue:
        broker = Broker()
        with Service(own_server.url) as service, service.client() as client:
            yield Places(client, service.url, own_server, queue, broker, tmp_path)
        broker.close()


class Places:
    """Everything that the doors need."""

    def __init__(
        self,
        http: httpx.Client,
        url: str,
        models: RedisServer,
        queue: RedisServer,
        broker: Broker,
        folder: Path,
    ) -> None:
        self.http, self.url, self.models = http, url, models
        self.queue, self.broker, self.folder = queue, broker, folder

    def ingest(self, kind: str, *words: str) -> None:
        """Run `hinged ingest` for the model of the kind's name to its end."""
        made = Ingest(kind, *words, "--model", kind, redis_url=self.models.url)
        code, summary, stderr = made.end()
        assert code == 0, (summary, stderr)


def single(at: Places, rows: list[Row]) -> None:
    for row in rows:
        assert at.http.post("/v1/models/single/learn", json=row).status_code == 200


def array(at: Places, rows: list[Row]) -> None:
    assert at.http.post("/v1/models/array/learn", json=rows).status_code == 200


def lines(at: Places, rows: list[Row]) -> None:
    body = "\n".join(map(json.dumps, rows))
    answer = at.http.post(
        "/v1/models/lines/learn?results=summary",
        content=body.encode(),
        headers={"content-type": "application/x-ndjson"},
    )
    assert answer.json()["learned"] == len(rows)


def inbox(at: Places, rows: list[Row]) -> None:
    with at.models.client() as client, client.pipeline(transaction=False) as pipe:
        for row in rows:
            pipe.xadd("hinged:{inbox}:inbox", {"event": json.dumps(row)})
        pipe.execute()
    wait_until(lambda: at.http.get("/v1/models/inbox").json()["events"] == len(rows), 30)


def redis_stream(at: Places, rows: list[Row]) -> None:
    with at.queue.client() as client, client.pipeline(transaction=False) as pipe:
        for row in rows:
            pipe.xadd("q", {"event": json.dumps(row)})
        pipe.execute()
    at.ingest("redis-stream", "--url", at.queue.url, "--stream", "q", "--drain")


def kafka(at: Places, rows: list[Row]) -> None:
    at.broker.create("t")
    at.broker.put("t", rows)
    at.ingest("kafka", "--bootstrap", at.broker.bootstrap, "--topic", "t", "--drain")


def file(at: Places, rows: list[Row]) -> None:
    names = list(rows[0]["x"])
    path = at.folder / "rows.csv"
    with path.open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow([*names, "label"])
        for row in rows:
            writer.writerow([*(repr(float(row["x"][n])) for n in names), str(row["y"]).lower()])
    at.ingest("file", str(path), "--label", "label")


def client(at: Places, rows: list[Row]) -> None:
    with Client(at.url) as made:
        assert len(list(made.learn_many("client", rows))) == len(rows)


def remote(at: Places, rows: list[Row]) -> None:
    with RemoteClassifier(at.url, "remote", batch=50) as made:
        for row in rows:
            made.learn_one(row["x"], row["y"])


DOORS: dict[str, Callable[[Places, list[Row]], None]] = {
    "single": single,
    "array": array,
    "lines": lines,
    "inbox": inbox,
    "redis-stream": redis_stream,
    "kafka": kafka,
    "file": file,
    "client": client,
    "remote": remote,
}
COUNTS = ("events", "mistakes", "updates", "hinge_loss", "perceptron_loss", "radius", "metrics")


@pytest.mark.parametrize("source", [phishing, elec])
def test_the_same_rows_through_any_door_make_the_same_model(
    places: Places, source: Callable[[], list[Row]]
) -> None:
    rows = source()
    found = {}
    for name, door in DOORS.items():
        assert places.http.put(f"/v1/models/{name}", json=SPEC).status_code == 201
        door(places, rows)
        whole = up_to_date(places.models.url, name)
        model = places.http.get(f"/v1/models/{name}", params=whole).json()
        weights = places.http.get(f"/v1/models/{name}/weights", params=whole).json()
        del weights["position"]
        found[name] = {count: model[count] for count in COUNTS} | weights
    assert found["single"]["events"] == len(rows)
    assert 10 < found["single"]["mistakes"] < ROWS / 2
    for name, one in found.items():
        assert one == found["single"], name
