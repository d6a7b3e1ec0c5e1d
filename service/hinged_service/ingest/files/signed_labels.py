"""Labels that are whole numbers; -1, 0 and 1 may stand for false and true."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from hinged_service.ingest.files.cells import as_whole, map_label, named
from hinged_service.ingest.files.options import FileOptions, LabelValue
from hinged_service.ingest.files.record import BadRecord
from hinged_service.wire.faults import abbreviated

__all__ = ["NumericLabels"]

_SIGNS = "-1 or 0 as false, 1 as true"


class NumericLabels:
    """The reading of labels in a file without a header.

    If the model is passed, its labels decide: where they are true and false, -1 and 0 are false
    and 1 is true; elsewhere the label is the whole number, or its text, as the model has it. If
    not, they are -1 and 1, for false and true, if `sample`, the first labels, has nothing else and
    either a -1 or a `"+1"`; otherwise they are whole numbers as they stand. The option `labels`
    overrides all this.
    """

    def __init__(self, sample: Iterable[str], options: FileOptions) -> None:
        self._labels, self._takes = options.labels, options.takes
        self._cached = lru_cache(1024)(self._read)
        texts = set(sample)
        self._signed = bool(texts) and {_whole(text) for text in texts} <= {-1, 1}
        self._signed = self._signed and any(text.startswith(("-", "+")) for text in texts)

    def describe(self) -> str:
        """Describe how labels are read."""
        if self._labels:
            return ", ".join(f"{text} as {label}" for text, label in self._labels.items())
        if self._takes is not None:
            return _SIGNS if _are_bools(self._takes) else "whole numbers, as the model has them"
        return "-1 as false, 1 as true" if self._signed else "whole numbers"

    def read(self, text: str) -> LabelValue:
        """Return a label; a `BadRecord` if it is none."""
        return named("label", self._cached, text)

    def _read(self, text: str) -> LabelValue:
        if self._labels:
            return map_label(self._labels, text)
        whole = as_whole(text)
        if self._takes is not None:
            return _label_of(whole, text, self._takes)
        if not self._signed:
            return whole
        if whole not in (-1, 1):
            raise BadRecord(f"must be -1 or 1 as in the first lines, not {abbreviated(text)}")
        return whole == 1


def _are_bools(takes: Callable[[LabelValue], bool]) -> bool:
    return takes(False) and takes(True)


def _label_of(whole: int, text: str, takes: Callable[[LabelValue], bool]) -> LabelValue:
    """Return the label of the model for a number."""
    if _are_bools(takes):
        if whole not in (-1, 0, 1):
            raise BadRecord(
                f"must be {_SIGNS}, not {abbreviated(text)}: give its meaning with --map"
            )
        return whole == 1
    label = next((label for label in (whole, str(whole), text) if takes(label)), None)
    if label is None:
        raise BadRecord(
            f"must be a label of the model, not {abbreviated(text)}: give its meaning with --map"
        )
    return label


def _whole(text: str) -> int | None:
    try:
        return as_whole(text)
    except BadRecord:
        return None
