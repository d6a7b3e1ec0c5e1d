"""Any bytes as lines: the same however they are cut, from a request or from a file."""

from __future__ import annotations

import asyncio
import bz2
import gzip
import importlib
import io
import itertools
import json
import lzma
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pyarrow  # type: ignore[import-untyped]
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import parquet

from hinged_service.api.ndjson.reader import LineReader, event_parser
from hinged_service.errors import Malformed, ServiceError
from hinged_service.ingest.files import FileError, FileOptions, Record, open_source
from tests.fuzz.budget import tries
from tests.fuzz.damage import damaged_bytes

LINES = [
    b'{"x":{"a":1,"b":-2.5},"y":true,"id":"e1"}\n',
    b'{"x":{"a":0},"y":false}\r\n\r\n  {"x":{"a":3e2},"y":true,"w":0.5}',
    b'\n\n[{"x":{},"y":true}]\n{"id":"p1","y":true}\nnull\n',
    "\xef\xbb\xbf{}\n".encode("latin-1"),
    '{"x":{"é":1},"y":true}\n'.encode(),
    b"x" * 1100 + b"\n",
]
MAX_LINE_BYTES = 1024
BODIES = damaged_bytes(LINES)
MARKS = re.compile(rb"^(?:[ \t\r\n]*\xef\xbb\xbf)+")


def cut(body: bytes, places: list[int]) -> list[bytes]:
    """Return a body in pieces; some may be empty."""
    bounds = sorted({0, len(body), *(place % (len(body) + 1) for place in places)})
    return [body[a:b] for a, b in itertools.pairwise(bounds)] or [b""]


def read(chunks: list[bytes], gathered: bool = False) -> list[tuple[int, Any]]:
    """Return what each line is, by number: the event, or what is wrong with it."""

    async def reading() -> list[tuple[int, Any]]:
        waiting = list(chunks)

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(0)
            body = waiting.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(waiting)}

        parser = event_parser(mixed=False, gathered=gathered)
        reader = LineReader(receive, parser, MAX_LINE_BYTES)
        found: list[tuple[int, Any]] = []
        end = 0
        while (batch := await reader.next()) is not None:
            assert batch.start == end
            assert len(batch.lines) == batch.end - batch.start
            end = batch.end
            for number, text, item in zip(batch.numbers, batch.texts, batch.items, strict=True):
                assert batch.lines[number - batch.start - 1] is not None
                found.append((number, (text, msgspec.structs.astuple(item))))
            found += [(number, (type(e), e.detail)) for number, e in batch.faults.items()]
        reader.close()
        return sorted(found, key=lambda pair: pair[0])

    return asyncio.run(reading())


@given(body=BODIES, places=st.lists(st.integers(0, 5_000), max_size=12))
@example(body=b'\xef\xbb\xbf{"x":{},"y":true}\r\n' * 3, places=list(range(70)))
@example(body=b'\xef\xbb\xbf{"x":{"a":"","a":1},"y":true}\r\n' * 3, places=list(range(70)))
@example(body='{"x":{},"y":true}\n'.encode("utf-16") * 2, places=list(range(70)))
@tries(150)
def test_lines_are_the_same_however_a_body_is_cut(body: bytes, places: list[int]) -> None:
    try:
        whole = read([body])
    except Malformed:  # UTF-16 or UTF-32
        assert not body.startswith((b"{", b"[")) or body[1] == 0
        return
    assert read(cut(body, places)) == whole == read([body], gathered=True)
    # numbered by a reader that splits at line feeds alone
    lines = body.split(b"\n")
    for number, (text, _) in whole:
        assert 1 <= number <= len(lines)
        line = lines[number - 1]
        if isinstance(text, bytes):
            bare = MARKS.sub(b"", line).strip()
            # names that stand twice are cleared up if one of their values does not fit
            assert text == bare or json.loads(text) == json.loads(bare)
            assert len(line) <= MAX_LINE_BYTES
        else:
            assert issubclass(text, ServiceError)
    read_lines = {number for number, _ in whole}
    for number, line in enumerate(lines, 1):
        assert number in read_lines or not MARKS.sub(b"", line).strip()


def zstd_compress(data: bytes) -> bytes:
    """Return a Zstandard frame."""
    zstd = importlib.import_module(
        "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    )
    packed: bytes = zstd.compress(data)
    return packed


SUFFIXES = [
    *("a.csv", "a.tsv", "a.ndjson", "a.libsvm", "a.vw", "a.parquet", "a.arrow"),
    *("a.csv.gz", "a.ndjson.zst", "a.vw.bz2", "a.libsvm.xz"),
]
FILES = [
    b'a,b,y\n1,x,true\n-2.5,"q,\n""r",false\n,,true\n',
    b"a\ty\n1\tham\n\n2\tspam\n",
    b"+1 1:0.5 3:2e3 # why\n-1 2:-1\n",
    b"1 0.5 'e1|words a:1 b c|n:2 d\n-1 |words x\n",
    b"PAR1\x00\x00PAR1",
    b"ARROW1\x00\x00",
    b"\x1f\x8b\x08\x00",
    b"(\xb5/\xfd",
    *LINES[:4],
]


def whole(name: str) -> list[bytes]:
    """Return good files of that kind."""
    table = pyarrow.table({"a": [1.0, None, -0.5], "b": ["x", "y", None], "y": [True, False, True]})
    out = io.BytesIO()
    if name.endswith(".parquet"):
        parquet.write_table(table, out)
        return [out.getvalue()]
    if name.endswith(".arrow"):
        with pyarrow.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
        return [out.getvalue()]
    pack: dict[str, Any] = {
        ".gz": gzip.compress,
        ".bz2": bz2.compress,
        ".xz": lzma.compress,
        ".zst": zstd_compress,
    }
    return [pack[Path(name).suffix](file) for file in FILES] if name.count(".") == 2 else FILES


def records_of(name: str, content: bytes, start: int = 0) -> tuple[list[Record], bool]:
    """Return the records of a file, and whether it ended with a fault."""
    found: list[Record] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        table = any(part in name for part in (".csv", ".tsv", ".parquet", ".arrow"))
        try:
            options = FileOptions(label="y" if table else None)
            found.extend(open_source(str(path), options).records(start))
        except FileError:
            return found, True
    return found, False


@pytest.mark.parametrize("name", SUFFIXES)
def test_a_file_of_any_bytes_is_records_or_ends_with_a_reason(name: str) -> None:
    @given(content=damaged_bytes(whole(name)), start=st.integers(0, 3))
    @tries(40)
    def try_out(content: bytes, start: int) -> None:
        found, broken = records_of(name, content)
        assert [record.number for record in found] == list(range(len(found)))
        for record in found:
            assert (record.event is None) != (record.error is None)
            if record.event is None:
                assert record.error
            else:
                json.dumps(record.event, allow_nan=False).encode()
        again, broken_again = records_of(name, content, start)
        assert again == found[start:]
        # of Parquet nothing is read that lies before the start
        assert broken_again == broken or (name.endswith(".parquet") and not again)

    try_out()
