"""Several files of one command: a column is of one type in all of them."""

from __future__ import annotations

import importlib
import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hinged_service.ingest.files import FileError, FileOptions, Source, open_sources
from tests.ingest.files.reading import events_of, faults_of


def files(folder: Path, contents: dict[str, str], **options: Any) -> list[Source]:
    """Write files and open them together."""
    for name, content in contents.items():
        (folder / name).write_text(content)
    paths = [str(folder / name) for name in contents]
    return open_sources(paths, FileOptions(label="y", **options))


NUMBERS = "zip,y\n10,1\n11,0\n"
TEXTS = "zip,y\n10,1\n12A,0\n"


@pytest.mark.parametrize("names", [("a.csv", "b.csv"), ("b.csv", "a.csv"), ("a.csv", "b.tsv")])
def test_a_column_of_two_types_is_refused_with_what_to_give(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    texts = {"a": NUMBERS, "b": TEXTS}
    contents = {
        name: texts[name[0]].replace(",", "\t" if name.endswith("tsv") else ",") for name in names
    }
    with pytest.raises(FileError, match=r"Say what it is: --type zip=text;") as error:
        files(tmp_path, contents)
    assert f"number in {tmp_path / 'a.csv'}" in str(error.value)
    assert f"text in {tmp_path / names[names[0] == 'a.csv']}" in str(error.value)
    sources = files(tmp_path, contents, types={"zip": "text"})
    found = [event["x"]["zip"] for source in sources for event in events_of(source)]
    assert sorted(found) == ["10", "10", "11", "12A"]
    first, second = files(tmp_path, contents, types={"zip": "number"})
    bad = second if names[0] == "a.csv" else first
    assert faults_of(bad) == [(3, "column zip must be a number, not '12A'")]


def test_every_such_column_is_named_and_every_file_counts(tmp_path: Path) -> None:
    contents = {
        "a.csv": "my zip,b,only a,y\n1,true,z,1\n",
        "b.csv": "my zip,y\n2,1\n",
        "c.csv": "b,my zip,y\nno,x,1\n",
    }
    with pytest.raises(FileError, match=r"b is bool in .*a\.csv and text in .*c\.csv") as error:
        files(tmp_path, contents)
    assert "--type 'my zip=text'" in str(error.value)
    assert "--type b=text" in str(error.value)
    assert "only a" not in str(error.value)


def test_true_and_numbers_are_the_same_feature(tmp_path: Path) -> None:
    sources = files(tmp_path, {"a.csv": "a,y\ntrue,1\n", "b.csv": "a,y\n1,1\n"})
    assert [events_of(source) for source in sources] == [[{"x": {"a": 1.0}, "y": 1}]] * 2


def test_a_table_with_types_of_its_own_counts_too(tmp_path: Path) -> None:
    pyarrow: Any = pytest.importorskip("pyarrow")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"zip": ["10", "12A"], "y": [1, 0]}), path)
    (tmp_path / "b.csv").write_text(NUMBERS)
    paths = [str(path), str(tmp_path / "b.csv")]
    with pytest.raises(FileError, match="--type zip=text"):
        open_sources(paths, FileOptions(label="y"))
    sources = open_sources(paths, FileOptions(label="y", types={"zip": "text"}))
    found = [event["x"]["zip"] for source in sources for event in events_of(source)]
    assert found == ["10", "12A", "10", "11"]
    parquet.write_table(pyarrow.table({"zip": pyarrow.nulls(1), "y": [1]}), path)
    (tmp_path / "b.csv").write_text(TEXTS)
    assert events_of(open_sources(paths, FileOptions(label="y"))[0]) == [{"x": {}, "y": 1}]


def test_columns_of_one_file_only_may_be_told(tmp_path: Path) -> None:
    contents = {"a.csv": "a,y\n1,1\n", "b.csv": "a,b,y\n2,3,0\n"}
    first, second = files(tmp_path, contents)
    assert (events_of(first)[0]["x"], events_of(second)[0]["x"]) == ({"a": 1}, {"a": 2, "b": 3})
    first, second = files(tmp_path, contents, types={"b": "text"})
    assert events_of(second)[0]["x"] == {"a": 2.0, "b": "3"}
    with pytest.raises(FileError, match=r"no column 'c', 'd' in any of the files"):
        files(tmp_path, contents, types={"c": "text", "d": "ignore"})
    with pytest.raises(FileError, match=r"no column 'c'; the columns are: a, y"):
        files(tmp_path, {"a.csv": "a,y\n1,1\n"}, types={"c": "text"})


def test_a_column_that_is_empty_at_first_is_as_elsewhere(tmp_path: Path) -> None:
    contents = {"a.csv": "t,y\n,1\n,0\n10,1\nz,1\n", "b.csv": "t,y\nx,1\n"}
    first, _ = files(tmp_path, contents, sample_rows=2)
    assert [event["x"] for event in events_of(first)] == [{}, {}, {"t": "10"}, {"t": "z"}]
    first, _ = files(tmp_path, contents | {"b.csv": "t,y\n5,1\n"}, sample_rows=2)
    assert faults_of(first) == [(5, "column t must be a number, not 'z'")]


def test_standard_input_counts_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_text("zip,a,y\n10,,1\n")

    def opened(content: str, **options: Any) -> list[Source]:
        standard = SimpleNamespace(buffer=io.BytesIO(content.encode()))
        monkeypatch.setattr(sys, "stdin", standard)
        return open_sources([str(path), "-"], FileOptions(format="csv", label="y", **options))

    with pytest.raises(FileError, match=r"text in -.*--type zip=text"):
        opened(TEXTS)
    _, standard = opened(TEXTS, types={"zip": "text"})
    assert [event["x"] for event in events_of(standard)] == [{"zip": "10"}, {"zip": "12A"}]
    path.write_text("zip,a,y\n10,p,1\n")
    _, standard = opened("a,y\n,1\n7,1\n", sample_rows=1)
    assert [event["x"] for event in events_of(standard)] == [{}, {"a": "7"}]


def test_what_is_no_such_file_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    good, bad = tmp_path / "a.ndjson", tmp_path / "b.ndjson.gz"
    good.write_text('{"x": {}, "y": true}\n')
    bad.write_text('{"x": {}, "y": true}\n')
    for paths in ([bad], [good, bad]):
        with pytest.raises(FileError, match=r"b\.ndjson\.gz cannot be read further"):
            open_sources([str(path) for path in paths], FileOptions())
    (source,) = open_sources([str(good)], FileOptions())
    assert events_of(source) == [{"x": {}, "y": True}]
