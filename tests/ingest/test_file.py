"""`hinged ingest file` in real processes: every record once, through kills.

One file: each test runs the same command, on a file of its own.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import importlib
import json
import lzma
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hinged_service.ingest.target import Allowance
from tests.conftest import data_file
from tests.support.ingest import (
    Event,
    Ingest,
    events,
    kill_often,
    learned,
    letters,
    reasons,
    taken,
    weights,
)
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer


def write_csv(path: Path, rows: list[Event]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*rows[0]["x"], "y"])
        writer.writerows([*row["x"].values(), str(row["y"]).lower()] for row in rows)
    return path


def has_model(server: RedisServer) -> bool:
    with server.client() as client:
        return bool(client.exists("hinged:models", "hinged:{m}:meta"))


LEARN = ("--model", "m", "--learner", "perceptron")
CREATE = (*LEARN, "--label", "y")

Run = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture
def file(redis_url: str) -> Run:
    """Run `hinged ingest file` to its end: exit code, summary, and what it told."""
    return lambda *words, **more: Ingest(
        "file", *map(str, words), redis_url=redis_url, **more
    ).end()


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
        code, _, stderr = one.end()
        assert code == 0, stderr
    assert taken(own_server) == COUNT
    assert weights(own_server) == learned(rows)
    assert letters(own_server) == []
    code, summary, stderr = Ingest("file", str(path), *CREATE, redis_url=own_server.url).end()
    assert (code, summary["records"]) == (0, 0)
    assert f"continues after its first {COUNT:,} records" in stderr


def test_bad_records_go_to_the_dead_letters_and_the_rest_is_learned(
    file: Run, shared_server: RedisServer, tmp_path: Path
) -> None:
    rows = events(20)
    lines = [json.dumps(row) for row in rows]
    lines[3:3] = ["", '{"x": {"a": 1}', '{"x": {"f0": "0.25"}, "y": true}']
    lines += ['{"x": {"a": 1}, "y": "spam"}']
    path = tmp_path / "d.ndjson"
    path.write_text("\r\n".join(lines))
    code, summary, stderr = file(path, *LEARN, whole=True)
    assert (code, summary["state"]) == (1, "incomplete"), stderr
    assert (summary["learned"], summary["dead"], summary["records"]) == (20, 3, 23)
    assert "NOT LEARNED: 3 of 23 records, MORE than --max-bad 0 allows" in stderr
    found = reasons(shared_server)
    assert list(found) == ["3", "4", "22"]
    assert found["3"].startswith("line 5:")
    assert found["4"].startswith("line 6: x['f0']")
    assert found["22"].startswith("line 24: y must be true or false (or 1 or 0);")
    assert weights(shared_server) == learned(rows)


LINES = {"d.svm": "{y} 1:{a} 2:0.5\n", "d.vw": "{y} | 1:{a} 2:0.5\n", "d.csv": "{y},{a},0.5\n"}
ORDERS: dict[str, list[bool]] = {
    "true first": [True] * 1_100 + [False] * 1_100,
    "false first": [False] * 1_100 + [True] * 1_100,
    "in turn": [True, False] * 1_100,
}


def labelled(path: Path, rows: list[tuple[str, float]]) -> list[str]:
    """Write labels with a feature each in the format of the name; return how to name the file."""
    table = path.name == "d.csv"
    lines = [LINES[path.name].format(y=y, a=a) for y, a in rows]
    path.write_text(("y,1,2\n" if table else "") + "".join(lines))
    return [str(path), *(("--label", "y") if table else ())]


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
    file: Run,
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
    words = labelled(tmp_path / name, [(written[row["y"]], row["x"]["1"]) for row in rows])
    code, summary, stderr = file(*words, *LEARN)
    assert (code, summary["learned"], summary["dead"]) == (0, 2_200, 0), stderr
    assert weights(shared_server) == learned(rows)


@pytest.mark.parametrize(
    ("spec", "name", "written"),
    [
        ({"labels": [1, 2]}, "d.svm", ("1", "2")),
        ({"labels": [-1, 1]}, "d.vw", ("-1", "+1")),
        ({"labels": ["0", "1"]}, "d.svm", ("0", "1")),
        ({"labels": ["no", "true"]}, "d.csv", ("no", "true")),
        ({"labels": [7, 8]}, "d.csv", ("7", "8.0")),
        ({"learner": {"type": "multiclass_perceptron"}}, "d.vw", ("1", "2")),
        ({"learner": {"type": "multiclass_perceptron"}}, "d.csv", ("1", "b")),
    ],
)
def test_labels_are_those_of_the_model(
    file: Run, tmp_path: Path, spec: dict[str, Any], name: str, written: tuple[str, str]
) -> None:
    create = tmp_path / "spec.json"
    create.write_text(json.dumps({"learner": {"type": "perceptron"}} | spec))
    words = labelled(tmp_path / name, [(written[y], int(y)) for y in ORDERS["true first"]])
    code, summary, stderr = file(*words, "--model", "m", "--create", create)
    assert (code, summary["learned"], summary["dead"]) == (0, 2_200, 0), stderr


@pytest.mark.parametrize("order", ORDERS)
def test_a_label_that_the_model_does_not_have_is_bad_in_any_order(
    file: Run, shared_server: RedisServer, tmp_path: Path, order: str
) -> None:
    path = tmp_path / "d.svm"
    path.write_text("".join(f"{1 if y else 2} 1:1\n" for y in ORDERS[order]))
    words = (path, *LEARN)
    code, summary, _ = file(*words)
    assert (code, summary["learned"], summary["dead"]) == (1, 1_100, 1_100)
    assert {reason.partition(": ")[2] for reason in reasons(shared_server).values()} == {
        "label must be -1 or 0 as false, 1 as true, not '2': give its meaning with --map"
    }
    mapped = ("--restart", "--map", "1=false", "--map", "2=true")
    code, summary, _ = file(*words, *mapped)
    assert (code, summary["learned"], summary["dead"]) == (0, 2_200, 0)


def test_a_column_is_of_one_type_in_all_files_of_a_command(
    file: Run, shared_server: RedisServer, tmp_path: Path
) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("zip,y\n10,true\n11,false\n12,true\n")
    second.write_text("zip,y\n10,false\n12A,true\n11,false\n")
    create = tmp_path / "spec.json"
    create.write_text(
        json.dumps({"learner": {"type": "perceptron"}, "pipeline": [{"type": "OneHotEncoder"}]})
    )
    words = ("--model", "m", "--label", "y", "--create", create)
    both = (first, second, *words)
    code, summary, stderr = file(*both)
    assert (code, summary["records"]) == (1, 0)
    assert "--type zip=text" in stderr
    assert not has_model(shared_server)
    typed = ("--type", "zip=text")
    assert file(first, *words, *typed)[0] == 0
    code, summary, stderr = file(*both)  # the first file is done
    assert (code, summary["records"]) == (1, 0)
    code, summary, stderr = file(*both, *typed)
    assert (code, summary["records"], summary["dead"]) == (0, 3, 0), stderr
    with shared_server.client() as client:
        log: Any = client.xrange("hinged:{m}:log")
    found = [event for _, fields in log for event in json.loads(fields.get("events", "[]"))]
    assert [event["x"]["zip"] for event in found] == ["10", "11", "12", "10", "12A", "11"]


def bad_rows(path: Path, bad: int, good: int) -> Path:
    """Write a file with some bad rows among good ones."""
    rows = [f"{'x' if number < bad else number},true\n" for number in range(bad + good)]
    path.write_text("a,y\n" + "".join(rows[::-1]))
    return path


@pytest.mark.parametrize(
    ("allowed", "code", "state"),
    [
        ("0", 1, "incomplete"),
        ("1", 1, "incomplete"),
        ("2", 0, "done"),
        ("0.9%", 1, "incomplete"),
        ("1%", 0, "done"),
        ("100%", 0, "done"),
    ],
)
def test_bad_records_may_be_allowed(
    file: Run, tmp_path: Path, allowed: str, code: int, state: str
) -> None:
    path = bad_rows(tmp_path / "d.csv", 2, 198)
    words = (path, *CREATE, "--type", "a=number", "--max-bad", allowed)
    found, summary, stderr = file(*words)
    assert (found, summary["state"]) == (code, state), stderr
    assert (summary["learned"], summary["bad"], summary["max_bad"]) == (198, 2, allowed)
    verdict = "MORE than" if code else "as"
    assert f"NOT LEARNED: 2 of 200 records, {verdict} --max-bad {allowed} allows" in stderr


def test_a_share_is_exact() -> None:
    # In floating point 29 % of 100 is less than 29.
    assert [Allowance.of(f"{n}%").covers(n, 100) for n in range(101)] == [True] * 101
    assert [Allowance.of(f"{n}%").covers(n + 1, 100) for n in range(101)] == [False] * 101
    assert not Allowance.of("0.29%").covers(30, 10_000)
    assert Allowance.of("0.29%").covers(29, 10_000)


def test_every_text_message_is_learned(file: Run, tmp_path: Path) -> None:
    create = tmp_path / "spec.json"
    create.write_text('{"learner": {"type": "perceptron"}, "labels": ["ham", "spam"]}')
    words = ("--label", "Label", "--type", "SMS=ignore", "--model", "m", "--create", create)
    path = str(data_file("sms_spam.tsv"))
    code, summary, stderr = file(path, *words)
    assert (code, summary["learned"], summary["bad"]) == (0, 5_574, 0), stderr
    again = ("--restart", "--quote", '"')
    code, summary, stderr = file(path, *words, *again)
    assert (code, summary["bad"]) == (1, 10), stderr
    assert summary["learned"] + summary["bad"] + summary["continued"] == 5_574


def test_the_same_command_again_tells_the_same_losses(
    file: Run, shared_server: RedisServer, tmp_path: Path
) -> None:
    path = bad_rows(tmp_path / "d.csv", 2, 198)
    other = bad_rows(tmp_path / "e.csv", 1, 0)
    words = (path, *CREATE, "--type", "a=number")
    assert file(other, *words[1:])[0] == 1
    assert file(*words)[0] == 1
    code, summary, stderr = file(*words)
    assert (code, summary["records"], summary["earlier"]) == (1, 0, 200), stderr
    assert (summary["bad"], summary["earlier_dead"]) == (2, 2)
    assert "NOT LEARNED: 2 of 200 records" in stderr
    assert file(*words, "--max-bad", "1%")[0] == 0
    with shared_server.client() as client:
        client.delete("hinged:{m}:dead")  # they were looked at
    assert file(*words)[0] == 0


def test_contradictions_and_what_the_model_refuses_are_losses(file: Run, tmp_path: Path) -> None:
    path, create = tmp_path / "d.csv", tmp_path / "spec.json"
    path.write_text("id,a,y\ni,1,p\nj,2,q\ni,3,p\nk,4,r\ni,1,p\n")
    create.write_text('{"learner": {"type": "multiclass_perceptron", "max_classes": 2}}')
    words = (path, "--model", "m", "--label", "y", "--id", "id")
    code, summary, stderr = file(*words, "--create", create, "--max-bad", "1")
    assert (code, summary["state"], summary["bad"]) == (1, "incomplete", 2), stderr
    found = tuple(summary[name] for name in ("learned", "duplicates", "dead", "rejected"))
    assert found == (2, 1, 1, 1)


REFUSED: dict[str, bytes] = {
    "no.csv": b"",
    "twice.csv": b"y,y\n1,1\n",
    "label.csv": b"a,b\n1,1\n",
    "utf16.ndjson": '{"x": {}, "y": true}'.encode("utf-16"),
    "no.ndjson.gz": b'{"x": {}, "y": true}',
    "no.svm.xz": b"1 1:1\n",
    "no.parquet": b"PAR0",
    "no.txt": b"",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_refused_makes_no_model(
    file: Run, shared_server: RedisServer, tmp_path: Path, name: str
) -> None:
    good, path = write_csv(tmp_path / "good.csv", events(5)), tmp_path / name
    path.write_bytes(REFUSED[name])
    tables = name.endswith((".csv", ".parquet"))
    words = (*LEARN, *(("--label", "y") if tables else ()))
    for paths in ([path], [good, path]):
        code, summary, stderr = file(*paths, *words)
        assert (code, summary["state"], summary["records"]) == (1, "failed", 0), stderr
        assert not has_model(shared_server)


def _takes_signals(pid: int) -> bool:
    """Return whether a process has a handler for SIGTERM."""
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at the process in /proc")
def test_waiting_for_standard_input_it_can_be_stopped(
    redis_url: str, shared_server: RedisServer
) -> None:
    words = ("file", "-", "--format", "ndjson", *LEARN)
    process = subprocess.Popen(
        [sys.executable, "-m", "hinged_service.cli.main", "ingest", *words, "--json"],
        env=os.environ | {"HINGED_REDIS_URL": redis_url},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: _takes_signals(process.pid), 30)
    time.sleep(0.5)  # until it waits for input
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM
    assert json.loads(out)["state"] == "stopped"
    assert not has_model(shared_server)


@pytest.mark.parametrize("bound", ["-1", "1.5", "x", "", "101%", "nan%", "%", "1e400%"])
def test_a_bound_that_is_none_is_wrong_usage(file: Run, tmp_path: Path, bound: str) -> None:
    path = write_csv(tmp_path / "d.csv", events(5))
    words = (path, *CREATE, f"--max-bad={bound}")
    code, _, stderr = file(*words)
    assert code == 2
    assert "--max-bad" in stderr


@pytest.mark.parametrize(
    "words", [("--map", "u=true", "--map", "u=false"), ("--type", "a=number", "--type", "a=text")]
)
def test_what_is_said_twice_otherwise_is_wrong_usage(
    file: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    path = write_csv(tmp_path / "d.csv", events(5))
    code, _, told = file(path, *CREATE, *words)
    assert code == 2
    assert "is given twice" in told


def test_a_cut_off_file_is_learned_as_far_as_it_is_whole(
    file: Run, shared_server: RedisServer, tmp_path: Path
) -> None:
    rows = events(3_000)
    whole = gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode())
    path = tmp_path / "d.ndjson.gz"
    path.write_bytes(whole[: len(whole) // 2])
    code, summary, stderr = file(path, *LEARN)
    assert code == 1
    assert "is cut off" in stderr
    assert summary["state"] == "failed"
    assert 500 < summary["learned"] < 3_000
    assert weights(shared_server) == learned(rows[: summary["learned"]])


@pytest.mark.parametrize("module", [bz2, lzma])
def test_streams_in_a_row_are_learned_whole_or_the_run_fails(
    file: Run, shared_server: RedisServer, tmp_path: Path, module: Any
) -> None:
    rows = events(3_000)
    lines = [json.dumps(row) + "\n" for row in rows]
    first, second = (
        module.compress("".join(part).encode()) for part in (lines[:2000], lines[2000:])
    )
    path = tmp_path / f"d.ndjson.{'xz' if module is lzma else 'bz2'}"
    path.write_bytes(first + b"\0" * 8 + bytes([second[0] ^ 1]) + second[1:])
    words = (path, *LEARN)
    code, summary, stderr = file(*words)
    assert (code, summary["state"], summary["learned"]) == (1, "failed", 2000)
    assert "cannot be read further" in stderr
    path.write_bytes(first + b"\0" * 8 + second + b"\0" * 512)
    code, summary, stderr = file(*words)
    assert (code, summary["learned"]) == (0, 3000), stderr
    assert weights(shared_server) == learned([*rows[:2000], *rows])


def test_cells_of_parquet_that_cannot_be_read(
    file: Run, shared_server: RedisServer, tmp_path: Path
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
    words = [path, "--learner", "perceptron", "--label", "kind", "--type", "kind=text"]
    words += ["--map", "ham=true", "--map", "spam=false"]
    by_model: dict[str, dict[str, str]] = {}
    for model, day in (("m", "ignore"), ("n", "text")):
        _, summary, errors = file(*words, "--model", model, "--type", f"day={day}")
        assert "Traceback" not in errors
        by_model[model] = reasons(shared_server, model)
        assert summary["learned"] == 3_000 - len(by_model[model])
    label = {"2600": "row 2601: column kind is not UTF-8"}
    late = {"2500": "row 2501: column day is outside of the years 1 to 9999"}
    assert by_model == {"m": label, "n": late | label}
    assert weights(shared_server) == learned(rows[:2600] + rows[2601:])


def test_interrupted_it_says_how_to_go_on_and_restart_brings_all_again(
    file: Run, redis_url: str, shared_server: RedisServer, tmp_path: Path
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
    code, summary, stderr = first.end()
    proxy.stop()
    assert code == 128 + signal.SIGINT
    assert summary["state"] == "stopped"
    assert "same command again" in stderr
    assert 0 < summary["records"] < len(rows)
    assert taken(shared_server) == summary["records"]
    assert file(path, *CREATE)[0] == 0
    assert weights(shared_server) == learned(rows)
    again = file(path, *CREATE, "--restart")
    assert again[1]["learned"] == 20_000
    assert weights(shared_server) == learned([*rows, *rows])
    assert file(path, *CREATE)[1]["records"] == 0


def test_without_a_model_or_a_label_it_says_what_to_do(file: Run, tmp_path: Path) -> None:
    path = write_csv(tmp_path / "d.csv", events(5))
    code, _, stderr = file(path, "--model", "m")
    assert code == 1
    assert "There is no model 'm'" in stderr
    code, _, stderr = file(path, *LEARN)
    assert code == 1
    assert "--label" in stderr
