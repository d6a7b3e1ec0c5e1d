"""NDJSON: the same lines as POST learn takes, and the field's faults (C48, C49, C54 to C56)."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from hinged_service.ingest.files.byte_stream import ByteStream
from hinged_service.ingest.files.lines import Lines
from tests.ingest.files.reading import check_places, events_of, faults_of, source_of

LINE = '{"x":{"a":1},"y":true}'
EVENT = {"x": {"a": 1}, "y": True}


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (f"{LINE}\n{LINE}\n{LINE}\n", [1, 2, 3]),
        (f"{LINE}\n\n  \n{LINE}\n\n{LINE}\n\n", [1, 4, 6]),
        (f"{LINE}\r\n{LINE}\r\n{LINE}\r\n", [1, 2, 3]),
        (f"{LINE}\n{LINE}\n{LINE}", [1, 2, 3]),
        (f"\ufeff{LINE}\n", [1]),
        (" \n\t\r\n", []),
        ("", []),
        ("\ufeff", []),
    ],
)
def test_line_ends_and_blank_lines(tmp_path: Path, content: str, lines: list[int]) -> None:
    source = source_of(tmp_path / "a.ndjson", content)
    records = list(source.records())
    check_places(records)
    assert [record.line for record in records] == lines
    assert events_of(source) == [EVENT] * len(lines)


def test_events_are_as_sent(tmp_path: Path) -> None:
    content = '{"x":{"a":0.1,"t":"中\u2028\x85","n":null},"y":"spam","w":2,"id":"m1"}\n'
    assert events_of(source_of(tmp_path / "a.jsonl", content)) == [
        {"x": {"a": 0.1, "t": "中\u2028\x85", "n": None}, "y": "spam", "w": 2, "id": "m1"}
    ]


def test_one_bad_line_costs_only_itself(tmp_path: Path) -> None:
    content = f'{LINE}\n{LINE}\n{{"id":"c"\n{LINE}\n{LINE}\n'
    source = source_of(tmp_path / "a.ndjson", content)
    assert faults_of(source) == [(3, "is not valid JSON: Input data was truncated")]
    assert [r.number for r in source.records() if r.event == EVENT] == [0, 1, 3, 4]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"x":{"a":NaN},"y":1}', "x['a'] must be a number"),
        (b'{"x":{"a":1e101},"y":1}', "x['a'] must be a number"),
        (b'{"x":{"a":%s},"y":1}' % (b"9" * 400), "x['a'] must be a number"),
        (b'{"x":{"a":%s},"y":1}' % (b"9" * 5000), "x['a'] must be a number"),
        (b'{"x":{"a":[1]},"y":1}', "x['a']"),
        (b'{"x":{},"y":1,"id":9007199254740993}', "id must be text"),
        (b'{"x":{}}', "y"),
        (b'{"x":{},"y":1,"z":1}', "'z' is not a field of an event"),
        (b"[%s]" % LINE.encode(), "is an array: a line is one event"),
        (b"[]", "is an array: a line is one event"),
        (b'{"x":' + b'{"a":' * 20_000, ""),
        (b"[" * 100_000, ""),
        (b'{"x":{"\xff":1},"y":1}', "is not valid JSON"),
        (b"\xff\xfe\x00", "is not valid JSON"),
        (b"1", ""),
        (b'{"x":{"a":"%s"},"y":1}' % (b"z" * 9 * 2**20), "the line is longer than 8 MiB"),
    ],
)
def test_bad_lines(tmp_path: Path, line: bytes, reason: str) -> None:
    source = source_of(tmp_path / "a.ndjson", LINE.encode() + b"\n" + line + b"\n" + LINE.encode())
    good, bad, after = source.records()
    assert (good.event, after.event, after.line) == (EVENT, EVENT, 3)
    assert (bad.line, bad.event) == (2, None)
    assert bad.error is not None
    assert bad.error.startswith(reason)
    assert len(bad.error) < 400


def test_labels_can_be_mapped(tmp_path: Path) -> None:
    content = '{"x":{},"y":"UP"}\n{"x":{},"y":0}\n{"x":{},"y":true}\n'
    source = source_of(tmp_path / "a.ndjson", content, labels={"UP": 1, "0": 0})
    assert [record.event and record.event["y"] for record in source.records()] == [1, 0, None]


@pytest.mark.parametrize("extra", [-1, 0, 1])
def test_the_longest_line(tmp_path: Path, extra: int) -> None:
    longest = 8 * 2**20
    first = b"x" * (longest + extra - 1) + b"\n"
    path = tmp_path / "lines"
    path.write_bytes(first + b"next")
    stream = ByteStream(str(path), "none")
    read = list(Lines(stream))
    stream.close()
    assert read == [first if extra <= 0 else None, b"next"]


def test_a_line_is_the_same_however_its_bytes_arrive(tmp_path: Path) -> None:
    content = '{"x":{"中\\u4e2d":1},"y":1}\r\n{"x":{"é":2},"y":0}\r\n'.encode()
    members = b"".join(gzip.compress(content[i : i + 1]) for i in range(len(content)))
    cut = source_of(tmp_path / "a.ndjson.gz", members)
    assert events_of(cut) == [{"x": {"中中": 1}, "y": 1}, {"x": {"é": 2}, "y": 0}]
