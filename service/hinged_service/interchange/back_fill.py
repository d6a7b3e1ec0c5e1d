"""Back-fill: copies of one learner learn parts of a past in parallel and are mixed after each pass.

Iterative parameter mixing (McDonald et al. 2010). A part is a file; an engine learns the parts of
a pass side by side, and the mixture is the start of the next pass.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import hinged
from hinged_service.ingest.files import FileError, FileOptions, open_source, open_sources
from hinged_service.ingest.files.options import Kind, LabelValue
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState

__all__ = ["MIXED", "BackFill", "Part", "Spread", "Total", "back_fill"]

MIXED = ("perceptron", "passive_aggressive", "linear_unit")
"""The learners that can be mixed and go on in the service."""


class Part(NamedTuple):
    """The outcome of one part in one pass.

    Attributes
    ----------
    path
        Its file.
    learner
        The learner after it.
    bad
        Records that are no events of the model, which were passed over.
    why
        The reason for the first of them; empty if there is none.
    fault
        Why the file could not be read to its end; empty if it could.

    """

    path: str
    learner: hinged.BinaryLinearClassifier
    bad: int
    why: str
    fault: str


Spread = Callable[[Callable[[str], Part], Sequence[str]], Iterator[Part]]
"""Apply a function to each path, wherever an engine does it; yield the results as they come."""


@dataclass
class Total:
    """Counts of one pass over all parts: the last one's rate the mixture."""

    events: int = 0
    mistakes: int = 0
    bad: int = 0
    why: str = ""


@dataclass(frozen=True)
class BackFill:
    """A past to be learned: its files, how to read them, and the model that begins with it.

    Attributes
    ----------
    paths
        The parts; each worker must be able to open them.
    options
        How they are read.
    spec
        The model; its learner is one of `MIXED`.
    passes
        Passes over the parts, at least 1.

    """

    paths: Sequence[str]
    options: FileOptions
    spec: ModelSpec
    passes: int


def back_fill(
    past: BackFill, spread: Spread, on_part: Callable[[int, Part], None]
) -> tuple[hinged.BinaryLinearClassifier, Total]:
    """Learn a past, pass by pass.

    Parameters
    ----------
    past
        The past.
    spread
        The engine.
    on_part
        Called with the number of the pass, from 0, and each part that is done.

    Returns
    -------
    The mixture, and the counts of the last pass.

    Raises
    ------
    FileError
        A file cannot be read, or the files differ in the type of a column.

    """
    kinds: dict[str, Kind] = {}
    for source in open_sources(past.paths, past.options):  # all of them, before any is learned
        kinds |= {column: kind for column, kind in source.guesses().items() if kind is not None}
    declared = past.options.types
    kinds = {c: k for c, k in kinds.items() if c not in (past.options.label, past.options.weight)}
    options = replace(past.options, types={**kinds, **declared}, elsewhere=True)
    learner = ModelState(past.spec).learner
    assert isinstance(learner, hinged.BinaryLinearClassifier)  # noqa: S101 - as all of MIXED are
    total = Total()
    for number in range(past.passes):
        learn = functools.partial(_learned, options, past.spec, learner)
        done: dict[str, Part] = {}
        total = Total()
        for part in spread(learn, past.paths):
            if part.fault:
                raise FileError(part.fault)
            done[part.path] = part
            total.events += part.learner.accounting.events
            total.mistakes += part.learner.accounting.mistakes
            total.bad += part.bad
            total.why = total.why or part.why
            on_part(number, part)
        # in the order of the files, so that the sums do not depend on which comes first
        learner = hinged.mix([done[path].learner for path in past.paths])
    return learner, total


def _learned(
    options: FileOptions, spec: ModelSpec, start: hinged.BinaryLinearClassifier, path: str
) -> Part:
    """Learn one part with a copy of a learner."""
    answers = ModelState(spec).answers
    learner = start.clone(include_attributes=True)
    bad, why = 0, ""

    def takes(y: LabelValue) -> bool:
        return answers.target(y) is not None

    def refuse(number: int, reason: str) -> None:
        nonlocal bad, why
        bad += 1
        why = why or f"{path}, record {number + 1}: {reason}"

    try:
        for record in open_source(path, replace(options, takes=takes)).records():
            event = record.event
            if event is None:
                refuse(record.number, record.error or "no event")
            elif "x" not in event:
                refuse(record.number, "x is missing")
            elif (y := answers.target(event.get("y"))) is None:
                refuse(record.number, f"y {answers.expected()}")
            else:
                try:
                    learner.learn_one(event["x"], y, event.get("w", 1.0))
                except hinged.InvalidEvent as fault:
                    refuse(record.number, f"{fault.field} {fault.reason}")
    except FileError as error:
        return Part(path, learner, bad, why, str(error))
    return Part(path, learner, bad, why, "")
