"""The whole past of a stream as the server's append-only file tells it, trims or not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import hinged
from tests.support.plain_fold import Fields, Folded, fold_entry


@dataclass
class Past:
    """The entries of a log from its genesis on, in order."""

    entries: list[tuple[str, Fields]] = field(default_factory=list)

    def fold(self, base: str = "", upto: str | None = None) -> Folded:
        """Fold the entries after the position `base`, up to and with the id `upto`.

        Parameters
        ----------
        base
            `"id.chain"`; the genesis if left out.
        upto
            The last entry id; the end of the log if left out.

        """
        folded = Folded(hinged.Perceptron())
        begun = False
        for entry_id, fields in self.entries:
            if begun:
                fold_entry(folded, entry_id, fields)
            elif not base or f"{entry_id}.{fields['chain']}" == base:
                begun = True
                folded.note(entry_id, fields)
            if entry_id == upto:
                break
        assert begun, "the log never held that base"
        assert upto is None or folded.position == upto, "the log never held that id"
        return folded


def read_past(directory: Path, log: str) -> Past:
    """Return the present life of the stream whose log is the key `log`.

    Parameters
    ----------
    directory
        The server's directory; its append-only file was never rewritten.
    log
        The key.

    """
    past = Past()
    for command in _commands(directory):
        name = command[0].upper()
        if (name in ("DEL", "UNLINK") and log in command[1:]) or name in ("FLUSHALL", "FLUSHDB"):
            past.entries.clear()
        elif name == "XADD" and command[1] == log:
            at = 3 if command[2].upper() == "NOMKSTREAM" else 2
            words = command[at + 1 :]
            fields = dict(zip(words[::2], words[1::2], strict=True))
            if "genesis" in fields:
                assert not past.entries, "a second genesis in one life"
                uid = fields["genesis"].encode()
                assert fields["chain"] == hashlib.sha1(uid).hexdigest()
            past.entries.append((command[at], fields))
    return past


def _commands(directory: Path) -> Iterator[list[str]]:
    """Yield the complete transactions of the append-only file, in order."""
    data = b"".join(
        path.read_bytes() for path in sorted((directory / "appendonlydir").glob("*.incr.aof"))
    )
    at, waiting, inside = 0, list[list[str]](), False
    while (parsed := _command(data, at)) is not None:
        at, command = parsed
        name = command[0].upper()
        if name == "MULTI":
            inside = True
        elif name == "EXEC":
            inside = False
            yield from waiting
            waiting = []
        elif inside:
            waiting.append(command)
        else:
            yield command


def _command(data: bytes, at: int) -> tuple[int, list[str]] | None:
    head = _line(data, at)
    if head is None:
        return None
    at, text = head
    words: list[str] = []
    for _ in range(int(text[1:])):
        size = _line(data, at)
        if size is None:
            return None
        at, length = size[0], int(size[1][1:])
        if at + length + 2 > len(data):
            return None
        words.append(data[at : at + length].decode("utf-8", "surrogateescape"))
        at += length + 2
    return at, words


def _line(data: bytes, at: int) -> tuple[int, bytes] | None:
    end = data.find(b"\r\n", at)
    return None if end < 0 else (end + 2, data[at:end])
