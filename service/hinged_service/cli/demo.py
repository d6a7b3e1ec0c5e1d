"""The demonstration: a separate service, a stream of real events, and the learned model."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn, Self

from httpx import HTTPTransport
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text

from hinged_service.cli.output import Table, accuracy, grid, number
from hinged_service.client import Client, ClientError, Duplicate, Outcome, Retries
from hinged_service.errors import StartupError
from hinged_service.store.embedded import EmbeddedServer

__all__ = ["run_demo"]

_MODEL: Final = "phishing"
_CHALLENGER: Final = "phishing-averaged"
_WATCHABLE_S: Final = 0.02
"""Pause between two events while the page shows them."""
_START_TIMEOUT_S: Final = 150.0
_STOP_TIMEOUT_S: Final = 90.0
_POLL_S: Final = 0.05
_RETRIES: Final = Retries(deadline_s=20.0)
_PLAIN_LINE_EVERY: Final = 250
_BAR_CELLS: Final = 16


class _ServiceFailed(Exception):
    """The service did not start, or it ended."""


class _Tally:
    """Counts of the events learned so far, from the answers of the service."""

    def __init__(self) -> None:
        self.sent = self.learned = self.mistakes = self.updates = self.duplicates = 0
        self.hinge_loss = 0.0

    def add(self, outcome: Outcome) -> None:
        self.sent += 1
        if isinstance(outcome, Duplicate):
            self.duplicates += 1
            return
        self.learned += 1
        self.mistakes += outcome.mistake
        self.updates += outcome.updated
        self.hinge_loss += outcome.hinge_loss

    def row(self) -> dict[str, str]:
        learned = self.learned or 1
        row = {
            "events": f"{self.learned:,}",
            "accuracy": number(accuracy(self.learned, self.mistakes)),
            "mistakes": f"{self.mistakes:,}",
            "updates": f"{self.updates:,}",
            "mean hinge loss": f"{self.hinge_loss / learned:.3f}" if self.learned else "-",
        }
        if self.duplicates:
            row["known already"] = f"{self.duplicates:,}"
        return row


def run_demo(*, data_dir: Path | None, keep: bool, port: int, browser: bool = False) -> int:
    """Run the demonstration on a service of its own, which ends with it.

    The embedded Valkey keeps its data in `data_dir`, or in a temporary directory. With `keep` the
    service stays up until Ctrl-C when the stream has been learned. With `browser`, and a screen, a
    browser shows the page, events come slowly enough to watch, and the service also stays up.

    Returns
    -------
    The exit code: 0 done, 1 the service failed, 130 interrupted.
    """
    console = Console(highlight=False)
    browser = browser and console.is_terminal and _has_screen()
    with contextlib.ExitStack() as stack:
        signals = stack.enter_context(_Signals())
        try:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="hinged-demo-"))
            log = Path(folder) / "service.log"
            console.print("Starting a service with an embedded Valkey.")
            process, url = stack.enter_context(
                _service(log, data_dir or Path(folder) / "data", port)
            )
            console.print(f"It listens on [bold]{url}[/] and keeps every event in a durable log.\n")
            # A transport of its own uses no proxy of the environment.
            with Client(url, timeout_s=30, retries=_RETRIES, transport=HTTPTransport()) as client:
                _await_ready(process, client, signals)
                _create(console, client, signals)
                _print(console, f"Watch it learn: {url}/#/m/{_MODEL}\n")
                if browser:
                    webbrowser.open(f"{url}/#/m/{_MODEL}")
                _stream(console, client, _WATCHABLE_S if browser else 0.0, signals)
                with signals.step():
                    _show_model(console, client)
            if not (keep or browser):
                _print(console, _next_steps("http://127.0.0.1:8000", running=False))
                return 0
            return _wait(console, url, process)
        except KeyboardInterrupt:
            console.print("Interrupted; stopping the service.")
            return 130
        except (ClientError, _ServiceFailed) as error:
            Console(stderr=True, highlight=False).print(
                f"The demonstration failed: {error}\n{_read_tail(log)}".rstrip(), markup=False
            )
            return 1


def _phishing() -> list[tuple[dict[str, float], bool]]:
    """Return River's data set `Phishing`, read without River, which takes a second to import."""
    packed = (resources.files("river") / "datasets" / "phishing.csv.gz").read_bytes()
    rows = list(csv.DictReader(gzip.decompress(packed).decode().splitlines()))
    labels = [row.pop("is_phishing") == "1" for row in rows]
    events = [{name: float(value) for name, value in row.items()} for row in rows]
    return list(zip(events, labels, strict=True))


