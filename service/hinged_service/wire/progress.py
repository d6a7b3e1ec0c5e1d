"""Progress of a long call: the reports that its caller gets while it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

import msgspec

from hinged_service.wire.responses import about

__all__ = ["PROGRESS_TYPE", "SIZE_HEADER", "AnswerHead", "OnProgress", "Progress", "no_progress"]

PROGRESS_TYPE: Final = "application/x-ndjson"
"""Media type of an answer that begins with lines of progress."""
SIZE_HEADER: Final = "x-hinged-bytes"
"""Header field of an answer that is made while it is sent: about how many bytes it will have."""


class Progress(msgspec.Struct, frozen=True):
    """Progress of a step of a long call.

    A caller that accepts `application/x-ndjson` gets lines of it while the work runs, if that
    takes longer than 0.2 s. An `AnswerHead` ends them, also if the call fails; the body of the
    ordinary answer follows. If the caller hangs up, the service gives up unfinished work.
    """

    step: Annotated[
        str,
        about(
            "The step: of the service load (the model, if it is not in memory), check (a "
            "document), write (a state to Redis) or read (one); of the Python client send or "
            "receive (a document)."
        ),
    ]
    done: Annotated[int, about("Weights that are loaded, written or read; of other steps bytes.")]
    total: Annotated[int, about("All of them; of receive about how many.")]


class AnswerHead(msgspec.Struct, frozen=True):
    """Head of an answer, after the lines of its progress and before its body."""

    status: Annotated[int, about("The status that the answer would have alone.")]
    headers: Annotated[dict[str, str], about("Its header fields, their names in lower case.")]


OnProgress = Callable[[Progress], None]
"""A callback for progress. It may raise, which ends the step: the caller has gone."""


def no_progress(_: Progress) -> None:
    """Take no note."""
