"""Parquet and Arrow IPC, if pyarrow is there.

One file: a list of types of cells, each to be read by itself.
"""

from __future__ import annotations

import datetime
import gzip
import importlib
import io
import json
import math
import subprocess
import sys
import uuid
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hinged_service.ingest.files import FileError, FileOptions, Source, open_source
from tests.ingest.files.reading import check_places, events_of, source_of, until_fault

Write = Callable[..., Source]

SUFFIXES = ["parquet", "arrow", "arrows"]


def written(suffix: str, table: Any, folder: Path, **options: Any) -> Source:
    """Write a table and open it."""
    path = folder / f"t.{suffix}"
    if suffix == "parquet":
        importlib.import_module("pyarrow.parquet").write_table(table, path, row_group_size=1000)
    else:
        ipc = importlib.import_module("pyarrow.ipc")
        make = ipc.new_file if suffix == "arrow" else ipc.new_stream
        with make(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=1500)
    return open_source(str(path), FileOptions(**{"label": "y"} | options))


@pytest.fixture
def arrow() -> Any:
    return pytest.importorskip("pyarrow")


@pytest.fixture(params=SUFFIXES)
def write(request: pytest.FixtureRequest, arrow: Any, tmp_path: Path) -> Write:
    """Write a table and open it."""
    return lambda table, **options: written(request.param, table, tmp_path, **options)


ipc_only = pytest.mark.parametrize("write", ["arrow", "arrows"], indirect=True)


def test_rows_of_numbers_are_those_read_cell_by_cell(
    arrow: Any, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 2500
    whole = [(-7) ** (n % 9) for n in range(rows)]
    parts = [n / 7 if n % 3 else -0.0 for n in range(rows)]
    table = arrow.table(
        {
            "i": arrow.array(whole, arrow.int32()),
            "f": arrow.array(parts, arrow.float32()),
            "d": [None if n == 1700 else n * 0.1 for n in range(rows)],
            "y": [n % 2 == 0 for n in range(rows)],
        }
    )
    found = [record.event for record in write(table).records(40)]
    monkeypatch.setattr("hinged_service.ingest.files.table.Table.numbers", None)
    assert repr(found) == repr([record.event for record in write(table).records(40)])
    assert len(found) == rows - 40
    assert found[1660] == {"x": {"i": float(whole[1700]), "f": pytest.approx(1700 / 7)}, "y": True}


@pytest.mark.parametrize("odd", [math.nan, math.inf, 1e101])
def test_a_number_that_is_none_is_told_among_rows_of_numbers(
    arrow: Any, write: Write, odd: float
) -> None:
    source = write(arrow.table({"a": [1.0, odd, 3.0], "y": [True, False, True]}))
    first, second, third = source.records()
    assert (first.event, third.event) == (
        {"x": {"a": 1.0}, "y": True},
        {"x": {"a": 3.0}, "y": True},
    )
    assert second.error is not None
    assert second.error.startswith("column a must be a number between -1e100 and 1e100")


def test_types_and_nulls(arrow: Any, write: Write) -> None:
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
    source = write(table, id="k", weight="w")
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


def test_resume_in_the_middle(arrow: Any, write: Write) -> None:
    count = 5000
    source = write(arrow.table({"a": range(count), "y": [i % 2 for i in range(count)]}))
    records = list(source.records())
    check_places(records)
    assert [r.event for r in records] == [{"x": {"a": float(i)}, "y": i % 2} for i in range(count)]
    assert records[-1].bytes_read == source.size_bytes
    for start in (0, 1, 999, 1000, 1001, 1500, 2048, 3000, 4999, 5000, 9999):
        tail = list(source.records(start))
        assert [r[:4] for r in tail] == [r[:4] for r in records[start:]]


def test_columns_that_are_no_features(arrow: Any, write: Write) -> None:
    table = arrow.table({"day": [datetime.date(2026, 1, 2)], "l": [[1]], "y": [1.0]})
    fault = r"not read: day \(date32\[day\]\), l \(list<.*the type ignore, or text \(day\)\."
    with pytest.raises(FileError, match=fault):
        write(table)
    source = write(table, types={"day": "text", "l": "ignore"})
    assert events_of(source) == [{"x": {"day": "2026-01-02"}, "y": 1}]


def viewed(arrow: Any, cells: list[Any], seen_as: Any, stored: Any = None) -> Any:
    """Return an array of one type as if it were of another, without a check."""
    return arrow.array(cells, stored).view(seen_as)


def _bytes_as(kind: str, arrow: Any) -> Any:
    return arrow.array([b"ham", b"\xff\xfe", b"sp\xc3\xa4m"], kind)


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "duration": (lambda pa: viewed(pa, [5], pa.duration("s")), "duration[s]) as text"),
    "interval": (
        lambda pa: pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
        "month_day_nano_interval) as text",
    ),
    "zone": (
        lambda pa: viewed(pa, [5], pa.timestamp("us", "Nowhere/At_all")),
        "timestamp[us, tz=Nowhere/At_all]) as text",
    ),
    "offset": (
        lambda pa: viewed(pa, [5], pa.timestamp("us", "+25:00")),
        "timestamp[us, tz=+25:00]) as text",
    ),
    "folder": (
        lambda pa: viewed(pa, [5], pa.timestamp("us", "../zoneinfo")),
        "timestamp[us, tz=../zoneinfo]) as text",
    ),
    "list": (lambda pa: pa.array([["a"]]), "string>) as text"),
    "struct": (lambda pa: pa.array([{"a": 1}]), "struct<a: int64>) as text"),
    "map": (
        lambda pa: pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        "map<string, int64>) as text",
    ),
    "moment as number": (lambda pa: viewed(pa, [5], pa.timestamp("us")), "as number"),
}


