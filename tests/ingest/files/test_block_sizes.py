"""The JSON of a block is bounded: a table names its columns once, each event all of them."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from hinged_service.ingest.files import FileOptions, Source, open_source

ROWS = 300
MOST = 2**20 + 2**18
NAMES = [f"{number:0250}" for number in range(200)]


def csv(path: Path, cell: str) -> Source:
    row = ",".join([cell] * len(NAMES))
    rows = [f"{row},{str(n % 2 == 0).lower()}" for n in range(ROWS)]
    path.write_text("\n".join([",".join([*NAMES, "y"]), *rows]))
    return open_source(str(path), FileOptions(label="y"))


def parquet(path: Path, value: object, names: list[str]) -> Source:
    arrow = pytest.importorskip("pyarrow")
    columns = {name: [value] * ROWS for name in names} | {"y": [n % 2 == 0 for n in range(ROWS)]}
    importlib.import_module("pyarrow.parquet").write_table(arrow.table(columns), path)
    return open_source(str(path), FileOptions(label="y"))


@pytest.mark.parametrize("kind", ["numbers", "texts", "parquet", "one wide text"])
def test_blocks_of_wide_tables_are_bounded_by_the_bytes_of_their_events(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "wide"
    if kind == "numbers":
        source = csv(path.with_suffix(".csv"), "1")
    elif kind == "texts":
        source = csv(path.with_suffix(".csv"), "word")
    elif kind == "parquet":
        source = parquet(path.with_suffix(".parquet"), 1.0, NAMES)
    else:  # it is stored once in the file
        source = parquet(path.with_suffix(".parquet"), "word " * 10_000, ["t"])
    sizes = []
    for block in source.blocks():
        events = [record.event for record in block.records()]
        assert None not in events
        sizes.append((len(events), len(json.dumps(events))))
    assert sum(count for count, _ in sizes) == ROWS
    assert max(size for _, size in sizes) <= MOST
    assert max(count for count, _ in sizes) >= 10
