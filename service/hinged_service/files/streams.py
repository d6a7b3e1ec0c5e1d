"""Bytes of a file: counted as they lie on the disk, decompressed on the way.

Zstandard comes from Python itself since 3.14 and before that from `backports.zstd`, which is
the same code and the same interface, so one path serves both; the older `zstandard` package
has another interface and stops after the first frame unless told otherwise.
"""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import lzma
import sys
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hinged_service.files.options import Compression
from hinged_service.files.record import FileError

__all__ = ["ByteStream", "open_bytes"]

_BUFFER_BYTES = 2**18


class ByteStream:
    """The content of a file, decompressed, from its beginning.

    Parameters
    ----------
    name
        The path, for messages; `"-"` is standard input.
    compression
        What it is compressed with; not `"auto"`.

    Attributes
    ----------
    reader
        The content.
    counter
        Its `position` is how many bytes of the file itself have been read.

    Raises
    ------
    FileError
        If it cannot be opened. While it is read: if it is cut off or broken; all that
        is whole has been given out by then.

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
                inner = self._open.enter_context(_decompressor(compression)(stream))
            except BaseException:
                self.close()
                raise
            stream = io.BufferedReader(_Steps(name, inner, compression), _BUFFER_BYTES)
        self.reader = stream

    def close(self) -> None:
        """Close what was opened here: not standard input."""
        self._open.close()


def open_bytes(name: str) -> io.BufferedReader:
    """Open a file to read its bytes; a failure becomes a `FileError`."""
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise FileError(f"{name} cannot be opened: {error.strerror or error}.") from None


class _Steps(io.RawIOBase):
    """One `read1` per read: what came before a fault is given out before the fault."""

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
        except (OSError, zlib.error, lzma.LZMAError, _zstd_error()) as error:
            raise FileError(
                f"{self._name} cannot be read further: {str(error).rstrip('.')}. "
                "All whole records before that were read."
            ) from None
        size = len(data)
        buffer[:size] = data
        self.position += size
        return size


def _decompressor(compression: Compression) -> Callable[[Any], Any]:
    if compression == "gz":
        return lambda stream: gzip.GzipFile(fileobj=stream)
    if compression == "bz2":
        return bz2.BZ2File
    if compression == "xz":
        return lzma.LZMAFile
    module = _zstd()
    if module is None:
        raise FileError(
            "Reading .zst needs Python 3.14 or a package: pip install 'hinged[zstd]' "
            "(backports.zstd), or pipe the file through zstd -dc."
        )
    return module.ZstdFile  # type: ignore[no-any-return]


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
