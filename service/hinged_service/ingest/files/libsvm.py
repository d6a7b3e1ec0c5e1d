"""The sparse format of LIBSVM and SVMlight: `label index:value … # comment`."""

from __future__ import annotations

import re
from typing import Any

from hinged_service.ingest.files.byte_stream import ByteStream
from hinged_service.ingest.files.cells import all_numbers, as_number, check_names
from hinged_service.ingest.files.options import FileOptions
from hinged_service.ingest.files.reader import LineReader
from hinged_service.ingest.files.record import BadRecord
from hinged_service.ingest.files.signed_labels import NumericLabels
from hinged_service.wire.faults import abbreviated

__all__ = ["LibSvm"]

_PLAIN = re.compile(r"\s*[^\s:]+(?:\s+[1-9][0-9]{0,17}:[^\s:]+)*\s*")


class LibSvm(LineReader):
    """A line is a label and features that are named by their index.

    The first lines decide how labels are read. Of the options only `labels` matters.
    """

    def __init__(self, stream: ByteStream, options: FileOptions) -> None:
        super().__init__(stream)
        sample = self._lines.peek(options.sample_rows)
        lines = (line for line in sample if line is not None and self.is_record(line))
        firsts = (line.split(None, 1)[0].decode("ascii", "replace") for line in lines)
        self._labels = NumericLabels(firsts, options)

    def describe(self) -> str:
        """Describe how lines are read."""
        return f"reading indices as feature names; labels: {self._labels.describe()}"

    def is_record(self, line: bytes) -> bool:
        """Return whether there is more than white space and a comment."""
        return not line.isspace() and not line.lstrip().startswith(b"#")

    def event(self, line: bytes) -> dict[str, Any]:
        """Return a line as an event."""
        try:
            text = line.partition(b"#")[0].decode("ascii")
        except UnicodeDecodeError:
            raise BadRecord("is not ASCII text") from None
        if _PLAIN.fullmatch(text):
            first, *words = text.replace(":", " ").split()
            numbers = all_numbers(words[1::2])
            if numbers is not None:
                x = dict(zip(words[::2], numbers, strict=True))
                if len(x) == len(numbers):
                    check_names(x)
                    return {"x": x, "y": self._labels.read(first)}
        return self._slowly(text)

    def _slowly(self, text: str) -> dict[str, Any]:
        """Read an unusual line, or raise its fault."""
        first, *pairs = text.split()
        y = self._labels.read(first)
        x: dict[str, float] = {}
        for pair in pairs:
            index, colon, value = pair.partition(":")
            if not (colon and index.isdigit()):
                if index == "qid":
                    raise BadRecord("qid is for ranking, and there are only classifiers here")
                raise BadRecord(f"must be index:value, not {abbreviated(pair)}")
            name = index.lstrip("0") or "0"
            if name in x:
                raise BadRecord(f"feature {abbreviated(name)} appears twice")
            try:
                x[name] = as_number(value)
            except BadRecord as fault:
                raise BadRecord(f"feature {abbreviated(name)} {fault}") from None
        check_names(x)
        return {"x": x, "y": y}
