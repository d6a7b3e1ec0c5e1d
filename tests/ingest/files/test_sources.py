"""Promises of every source: resuming, identity, standard input, options."""

from __future__ import annotations

import io
import os
import random
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hinged_service.ingest.files import FileError, FileOptions, open_source
from tests.ingest.files.reading import check_places, events_of, source_of

CSV = 'a,t,y\n1,x,1\n\n2,"two\nlines",0\nbad,x,1\n3\n"op"en,x,1\n4,caf\u00e9,0\n5,x,1'
BROKEN = CSV.encode() + b"\n6,\xff,1\n7,x,0\n"
FILES = {
    "a.csv": BROKEN,
    "a.tsv": BROKEN.replace(b",", b"\t"),
    "quoted.tsv": BROKEN.replace(b",", b"\t"),
    "a.ndjson": b'{"x":{"a":1},"y":1}\n\n{"x"\n{"x":{"a":2},"y":0}\n' * 3,
    "a.libsvm": b"1 1:1\n# no\n-1 1:2\nx\n\n1 2:1\n",
    "a.vw": b"1 |n a\n|n b\n-1 |n b\nx |n c\n\n|n d\n1 |n a\n",
}


@pytest.mark.parametrize("name", FILES)
def test_resuming_anywhere_gives_the_tail(tmp_path: Path, name: str) -> None:
    options = {"label": "y", "sample_rows": 2} if name.endswith(("csv", "tsv")) else {}
    quote = {"quote": '"'} if name == "quoted.tsv" else {}
    source = source_of(tmp_path / name, FILES[name], **options, **quote)
    records = list(source.records())
    check_places(records)
    assert any(record.error for record in records)
    for start in range(len(records) + 2):
        assert list(source.records(start)) == records[start:]


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(sys.platform != "linux", reason="counts the files in /proc")
def test_leaving_a_file_half_read_closes_it(tmp_path: Path) -> None:
    source = source_of(tmp_path / "a.ndjson", FILES["a.ndjson"])
    before = open_files()
    for _ in range(3):
        next(source.records())
    assert open_files() == before


def test_identity_is_of_the_content(tmp_path: Path) -> None:
    content = random.Random(1).randbytes(300_000)
    source = source_of(tmp_path / "a.ndjson", content)
    identity = source.identity()
    assert identity == source.identity()
    assert source_of(tmp_path / "copy.jsonl", content).identity() == identity
    for at in (0, 150_000, 299_999):
        changed = bytearray(content)
        changed[at] ^= 1
        assert source_of(tmp_path / "b.ndjson", bytes(changed)).identity() != identity
    assert source_of(tmp_path / "c.ndjson", content + b"\n").identity() != identity
    # The same bytes cut into other records are another source.
    assert source_of(tmp_path / "d.vw", content).identity() != identity


def test_a_file_changed_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.ndjson"
    source = source_of(path, FILES["a.ndjson"])
    records = source.records()
    next(records)
    with path.open("ab") as file:
        file.write(b"\n")
    with pytest.raises(FileError, match="was changed while it was in use"):
        list(records)
    with pytest.raises(FileError, match="was changed while it was in use"):
        source.identity()
    with pytest.raises(FileError, match="was changed while it was in use"):
        source.records()
    path.unlink()
    with pytest.raises(FileError, match="cannot be opened"):
        source.records()


def stdin(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


def test_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, b"a,y\n" + b"1,1\n" * 5000)
    source = open_source("-", FileOptions(format="csv", label="y", sample_rows=10))
    assert (source.name, source.size_bytes, source.resumable) == ("-", None, False)
    assert source.describe().endswith("; it can be read once only, so not resumed")
    with pytest.raises(FileError, match="read once only: it has no identity"):
        source.identity()
    with pytest.raises(FileError, match="not resumable"):
        source.records(1)
    assert events_of(source) == [{"x": {"a": 1.0}, "y": 1}] * 5000
    with pytest.raises(FileError, match="not resumable"):
        source.records()
    assert not sys.stdin.buffer.closed


def test_standard_input_needs_a_format(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, b"")
    with pytest.raises(FileError, match=r"Standard input has no known format .* --format"):
        open_source("-", FileOptions())


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes with names")
def test_a_pipe_is_like_standard_input(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"1 1:1\n")
    os.close(writing)
    source = open_source(f"/dev/fd/{reading}", FileOptions(format="libsvm"))
    os.close(reading)
    assert not source.resumable
    assert events_of(source) == [{"x": {"1": 1.0}, "y": 1}]


def test_suffixes(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no known format"):
        source_of(tmp_path / "a.txt", b"")
    with pytest.raises(FileError, match="no known format"):
        source_of(tmp_path / "a.gz", b"")
    assert events_of(source_of(tmp_path / "a.txt", "1 1:1\n", format="libsvm")) == [
        {"x": {"1": 1.0}, "y": 1}
    ]
    assert events_of(source_of(tmp_path / "A.JSONL", '{"x":{},"y":1}')) == [{"x": {}, "y": 1}]


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be opened: No such file"):
        open_source(str(tmp_path / "none.csv"), FileOptions(label="y"))
    folder = tmp_path / "folder.csv"
    folder.mkdir()
    with pytest.raises(FileError, match="is a folder"):
        open_source(str(folder), FileOptions(label="y"))


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("a.csv", {"format": "xml"}, "format must be one of"),
        ("a.csv", {"compression": "rar"}, "compression must be one of"),
        ("a.csv", {"types": {"a": "date"}}, "type of column 'a' must be one of"),
        ("a.csv", {"delimiter": ", "}, "delimiter must be one character"),
        ("a.csv", {"quote": ""}, "quote must be one character"),
        ("a.csv", {"sample_rows": 0}, "sample_rows must be at least 1"),
        ("a.csv", {"encoding": "none"}, "encoding 'none' is unknown"),
        ("a.csv", {"label": "a", "id": "a"}, "must be different columns"),
        (
            "a.ndjson",
            {"label": "a", "weight": "b"},
            "ndjson has no columns: leave out label, weight",
        ),
        ("a.libsvm", {"id": "a"}, "libsvm has no columns: leave out id"),
        ("a.vw", {"id": "a"}, "no column 'a': its id can be 'tag'"),
        ("a.vw", {"delimiter": ","}, "for CSV and TSV, not for vw"),
        ("a.ndjson", {"quote": "'"}, "for CSV and TSV, not for ndjson"),
        ("a.csv", {"label": "a", "quote": ","}, "must be different characters"),
        ("a.parquet.gz", {"label": "a"}, "compressed inside"),
    ],
)
def test_options_that_do_not_fit(
    tmp_path: Path, name: str, options: dict[str, object], reason: str
) -> None:
    with pytest.raises(FileError, match=reason):
        source_of(tmp_path / name, b"a,b\n", **options)