@pytest.mark.parametrize("case", REFUSED)
@ipc_only
def test_types_that_are_refused_by_name(arrow: Any, write: Write, case: str) -> None:
    make, fault = REFUSED[case]
    table = arrow.table({"a": [2], "odd": make(arrow), "y": [1]})
    declared = "number" if case.endswith("number") else "text"
    with pytest.raises(FileError) as error:
        write(table, types={"odd": declared})
    assert "Columns of these types are not read: odd (" in str(error.value)
    assert fault in str(error.value)
    ignoring = write(table, types={"odd": "ignore"})
    assert events_of(ignoring) == [{"x": {"a": 2.0}, "y": 1}]


LATE = 2**31 - 1  # days since 1970: in the year 5,881,580


@pytest.mark.parametrize("declared", ["ignore", "text"])
def test_a_cell_outside_of_dates(arrow: Any, write: Write, declared: str) -> None:
    days: list[int | None] = [None if i % 5 == 0 else i for i in range(3000)]
    days[2501] = LATE
    column = viewed(arrow, days, arrow.date32(), arrow.int32())
    table = arrow.table({"a": range(3000), "day": column, "y": [1] * 3000})
    records = list(write(table, types={"day": declared}).records())
    check_places(records)
    assert len(records) == 3000
    faults = [(r.number, r.error) for r in records if r.error is not None]
    if declared == "ignore":
        assert faults == []
        assert all(r.event == {"x": {"a": float(r.number)}, "y": 1} for r in records)
    else:
        assert faults == [(2501, "column day is outside of the years 1 to 9999")]
        first = datetime.date(1970, 1, 1)
        assert [r.event and r.event["x"].get("day") for r in records if r.number != 2501] == [
            None if i % 5 == 0 else str(first + datetime.timedelta(days=i))
            for i in range(3000)
            if i != 2501
        ]


UNFIT: dict[str, tuple[Callable[[Any], Any], list[Any], str]] = {
    "date64": (
        lambda pa: viewed(pa, [0, 2**62, 86_400_000], pa.date64()),
        ["1970-01-01", None, "1970-01-02"],
        "",
    ),
    "moment": (
        lambda pa: viewed(pa, [0, 2**62, -1], pa.timestamp("s", "UTC")),
        ["1970-01-01 00:00:00+00:00", None, "1969-12-31 23:59:59+00:00"],
        "is outside of the years 1 to 9999",
    ),
    "zoned": (  # the last hour of the year 9999 is another year's in Berlin
        lambda pa: viewed(pa, [0, 253_402_300_799, 1], pa.timestamp("s", "Europe/Berlin")),
        ["1970-01-01 01:00:00+01:00", None, "1970-01-01 01:00:01+01:00"],
        "is outside of the years 1 to 9999",
    ),
    "time": (
        lambda pa: viewed(pa, [0, 86_400, 86_399], pa.time32("s"), pa.int32()),
        ["00:00:00", None, "23:59:59"],
        "cannot be read",
    ),
    **{
        kind: (partial(_bytes_as, kind), ["ham", None, "späm"], "is not UTF-8")
        for kind in ("binary", "large_binary", "binary_view")
    },
    "fixed": (
        lambda pa: pa.array([b"ham", b"\xff\xfe\xfd", b"sp\xc3"], pa.binary(3)),
        ["ham", None, None],
        "is not UTF-8",
    ),
    "string": (
        lambda pa: viewed(pa, [b"ham", b"\xff", b"spam"], pa.string()),
        ["ham", None, "spam"],
        "is not UTF-8",
    ),
    "large string": (
        lambda pa: viewed(pa, [b"ham", b"\xff", b"spam"], pa.large_string(), pa.large_binary()),
        ["ham", None, "spam"],
        "is not UTF-8",
    ),
    "string view": (
        lambda pa: pa.array([b"ham", b"\xff", b"spam"], pa.binary_view()).cast(
            pa.string_view(), safe=False
        ),
        ["ham", None, "spam"],
        "is not UTF-8",
    ),
    "dictionary": (
        lambda pa: pa.DictionaryArray.from_arrays(
            [1, 0, 1], viewed(pa, [b"\xff", b"ham"], pa.string())
        ),
        ["ham", None, "ham"],
        "is not UTF-8",
    ),
    "entry": (
        lambda pa: pa.DictionaryArray.from_arrays([1, 7, 0], ["a", "b"], safe=False),
        ["b", None, "a"],
        "cannot be read",
    ),
}


