"""Compressed files: whole, in several members, cut off, broken."""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hinged_service.ingest.files import FileError
from tests.ingest.files.reading import events_of, source_of, until_fault

LINES = [b'{"x":{"a":%d},"y":true}\n' % (i * 7919 % 10007) for i in range(5000)]
CONTENT = b"".join(LINES)


def zstd(content: bytes) -> bytes:
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    module: Any = pytest.importorskip(name)
    checked = {module.CompressionParameter.checksum_flag: 1}  # as the zstd command does
    compressed: bytes = module.compress(content, options=checked)
    return compressed


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd,
}
each = pytest.mark.parametrize("suffix", COMPRESS)


def values(events: list[dict[str, Any]]) -> list[int]:
    return [event["x"]["a"] for event in events]


EXPECTED = [i * 7919 % 10007 for i in range(5000)]


@each
def test_whole_and_in_several_members(tmp_path: Path, suffix: str) -> None:
    compress = COMPRESS[suffix]
    path = tmp_path / f"a.ndjson.{suffix}"
    source = source_of(path, compress(CONTENT))
    assert values(events_of(source)) == EXPECTED
    assert list(source.records())[-1].bytes_read == source.size_bytes == path.stat().st_size
    members = [compress(CONTENT[i : i + 9999]) for i in range(0, len(CONTENT), 9999)]
    assert values(events_of(source_of(path, b"".join(members)))) == EXPECTED


FIRST, SECOND = b"".join(LINES[:3000]), b"".join(LINES[3000:])


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz"])
@pytest.mark.parametrize("zeros", [4, 8, 512, 300_000])
def test_zero_bytes_between_streams_and_behind_the_last(
    tmp_path: Path, suffix: str, zeros: int
) -> None:
    compress, padding = COMPRESS[suffix], bytes(zeros)
    content = compress(FIRST) + padding + compress(b"") + compress(SECOND) + padding
    source = source_of(tmp_path / f"a.ndjson.{suffix}", content)
    assert values(events_of(source)) == EXPECTED


@pytest.mark.parametrize(
    ("suffix", "between"),
    [
        ("xz", bytes(3)),  # padding of xz comes in multiples of four
        ("xz", bytes(513)),
        ("zst", bytes(4)),  # Zstandard has none
        *[(suffix, b"no such data") for suffix in COMPRESS],
        *[(suffix, b"\n") for suffix in COMPRESS],
        *[(suffix, bytes(8) + b"no such data") for suffix in COMPRESS],
    ],
)
@pytest.mark.parametrize("second", [SECOND, None])
def test_what_is_no_stream_behind_one(
    tmp_path: Path, suffix: str, between: bytes, second: bytes | None
) -> None:
    compress = COMPRESS[suffix]
    content = compress(FIRST) + between + (b"" if second is None else compress(second))
    records, fault = until_fault(source_of(tmp_path / f"a.ndjson.{suffix}", content))
    assert [r.event and r.event["x"]["a"] for r in records] == EXPECTED[:3000]
    assert "cannot be read further" in fault or "is cut off" in fault


@each
def test_damage_in_a_later_stream(tmp_path: Path, suffix: str) -> None:
    first, second = COMPRESS[suffix](FIRST), COMPRESS[suffix](SECOND)
    for at in (0, 1, 2, len(second) // 2, len(second) - 5):
        broken = bytearray(second)
        broken[at] ^= 0xFF
        source = source_of(tmp_path / f"a.ndjson.{suffix}", first + broken + first)
        records, fault = until_fault(source)
        assert [r.event and r.event["x"]["a"] for r in records] == EXPECTED[: len(records)]
        assert len(records) >= 3000
        assert "cannot be read further" in fault or "is cut off" in fault


@each
def test_cut_at_any_byte(tmp_path: Path, suffix: str) -> None:
    first, second = (COMPRESS[suffix](b"".join(LINES[i : i + 9])) for i in (0, 9))
    path = tmp_path / f"a.ndjson.{suffix}"
    for size in range(len(first + second)):
        source = source_of(path, (first + second)[:size])
        if size == len(first):
            assert values(events_of(source)) == EXPECTED[:9]
        else:
            records, fault = until_fault(source)
            assert [r.event and r.event["x"]["a"] for r in records] == EXPECTED[: len(records)]
            assert len(records) >= (9 if size > len(first) else 0)
            assert fault.startswith(f"{path} is cut off: its {suffix} data end in the middle"), size


def test_frames_of_zstandard_that_are_to_be_skipped(tmp_path: Path) -> None:
    skipped = b"\x50\x2a\x4d\x18\x05\x00\x00\x00hello"  # RFC 8878, 3.1.2
    path = tmp_path / "a.ndjson.zst"
    content = skipped + zstd(FIRST) + skipped + skipped + zstd(SECOND) + skipped
    assert values(events_of(source_of(path, content))) == EXPECTED
    records, fault = until_fault(source_of(path, content[:-2]))
    assert len(records) == 5000
    assert "is cut off" in fault


@each
@pytest.mark.parametrize("kind", ["plain", "quoted"])
def test_all_whole_rows_of_a_table_come_before_its_cut(
    tmp_path: Path, suffix: str, kind: str
) -> None:
    compress = COMPRESS[suffix]
    rows = [b"%d,%d,1\n" % (i, i * 7919 % 10007) for i in range(5000)]
    rows[10] = rows[10] if kind == "plain" else b'10,"%d",1\n' % (10 * 7919 % 10007)
    whole, cut = compress(b"a,b,y\n" + b"".join(rows[:3000])), compress(b"".join(rows[3000:]))
    source = source_of(tmp_path / f"a.csv.{suffix}", whole + cut[:-1], label="y")
    records, fault = until_fault(source)
    found = [record.event["x"]["b"] if record.event else None for record in records]
    assert found == EXPECTED[: len(records)]
    assert len(records) >= 3000
    assert "is cut off" in fault


def test_a_cut_line_is_not_learned(tmp_path: Path) -> None:
    content = gzip.compress(b"1 1:0.5\n1 1:0.55\n", compresslevel=0)
    # Stored, not packed: ten bytes of header, five of the block's; the checksum is eight.
    cut = content[: 10 + 5 + len(b"1 1:0.5\n1 1:0.5")]
    assert len(events_of(source_of(tmp_path / "a.libsvm.gz", content))) == 2
    records, fault = until_fault(source_of(tmp_path / "a.libsvm.gz", cut))
    assert [record.event for record in records] == [{"x": {"1": 0.5}, "y": 1}]
    assert "is cut off" in fault


@each
def test_broken(tmp_path: Path, suffix: str) -> None:
    content = bytearray(COMPRESS[suffix](CONTENT))
    content[len(content) // 2] ^= 0xFF
    source = source_of(tmp_path / f"a.ndjson.{suffix}", bytes(content))
    with pytest.raises(FileError, match=r"cannot be read further|is cut off"):
        list(source.records())


@each
def test_not_compressed_at_all(tmp_path: Path, suffix: str) -> None:
    assert COMPRESS[suffix](CONTENT) != CONTENT  # skips where there is no Zstandard
    source = source_of(tmp_path / f"a.ndjson.{suffix}", CONTENT)
    with pytest.raises(FileError, match="cannot be read further"):
        list(source.records())


def test_without_zstandard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    with pytest.raises(FileError, match=r"pip install 'hinged\[zstd\]'"):
        source_of(tmp_path / "a.ndjson.zst", b"")
