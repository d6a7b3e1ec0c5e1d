"""Server-sent events out of the bytes of an answer, in bounded memory. No I/O."""

from __future__ import annotations

from typing import Final, NamedTuple

from hinged_service.client.errors import BadAnswer

__all__ = ["MOST_BYTES", "Message", "Parser"]

MOST_BYTES: Final = 2**25
_BOM: Final = b"\xef\xbb\xbf"


class Message(NamedTuple):
    """A server-sent event: its type and its data."""

    event: str
    data: bytes


class Parser:
    """Parser of bytes, cut anywhere, into messages, by the rules of the HTML standard.

    Ids and reconnection times are left out: they are not used. An event without data is
    none, nor is one that the end of the bytes cuts off.

    Parameters
    ----------
    most_bytes
        Bytes of one event at most.

    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._rest: list[bytes] = []
        self._size = 0
        self._first = True
        self._after_return = False
        self._event = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> list[Message]:
        """Return the messages that end within the next bytes.

        Raises `BadAnswer` if an event is too large.
        """
        if self._after_return and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_return = False
        if chunk.endswith(b"\r"):
            self._after_return = True
        *lines, rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        found: list[Message] = []
        for line in lines:
            self._hold(line)
            message = self._take(b"".join(self._rest))
            self._rest.clear()
            if message is not None:
                found.append(message)
        if rest:
            self._hold(rest)
        return found

    def _hold(self, part: bytes) -> None:
        self._rest.append(part)
        self._size += len(part)
        if self._size > self._most:
            raise BadAnswer(f"An event of the live feed has more than {self._most} bytes.")

    def _take(self, line: bytes) -> Message | None:
        if self._first:
            line = line.removeprefix(_BOM)
            self._first = False
        if not line:
            message = (
                Message(self._event.decode(errors="replace"), b"\n".join(self._data))
                if self._data
                else None
            )
            self._event, self._data, self._size = b"", [], 0
            return message
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value
        else:
            self._size -= len(line)
        return None