class _Signals:
    """Turns signals into exceptions, except in the middle of a step.

    Raised inside of an HTTP call or of what draws, they may leave a lock taken for
    which the clean-up then waits without limit. A second signal does not wait for the
    step's end.
    """

    def __init__(self) -> None:
        self._in_step = False
        self._pending: int | None = None

    def __enter__(self) -> Self:
        numbers = [signal.SIGINT, signal.SIGTERM]
        numbers += [signal.SIGHUP] if hasattr(signal, "SIGHUP") else []
        self._before = {number: signal.signal(number, self._handle) for number in numbers}
        return self

    def __exit__(self, *_: object) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)

    @contextlib.contextmanager
    def step(self) -> Iterator[None]:
        """Put signals off until the end of the block."""
        self._in_step = True
        try:
            yield
        finally:
            self._in_step = False
            number, self._pending = self._pending, None
            if number is not None:
                self._leave(number)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._in_step and self._pending is None:
            self._pending = number
            return
        self._pending = None
        self._leave(number)

    def _leave(self, number: int) -> NoReturn:
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


@contextlib.contextmanager
def _service(log: Path, data_dir: Path, port: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "hinged_service.cli.main", "serve", "--port", str(port)]
    command += ["--data-dir", str(data_dir), "--stop-with-stdin"]
    environment = {k: v for k, v in os.environ.items() if k not in _NOT_INHERITED}
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(  # noqa: S603 - our own module and arguments, no shell
            command,
            stdin=subprocess.PIPE,  # its end stops the service when we are gone, even killed
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
            start_new_session=True,  # Ctrl-C is for us; we stop the service in order
        ) as process,
    ):
        try:
            address = re.search(r"http://\S+", process.stdout.readline() if process.stdout else "")
            if address is None:
                process.wait(_STOP_TIMEOUT_S)
                raise _ServiceFailed("the service did not start.")
            yield process, address[0]
        finally:
            _stop(process)
            if process.returncode != 0 and data_dir.exists():
                # It did not end in order, so its Valkey may have been left to us.
                server = EmbeddedServer(data_dir)
                with contextlib.suppress(StartupError):
                    server.acquire()
                server.release()


_NOT_INHERITED: Final = {"HINGED_REDIS_URL", "HINGED_DATA_DIR"}


def _await_ready(process: subprocess.Popen[str], client: Client, signals: _Signals) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise _ServiceFailed("the service ended at once.")
        with signals.step():
            if client.ready():
                return
        time.sleep(_POLL_S)
    raise _ServiceFailed(f"not ready after {_START_TIMEOUT_S:g} s.")


def _stop(process: subprocess.Popen[str]) -> None:
    # Impatience must not orphan the service: it ends in order, within a second as a rule.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        if process.poll() is None:
            process.terminate()
        process.wait(_STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        signal.signal(signal.SIGINT, before)


def _wait(console: Console, url: str, process: subprocess.Popen[str]) -> int:
    try:
        _print(console, _next_steps(url, running=True))  # which explains Ctrl-C: it holds from here
        process.wait()
    except KeyboardInterrupt:
        return 0
    raise _ServiceFailed("the service ended unexpectedly.")


def _read_tail(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])


