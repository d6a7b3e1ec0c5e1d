"""Bodies of lines sent by hand: in chunks of any shape, read when the test wants to."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable
from typing import Any


def event(n: int, **more: Any) -> dict[str, Any]:
    return {"x": {"a": n % 7 - 3, "b": 1}, "y": n % 3 == 0, **more}


def lines_of(items: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in items)


class Sender:
    """A POST with a chunked body over a socket; the answer is read line by line."""

    def __init__(self, port: int, path: str, media_type: str = "application/x-ndjson") -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self.socket.makefile("rb")
        self._rest = b""
        self._begun = False
        self.status = 0
        head = f"POST {path} HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n"
        self.socket.sendall(f"{head}Content-Type: {media_type}\r\n\r\n".encode())

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self) -> None:
        self.socket.sendall(b"0\r\n\r\n")

    def _chunk(self) -> bytes:
        if not self._begun:
            self._begun = True
            self.status = int(self._file.readline().split()[1])
            head = b""
            while (line := self._file.readline()) not in (b"\r\n", b""):
                head += line.lower()
            if b"content-length:" in head:
                length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
                self._rest += self._file.read(length) + b"\n"
                return b""
        size = int(self._file.readline() or b"0", 16)
        data = self._file.read(size)
        self._file.readline()
        return data

    def line(self) -> Any:
        """Return the next line of the answer, decoded; `None` at its end."""
        while b"\n" not in self._rest:
            data = self._chunk()
            self._rest += data
            if not data and not self._rest:
                return None
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def all(self) -> list[Any]:
        found = []
        while (line := self.line()) is not None:
            found.append(line)
        return found
