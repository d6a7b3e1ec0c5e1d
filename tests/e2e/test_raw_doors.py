"""The same bytes through every door: byte order marks, other encodings, names that stand twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pyarrow  # type: ignore[import-untyped]
import pytest
from pyarrow import parquet

from tests.cli.conftest import run_hinged
from tests.ingest.kafka.broker import Broker
from tests.support.ingest import Ingest, up_to_date
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service

MARK = b"\xef\xbb\xbf"
JSON = {"content-type": "application/json"}
LINES = {"content-type": "application/x-ndjson"}
PLAIN = [
    b'{"x":{"a":2},"y":true}',
    b'{"x":{"a":2,"b":-1},"y":false}',
    b'{"x":{"a":3},"y":true,"w":2}',
    b'{"x":{"a":1,"b":0.1},"y":false,"w":1,"id":"e"}',
]
TWICE = [
    b'{"x":{"a":"z","a":2},"y":true}',
    b'{"x":{"a":2,"b":[{"c":1}],"b":-1},"y":{},"y":false}',
    b'{"x":3,"x":{"a":1,"a":null,"\\u0061":3},"y":true,"w":-1,"w":2}',
    b'{ "x" : {"a":1, "b":"", "b":0.1} , "y":"spam","y":false,"w":"1","w":1,"id":7,"id":"e"}',
]
NO_EVENT = [
    b'{"x":{"a":2,"a":"z"},"y":true}',
    b'{"x":{"a":1},"x":3,"y":true}',
    b'{"x":{"a":1},"y":true,"y":[]}',
    b'{"x":{"a":1},"y":true,"w":1,"w":-1}',
    b'{"x":{"a":1},"y":true,"id":"e","id":7}',
]


class Places:
    """Resources of the doors; each door tells how many of its texts were events."""

    def __init__(
        self, http: httpx.Client, url: str, models: RedisServer, queue: RedisServer, folder: Path
    ) -> None:
        self.http, self.url, self.models, self.queue = http, url, models, queue
        self.broker, self.folder = Broker(), folder

    def ingest(self, kind: str, *words: str) -> int:
        """Run `hinged ingest` to its end."""
        made = Ingest(kind, *words, "--model", kind, redis_url=self.models.url)
        _, summary, _ = made.end()
        return int(summary["learned"])

    def letters(self, model: str) -> list[str]:
        """Return why records were refused."""
        with self.models.client() as client:
            found: Any = client.xrange(f"hinged:{{{model}}}:dead")
        return [fields["reason"] for _, fields in found]


@pytest.fixture
def places(own_server: RedisServer, tmp_path: Path) -> Iterator[Places]:
    """Everything that the doors need."""
    with (
        RedisServer(tmp_path / "queue") as queue,
        Service(own_server.url) as service,
        service.client() as client,
    ):
        made = Places(client, service.url, own_server, queue, tmp_path)
        yield made
        made.broker.close()


def single(at: Places, texts: list[bytes]) -> int:
    path = "/v1/models/single/learn"
    codes = [at.http.post(path, content=text, headers=JSON).status_code for text in texts]
    assert set(codes) <= {200, 400, 422}
    return codes.count(200)


def array(at: Places, texts: list[bytes]) -> int:
    marks = MARK * texts[0].count(MARK)
    body = marks + b"[" + b",".join([text.removeprefix(marks) for text in texts]) + b"]"
    answer = at.http.post("/v1/models/array/learn", content=body, headers=JSON)
    return len(answer.json()) if answer.status_code == 200 else 0


def lines(at: Places, texts: list[bytes]) -> int:
    path = "/v1/models/lines/learn?results=summary"
    answer = at.http.post(path, content=b"\n".join(texts), headers=LINES)
    return int(answer.json()["learned"])


def inbox(at: Places, texts: list[bytes]) -> int:
    with at.models.client() as client:
        for text in texts:
            client.xadd("hinged:{inbox}:inbox", {"event": text})
        wait_until(lambda: not client.xlen("hinged:{inbox}:inbox"), 30)
    whole = up_to_date(at.models.url, "inbox")
    return int(at.http.get("/v1/models/inbox", params=whole).json()["events"])


def redis_stream(at: Places, texts: list[bytes]) -> int:
    with at.queue.client() as client:
        for text in texts:
            client.xadd("q", {"event": text})
    return at.ingest("redis-stream", "--url", at.queue.url, "--stream", "q", "--drain")


def kafka(at: Places, texts: list[bytes]) -> int:
    at.broker.create("t")
    at.broker.put("t", texts)
    return at.ingest("kafka", "--bootstrap", at.broker.bootstrap, "--topic", "t", "--drain")


def file(at: Places, texts: list[bytes]) -> int:
    path = at.folder / "texts.ndjson"
    path.write_bytes(b"\n".join(texts))
    return at.ingest("file", str(path))


def command_line(at: Places, texts: list[bytes]) -> int:
    learned = 0
    for text in texts:
        words = ("learn", "command-line", "--json")
        learned += not run_hinged(*words, stdin=text.decode(), HINGED_URL=at.url).code
    return learned


DOORS: dict[str, Callable[[Places, list[bytes]], int]] = {
    "single": single,
    "array": array,
    "lines": lines,
    "inbox": inbox,
    "redis-stream": redis_stream,
    "kafka": kafka,
    "file": file,
    "command-line": command_line,
}


def through(at: Places, texts: list[bytes], door: str, spec: dict[str, Any]) -> Any:
    """Send texts through a door to a new model; return how many were events and what it is."""
    path = f"/v1/models/{door}"
    assert at.http.put(path, json=spec).status_code == 201
    taken = DOORS[door](at, texts)
    whole = up_to_date(at.models.url, door)
    counts = at.http.get(path, params=whole).json()
    weights = at.http.get(f"{path}/weights", params=whole).json()
    kept = {name: counts[name] for name in ("events", "mistakes", "updates", "hinge_loss")}
    return taken, kept, weights["weights"], weights["intercept"]


NUMBERS: dict[str, Any] = {"learner": {"type": "perceptron"}}
MIXED = NUMBERS | {"pipeline": [{"type": "OneHotEncoder"}]}


@pytest.mark.parametrize("spec", [NUMBERS, MIXED], ids=["numbers", "mixed"])
@pytest.mark.parametrize(
    "texts",
    [
        pytest.param(TWICE, id="names twice"),
        pytest.param([MARK + text for text in PLAIN], id="marks"),
        pytest.param([MARK + MARK + text for text in TWICE], id="both"),
    ],
)
def test_the_last_of_each_name_counts_and_marks_are_passed_over(
    places: Places, texts: list[bytes], spec: dict[str, Any]
) -> None:
    assert places.http.put("/v1/models/plain", json=spec).status_code == 201
    for text in PLAIN:
        assert places.http.post("/v1/models/plain/learn", json=json.loads(text)).is_success
    counts = places.http.get("/v1/models/plain").json()
    weights = places.http.get("/v1/models/plain/weights").json()
    expected = len(PLAIN), counts["events"], weights["weights"], weights["intercept"]
    for door in DOORS:
        taken, kept, *rest = through(places, texts, door, spec)
        assert (taken, kept["events"], *rest) == expected, door
        assert kept == {name: counts[name] for name in kept}, door
    again = places.http.post("/v1/models/single/learn", json=json.loads(PLAIN[-1]))
    assert again.json()["duplicate"] is True


def test_the_last_of_each_name_must_fit(places: Places) -> None:
    for door in DOORS:
        taken, kept, *_ = through(places, NO_EVENT, door, NUMBERS)
        assert (taken, kept["events"]) == (0, 0), door


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-32-le"])
def test_another_encoding_is_named(places: Places, encoding: str) -> None:
    name = encoding[:6].upper()
    text = PLAIN[0].decode().encode(encoding)
    for door in DOORS:
        assert places.http.put(f"/v1/models/{door}", json=NUMBERS).status_code == 201
    for door, headers in (("single", JSON), ("lines", LINES)):
        for call in ("learn", "predict"):
            answer = places.http.post(
                f"/v1/models/{door}/{call}", content=text + b"\n" + text, headers=headers
            )
            assert (answer.status_code, name in answer.json()["detail"]) == (400, True)
    for door in ("inbox", "redis-stream", "kafka"):
        assert DOORS[door](places, [text]) == 0
        assert [name in reason for reason in places.letters(door)] == [True], door
    path = places.folder / "texts.ndjson"
    path.write_bytes(text)
    _, _, stderr = Ingest("file", str(path), "--model", "file", redis_url=places.models.url).end()
    assert f"is {name}: convert it" in stderr


def test_a_label_that_comes_later_follows_the_same_rules(places: Places) -> None:
    path = "/v1/models/late"
    assert places.http.put(path, json=NUMBERS).status_code == 201
    asked = MARK + b'{"x":{"a":[],"a":2},"id":1,"id":"p"}'
    assert places.http.post(f"{path}/predict", content=asked, headers=JSON).is_success
    line = b'{"x":"","x":{"a":1},"id":null,"id":"q"}'
    assert places.http.post(f"{path}/predict", content=line, headers=LINES).is_success
    label = b'{"id":0,"id":"p","y":[],"y":true}'
    assert places.http.post(f"{path}/learn", content=label, headers=JSON).is_success
    label = MARK + b'{"id":"q","y":{},"y":false}'
    answer = places.http.post(f"{path}/learn", content=label, headers=LINES)
    assert answer.json()["duplicate"] is False
    weights = places.http.get(f"{path}/weights").json()
    # 2 * a + 1 is learned at 0; then a is 2 and the intercept 1, so a = 1 scores 3 and is taken off
    assert (weights["weights"], weights["intercept"]) == ({"a": 1.0}, 0.0)


def test_the_last_of_a_field_that_stands_twice_counts_in_entries_too(places: Places) -> None:
    fields = ("event", "no event", "event", PLAIN[0], "id", "a", "id", "b")
    for door, server, key in (
        ("inbox", places.models, "hinged:{inbox}:inbox"),
        ("redis-stream", places.queue, "q"),
    ):
        assert places.http.put(f"/v1/models/{door}", json=NUMBERS).status_code == 201
        with server.client() as client:
            client.execute_command("XADD", key, "*", *fields)
        DOORS[door](places, [])
        event = json.loads(PLAIN[0]) | {"id": "b"}
        answer = places.http.post(f"/v1/models/{door}/learn", json=event)
        assert answer.json()["duplicate"] is True, door


def test_the_spec_of_a_model_to_make_may_begin_with_a_mark(places: Places) -> None:
    events, spec = places.folder / "e.ndjson", places.folder / "spec.json"
    events.write_bytes(PLAIN[0])
    spec.write_text(json.dumps(NUMBERS), encoding="utf-8-sig")
    assert places.ingest("file", str(events), "--create", str(spec)) == 1
    spec.write_text(json.dumps(NUMBERS), encoding="utf-16-le")
    words = ("file", str(events), "--model", "another", "--create", str(spec))
    code, _, stderr = Ingest(*words, redis_url=places.models.url).end()
    assert (code, "The spec is UTF-16" in stderr) == (2, True)


def test_an_id_counts_once_in_any_type_of_a_file(places: Places) -> None:
    folder, floats = places.folder, pyarrow.array([123.0, 4.0])
    (folder / "a.csv").write_text("k,a,y\n123,1,true\n4,2,false\n")
    for name, cells in {"b": floats, "c": floats.cast(pyarrow.decimal128(9, 2))}.items():
        table = pyarrow.table({"k": cells, "a": [1.0, 2.0], "y": [True, False]})
        parquet.write_table(table, folder / f"{name}.parquet")
    (folder / "d.ndjson").write_text(
        '{"x":{"a":1},"y":true,"id":"123"}\n{"x":{"a":2},"y":false,"id":"4"}\n'
    )
    places.http.put("/v1/models/file", json=NUMBERS)
    stderr = []
    for name in ("a.csv", "b.parquet", "c.parquet", "d.ndjson"):
        words = () if name.endswith("ndjson") else ("--label", "y", "--id", "k")
        words = ("file", str(folder / name), "--model", "file", *words)
        code, summary, _ = Ingest(*words, redis_url=places.models.url).end()
        stderr.append((code, summary["learned"], summary["duplicates"]))
    assert stderr == [(0, 2, 0), (0, 0, 2), (0, 0, 2), (0, 0, 2)]
    whole = up_to_date(places.models.url, "file")
    assert places.http.get("/v1/models/file", params=whole).json()["events"] == 2
