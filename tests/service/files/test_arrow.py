"""Parquet and Arrow IPC, if pyarrow is there."""

from __future__ import annotations

import datetime
import gzip
import importlib
import io
import math
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hinged_service.files import FileError, FileOptions, Source, open_source
from tests.service.files.reading import check_places, events_of, source_of, until_fault


def write_parquet(table: Any, folder: Path, **options: Any) -> Source:
    path = folder / "t.parquet"
    importlib.import_module("pyarrow.parquet").write_table(table, path, row_group_size=1000)
    return open_source(str(path), FileOptions(**{"label": "y"} | options))


def write_file(table: Any, folder: Path, **options: Any) -> Source:
    path = folder / "t.arrow"
    ipc = importlib.import_module("pyarrow.ipc")
    with ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=1500)
    return open_source(str(path), FileOptions(**{"label": "y"} | options))


def write_stream(table: Any, folder: Path, **options: Any) -> Source:
    path = folder / "t.arrows"
    ipc = importlib.import_module("pyarrow.ipc")
    with ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=1500)
    return open_source(str(path), FileOptions(**{"label": "y"} | options))


WRITERS = [write_parquet, write_file, write_stream]


@pytest.fixture
def arrow() -> Any:
    return pytest.importorskip("pyarrow")


@pytest.mark.parametrize("write", WRITERS)
def test_types_and_nulls(arrow: Any, tmp_path: Path, write: Callable[..., Source]) -> None:
    table = arrow.table(
        {
            "n": [1, None, 3],
            "f": [0.5, 1.5, math.nan],
            "d": [Decimal("1.25"), None, None],
            "b": [True, False, None],
            "t": arrow.array(["red", "blue", None]).dictionary_encode(),
            "w": [1.0, None, 2.0],
            "k": ["a", "b", "c"],
            "y": ["yes", "no", "no"],
        }
    )
    source = write(table, tmp_path, id="k", weight="w")
    first, second, third = source.records()
    assert first.event == {
        "x": {"n": 1.0, "f": 0.5, "d": 1.25, "b": 1.0, "t": "red"},
        "y": "yes",
        "id": "a",
        "w": 1.0,
    }
    assert second.event == {"x": {"f": 1.5, "b": 0.0, "t": "blue"}, "y": "no", "id": "b"}
    assert third.error == "column f must be a number between -1e100 and 1e100, not nan"
    assert source.describe() == (
        "reading n, f, d as number, b as bool (true is 1, false is 0), t as text; "
        "label: y (text); id: k; weight: w"
    )


@pytest.mark.parametrize("write", WRITERS)
def test_resume_in_the_middle(arrow: Any, tmp_path: Path, write: Callable[..., Source]) -> None:
    count = 5000
    source = write(arrow.table({"a": range(count), "y": [i % 2 for i in range(count)]}), tmp_path)
    records = list(source.records())
    check_places(records)
    assert [r.event for r in records] == [{"x": {"a": float(i)}, "y": i % 2} for i in range(count)]
    assert records[-1].bytes_read == source.size_bytes
    for start in (0, 1, 999, 1000, 1001, 1500, 2048, 3000, 4999, 5000, 9999):
        tail = list(source.records(start))
        assert [r[:4] for r in tail] == [r[:4] for r in records[start:]]


@pytest.mark.parametrize("write", WRITERS)
def test_columns_that_are_no_features(
    arrow: Any, tmp_path: Path, write: Callable[..., Source]
) -> None:
    table = arrow.table({"day": [datetime.date(2026, 1, 2)], "l": [[1]], "y": [1.0]})
    with pytest.raises(FileError, match=r"not read: day \(date32\[day\]\), l \(list<.*ignore"):
        write(table, tmp_path)
    source = write(table, tmp_path, types={"day": "text", "l": "text"})
    assert events_of(source) == [{"x": {"day": "2026-01-02", "l": "[1]"}, "y": 1}]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize("content", [b"", b"no such thing", b"ARROW1 but not more"])
