"""The command `hinged`: serve models over HTTP, or watch a demonstration."""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
import uvicorn
from pydantic import ValidationError

from hinged import __version__, kernel
from hinged_service.cli import checkpoints, events, models, plot, streams, watch
from hinged_service.cli.arguments import DataDir, RedisUrl, sendable
from hinged_service.cli.command import add_verb
from hinged_service.cli.doctor import doctor
from hinged_service.cli.errors import ABOUT_CODES
from hinged_service.cli.ingest import ingest
from hinged_service.cli.keys import key
from hinged_service.cli.train import train
from hinged_service.cli.version import git_version
from hinged_service.errors import StartupError
from hinged_service.ingest.target import UNSAVED
from hinged_service.server import supervisor
from hinged_service.server.fast_path import FastPathProtocol
from hinged_service.server.limits import allow_many_connections
from hinged_service.server.listen import bind, is_loopback
from hinged_service.settings import Settings
from hinged_service.store.embedded import SOCKET_RECORD
from hinged_service.store.transport.address import parse
from hinged_service.telemetry.log_format import log_config
from hinged_service.telemetry.shared_directory import shared_directory

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["main", "worker_app"]

_CANNOT_START: Final = 1
_BAD_USAGE: Final = 2
_SHUTDOWN_GRACE_S: Final = 10
_STARTING_S: Final = 60
"""Seconds without an answer after which the parent replaces a worker; on a busy machine the
imports of one that starts take many seconds."""

cli = typer.Typer(
    name="hinged",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Online classifiers over HTTP: send labelled events, and the next prediction comes from "
    "a model that has already learned from them.\n\n"
    "Start with `hinged demo`; run a service of your own with `hinged serve`.",
    epilog=ABOUT_CODES,
)


_VERBS: Final[dict[str, tuple[Callable[..., None], ...]]] = {
    "Models": (
        models.models,
        models.create,
        watch.top,
        models.show,
        models.weights,
        plot.plot,
        models.configure,
        models.freeze,
        models.unfreeze,
        models.reset,
        models.delete,
        models.upgrade,
        models.repair,
    ),
    "Events": (events.predict, events.learn, events.explain, watch.tail),
    "Checkpoints": (
        checkpoints.checkpoint,
        checkpoints.checkpoints,
        checkpoints.restore,
        checkpoints.discard,
        checkpoints.export,
        checkpoints.import_,
        train,
        checkpoints.replay,
    ),
    "Streams and aliases": (
        streams.streams,
        streams.aliases,
        streams.alias,
        streams.promote,
        streams.unalias,
    ),
}
"""The commands that call a running service, by their heading in the help."""


def main() -> None:
    """Run the command line."""
    cli()


def _print_version(wanted: bool) -> None:
    if wanted:
        commit = git_version()
        git = "" if commit is None else f"git {commit}, "
        python = platform.python_version()
        typer.echo(f"hinged {__version__} ({git}Python {python}, {kernel.kind()} kernel)")
        raise typer.Exit


@cli.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and stop."
        ),
    ] = False,
) -> None:
    """Take the options that stand before the command."""


