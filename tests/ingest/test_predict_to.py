"""`hinged ingest … --predict-to`: the prediction of each event before it is learned, once."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import confluent_kafka as ck
import pytest

import hinged
from hinged_service.ingest.prediction_file import PredictionFile
from hinged_service.ingest.predictions import Output, Predicted, Predictions
from hinged_service.ingest.records import Raw
from hinged_service.ingest.redis_stream_client import PredictionStream
from hinged_service.ingest.signals import Stop
from hinged_service.ingest.target import Failed
from hinged_service.ingest.writer import Feeder, Tally
from hinged_service.wire.position import Position
from tests.ingest.kafka.broker import Broker
from tests.support.engine import Worker, worker
from tests.support.ingest import Event, Ingest, events, kill_often, taken
from tests.support.redis_server import RedisServer

CREATE = "--model", "m", "--learner", "perceptron"


def predictions(rows: list[Event]) -> list[tuple[Any, bool, float, float]]:
    """Id, label, score and probability of each event by a perceptron, then it learns the event."""
    learner, found = hinged.Perceptron(), []
    for row in rows:
        label, score = learner.predict_one(row["x"]), learner.score_one(row["x"])
        found.append((row.get("id"), label, score, learner.predict_proba_one(row["x"])[label]))
        learner.learn_one(row["x"], row["y"])
    return found


def predictions_of(lines: list[dict[str, Any]]) -> list[tuple[Any, bool, float, float]]:
    return [(one["id"], one["label"], one["score"], one["probability"]) for one in lines]


def named(count: int) -> list[Event]:
    return [{**row, "id": f"e{n}"} for n, row in enumerate(events(count))]


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[RedisServer]:
    """Another server than that of the models."""
    with RedisServer(tmp_path / "queue") as server:
        yield server


def add(server: RedisServer, rows: list[Event], first_id: int = 1) -> None:
    with server.client() as client, client.pipeline(transaction=False) as pipe:
        for number, row in enumerate(rows, first_id):
            pipe.xadd("s", {"event": json.dumps(row)}, id=f"{number}-0")
        pipe.execute()


def stream(models: RedisServer, queue: RedisServer, *words: str) -> Ingest:
    at = "--url", queue.url, "--stream", "s", "--predict-to", "out", "--claim-after-s", "0.5"
    return Ingest("redis-stream", *at, *CREATE, *words, redis_url=models.url)


def written(queue: RedisServer) -> list[dict[str, Any]]:
    with queue.client() as client:
        found: Any = client.xrange("out")
    assert all(fields.get("id") == json.loads(fields["prediction"])["id"] for _, fields in found)
    return [json.loads(fields["prediction"]) for _, fields in found]


def checkpoints(server: RedisServer) -> int:
    with server.client() as client:
        return int(client.hlen("hinged:{m}:checkpoints"))


def test_each_entry_of_a_stream_has_the_prediction_of_before_it(
    own_server: RedisServer, queue: RedisServer
) -> None:
    rows = named(1_200)
    add(queue, [*rows[:700], rows[3], {"x": "no event", "y": True}, *rows[700:]])
    code, summary, stderr = stream(own_server, queue, "--drain").end()
    assert (code, summary["predicted"], summary["duplicates"], summary["dead"]) == (1, 1_200, 1, 1)
    found = written(queue)
    assert predictions_of(found) == predictions(rows), stderr
    assert [one["offset"] for one in found[698:702]] == ["699-0", "700-0", "703-0", "704-0"]
    positions = {one["position"].split(".")[0] for one in found}
    with own_server.client() as client:
        log: Any = client.xrange("hinged:{m}:log")
    assert positions == {entry for entry, fields in log if "events" in fields}
    assert checkpoints(own_server) == 0


@pytest.mark.slow
def test_killed_often_each_prediction_is_there_once(
    own_server: RedisServer, queue: RedisServer
) -> None:
    rows = named(6_000)
    add(queue, rows)
    last = kill_often(
        lambda: stream(own_server, queue, "--drain"),
        lambda: taken(own_server),
        len(rows),
        lambda _: None,
        4,
    )
    code, summary, stderr = last.end()
    assert (code, summary["unpredicted"]) == (0, 0), stderr
    assert predictions_of(written(queue)) == predictions(rows)
    assert checkpoints(own_server) == 0


class Kept(Output):
    """An output in this process, which dies at the put of a number."""

    def __init__(self, dies_at: int | None = None) -> None:
        self.rows: list[Predicted] = []
        self._dies_at, self._puts = dies_at, 0

    async def put(self, rows: Sequence[Predicted]) -> None:
        self._puts += 1
        if self._puts == self._dies_at:
            raise RuntimeError("killed")
        self.rows += rows


def feeder(one: Worker, output: Output) -> Feeder:
    made = Feeder(one.registry, one.lifecycle, "m", Stop(), lambda _: None, Tally())
    made.predictions = Predictions(output)
    return made


async def feed(one: Feeder, rows: list[Event], first: int) -> None:
    records = [Raw(str(n), json.dumps(row).encode()) for n, row in enumerate(rows, first)]
    end = str(first + len(rows))
    assert await one.feed(records, "s", str(first) if first else "", end) == end


SPEC: dict[str, Any] = {
    "learner": {"type": "one_vs_rest", "learner": {"type": "arow"}},
    "scale": "auto",
    "calibrate": True,
    "metrics": ["accuracy"],
}


async def test_a_batch_whose_predictions_a_kill_kept_back_is_predicted_from_before_it(
    redis_url: str,
) -> None:
    """Others have learned more meanwhile, and the stored snapshot is past the batch."""
    rows = [{**row, "y": "abc"[n % 3], "id": f"e{n}"} for n, row in enumerate(events(300))]
    async with worker(redis_url) as whole:
        await whole.create("whole", **SPEC)
        expected = []
        for row in rows:
            live = await whole.open("whole")
            answer = live.state.predict(row["x"])
            expected.append((row["id"], answer.y, answer.score, answer.proba.get(str(answer.y))))
            if row["id"] == "e199":
                await whole.learn("whole", row, {"x": {"f1": 3.0}, "y": "b"})
            else:
                await whole.learn("whole", row)
    out = Kept(dies_at=2)
    one = Worker(redis_url)
    await one.create("m", **SPEC)
    killed = feeder(one, out)
    await feed(killed, rows[:100], 0)
    with pytest.raises(RuntimeError):
        await feed(killed, rows[100:200], 100)
    await one.kill()
    async with worker(redis_url) as other:
        await other.learn("m", {"x": {"f1": 3.0}, "y": "b"})
        await other.save("m")
    async with worker(redis_url) as two:
        again = feeder(two, Kept())
        assert again.predictions is not None
        again.predictions = Predictions(rest := Kept())
        assert await again.offset("s") == "200"
        assert len(rest.rows) == 100
        await feed(again, rows[200:], 200)
        await again.aclose()
        assert await (await two.open("m")).checkpoints.listed() == []
        assert again.predictions.lost == 0
    found = [*out.rows, *rest.rows]
    assert told_rows(found) == expected
    assert all(a.order < b.order for a, b in itertools.pairwise(found))
    assert [row.offset for row in found] == [str(n) for n in range(300)]


async def test_a_zombie_and_its_successor_write_the_same(redis_url: str) -> None:
    rows = named(30)
    async with worker(redis_url) as one, worker(redis_url) as two:
        await one.create("m")
        first, second = Kept(dies_at=2), Kept()
        zombie, heir = feeder(one, first), feeder(two, second)
        await feed(zombie, rows[:10], 0)
        with pytest.raises(RuntimeError):
            await feed(zombie, rows[10:20], 10)
        await feed(heir, rows[20:], 20)  # it did not look before, and is told by the log
        assert told_rows([*first.rows, *second.rows]) == predictions(rows)
        with contextlib.suppress(AssertionError):
            await feed(zombie, rows[20:], 20)
        assert len(first.rows) == 10


async def test_a_prediction_that_cannot_be_told_any_more_is_counted(redis_url: str) -> None:
    async with worker(redis_url) as one:
        await one.create("m")
        killed = feeder(one, Kept(dies_at=1))
        with pytest.raises(RuntimeError):
            await feed(killed, named(7), 0)
        model = await one.open("m")
        (base,) = await model.checkpoints.listed()
        await model.checkpoints.drop(base.uid, base.name)
        await model.save()
        again = feeder(one, out := Kept())
        await feed(again, named(9)[7:], 7)
        assert again.predictions is not None
        assert (again.predictions.lost, len(out.rows)) == (7, 2)


async def test_an_event_that_the_model_cannot_take_has_no_prediction(redis_url: str) -> None:
    rows = [{"x": {"a": 1.0}, "y": y} for y in "abcb"]
    async with worker(redis_url) as one:
        await one.create("m", learner={"type": "multiclass_perceptron", "max_classes": 2})
        made = feeder(one, out := Kept())
        for number, row in enumerate(rows):  # a batch each: the third is refused whole
            await feed(made, [row], number)
        assert made.tally.rejected == 1
        killed = feeder(one, Kept(dies_at=1))
        with pytest.raises(RuntimeError):
            await feed(killed, [rows[0], rows[2]], 4)
        again = feeder(one, rest := Kept())
        assert await again.offset("s") == "6"
        for run in (made, again):
            assert run.predictions is not None
            assert run.predictions.lost == 0
    assert [row.offset for row in [*out.rows, *rest.rows]] == ["0", "1", "3", "4"]
    assert out.rows[0].label is out.rows[0].probability is None


async def test_a_run_over_many_files_keeps_few_checkpoints(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hinged_service.ingest.predictions.MOST_BASES", 2)
    async with worker(redis_url) as one:
        await one.create("m")
        made = feeder(one, out := Kept())
        for number, row in enumerate(rows := named(5)):
            record = Raw("0", json.dumps(row).encode())
            assert await made.feed([record], f"file {number}", "", "1") == "1"
        model = await one.open("m")
        assert len(await model.checkpoints.listed()) == 2
        await made.aclose()
        assert await model.checkpoints.listed() == []
        assert told_rows(out.rows) == predictions(rows)


def told_rows(rows: list[Predicted]) -> list[tuple[Any, bool, float, float]]:
    return [(r.id, r.label, r.score, r.probability) for r in rows]  # type: ignore[misc]


def row(number: int) -> Predicted:
    at = Position(f"{number}-1", "0" * 40)
    return Predicted((number, 1, 0), str(at), f"e{number}", "0", True, 1.0, 0.7)


async def test_a_stream_takes_none_twice_and_no_other_writer(queue: RedisServer) -> None:
    out = PredictionStream(queue.url, "out")
    await out.put([row(1), row(2)])
    await out.put([row(1), row(2), row(3)])
    assert [one["id"] for one in written(queue)] == ["e1", "e2", "e3"]
    with queue.client() as client:
        client.xadd("out", {"other": "1"}, id="9-0")
    with pytest.raises(Failed, match="another writes to it"):
        await out.put([row(4)])
    with queue.client() as client:
        client.xtrim("out", minid="9-0")
        client.xadd("foreign", {"other": "1"}, id="9-0")
    await out.put([row(2)])  # was there
    await out.aclose()
    out = PredictionStream(queue.url, "foreign")
    with pytest.raises(Failed, match="another writes to it"):
        await out.put([row(4)])
    await out.aclose()


async def test_a_file_goes_on_where_it_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "out.ndjson"
    out = PredictionFile(str(path))
    await out.put([row(1), row(2)])
    with pytest.raises(Failed, match="Another run"):
        PredictionFile(str(path))
    await out.aclose()
    path.write_bytes(path.read_bytes()[:-9])
    out = PredictionFile(str(path))
    await out.put([row(1), row(2), row(3)])
    await out.aclose()
    lines = path.read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["e1", "e2", "e3"]
    for other in ("something else\n", "something else"):
        path.write_text(other)
        with pytest.raises(Failed, match="has other lines"):
            PredictionFile(str(path))
        assert path.read_text() == other


def test_a_file_to_a_file(redis_url: str, tmp_path: Path) -> None:
    rows, path, out = events(50), tmp_path / "rows.ndjson", tmp_path / "out.ndjson"
    path.write_text("\n".join(map(json.dumps, rows)))
    words = "file", str(path), "--predict-to", str(out), *CREATE
    for predicted in (50, 0):
        code, summary, stderr = Ingest(*words, redis_url=redis_url).end()
        assert (code, summary["predicted"]) == (0, predicted), stderr
        assert predictions_of(list(map(json.loads, out.read_text().splitlines()))) == predictions(
            rows
        )


def test_a_topic_to_a_topic(redis_url: str) -> None:
    rows = named(40)
    with contextlib.closing(Broker()) as broker:
        broker.create("t")
        broker.create("out")
        broker.put("t", rows)
        ingest = broker.ingest("--predict-to", "out", "--drain", redis_url=redis_url)
        code, summary, stderr = ingest.end()
        assert (code, summary["predicted"]) == (0, 40), stderr
        shared = {"bootstrap.servers": broker.bootstrap, "group.id": "look", "log_level": 0}
        reader = ck.Consumer({**shared, "auto.offset.reset": "earliest"})
        reader.assign([ck.TopicPartition("out", 0, 0)])
        found: list[Any] = []
        while len(found) < 40:
            (message,) = reader.consume(1, 10)
            found.append(json.loads(message.value() or b""))
            assert message.key() == found[-1]["id"].encode()
        reader.close()
    assert predictions_of(found) == predictions(rows)
