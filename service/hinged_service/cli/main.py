"""The command `hinged`: serve models over HTTP, or watch a demonstration."""

from __future__ import annotations

import contextlib
import ipaddress
import multiprocessing
import os
import platform
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer
import uvicorn
from pydantic import ValidationError
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

from hinged import __version__
from hinged_service.cli.commands import mount
from hinged_service.cli.ingest import ABOUT_CODES, ingest, sendable
from hinged_service.cli.ingest_kafka import kafka
from hinged_service.errors import StartupError
from hinged_service.server.protocol import BoundedProtocol
from hinged_service.settings import Settings
from hinged_service.store.transport.address import parse
from hinged_service.telemetry.log_format import log_config
from hinged_service.telemetry.shared_directory import shared_directory

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["main", "worker_app"]

_CANNOT_START: Final = 1
_BAD_USAGE: Final = 2
_SHUTDOWN_GRACE_S: Final = 10
_LONGEST_STOP_S: Final = 25.0
_LOOK_S: Final = 0.05
_STARTING_S: Final = 60
"""A worker that does not answer its parent for so long is replaced; on a busy machine the
imports of one that starts take many seconds."""
_OPEN_FILES: Final = 65_536

cli = typer.Typer(
    name="hinged",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Online classifiers over HTTP: send labelled events, and the next prediction comes from "
    "a model that has already learned from them.\n\n"
    "Start with `hinged demo`; run a service of your own with `hinged serve`.",
)