@cli.command(
    epilog="Every other setting is an environment variable `HINGED_…`: see "
    "docs/reference/settings.md."
)
def serve(
    context: typer.Context,
    workers: Annotated[
        int,
        typer.Option(
            min=1, help="Processes that serve. Each serves every model. Use one per core."
        ),
    ] = 1,
    host: Annotated[
        str,
        typer.Option(
            callback=sendable,
            help="Address to listen on. 0.0.0.0 lets other machines in: make keys first.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 takes a free one.")
    ] = 8000,
    redis_url: RedisUrl = None,
    data_dir: DataDir = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE.py|MODULE:FUNCTION",
            help="River pipelines of your own, served beside the others: a Python file with a "
            "function models(), or module:function; may be given several times, or as "
            "HINGED_MODELS, separated by commas. Every worker runs this code as its own: name "
            "only code that you trust. docs/how-to/own-pipelines.md shows one.",
        ),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Accept calls from other machines without API keys.")
    ] = False,
    stop_with_stdin: Annotated[
        bool, typer.Option(hidden=True, help="Stop when standard input closes.")
    ] = False,
) -> None:
    r"""Serve models over HTTP until Ctrl-C or SIGTERM.

    With nothing configured, everything is kept in an append-only file under your home
    directory by a Valkey server that starts and stops with the service. Try it:

        hinged serve --workers 2

        curl -X PUT --json '{"learner": {"type": "perceptron"}}' \
          http://127.0.0.1:8000/v1/models/spam
    """
    source = context.get_parameter_source("data_dir")
    if redis_url and source is not None and source.name == "COMMANDLINE":
        raise typer.BadParameter(
            "is for the embedded Valkey, but a Redis is given (--redis-url or HINGED_REDIS_URL). "
            "Leave one of the two out.",
            param_hint="--data-dir",
        )
    # Workers are processes of their own and read their settings from the environment.
    if redis_url:
        os.environ["HINGED_REDIS_URL"] = redis_url
    if data_dir is not None:
        os.environ["HINGED_DATA_DIR"] = str(data_dir.absolute())
    if models:
        files = [str(Path(m).absolute()) if m.endswith(".py") else m for m in models]
        os.environ["HINGED_MODELS"] = ",".join(files)
    settings = _settings()
    if not (_has_keys(settings) or insecure or is_loopback(host)):
        raise _cannot_start(
            f"There are no API keys, so every caller that reaches {host} could do anything. "
            "Make one with `hinged key` and set HINGED_KEYS_FILE, or give --insecure."
        )
    try:
        whereabouts = _whereabouts(settings)
        allow_many_connections()
        listener = bind(host, port)
    except StartupError as error:
        raise _cannot_start(error) from None
    with listener, _counting_together(settings, workers):
        shown = f"[{host}]" if ":" in host else host
        typer.echo(
            f"hinged starts on http://{shown}:{listener.getsockname()[1]} "
            "(a page for browsers; API documentation: /docs)"
        )
        if not _has_keys(settings):
            typer.echo(
                "There are no API keys: every caller may do everything. `hinged key` makes a key."
            )
        typer.echo(f"The models are in {whereabouts}. Press Ctrl-C to stop.")
        sys.stdout.flush()
        if stop_with_stdin:
            supervisor.stop_with_stdin()
        started = supervisor.run(
            uvicorn.Config(
                "hinged_service.cli.main:worker_app",
                factory=True,
                workers=workers,
                http=FastPathProtocol,
                log_config=log_config(settings),
                access_log=False,
                lifespan="on",
                ws="none",
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=_SHUTDOWN_GRACE_S,
                timeout_worker_healthcheck=_STARTING_S,
            ),
            listener,
        )
        from hinged_service.store.open import left_unsaved

        if left_unsaved(settings):
            typer.echo(
                "Acknowledged events are not on disk: the embedded Valkey goes on running. The log "
                "says what to do.",
                err=True,
            )
            raise typer.Exit(UNSAVED)
        raise typer.Exit(0 if started else _CANNOT_START)


@cli.command()
def demo(
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Leave the service and its page up until you press Ctrl-C."),
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port of the service; 0 takes a free one.")
    ] = 0,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            file_okay=False,
            help="Keep the data here instead of a temporary directory. A second run finds the "
            "model again, and every event counts once.",
        ),
    ] = None,
    browser: Annotated[
        bool,
        typer.Option(
            "--browser/--no-browser",
            help="Open the page in a browser, if there is a screen and this is a terminal, and "
            "stay up until you press Ctrl-C.",
        ),
    ] = True,
) -> None:
    """Watch a perceptron learn to recognise phishing pages, event by event.

    Starts a service of its own on an embedded Valkey, streams the 1,250 events of River's
    Phishing data through it and shows what it learned, here and on the service's page. Nothing
    is left behind.
    """
    from hinged_service.cli.demo import run_demo

    raise typer.Exit(run_demo(data_dir=data_dir, keep=keep, port=port, browser=browser))


for _panel, _verbs in _VERBS.items():
    for _verb in _verbs:
        add_verb(cli, _panel, _verb)
cli.command()(doctor)
cli.command(
    epilog="The service reads the file at its start: HINGED_KEYS_FILE=keys.json hinged serve"
)(key)
cli.add_typer(ingest, name="ingest")


def worker_app() -> FastAPI:
    """Make the application of one worker, which ends when its supervisor does."""
    from hinged_service.app import create_app

    supervisor.end_with_supervisor()
    return create_app()


@contextlib.contextmanager
def _counting_together(settings: Settings, workers: int) -> Iterator[None]:
    """Give several workers a directory for what they count, until the end."""
    if workers == 1 or settings.metrics_dir is not None:
        yield
        return
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(shared_directory())
        except OSError as error:
            raise _cannot_start(
                f"There is no directory for the counters of the workers: {error}. Set "
                "HINGED_METRICS_DIR to an empty one that they may write to."
            ) from None
        os.environ["HINGED_METRICS_DIR"] = str(made)
        yield


def _settings() -> Settings:
    try:
        return Settings()
    except ValidationError as error:
        for fault in error.errors():
            name = "HINGED_" + "_".join(str(part) for part in fault["loc"]).upper()
            typer.echo(f"{name}={fault['input']!r}: {fault['msg']}", err=True)
        raise typer.Exit(_BAD_USAGE) from None


def _has_keys(settings: Settings) -> bool:
    return settings.keys is not None or settings.keys_file is not None


def _cannot_start(why: object) -> typer.Exit:
    typer.echo(why, err=True)
    return typer.Exit(_CANNOT_START)


def _whereabouts(settings: Settings) -> str:
    if not settings.redis_url:
        record = settings.data_dir.expanduser().resolve() / SOCKET_RECORD
        reach = f'redis-cli -s "$(cat {shlex.quote(str(record))})"'
        return f"an embedded Valkey in {settings.data_dir} ({reach})"
    return f"the Redis at {parse(settings.redis_url)}"  # without its password


if __name__ == "__main__":
    main()
