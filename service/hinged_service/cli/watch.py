"""Verbs that watch: all models in a table that refreshes, and the events of one model."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import msgspec
import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from hinged_service.cli.arguments import Name
from hinged_service.cli.command import Session
from hinged_service.cli.output import (
    Output,
    Share,
    Table,
    accuracy,
    console,
    grid,
    label_text,
    moment,
    number,
    print_json,
    print_line,
    print_rows,
)
from hinged_service.client import (
    Busy,
    ClientError,
    LiveCommand,
    LiveDrift,
    LiveEnd,
    LiveEvent,
    LiveMetrics,
    LiveModel,
    LiveOutcome,
    LiveSample,
    ModelGlance,
    Unavailable,
    Unreachable,
)

__all__ = ["tail", "top"]

_LOOKS: Final = 6
"""Looks whose first and last give the rate."""
_CACHED_S: Final = 1.0  # a glance may be so old
_STALE_S: Final = 5.0
_COLUMNS: Final = {
    "name": "model",
    "learner": "learner",
    "events": "events",
    "events_per_s": "events/s",
    "accuracy": "accuracy",
    "rolling": "rolling",
    "updates": "updates",
    "stale_s": "stale s",
    "status": "status",
}
_OUTCOME: Final = (
    *("at_ms", "id", "y", "y_pred", "score", "mistake", "updated", "hinge_loss", "w"),
    *("position", "number"),
)
_KINDS: Final[Mapping[type[LiveEvent], str]] = {
    LiveModel: "model",
    LiveMetrics: "metrics",
    LiveOutcome: "outcome",
    LiveSample: "sample",
    LiveDrift: "drift",
    LiveCommand: "command",
    LiveEnd: "end",
}


def top(
    session: Session,
    match: Annotated[str, typer.Option(help="Only models whose names contain this.")] = "",
    count: Annotated[int, typer.Option(min=1, max=100, help="Models to show at most.")] = 50,
    interval_s: Annotated[
        float, typer.Option("--interval-s", min=1.0, help="Seconds between updates.")
    ] = 2.0,
    once: Annotated[
        bool,
        typer.Option(
            "--once",
            help="Print the table once, with rates, and stop: the default without a terminal.",
        ),
    ] = False,
) -> None:
    """Watch all models in a table that refreshes, the busiest first; Ctrl-C stops.

    hinged top

    hinged top --once --output csv
    """
    board = _Board(session, match, count)
    board.look()
    if once or session.output is not Output.TABLE or not sys.stdout.isatty():
        time.sleep(interval_s)
        board.look()
        session.show(board.rows(), board.table())
        return
    try:
        with Live(board.picture(), console=console(), screen=True, auto_refresh=False) as live:
            while True:
                time.sleep(interval_s)
                board.look(patient=True)
                live.update(board.picture(), refresh=True)
    except KeyboardInterrupt:
        return


def tail(
    session: Session,
    name: Name,
    features: Annotated[
        bool, typer.Option("--features", help="Show the features of the events, too.")
    ] = False,
    count: Annotated[
        int | None,
        typer.Option(min=1, help="Stop after this many events. Ctrl-C stops at any time."),
    ] = None,
) -> None:
    """Print the events of a model as it learns them, from now on.

    If a model learns faster than a terminal can show, the service sends a sample. With
    `--output json` each message of the live feed is one line; with `csv` each event is.

    hinged tail mail

    hinged tail mail --output json --count 100
    """
    columns = (*_OUTCOME, "x") if features else _OUTCOME
    if session.output is Output.CSV:
        print_rows(columns, [])
    seen = 0
    try:
        for event in session.client.events(name, features=features):
            if session.output is Output.JSON:
                print_json({"event": _KINDS[type(event)], **msgspec.to_builtins(event)})
            elif session.output is Output.TABLE:
                _print_event(event)
            elif isinstance(event, LiveOutcome):
                print_rows((), [[getattr(event, column) for column in columns]])
            sys.stdout.flush()
            seen += isinstance(event, LiveOutcome)
            if seen == count:
                return
            if isinstance(event, LiveEnd) and event.reason != "deleted":
                raise typer.Exit(1)
    except KeyboardInterrupt:
        return


@dataclass(slots=True)
class _Board:
    """The models as they stood at the last looks."""

    session: Session
    match: str
    count: int
    total: int = 0
    models: Sequence[ModelGlance] = ()
    trouble: str = ""
    looks: deque[tuple[float, dict[str, ModelGlance]]] = field(
        default_factory=lambda: deque(maxlen=_LOOKS)
    )

    def look(self, patient: bool = False) -> None:
        """Ask the service; `patient` if it may be unavailable for a while."""
        try:
            found = self.session.client.overview(match=self.match, count=self.count)
        except (Unreachable, Unavailable, Busy) as error:
            if not patient:
                raise
            self.trouble = _trouble(error)
            return
        self.trouble, self.total, self.models = "", found.total, found.models
        self.looks.append((time.monotonic(), {model.name: model for model in found.models}))

    def rows(self) -> list[dict[str, Any]]:
        """Return a record for each model, the busiest first."""
        rows = [
            {
                "name": m.name,
                "learner": m.learner,
                "events": m.events,
                "events_per_s": self._rate(m),
                "accuracy": accuracy(m.judged, m.mistakes),
                "rolling": None if m.rolling_accuracy is None else Share(m.rolling_accuracy),
                "updates": m.updates,
                "stale_s": None if m.stale_s is None else round(m.stale_s, 1),
                "status": _status(m),
            }
            for m in self.models
        ]
        return sorted(rows, key=lambda r: (-(r["events_per_s"] or 0), -(r["events"] or 0)))

    def table(self) -> Table:
        """Return the same for people."""
        rows = [tuple(row[key] for key in _COLUMNS) for row in self.rows()]
        return Table(tuple(_COLUMNS.values()), rows, "There are no models to show.")

    def picture(self) -> Group:
        """Return the content of the terminal."""
        rates = sum(self._rate(m) or 0.0 for m in self.models)
        events = sum(m.events or 0 for m in self.models)
        head = (
            f"{self.session.client.base_url}  {len(self.models)} of {self.total} models  "
            f"{events:,} events  {number(rates)} events/s"
        )
        return Group(Text(head, style="bold"), Text(self.trouble, style="red"), grid(self.table()))

    def _rate(self, now: ModelGlance) -> float | None:
        """Return the events per second since the first look that is kept.

        The times are those of the log, as glances come from a cache; a pause before does not count.
        """
        (first_s, first), (last_s, _) = self.looks[0], self.looks[-1]
        before = first.get(now.name)
        if before is None or before is now or now.events is None or before.events is None:
            return None
        logged_s = ((now.at_ms or 0) - (before.at_ms or 0)) / 1000
        elapsed_s = min(logged_s, last_s - first_s + _CACHED_S)
        more = now.events - before.events
        return round(more / elapsed_s, 2) if more > 0 and elapsed_s > 0 else 0.0


def _status(model: ModelGlance) -> str:
    if model.problem is not None:
        return model.problem
    if model.stale_s is not None and model.stale_s > _STALE_S:
        return "stale: Redis does not answer"
    return "frozen" if model.frozen else "live"


def _trouble(error: ClientError) -> str:
    return f"The service does not answer. These numbers are the latest ones. {error.detail}"


def _print_event(event: LiveEvent) -> None:
    """Print an event of the live feed for people."""
    if isinstance(event, LiveOutcome):
        judged = event.y_pred is not None and event.w > 0
        verdict = "wrong" if event.mistake else "right" if judged else "not judged"
        labels = f"is {label_text(event.y)}, predicted {label_text(event.y_pred)}"
        parts = [
            f"{moment(event.at_ms)}  {verdict:<5}  {labels}",
            f"score {number(event.score)}",
            f"loss {number(event.hinge_loss)}",
            *(["updated"] if event.updated else []),
            *([f"weight {number(event.w)}"] if event.w != 1.0 else []),
            *([f"id {event.id}"] if event.id is not None else []),
            *([str(event.x)] if event.x is not None else []),
        ]
        print_line("  ".join(parts))
    elif isinstance(event, LiveModel):
        gap = " Events in between are not shown." if event.gap else ""
        print_line(f"Following {event.model} from {event.position}.{gap}")
    elif isinstance(event, LiveSample) and event.left_out:
        print_line(f"  … {event.left_out:,} more events were learned")
    elif isinstance(event, LiveDrift):
        print_line(f"{moment(event.at_ms)}  drift found at event {event.events:,}")
    elif isinstance(event, LiveCommand):
        print_line(f"{moment(event.at_ms)}  command {event.do} {event.details or ''}".rstrip())
    elif isinstance(event, LiveEnd):
        print_line(f"The feed ended: {event.reason}.")