def main() -> None:
    """Run the command line."""
    cli()


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hinged {__version__} (Python {platform.python_version()})")
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
    epilog="Every other setting is an environment variable `HINGED_…`; the README lists them."
)
def serve(
    context: typer.Context,
    workers: Annotated[
        int,
        typer.Option(
            min=1, help="Processes that serve; every one serves every model. One per core is right."
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
    redis_url: Annotated[
        str | None,
        typer.Option(
            callback=sendable,
            envvar="HINGED_REDIS_URL",
            show_envvar=True,
            help="Redis >= 7.0 or Valkey >= 7.2 to keep the models in: redis://, rediss://, "
            "unix://, redis+sentinel:// or redis+cluster://. Without it an embedded Valkey keeps "
            "them in the data directory.",
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            envvar="HINGED_DATA_DIR",
            show_envvar=True,
            file_okay=False,
            help="Directory of the embedded Valkey. Services that share it share their models.",
        ),
    ] = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE.py|MODULE:FUNCTION",
            help="River pipelines of your own, served beside the others: a Python file with a "
            "function models(), or module:function; may be given several times, or as "
            "HINGED_MODELS, separated by commas. Every worker runs this code as its own: name "
            "only code that you trust. The README shows one.",
        ),
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let other machines in although there are no keys.")
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
    if not (_has_keys(settings) or insecure or _is_loopback(host)):
        typer.echo(
            f"There are no API keys, so anybody who reaches {host} could do anything. Make one "
            "with `hinged key` and set HINGED_KEYS_FILE, or say --insecure.",
            err=True,
        )
        raise typer.Exit(_CANNOT_START)
    whereabouts = _whereabouts(settings)
    _allow_many_connections()
    with _bind(host, port) as listener, _counting_together(settings, workers):
        shown = f"[{host}]" if ":" in host else host
        typer.echo(
            f"hinged starts on http://{shown}:{listener.getsockname()[1]} (its page; docs: /docs)"
        )
        if not _has_keys(settings):
            typer.echo("No API keys: whoever reaches it may do anything (`hinged key` makes one).")
        typer.echo(f"Models are kept by {whereabouts}. Ctrl-C stops.")
        sys.stdout.flush()
        if stop_with_stdin:
            threading.Thread(target=_stop_when_stdin_closes, daemon=True).start()
        _serve(
            uvicorn.Config(
                "hinged_service.cli.main:worker_app",
                factory=True,
                workers=workers,
                http=BoundedProtocol,
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


@cli.command()
def demo(
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Leave the service and its page up until Ctrl-C."),
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
            "stay up until Ctrl-C.",
        ),
    ] = True,
) -> None:
    """Watch a perceptron learn to tell phishing pages, over HTTP, event by event.

    Starts a service of its own on an embedded Valkey, streams the 1,250 events of River's
    Phishing data through it and shows what it learned, here and on the service's page. Nothing
    is left behind.
    """
    from hinged_service.cli.demo import run_demo

    raise typer.Exit(run_demo(data_dir=data_dir, keep=keep, port=port, browser=browser))


mount(cli)
ingest.command("kafka", epilog=ABOUT_CODES)(kafka)
cli.add_typer(ingest, name="ingest")


def worker_app() -> FastAPI:
    """Make the application of one worker, which ends when its supervisor does."""
    from hinged_service.app import create_app

    supervisor = multiprocessing.parent_process()
    if supervisor is not None:
        _on_hangup(signal.SIG_IGN)  # a closed terminal reaches the supervisor, which sees to us

        def follow() -> None:
            supervisor.join()
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=follow, daemon=True).start()
    return create_app()


class _Supervisor(Multiprocess):
    """The parent of several workers; a closed terminal ends it instead of restarting them."""

    def handle_hup(self) -> None:
        self.handle_term()

    def keep_subprocess_alive(self) -> None:
        # While this process, too, has the workers' end of their pipes open, it does not see that
        # one has died whose answer it is waiting for.
        for process in self.processes:
            process.child_conn.close()
        super().keep_subprocess_alive()

    def join_all(self) -> None:
        """Wait for the workers; a second signal hurries them, and none may take for ever."""
        for listener in self.sockets:
            listener.close()  # as the workers do: else new connections would wait for nobody
        deadline_s = time.monotonic() + _LONGEST_STOP_S
        self.signal_queue.clear()
        while any(process.process.is_alive() for process in self.processes):
            if self.signal_queue:
                self.signal_queue.clear()
                for process in self.processes:
                    _signal(process, signal.SIGINT)
            if time.monotonic() > deadline_s:
                for process in self.processes:
                    _signal(process, signal.SIGKILL)
            for process in self.processes:
                process.process.join(_LOOK_S)


def _signal(process: Process, number: signal.Signals) -> None:
    if process.process.is_alive() and process.pid is not None:
        os.kill(process.pid, number)


class _Server(uvicorn.Server):
    """A server that any second signal hurries, not only Ctrl-C.

    Attributes
    ----------
    told
        Whether a signal told it to stop.

    """

    told = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.told
        self.told = True
        super().handle_exit(sig, frame)


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
            typer.echo(
                f"No directory for what the workers count together: {error}. Set "
                "HINGED_METRICS_DIR to an empty one that they may write to.",
                err=True,
            )
            raise typer.Exit(_CANNOT_START) from None
        os.environ["HINGED_METRICS_DIR"] = str(made)
        yield


def _serve(config: uvicorn.Config, listener: socket.socket) -> NoReturn:
    if config.workers > 1:
        supervisor = _Supervisor(config, sockets=[listener])
        supervisor.run()
        failed = any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes)
        raise typer.Exit(_CANNOT_START if failed else 0)
    server = _Server(config)
    # A signal may come before uvicorn listens for it; what it has stopped for it raises again.
    # To raise from a handler is no way out: where asyncio starts, that may get lost.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    _on_hangup(lambda _, frame: server.handle_exit(signal.SIGTERM, frame))
    try:
        server.run(sockets=[listener])
    except SystemExit:  # the application cannot be loaded, or an operator's code ends it
        raise typer.Exit(_CANNOT_START) from None
    raise typer.Exit(0 if server.started or server.told else _CANNOT_START)


def _on_hangup(handler: Any) -> None:
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, handler)


def _allow_many_connections() -> None:
    """Let this process open more files than the 1,024 that many systems begin with."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if most == resource.RLIM_INFINITY else min(_OPEN_FILES, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _stop_when_stdin_closes() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


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


def _is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except BaseException:
            listener.close()
            raise
    except OSError as error:
        typer.echo(
            f"Cannot listen on {host}, port {port}: {error.strerror}. "
            "Choose another with --host and --port; --port 0 takes a free one.",
            err=True,
        )
        raise typer.Exit(_CANNOT_START) from None
    return listener


def _whereabouts(settings: Settings) -> str:
    if not settings.redis_url:
        return f"an embedded Valkey in {settings.data_dir}"
    try:
        return f"the Redis at {parse(settings.redis_url)}"  # without its password
    except StartupError as error:
        typer.echo(error, err=True)
        raise typer.Exit(_CANNOT_START) from None


if __name__ == "__main__":
    main()