def test_what_is_no_such_file(arrow: Any, tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(FileError, match="cannot be read as its format says"):
        source_of(tmp_path / name, content, label="y")


def test_streams_come_from_anywhere_and_files_do_not(
    arrow: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = arrow.table({"a": [1, 2], "y": [True, False]})
    content = Path(write_stream(table, tmp_path).name).read_bytes()
    expected = [{"x": {"a": 1.0}, "y": True}, {"x": {"a": 2.0}, "y": False}]
    packed = source_of(tmp_path / "t.arrows.gz", gzip.compress(content), label="y")
    assert events_of(packed) == expected
    options = FileOptions(format="arrow", label="y")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    assert events_of(open_source("-", options)) == expected
    content = Path(write_file(table, tmp_path).name).read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    with pytest.raises(FileError, match="must lie on the disk, uncompressed"):
        open_source("-", options)
    with pytest.raises(FileError, match="must lie on the disk, uncompressed"):
        source_of(tmp_path / "t.arrow.gz", gzip.compress(content), label="y")
    with pytest.raises(FileError, match="is Parquet: it must lie on the disk"):
        open_source("-", FileOptions(format="parquet", label="y"))


def test_a_cut_stream_gives_what_is_whole(arrow: Any, tmp_path: Path) -> None:
    whole = write_stream(arrow.table({"a": range(5000), "y": [1] * 5000}), tmp_path)
    content = Path(whole.name).read_bytes()
    cut = source_of(tmp_path / "cut.arrows", content[: len(content) * 2 // 3], label="y")
    records, fault = until_fault(cut)
    assert [record.number for record in records] == list(range(3000))
    assert "cannot be read as its format says" in fault


def test_a_batch_as_large_as_the_file_is_not_held(arrow: Any, tmp_path: Path) -> None:
    count = 2_000_000
    table = arrow.table({"a": [1.5] * count, "y": [True] * count})
    path = tmp_path / "large.arrow"
    with arrow.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    del table
    before = arrow.total_allocated_bytes()
    records = open_source(str(path), FileOptions(label="y")).records(count - 10)
    assert [record.number for record in records] == list(range(count - 10, count))
    assert arrow.total_allocated_bytes() - before < 2**20


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(FileError, match=r"pip install 'hinged\[arrow\]'"):
        source_of(tmp_path / "a.parquet", b"PAR1", label="y")


@pytest.mark.parametrize("write", WRITERS)
def test_a_whole_number_is_one_id_in_whatever_type_it_comes(
    arrow: Any, tmp_path: Path, write: Callable[..., Source]
) -> None:
    integers = [arrow.int8(), arrow.uint64(), arrow.decimal128(22, 0), arrow.string()]
    floats = [arrow.float32(), arrow.float64(), arrow.decimal128(22, 2), arrow.decimal256(60, 9)]
    texts = ["7", "-2", "123"]
    for kind in (*integers, *floats):
        cells = arrow.array([7, 2, 123]).cast(kind)
        told = events_of(write(arrow.table({"k": cells, "y": [True] * 3}), tmp_path, id="k"))
        assert [event["id"] for event in told] == ["7", "2", "123"], kind
    packed = arrow.array([7.0, -2.0, 123.0]).dictionary_encode()
    for more in ({}, {"types": {"k": "text"}}):
        source = write(arrow.table({"k": packed, "y": [True] * 3}), tmp_path, id="k", **more)
        assert [event["id"] for event in events_of(source)] == texts


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("float16", [2047.0, -0.0], [2048.0, 0.5, math.inf]),
        ("float32", [2.0**24 - 1], [2.0**24, 1.5]),
        ("float64", [2.0**53 - 1, 1 - 2.0**53], [2.0**53, 1e100, 1e300, math.nan, None, 123.5]),
        ("decimal128(38, 2)", [Decimal(10) ** 35 + 1], [Decimal("123.50"), None]),
    ],
)
def test_a_number_that_may_stand_for_several_is_no_id(
    arrow: Any, tmp_path: Path, kind: str, good: list[Any], bad: list[Any]
) -> None:
    type_of = {"decimal128(38, 2)": arrow.decimal128(38, 2)}
    made = arrow.array([*good, *bad], type_of.get(kind) or arrow.type_for_alias(kind))
    table = arrow.table({"k": made, "y": [True] * len(made)})
    records = list(write_parquet(table, tmp_path, id="k").records())
    ids = [record.event and record.event["id"] for record in records]
    assert ids == [str(int(number)) for number in good] + [None] * len(bad)
    assert [record.number for record in records] == list(range(len(made)))
    for record in records[len(good) :]:
        assert str(record.error).startswith("column k must be ")
