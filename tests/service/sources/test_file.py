"""`hinged ingest file` in real processes: every record once, whatever is killed."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import signal
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.support.engine import fold_of
from tests.support.ingest import Event, Ingest, events, kill_often, learned
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer


def write_csv(path: Path, rows: list[Event]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*rows[0]["x"], "y"])
        writer.writerows([*row["x"].values(), str(row["y"]).lower()] for row in rows)
    return path


def taken(server: RedisServer) -> int:
    with server.client() as client, contextlib.suppress(redis.RedisError):
        offsets: Any = client.hvals("hinged:{m}:offsets")
        return max((int(offset) for offset in offsets), default=0)
    return 0


def weights(server: RedisServer) -> dict[str, float]:
    with server.client() as client:
        return {name: float.fromhex(v) for name, v in fold_of(client)["weights"].items()}


def letters(server: RedisServer) -> list[dict[str, str]]:
    with server.client() as client:
        found: Any = client.xrange("hinged:{m}:dead")
    return [fields for _, fields in found]


CREATE = ("--model", "m", "--label", "y", "--learner", "perceptron")


COUNT = 20_000
KILLS = 10


@pytest.mark.slow
def test_killed_often_it_learns_every_record_once(own_server: RedisServer, tmp_path: Path) -> None:
    rows = events(COUNT)
    path = write_csv(tmp_path / "d.csv", rows)

    def restart_redis(number: int) -> None:
        if number == KILLS // 2:
            own_server.stop()
            own_server.start()

    last = kill_often(
        lambda: Ingest("file", str(path), *CREATE, redis_url=own_server.url),
        lambda: taken(own_server),
        COUNT,
        restart_redis,
        KILLS,
    )
    other = Ingest("file", str(path), *CREATE, redis_url=own_server.url)  # both at once
    for one in (last, other):
        code, _, told = one.end()
        assert code == 0, told
    assert taken(own_server) == COUNT
    assert weights(own_server) == learned(rows)
    assert letters(own_server) == []
    code, summary, told = Ingest("file", str(path), *CREATE, redis_url=own_server.url).end()
    assert (code, summary["records"]) == (0, 0)
    assert f"going on after its first {COUNT:,} records" in told


def test_bad_records_go_to_the_dead_letters_and_the_rest_is_learned(
    redis_url: str, shared_server: RedisServer, tmp_path: Path
) -> None:
    rows = events(20)
    lines = [json.dumps(row) for row in rows]
    lines[3:3] = ["", '{"x": {"a": 1}', '{"x": {"f0": "0.25"}, "y": true}']
    lines += ['{"x": {"a": 1}, "y": "spam"}']
    path = tmp_path / "d.ndjson"
    path.write_text("\r\n".join(lines))
    code, summary, told = Ingest(
        *("file", str(path), "--model", "m", "--learner", "perceptron"),
        redis_url=redis_url,
        whole=True,
    ).end()
    assert code == 0, told
    assert (summary["learned"], summary["dead"], summary["records"]) == (20, 3, 23)
    assert [letter["offset"] for letter in letters(shared_server)] == ["3", "4", "22"]
    assert letters(shared_server)[0]["reason"].startswith("line 5:")
    assert "x['f0']" in letters(shared_server)[1]["reason"]
    assert letters(shared_server)[2]["reason"] == "y must be true or false (or 1 or 0)"
    assert weights(shared_server) == learned(rows)


LINES = {
    "d.svm": "{y} 1:{a} 2:0.5\n",
    "d.vw": "{y} | 1:{a} 2:0.5\n",
    "d.csv": "{y},{a},0.5\n",
}
ORDERS: dict[str, list[bool]] = {
    "true first": [True] * 1_100 + [False] * 1_100,
    "false first": [False] * 1_100 + [True] * 1_100,
    "in turn": [True, False] * 1_100,
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("d.svm", ("-1", "1")),
        ("d.svm", ("-1", "+1")),
        ("d.svm", ("0", "1")),
        ("d.vw", ("-1", "1")),
        ("d.vw", ("0", "1")),
        ("d.csv", ("0", "1")),
        ("d.csv", ("false", "TRUE")),
        ("d.csv", ("0", "true")),
    ],
)
def test_labels_do_not_depend_on_their_order(
    redis_url: str,
    shared_server: RedisServer,
    tmp_path: Path,
    name: str,
    written: tuple[str, str],
    order: str,
) -> None:
    rows: list[Event] = [
        {"x": {"1": -1.0 if y else 1.0 + number % 3, "2": 0.5}, "y": y}
        for number, y in enumerate(ORDERS[order])
    ]
    lines = [LINES[name].format(y=written[row["y"]], a=row["x"]["1"]) for row in rows]
    path = tmp_path / name
    path.write_text(("y,1,2\n" if name == "d.csv" else "") + "".join(lines))
    words = ("--label", "y") if name == "d.csv" else ()
    code, summary, told = Ingest(
        *("file", str(path), *words, "--model", "m", "--learner", "perceptron"),
        redis_url=redis_url,
    ).end()
    assert (code, summary["learned"], summary["dead"]) == (0, 2_200, 0), told
    assert weights(shared_server) == learned(rows)


@pytest.mark.parametrize(
    ("spec", "name", "written"),
    [
        ({"learner": {"type": "perceptron"}, "labels": [1, 2]}, "d.svm", ("1", "2")),
        ({"learner": {"type": "perceptron"}, "labels": [-1, 1]}, "d.vw", ("-1", "+1")),
        ({"learner": {"type": "perceptron"}, "labels": ["0", "1"]}, "d.svm", ("0", "1")),
        ({"learner": {"type": "perceptron"}, "labels": ["no", "true"]}, "d.csv", ("no", "true")),
        ({"learner": {"type": "perceptron"}, "labels": [7, 8]}, "d.csv", ("7", "8.0")),
        ({"learner": {"type": "multiclass_perceptron"}}, "d.vw", ("1", "2")),
        ({"learner": {"type": "multiclass_perceptron"}}, "d.csv", ("1", "b")),
    ],
)
def test_labels_are_those_of_the_model(
    redis_url: str,
    tmp_path: Path,
    spec: dict[str, Any],
    name: str,
    written: tuple[str, str],
) -> None:
    path, create = tmp_path / name, tmp_path / "spec.json"
    lines = [LINES[name].format(y=written[y], a=int(y)) for y in ORDERS["true first"]]
    path.write_text(("y,1,2\n" if name == "d.csv" else "") + "".join(lines))
    create.write_text(json.dumps(spec))
    words = ("--label", "y") if name == "d.csv" else ()
    code, summary, told = Ingest(
        *("file", str(path), *words, "--model", "m", "--create", str(create)),
        redis_url=redis_url,
    ).end()
    assert (code, summary["learned"], summary["dead"]) == (0, 2_200, 0), told


@pytest.mark.parametrize("order", ORDERS)
def test_a_label_that_the_model_does_not_have_is_bad_in_any_order(
    redis_url: str, shared_server: RedisServer, tmp_path: Path, order: str
) -> None:
    path = tmp_path / "d.svm"
    path.write_text("".join(f"{1 if y else 2} 1:1\n" for y in ORDERS[order]))
    words = ("file", str(path), "--model", "m", "--learner", "perceptron")
    _, summary, _ = Ingest(*words, redis_url=redis_url).end()
    assert (summary["learned"], summary["dead"]) == (1_100, 1_100)
    assert {letter["reason"].partition(": ")[2] for letter in letters(shared_server)} == {
        "label must be -1 or 0 as false, 1 as true, not '2': say with --map what it means"
    }
    mapped = ("--restart", "--map", "1=false", "--map", "2=true")
    _, summary, _ = Ingest(*words, *mapped, redis_url=redis_url).end()
    assert (summary["learned"], summary["dead"]) == (2_200, 0)


def test_a_column_is_of_one_type_in_all_files_of_a_command(
    redis_url: str, shared_server: RedisServer, tmp_path: Path
) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("zip,y\n10,true\n11,false\n12,true\n")
    second.write_text("zip,y\n10,false\n12A,true\n11,false\n")
    create = tmp_path / "spec.json"
    create.write_text(
        json.dumps({"learner": {"type": "perceptron"}, "pipeline": [{"type": "OneHotEncoder"}]})
    )
    words = ("--model", "m", "--label", "y", "--create", str(create))
    both = ("file", str(first), str(second), *words)
    code, summary, told = Ingest(*both, redis_url=redis_url).end()
    assert (code, summary["records"]) == (1, 0)
    assert "--type zip=text" in told
    typed = ("--type", "zip=text")
    assert Ingest("file", str(first), *words, *typed, redis_url=redis_url).end()[0] == 0
    code, summary, told = Ingest(*both, redis_url=redis_url).end()  # the first file is done
    assert (code, summary["records"]) == (1, 0)
    code, summary, told = Ingest(*both, *typed, redis_url=redis_url).end()
    assert (code, summary["records"], summary["dead"]) == (0, 3, 0), told
    with shared_server.client() as client:
        log: Any = client.xrange("hinged:{m}:log")
    found = [event for _, fields in log for event in json.loads(fields.get("events", "[]"))]
    assert [event["x"]["zip"] for event in found] == ["10", "11", "12", "10", "12A", "11"]


def test_a_cut_off_file_is_learned_as_far_as_it_is_whole(
    redis_url: str, shared_server: RedisServer, tmp_path: Path
) -> None:
    rows = events(3_000)
    whole = gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    path = tmp_path / "d.ndjson.gz"
    path.write_bytes(whole[: len(whole) // 2])
    code, summary, told = Ingest(
        "file", str(path), "--model", "m", "--learner", "perceptron", redis_url=redis_url
    ).end()
    assert code == 1
    assert "is cut off" in told
    assert summary["state"] == "failed"
    assert 500 < summary["learned"] < 3_000
    assert weights(shared_server) == learned(rows[: summary["learned"]])


def test_interrupted_it_says_how_to_go_on_and_restart_brings_all_again(
    redis_url: str, shared_server: RedisServer, tmp_path: Path
) -> None:
    rows = events(20_000)
    path = write_csv(tmp_path / "d.csv", rows)
    proxy = Proxy(shared_server.port)
    proxy.hold_after = path.stat().st_size // 2
    proxy.start()
    first = Ingest("file", str(path), *CREATE, redis_url=proxy.url)
    wait_until(lambda: proxy.hold and taken(shared_server) > 0, 30)
    first.process.send_signal(signal.SIGINT)
    proxy.hold = False
    code, summary, told = first.end()
    proxy.stop()
    assert code == 128 + signal.SIGINT
    assert summary["state"] == "stopped"
    assert "same command again" in told
    assert 0 < summary["records"] < len(rows)
    assert taken(shared_server) == summary["records"]
    assert Ingest("file", str(path), *CREATE, redis_url=redis_url).end()[0] == 0
    assert weights(shared_server) == learned(rows)
    again = Ingest("file", str(path), *CREATE, "--restart", redis_url=redis_url).end()
    assert again[1]["learned"] == 20_000
    assert weights(shared_server) == learned([*rows, *rows])
    assert Ingest("file", str(path), *CREATE, redis_url=redis_url).end()[1]["records"] == 0


def test_without_a_model_or_a_label_it_says_what_to_do(redis_url: str, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "d.csv", events(5))
    code, _, told = Ingest("file", str(path), "--model", "m", redis_url=redis_url).end()
    assert code == 1
    assert "There is no model 'm'" in told
    code, _, told = Ingest(
        "file", str(path), "--model", "m", "--learner", "perceptron", redis_url=redis_url
    ).end()
    assert code == 1
    assert "--label" in told
