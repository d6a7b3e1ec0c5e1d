"""`hinged ingest file` in real processes: every record once, whatever is killed."""

from __future__ import annotations

import bz2
import contextlib
import csv
import gzip
import importlib
import json
import lzma
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


@pytest.mark.parametrize("module", [bz2, lzma])
def test_streams_in_a_row_are_learned_whole_or_the_run_fails(
    redis_url: str, shared_server: RedisServer, tmp_path: Path, module: Any
) -> None:
    rows = events(3_000)
    lines = [json.dumps(row) + "\n" for row in rows]
    first, second = (
        module.compress("".join(part).encode()) for part in (lines[:2000], lines[2000:])
    )
    path = tmp_path / f"d.ndjson.{'xz' if module is lzma else 'bz2'}"
    path.write_bytes(first + b"\0" * 8 + bytes([second[0] ^ 1]) + second[1:])
    words = ("file", str(path), "--model", "m", "--learner", "perceptron")
    code, summary, told = Ingest(*words, redis_url=redis_url).end()
    assert (code, summary["state"], summary["learned"]) == (1, "failed", 2000)
    assert "cannot be read further" in told
    path.write_bytes(first + b"\0" * 8 + second + b"\0" * 512)
    code, summary, told = Ingest(*words, redis_url=redis_url).end()
    assert (code, summary["learned"]) == (0, 3000), told
    assert weights(shared_server) == learned([*rows[:2000], *rows])


def test_cells_of_parquet_that_cannot_be_read(
    redis_url: str, shared_server: RedisServer, tmp_path: Path
) -> None:
    arrow = pytest.importorskip("pyarrow")
    rows = events(3_000)
    columns: dict[str, Any] = {name: [row["x"][name] for row in rows] for name in rows[0]["x"]}
    days = arrow.array([2**31 - 1 if i == 2_500 else None for i in range(3_000)], arrow.int32())
    kinds = [b"ham" if row["y"] else b"spam" for row in rows]
    kinds[2_600] = b"\xff"
    columns |= {"day": days.view(arrow.date32()), "kind": kinds}
    path = tmp_path / "d.parquet"
    importlib.import_module("pyarrow.parquet").write_table(arrow.table(columns), path)
    words = ("file", str(path), "--learner", "perceptron", "--label", "kind", "--type", "kind=text")
    words += ("--map", "ham=true", "--map", "spam=false")
    told: dict[str, list[tuple[str, str]]] = {}
    for model, day in (("m", "ignore"), ("n", "text")):
        _, summary, said = Ingest(
            *words, "--model", model, "--type", f"day={day}", redis_url=redis_url
        ).end()
        assert "Traceback" not in said
        with shared_server.client() as client:
            found: Any = client.xrange(f"hinged:{{{model}}}:dead")
        told[model] = [(fields["offset"], fields["reason"]) for _, fields in found]
        assert summary["learned"] == 3_000 - len(told[model])
    label = ("2600", "row 2601: column kind is not UTF-8")
    late = ("2500", "row 2501: column day is outside of the years 1 to 9999")
    assert told == {"m": [label], "n": [late, label]}
    assert weights(shared_server) == learned(rows[:2600] + rows[2601:])


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
