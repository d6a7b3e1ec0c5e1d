"""Vowpal Wabbit's text: `label importance tag|namespace feature:value …`.

Read as Vowpal Wabbit reads it
(https://github.com/VowpalWabbit/vowpal_wabbit/wiki/Input-format): a word that touches the
first bar, or begins with an apostrophe, is the tag; a namespace's weight multiplies its
features; a feature that comes twice adds up; names are `namespace^feature`, as its audit
prints them.
"""

from __future__ import annotations

from typing import Any

from hinged_service.ingest.files.byte_stream import ByteStream
from hinged_service.ingest.files.cells import as_number, as_weight, check_names, event_id, named
from hinged_service.ingest.files.options import FileOptions
from hinged_service.ingest.files.reader import LineReader
from hinged_service.ingest.files.record import BadRecord
from hinged_service.ingest.files.signed_labels import NumericLabels
from hinged_service.wire.faults import abbreviated

__all__ = ["VowpalWabbit"]


class VowpalWabbit(LineReader):
    """A line is a simple label and features in namespaces; without a label it is passed over.

    The first lines decide how labels are read. Of the options `labels` matters, and `id` if it is
    `"tag"`.
    """

    def __init__(self, stream: ByteStream, options: FileOptions) -> None:
        super().__init__(stream)
        sample = self._lines.peek(options.sample_rows)
        lines = (line for line in sample if line is not None and not line.isspace())
        heads = (_words(line)[0] for line in lines)
        firsts = (words[0].decode("ascii", "replace") for words in heads if words)
        self._labels = NumericLabels(firsts, options)
        self._with_id = options.id is not None

    def describe(self) -> str:
        """Describe how lines are read."""
        return (
            f"reading features as namespace^feature; labels: {self._labels.describe()}; "
            "lines without a label are skipped" + ("; id: the tag" if self._with_id else "")
        )

    def is_record(self, line: bytes) -> bool:
        """Return whether there is a label; count the lines with features only."""
        if line.isspace():
            return False
        if b"|" in line and not _words(line)[0]:
            self.skipped += 1
            return False
        return True

    def event(self, line: bytes) -> dict[str, Any]:
        """Return a line as an event."""
        if b"|" not in line:
            raise BadRecord("has no bar before its features")
        words, tag = _words(line)
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise BadRecord("is not UTF-8") from None
        label, *more = (word.decode() for word in words)
        event: dict[str, Any] = {"x": {}, "y": self._labels.read(label)}
        if more:
            event["w"] = named("importance", as_weight, more[0])
        if len(more) > 1:
            raise BadRecord(f"has {abbreviated(more[1])} before the bar: label and importance only")
        if self._with_id:
            event["id"] = named("tag", event_id, tag.decode())
        for part in text.split("|")[1:]:
            _add_namespace(event["x"], part)
        check_names(event["x"])
        return event


def _words(line: bytes) -> tuple[list[bytes], bytes]:
    """Return the words before the first bar, and the tag."""
    head = line.partition(b"|")[0]
    words = head.split()
    if words and (words[-1].startswith(b"'") or not head[-1:].isspace()) and b"|" in line:
        tag = words.pop()
        return words, tag.removeprefix(b"'")
    return words, b""


def _add_namespace(x: dict[str, float], part: str) -> None:
    part = part.rstrip("\r\n").replace("\t", " ")
    words = [word for word in part.split(" ") if word]
    prefix, scale, word = "", 1.0, ""
    try:
        if words and not part.startswith(" "):
            word = words.pop(0)
            space, scale = _weighted(word)
            prefix = f"{space}^"
        for word in words:
            name, value = _weighted(word)
            name = prefix + name
            if scale != 1.0 or name in x:
                value = as_number(x.get(name, 0.0) + scale * value)
            x[name] = value
    except BadRecord as fault:
        raise BadRecord(f"feature {abbreviated(word)} {fault}") from None


def _weighted(word: str) -> tuple[str, float]:
    name, colon, value = word.partition(":")
    if not name:
        raise BadRecord("has no name before its colon")
    return name, as_number(value) if colon else 1.0
