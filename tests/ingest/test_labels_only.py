"""`hinged ingest … --labels-only`: labels from elsewhere meet the predictions that wait."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.ingest.kafka.broker import Broker
from tests.support.ingest import Ingest, reasons, up_to_date
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service

PAIR = {"learner": {"type": "perceptron", "fit_intercept": False}, "labels": ["ham", "spam"]}
UNKNOWN = "id names no prediction that waits for its label"
Run = Callable[..., tuple[int, dict[str, Any], str]]
Weights = Callable[[str], dict[str, float]]


@pytest.fixture(scope="module")
def door(module_server: RedisServer) -> Iterator[httpx.Client]:
    """A client of a service on the server of the module."""
    with Service(module_server.url) as service, service.client() as client:
        yield client


@pytest.fixture
def run(module_server: RedisServer) -> Run:
    """Run an ingest of labels to its end."""
    return lambda *words: Ingest(*words, "--labels-only", redis_url=module_server.url).end()


def predicted(door: httpx.Client, model: str, *ids: str, **spec: Any) -> None:
    """Make a model that has predicted the events of these ids, with the features of the id."""
    door.put(f"/v1/models/{model}", json=PAIR | spec).raise_for_status()
    asked = [{"id": one, "x": {one: 1.0}} for one in ids]
    door.post(f"/v1/models/{model}/predict", json=asked).raise_for_status()


@pytest.fixture
def weights(door: httpx.Client, module_server: RedisServer) -> Weights:
    """Read the weights of a model that has learned all of its log."""

    def read(model: str) -> dict[str, float]:
        query = up_to_date(module_server.url, model)
        answer = door.get(f"/v1/models/{model}/weights", params=query)
        found: dict[str, float] = answer.json()["weights"]
        return found

    return read


def test_a_file_of_lines(
    door: httpx.Client, run: Run, weights: Weights, module_server: RedisServer, tmp_path: Path
) -> None:
    predicted(door, "lines", "a", "b")
    file = tmp_path / "labels.ndjson"
    rows: list[Any] = [
        {"id": "a", "y": "spam"},
        {"id": "b", "y": "spam", "w": 3, "x": {"other": 5}},
        {"id": "nobody", "y": "ham"},
        {"id": "a", "y": "spam"},
        {"y": "ham"},
        {"id": "b", "y": "eggs"},
    ]
    file.write_text("\n".join([*map(json.dumps, rows), "{no label"]))
    code, summary, stderr = run("file", str(file), "--model", "lines")
    assert code == 1, stderr
    assert (summary["learned"], summary["duplicates"], summary["dead"]) == (2, 1, 4)
    assert weights("lines") == {"b": 3.0, "a": 1.0}
    why = reasons(module_server, "lines")
    assert why["2"] == UNKNOWN
    assert "named by its id" in why["4"]
    assert why["5"] == "line 6: y must be 'ham' or 'spam'"
    labels = door.get("/v1/models/lines").json()["label_counts"]
    assert (labels["joined"], labels["waiting"]) == (2, 0)
    again, summary, _ = run("file", str(file), "--model", "lines", "--max-bad", "4")
    assert (again, summary["learned"], summary["earlier"]) == (0, 0, 7)


def test_a_table_whose_other_columns_are_not_looked_at(
    door: httpx.Client, run: Run, weights: Weights, tmp_path: Path
) -> None:
    predicted(door, "table", "17", "18")
    file = tmp_path / "labels.csv"
    file.write_text("case,verdict,reviewer\n17,spam,Ann\n18,ham,Bob\n")
    words = "--label", "verdict", "--id", "case"
    code, summary, stderr = run("file", str(file), "--model", "table", *words)
    assert (code, summary["learned"]) == (0, 2), stderr
    assert weights("table") == {"17": 1.0, "18": -1.0}


@pytest.mark.parametrize("flat", [False, True])
def test_a_redis_stream(
    door: httpx.Client, run: Run, weights: Weights, module_server: RedisServer, flat: bool
) -> None:
    model = f"stream-{flat}"
    predicted(door, model, "a", "b")
    with module_server.client() as queue:
        for one, y in {"a": "spam", "b": "spam", "c": "ham"}.items():
            fields: Any = {"id": one, "verdict": y, "why": "text"}
            if not flat:
                fields = {"id": one, "event": json.dumps({"y": y, "x": None})}
            queue.xadd(f"labels-{model}", fields)
    words = ["--flat", "--label", "verdict"] if flat else []
    source = "redis-stream", "--url", module_server.url, "--stream", f"labels-{model}"
    code, summary, stderr = run(*source, "--model", model, "--drain", *words)
    assert (code, summary["learned"], summary["dead"]) == (1, 2, 1), stderr
    assert set(reasons(module_server, model).values()) == {UNKNOWN}
    assert weights(model) == {"a": 1.0, "b": 1.0}


def test_a_topic_whose_keys_name_the_predictions(
    door: httpx.Client, run: Run, weights: Weights, module_server: RedisServer
) -> None:
    predicted(door, "topic", "a", "b", late_labels={"early": True})
    with contextlib.closing(Broker()) as broker:
        broker.create("labels")
        for key in (b"a", b"b", b"c"):
            broker.put("labels", [{"verdict": "spam", "at": "noon"}], key=key)
        words = "--bootstrap", broker.bootstrap, "--topic", "labels", "--id", "key", "--drain"
        code, summary, stderr = run("kafka", *words, "--label", "verdict", "--model", "topic")
    assert not reasons(module_server, "topic"), stderr
    assert (code, summary["learned"], summary["early"], summary["duplicates"]) == (0, 2, 1, 0)
    assert weights("topic") == {"a": 1.0, "b": 1.0}
    door.post("/v1/models/topic/predict", json={"id": "c", "x": {"c": 1.0}}).raise_for_status()
    wait_until(lambda: weights("topic") == {"a": 1.0, "b": 1.0, "c": 1.0}, 10)