@pytest.mark.parametrize("case", UNFIT)
@pytest.mark.parametrize("role", ["feature", "label"])
@ipc_only
def test_cells_that_are_bad_records(arrow: Any, write: Write, role: str, case: str) -> None:
    make, expected, fault = UNFIT[case]
    table = arrow.table({"odd": make(arrow), "y": ["u", "v", "w"]})
    label = "odd" if role == "label" else "y"
    records = list(write(table, types={"odd": "text"}, label=label).records())
    found = [
        r.event and (r.event["y"] if role == "label" else r.event["x"]["odd"]) for r in records
    ]
    assert found == expected
    for record, value in zip(records, expected, strict=True):
        assert (record.error is None) == (value is not None)
        assert record.error is None or record.error.startswith(f"column odd {fault}")


def test_an_ignored_column_is_not_read_at_all(arrow: Any, tmp_path: Path) -> None:
    table = arrow.table({"a": [1, 2], "odd": ["ham", "spam"], "y": [1, 0]})
    path = tmp_path / "t.parquet"
    parquet = importlib.import_module("pyarrow.parquet")
    parquet.write_table(table, path, use_dictionary=False, compression="none")
    odd = parquet.read_metadata(path).row_group(0).column(1)
    content = bytearray(path.read_bytes())
    content[odd.data_page_offset : odd.data_page_offset + odd.total_compressed_size] = bytes(
        odd.total_compressed_size
    )
    broken = source_of(tmp_path / "b.parquet", bytes(content), label="y")
    with pytest.raises(FileError, match="cannot be read as its format says"):
        list(broken.records())
    ignoring = source_of(tmp_path / "b.parquet", bytes(content), label="y", types={"odd": "ignore"})
    assert [event["x"] for event in events_of(ignoring)] == [{"a": 1.0}, {"a": 2.0}]


WITHOUT_PANDAS = """
import json, sys
class Missing:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] in ("pandas", "pytz"):
            raise ImportError(name)
sys.meta_path.insert(0, Missing())
from hinged_service.ingest.files import FileOptions, open_source
types = {"day": "text", "time": "text", "at": "text", "zoned": "text"}
for path in sys.argv[1:]:
    source = open_source(path, FileOptions(label="y", types=types))
    print(json.dumps([record.event["x"] for record in source.records()]))
"""


