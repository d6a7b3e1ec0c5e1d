"""Single commands to a server on a unix socket, without a client library."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Final

__all__ = ["call"]

_TIMEOUT_S: Final = 5.0
_CHUNK_BYTES: Final = 65_536


def call(path: Path, command: bytes) -> bytes:
    """Send one command; return its reply, of a bulk string the content.

    Raises
    ------
    OSError
        The server cannot be reached, or does not answer in time.

    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_TIMEOUT_S)
        connection.connect(str(path))
        connection.sendall(command + b"\r\n")
        reply = connection.recv(_CHUNK_BYTES)
        if not reply.startswith(b"$"):
            return reply
        head, _, body = reply.partition(b"\r\n")
        while len(body) < int(head[1:]):
            more = connection.recv(_CHUNK_BYTES)
            if not more:
                raise ConnectionResetError(f"{path}: the answer is cut off")
            body += more
        return body
