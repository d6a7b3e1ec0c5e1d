"""Progress of an ingestion: a bar on a terminal, lines elsewhere, a summary at the end."""

from __future__ import annotations

import json
import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from hinged_service.ingest.target import Allowance
from hinged_service.ingest.writer import Tally

__all__ = ["Reporter"]

_LINE_EVERY_S = 5.0
_SHOW_EVERY_S = 0.1
_NOTED = {
    "skipped": "lines without a label, skipped",
    "continued": "lines read as the rest of a quoted cell",
}


class Reporter:
    """A display of a tally while it grows; on standard error, so that the summary can be piped.

    Attributes
    ----------
    total_bytes
        The amount to read; `None` if there is no size.
    noted
        Further counts of the source, for the summary.
    """

    def __init__(self, tally: Tally, total_bytes: int | None = None) -> None:
        self.total_bytes = total_bytes
        self.noted: dict[str, int] = {}
        self._tally = tally
        self._console = Console(stderr=True)
        self._began_s = time.monotonic()
        self._next_s = 0.0
        self._progress: Progress | None = None

    def __enter__(self) -> Reporter:
        if self._console.is_terminal:
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[text]}"),
                console=self._console,
            )
            self._progress.start()
            self._progress.add_task("learning", total=None, text="")
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._show(self.total_bytes)
            self._progress.stop()

    def write_line(self, line: str) -> None:
        """Print a line for people."""
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def show(self, done_bytes: int | None = None) -> None:
        """Show the tally, unless that was just done."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        if self._progress is not None:
            self._next_s = now_s + _SHOW_EVERY_S
            self._show(done_bytes)
        else:
            if self._next_s:
                self.write_line(
                    f"{self._share(done_bytes)}{self._tally.records:,} records; {self._speed()}"
                )
            self._next_s = now_s + _LINE_EVERY_S

    def _show(self, done_bytes: int | None) -> None:
        if self._progress is not None:
            task = self._progress.task_ids[0]
            text = self._share(done_bytes) + self._speed()
            self._progress.update(task, total=self.total_bytes, completed=done_bytes, text=text)

    def _share(self, done_bytes: int | None) -> str:
        if not done_bytes or not self.total_bytes:
            return ""
        share = done_bytes / self.total_bytes
        left_s = (time.monotonic() - self._began_s) * (1 - share) / share
        return f"{share:.0%}, about {left_s:,.0f} s left, "

    def _speed(self) -> str:
        accuracy = self._tally.accuracy
        share = "" if accuracy is None else f", accuracy {accuracy:.2%}"
        dead = f", {self._tally.dead} bad" if self._tally.dead else ""
        return f"{self._rate():,.0f}/s{share}{dead}"

    def _rate(self) -> float:
        return self._tally.records / max(time.monotonic() - self._began_s, 1e-6)

    def losses(self, allowed: Allowance) -> None:
        """Write how many records were not learned, and whether that is allowed."""
        bad, total = self._tally.bad, self._tally.total
        if not bad:
            return
        verdict = "as" if allowed.covers(bad, total) else "MORE than"
        self.write_line(
            f"NOT LEARNED: {bad:,} of {total:,} records, {verdict} --max-bad {allowed.text} "
            "allows. Where and why: XRANGE hinged:{S}:dead - +, S being the model's stream."
        )

    def summary(self, model: str, state: str, as_json: bool, **more: object) -> None:
        """Print the outcome of everything: text for people, or one JSON object, with `more` in it.

        `state` is `done`, `incomplete` (more records are bad than allowed), `stopped` or `failed`.
        """
        tally = self._tally
        seconds = time.monotonic() - self._began_s
        if as_json:
            found = vars(tally) | {"bad": tally.bad, "accuracy": tally.accuracy}
            found["seconds"] = round(seconds, 3)
            text = json.dumps({"model": model, "state": state} | found | self.noted | more)
        else:
            parts = [
                f"{model}: {state}, {tally.records:,} records in {seconds:.1f} s, {self._speed()}"
            ]
            parts += [f"{tally.bad:,} NOT LEARNED"] if tally.bad else []
            counts = (
                (tally.duplicates, "counted before"),
                (tally.early, "labels that wait for their prediction"),
                (tally.rejected, "logged but not taken by the model"),
                (tally.dead, "bad, kept in the stream of dead letters"),
                (tally.unseen, "taken without an outcome"),
                (tally.gone, "gone before they were read"),
                (tally.earlier, "taken by earlier runs"),
                (tally.earlier_dead, "bad in earlier runs"),
            )
            parts += [f"{number:,} {what}" for number, what in counts if number]
            parts += [f"{n:,} {_NOTED.get(what, what)}" for what, n in self.noted.items() if n]
            text = "; ".join(parts) + "."
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