def test_moments_to_the_nanosecond_without_pandas(arrow: Any, tmp_path: Path) -> None:
    # 1,752,583,800 s are 2025-07-15 12:50:00 UTC; Berlin is two hours ahead in summer.
    nanos = [1_752_583_800_123_456_789, 1_752_583_800_123_000_000, 1_752_583_800_000_000_000]
    times = [1, 45_000_000_001_000, 86_399_999_999_999]
    table = arrow.table(
        {
            "day": viewed(arrow, [0, -1, 11_016], arrow.date32(), arrow.int32()),
            "time": viewed(arrow, times, arrow.time64("ns")),
            "at": viewed(arrow, nanos, arrow.timestamp("ns")),
            "zoned": viewed(arrow, nanos, arrow.timestamp("ns", "Europe/Berlin")),
            "y": [1, 0, 1],
        }
    )
    types = dict.fromkeys(("day", "time", "at", "zoned"), "text")
    paths = [written(suffix, table, tmp_path, types=types).name for suffix in SUFFIXES]
    expected = [
        {
            "day": "1970-01-01",
            "time": "00:00:00.000000001",
            "at": "2025-07-15 12:50:00.123456789",
            "zoned": "2025-07-15 14:50:00.123456789+02:00",
        },
        {
            "day": "1969-12-31",
            "time": "12:30:00.000001",
            "at": "2025-07-15 12:50:00.123000",
            "zoned": "2025-07-15 14:50:00.123000+02:00",
        },
        {
            "day": "2000-02-29",
            "time": "23:59:59.999999999",
            "at": "2025-07-15 12:50:00",
            "zoned": "2025-07-15 14:50:00+02:00",
        },
    ]
    command = [sys.executable, "-c", WITHOUT_PANDAS, *paths]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert [json.loads(line) for line in output.splitlines()] == [expected] * 3


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "+05:30", "America/New_York"])
def test_moments_are_told_as_python_and_pandas_do(
    arrow: Any, tmp_path: Path, unit: str, zone: str | None
) -> None:
    pandas = pytest.importorskip("pandas")
    cells = [0, 1, -1, 1_000, 999_999, 1_752_583_807]
    column = viewed(arrow, cells, arrow.timestamp(unit, zone))
    source = written(
        "arrow", arrow.table({"at": column, "y": [1] * len(cells)}), tmp_path, types={"at": "text"}
    )
    moments = [pandas.Timestamp(cell, unit=unit, tz="UTC") for cell in cells]
    expected = [str(m.tz_convert(zone) if zone else m.tz_localize(None)) for m in moments]
    assert [event["x"]["at"] for event in events_of(source)] == expected


@pytest.mark.parametrize("width", ["float16", "float32", "float64"])
def test_nan_as_text_is_missing(arrow: Any, write: Write, width: str) -> None:
    cells = arrow.array([1.5, math.nan, None], arrow.float64()).cast(width)
    table = arrow.table({"c": cells, "a": [1, 2, 3], "y": [1, 0, 1]})
    source = write(table, types={"c": "text"})
    assert [event["x"] for event in events_of(source)] == [{"c": "1.5", "a": 1}, {"a": 2}, {"a": 3}]
    for options in ({"types": {"c": "text"}}, {"labels": {"1.5": "high", "NaN": "low"}}):
        first, *others = write(table, label="c", **options).records()
        assert first.event is not None
        assert first.event["y"] in ("1.5", "high")
        assert [r.error for r in others] == ["column c is empty: there is no label"] * 2


@pytest.mark.parametrize("suffix", [*SUFFIXES, None])
def test_the_index_of_a_pandas_table(arrow: Any, tmp_path: Path, suffix: str | None) -> None:
    pandas = pytest.importorskip("pandas")

    def source(frame: Any, **options: Any) -> Source:
        if suffix is not None:
            return written(suffix, arrow.Table.from_pandas(frame), tmp_path, **options)
        path = tmp_path / "pandas.parquet"
        frame.to_parquet(path)
        return open_source(str(path), FileOptions(**{"label": "y"} | options))

    plain = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "y": [1, 0, 5]})
    expected = [{"x": {"a": 1.0}, "y": 1}, {"x": {"a": 2.0}, "y": 0}, {"x": {"a": 3.0}, "y": 5}]
    assert events_of(source(plain)) == expected  # a range is no column
    for index, names in (
        (pandas.Index([7, 3, 4]), "__index_level_0__"),
        (pandas.Index(["u", "v", "w"]), "__index_level_0__"),
        (pandas.Index([7, 3, 4], name="row"), "row"),
        (
            pandas.MultiIndex.from_tuples([(1, "u"), (2, "v"), (2, "w")], names=[None, "z"]),
            "__index_level_0__, z",
        ),
    ):
        read = source(plain.set_index(index))
        assert events_of(read) == expected
        note = "the index of a pandas table, no feature unless it is given a type: "
        assert read.describe().endswith(f"ignoring: {names}; {note}{names}")
    named = plain.set_index(pandas.Index([7, 3, 4], name="row"))
    x = [event["x"] for event in events_of(source(named, types={"row": "number"}))]
    assert x == [{"a": 1.0, "row": 7}, {"a": 2.0, "row": 3}, {"a": 3.0, "row": 4}]
    weighted = events_of(source(named, weight="row"))
    assert weighted == [e | {"w": w} for e, w in zip(expected, (7.0, 3.0, 4.0), strict=True)]
    assert events_of(source(plain.set_index("y"))) == expected  # an index may be the label


