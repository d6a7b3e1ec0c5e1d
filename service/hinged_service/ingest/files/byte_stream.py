"""Bytes of a file: counted as they lie on the disk, decompressed on the way.

Zstandard comes from Python itself since 3.14 and before that from `backports.zstd`, which is
the same code and the same interface, so one path serves both; the older `zstandard` package
has another interface and stops after the first frame unless set otherwise.

A file may hold several compressed streams in a row. `bz2.BZ2File` and `lzma.LZMAFile` take
anything behind the first that they cannot read, damage included, for the end of the file, and
`gzip.GzipFile` takes an empty file for a whole one. So the streams are put together here.
"""

from __future__ import annotations

import bz2
import importlib
import io
import lzma
import sys
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hinged_service.ingest.files.options import Compression
from hinged_service.ingest.files.record import FileError

__all__ = ["ByteStream", "open_bytes"]

_BUFFER_BYTES = 2**18


class ByteStream:
    """The content of a file, decompressed, from its beginning.

    A file that cannot be opened raises `FileError`; so does reading one that is cut off or broken,
    after all that is whole has been returned.

    Attributes
    ----------
    reader
        The content.
    counter
        Its `position` is how many bytes of the file itself have been read.
    """

    def __init__(self, name: str, compression: Compression) -> None:
        self._open = ExitStack()
        source: Any = (
            sys.stdin.buffer if name == "-" else self._open.enter_context(open_bytes(name))
        )
        self.counter = _Steps(name, source, compression)
        stream: io.BufferedReader[_Steps] = io.BufferedReader(self.counter, _BUFFER_BYTES)
        if compression != "none":
            try:
                inner = _concatenated(compression, stream)
            except BaseException:
                self.close()
                raise
            stream = io.BufferedReader(_Steps(name, inner, compression), _BUFFER_BYTES)
        self.reader = stream

    def close(self) -> None:
        """Close the opened files, but not standard input."""
        self._open.close()


def open_bytes(name: str) -> io.BufferedReader:
    """Open a file to read its bytes; a failure becomes a `FileError`."""
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise FileError(f"{name} cannot be opened: {error.strerror or error}.") from None


class _Steps(io.RawIOBase):
    """One `read1` per read: bytes before a fault are returned before the fault is raised."""

    def __init__(self, name: str, source: Any, compression: Compression) -> None:
        self._name = name
        self._source = source
        self._compression = compression
        self.position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._source.read1(len(buffer))
        except FileError:
            raise
        except EOFError:
            raise FileError(
                f"{self._name} is cut off: its {self._compression} data end in the middle. "
                "All whole records before that were read; get the file again."
            ) from None
        except (OSError, MemoryError, zlib.error, lzma.LZMAError, _zstd_error()) as error:
            reason = str(error).rstrip(".") or type(error).__name__
            raise FileError(
                f"{self._name} cannot be read further: {reason}. "
                "All whole records before that were read."
            ) from None
        size = len(data)
        buffer[:size] = data
        self.position += size
        return size


class _Concatenated:
    """The content of compressed streams, one after the other, up to the end of the file.

    `begin` returns a decompressor for the next stream. Zero bytes may stand behind a stream, in
    multiples of `padding`; none may if that is 0.
    """

    def __init__(
        self, source: io.BufferedReader[_Steps], begin: Callable[[], Any], padding: int
    ) -> None:
        self._source = source
        self._begin = begin
        self._padding = padding
        self._stream = begin()

    def read1(self, size: int) -> bytes:
        """Return some of the content; nothing at the end of the last stream only."""
        while True:
            packed = b""
            if self._stream.eof:
                packed = self._behind(self._stream.unused_data)
                if not packed:
                    return b""
                self._stream = self._begin()
            elif self._stream.needs_input:
                packed = self._source.read1(io.DEFAULT_BUFFER_SIZE)
                if not packed:
                    raise EOFError
            data: bytes = self._stream.decompress(packed, size)
            if data:
                return data

    def _behind(self, rest: bytes) -> bytes:
        """Return the beginning of the next stream; nothing if there is none."""
        zeros = 0
        while True:
            rest = rest or self._source.read1(io.DEFAULT_BUFFER_SIZE)
            begun = rest.lstrip(b"\0") if self._padding else rest
            zeros += len(rest) - len(begun)
            if begun or not rest:
                break
            rest = b""
        if zeros and zeros % self._padding:
            raise OSError(f"{zeros} zero bytes behind a stream are no multiple of {self._padding}")
        return begun


class _Gunzip:
    """A member of a gzip file, with the interface that the other decompressors have."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail

    def decompress(self, data: bytes, size: int) -> bytes:
        return self._inner.decompress(self._inner.unconsumed_tail + data, size)


def _concatenated(compression: Compression, source: io.BufferedReader[_Steps]) -> _Concatenated:
    if compression == "gz":
        return _Concatenated(source, _Gunzip, padding=1)
    if compression == "bz2":
        return _Concatenated(source, bz2.BZ2Decompressor, padding=1)
    if compression == "xz":
        return _Concatenated(source, lzma.LZMADecompressor, padding=4)
    module = _zstd()
    if module is None:
        raise FileError(
            "Reading .zst needs Python 3.14 or a package: pip install 'hinged[zstd]' "
            "(backports.zstd), or pipe the file through zstd -dc."
        )
    return _Concatenated(source, module.ZstdDecompressor, padding=0)


def _zstd() -> Any | None:
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def _zstd_error() -> type[Exception]:
    module = sys.modules.get("compression.zstd") or sys.modules.get("backports.zstd")
    return EOFError if module is None else module.ZstdError
