"""200 MB through each reader in constant memory."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path

import pytest

from hinged_service.ingest.files import FileOptions, open_source

MEGABYTES = 200
BLOCK = 2**20


def member(line: bytes) -> bytes:
    return gzip.compress(line * (BLOCK // len(line)), 1)


NOTE = b"n" * 20_000
STREAMS = {
    # A long cell, line or comment each: the time goes into bytes, not into records.
    "a.csv.gz": (b"t,a,y\n", b"%b,1.5,1\n" % NOTE),
    "a.ndjson.gz": (b"", b'{"x":{"t":"%b"},"y":true}\n' % NOTE),
    "a.libsvm.gz": (b"", b"1 1:1 # %b\n" % NOTE),
    "a.vw.gz": (b"", b"1 |n a %b\n" % b" ".join(b"w%0240d" % i for i in range(80))),
}


def peak_mib(path: Path, options: FileOptions) -> tuple[float, int]:
    """Return the peak of memory while reading, in MiB, and the number of records."""
    tracemalloc.start()
    try:
        count = sum(1 for _ in open_source(str(path), options).records())
        return tracemalloc.get_traced_memory()[1] / 2**20, count
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", STREAMS)
def test_many_lines(tmp_path: Path, name: str) -> None:
    header, line = STREAMS[name]
    path = tmp_path / name
    path.write_bytes(gzip.compress(header) + member(line) * MEGABYTES)
    options = FileOptions(label="y" if header else None)
    peak, count = peak_mib(path, options)
    assert count == MEGABYTES * (BLOCK // len(line))
    assert peak < 24  # the sample of 4 MiB, as lines and as cells


@pytest.mark.parametrize("name", ["a.csv.gz", "a.csv.gz open quote", "a.ndjson.gz", "a.vw.gz"])
def test_one_line(tmp_path: Path, name: str) -> None:
    name, _, quote = name.partition(" ")
    path = tmp_path / name
    header = b't,y\n"' if quote else b"t,y\n" if "csv" in name else b""
    path.write_bytes(gzip.compress(header) + gzip.compress(b"x" * BLOCK, 1) * MEGABYTES)
    peak, count = peak_mib(path, FileOptions(label="y" if header else None))
    assert count == 1
    assert peak < 40  # a line of 8 MiB, once as it grows and once whole