def _has_screen() -> bool:
    """Return whether a browser that is opened here can be seen."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _create(console: Console, client: Client, signals: _Signals) -> None:
    challenger = {"learner": {"type": "averaged_perceptron"}, "stream": _MODEL}
    for name, spec in ((_MODEL, {"learner": {"type": "perceptron"}}), (_CHALLENGER, challenger)):
        with signals.step():
            client.create_model(name, spec)
        _print(console, f"PUT /v1/models/{name}  {json.dumps(spec)}")


def _stream(console: Console, client: Client, pause_s: float, signals: _Signals) -> None:
    _print(
        console,
        f"POST /v1/models/{_MODEL}/learn, one web page at a time: predicted, scored, then learned.",
    )
    data = _phishing()
    tally = _Tally()
    with _progress(console, len(data)) as advance:
        for number, (x, y) in enumerate(data):
            with signals.step():
                tally.add(client.learn(_MODEL, x, y, id=f"phishing-{number}"))
                advance(tally)
            time.sleep(pause_s)
    if tally.duplicates:
        console.print(
            f"{tally.duplicates:,} events were in the log already: each counts once.",
            style="yellow",
        )
    console.print()


@contextlib.contextmanager
def _progress(console: Console, total: int) -> Iterator[Callable[[_Tally], None]]:
    if not console.is_terminal:

        def print_line(tally: _Tally) -> None:
            if tally.sent % _PLAIN_LINE_EVERY == 0 or tally.sent == total:
                figures = "   ".join(f"{name} {value}" for name, value in tally.row().items())
                console.print(f"{tally.sent:>5,}/{total:,}   {figures}", soft_wrap=True)

        yield print_line
        return
    progress = Progress(
        TextColumn("learning"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    )
    task = progress.add_task("", total=total)

    def picture(tally: _Tally) -> RenderableType:
        table = Grid(box=None, pad_edge=False)
        row = tally.row()
        for name in row:
            table.add_column(name, justify="right", min_width=10)
        table.add_row(*row.values(), style="bold")
        return Group(progress, table)

    with Live(picture(_Tally()), console=console, refresh_per_second=12) as live:

        def advance(tally: _Tally) -> None:
            progress.update(task, completed=tally.sent)
            live.update(picture(tally))

        yield advance


def _show_model(console: Console, client: Client) -> None:
    found = client.weights(_MODEL, top=10)
    weights = found.weights or {}
    largest = max((abs(weight) for weight in weights.values()), default=0.0) or 1.0
    block = "█" if console.encoding.lower().startswith("utf") else "#"
    table = Grid(title="The largest weights", title_justify="left", box=None, pad_edge=False)
    table.add_column("feature")
    table.add_column("weight", justify="right")
    table.add_column("says honest", justify="right", width=_BAR_CELLS)
    table.add_column("says phishing", width=_BAR_CELLS)
    for name, weight in weights.items():
        bar = block * round(abs(weight) / largest * _BAR_CELLS)
        left, right = (bar, "") if weight < 0 else ("", bar)
        table.add_row(Text(name), f"{weight:g}", Text(left, "green"), Text(right, "red"))
    table.add_row("(intercept)", f"{found.intercept or 0.0:g}", style="dim")
    console.print(table)

    model = client.model(_MODEL)
    console.print("\nTwo models learned from these events, each in its own way:")
    columns = ("model", "learner", "events", "mistakes", "accuracy")
    rows = [
        (m.name, m.learner, m.events, m.mistakes, accuracy(m.judged, m.mistakes))
        for m in client.stream(_MODEL).models
    ]
    console.print(grid(Table(columns, rows)))
    console.print("\nThe model phishing, as the service describes it:")
    for name in ("events", "mistakes", "updates", "hinge_loss", "features", "position"):
        console.print(f"  {name:<11}{getattr(model, name)}")
    console.print()


def _next_steps(url: str, *, running: bool) -> str:
    model = f"{url}/v1/models/mine"
    lines = [
        "Next:",
        *([] if running else ["  hinged serve"]),
        f'  curl -X PUT --json \'{{"learner": {{"type": "perceptron"}}}}\' {model}',
        f'  curl --json \'{{"x": {{"heat": 1.5}}, "y": true, "id": "1"}}\' {model}/learn',
        f'  curl --json \'{{"x": {{"heat": 2.0}}}}\' {model}/predict',
        f"  open the page: {url}/",
        f"  API documentation: {url}/docs",
    ]
    if running:
        lines += ["", "The service stays up. Press Ctrl-C to stop it."]
    return "\n".join(lines)


def _print(console: Console, text: str) -> None:
    console.print(text, markup=False, soft_wrap=True)