@pytest.mark.parametrize(
    "metadata", [b"", b"{", b"[]", b'{"index_columns": 5}', b"\xff", b"[" * 9999]
)
def test_an_index_without_metadata_that_tell_of_it(
    arrow: Any, tmp_path: Path, metadata: bytes
) -> None:
    table = arrow.table({"a": [1.0], "__index_level_0__": [7], "y": [1]})
    table = table.replace_schema_metadata({"pandas": metadata})
    with pytest.raises(FileError, match="Column 2, __index_level_0__, is the row index of a"):
        written("parquet", table, tmp_path)
    ignoring = written("parquet", table, tmp_path, types={"__index_level_0__": "ignore"})
    assert events_of(ignoring) == [{"x": {"a": 1.0}, "y": 1}]
    taking = written("parquet", table, tmp_path, types={"__index_level_0__": "number"})
    assert events_of(taking) == [{"x": {"a": 1.0, "__index_level_0__": 7.0}, "y": 1}]


def test_ids_of_bytes_and_uuids(arrow: Any, tmp_path: Path) -> None:
    name = "12345678-1234-5678-1234-567812345678"
    odd = arrow.array([uuid.UUID(name).bytes], arrow.uuid())
    table = arrow.table({"k": odd, "b": [b"m-1"], "y": [1]})
    types = {"k": "text", "b": "text"}
    (event,) = events_of(written("parquet", table, tmp_path, types=types, id="k"))
    assert event == {"x": {"b": "m-1"}, "y": 1, "id": name}
    (event,) = events_of(written("parquet", table, tmp_path, types=types, id="b"))
    assert event == {"x": {"k": name}, "y": 1, "id": "m-1"}


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize("content", [b"", b"no such thing", b"ARROW1 but not more"])
def test_what_is_no_such_file(arrow: Any, tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(FileError, match="cannot be read as its format says"):
        source_of(tmp_path / name, content, label="y")


def test_streams_come_from_anywhere_and_files_do_not(
    arrow: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = arrow.table({"a": [1, 2], "y": [True, False]})
    content = Path(written("arrows", table, tmp_path).name).read_bytes()
    expected = [{"x": {"a": 1.0}, "y": True}, {"x": {"a": 2.0}, "y": False}]
    packed = source_of(tmp_path / "t.arrows.gz", gzip.compress(content), label="y")
    assert events_of(packed) == expected
    options = FileOptions(format="arrow", label="y")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    assert events_of(open_source("-", options)) == expected
    content = Path(written("arrow", table, tmp_path).name).read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    with pytest.raises(FileError, match="must lie on the disk, uncompressed"):
        open_source("-", options)
    with pytest.raises(FileError, match="must lie on the disk, uncompressed"):
        source_of(tmp_path / "t.arrow.gz", gzip.compress(content), label="y")
    with pytest.raises(FileError, match="is Parquet: it must lie on the disk"):
        open_source("-", FileOptions(format="parquet", label="y"))


def test_a_cut_stream_gives_what_is_whole(arrow: Any, tmp_path: Path) -> None:
    whole = written("arrows", arrow.table({"a": range(5000), "y": [1] * 5000}), tmp_path)
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


def test_a_whole_number_is_one_id_in_every_type(arrow: Any, write: Write) -> None:
    integers = [arrow.int8(), arrow.uint64(), arrow.decimal128(22, 0), arrow.string()]
    floats = [arrow.float32(), arrow.float64(), arrow.decimal128(22, 2), arrow.decimal256(60, 9)]
    texts = ["7", "-2", "123"]
    for kind in (*integers, *floats):
        cells = arrow.array([7, 2, 123]).cast(kind)
        events = events_of(write(arrow.table({"k": cells, "y": [True] * 3}), id="k"))
        assert [event["id"] for event in events] == ["7", "2", "123"], kind
    packed = arrow.array([7.0, -2.0, 123.0]).dictionary_encode()
    for more in ({}, {"types": {"k": "text"}}):
        source = write(arrow.table({"k": packed, "y": [True] * 3}), id="k", **more)
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
    records = list(written("parquet", table, tmp_path, id="k").records())
    ids = [record.event and record.event["id"] for record in records]
    assert ids == [str(int(number)) for number in good] + [None] * len(bad)
    assert [record.number for record in records] == list(range(len(made)))
    for record in records[len(good) :]:
        assert str(record.error).startswith("column k must be ")
