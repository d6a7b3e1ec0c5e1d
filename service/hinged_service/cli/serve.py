"""`hinged serve`: workers over one socket, from the settings to the exit code."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import typer
import uvicorn
from pydantic import ValidationError

from hinged_service.api.api_keys import Keys
from hinged_service.errors import StartupError
from hinged_service.ingest.target import BAD_USAGE, UNSAVED
from hinged_service.server import supervisor
from hinged_service.server.fast_path import FastPathProtocol
from hinged_service.server.limits import allow_many_connections
from hinged_service.server.listening_sockets import bind, is_loopback
from hinged_service.server.memory import spare_imported
from hinged_service.settings import Settings
from hinged_service.store.configured_redis import left_unsaved
from hinged_service.store.embedded import SOCKET_RECORD
from hinged_service.store.transport.address import parse
from hinged_service.telemetry.log_format import log_config
from hinged_service.telemetry.shared_directory import shared_directory
from hinged_service.wire.strict_model import setting_faults

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["SHUTDOWN_GRACE_S", "Serving", "run_service", "worker_app"]

SHUTDOWN_GRACE_S: Final = 10
_CANNOT_START: Final = 1
_STARTING_S: Final = 60
"""Seconds without an answer after which the parent replaces a worker; on a busy machine the
imports of one that starts take many seconds."""


class Serving(NamedTuple):
    """The way a service is served: `port` 0 is a free one, `insecure` asks for no API keys.

    With `stop_with_stdin` it stops when standard input closes.
    """

    host: str
    port: int
    workers: int
    insecure: bool
    stop_with_stdin: bool


def run_service(
    serving: Serving, redis_url: str | None, data_dir: Path | None, models: Sequence[str]
) -> int:
    """Serve until a signal; return the exit code.

    What is passed beside `serving` overrides the environment: workers are processes of their own
    and read their settings from there.
    """
    if redis_url:
        os.environ["HINGED_REDIS_URL"] = redis_url
    if data_dir is not None:
        os.environ["HINGED_DATA_DIR"] = str(data_dir.absolute())
    if models:
        files = [str(Path(m).absolute()) if m.endswith(".py") else m for m in models]
        os.environ["HINGED_MODELS"] = ",".join(files)
    settings = _settings()
    if not (_has_keys(settings) or serving.insecure or is_loopback(serving.host)):
        raise _cannot_start(
            f"There are no API keys, so every caller that reaches {serving.host} could do "
            "anything. Make one with `hinged key` and set HINGED_KEYS_FILE, or give --insecure."
        )
    try:
        Keys.load(settings.keys_file, settings.keys)  # a worker cannot tell that they are wrong
        whereabouts = _whereabouts(settings)
        allow_many_connections()
        listener = bind(serving.host, serving.port)
    except StartupError as error:
        raise _cannot_start(error) from None
    with listener, _counting_together(settings, serving.workers):
        host = f"[{serving.host}]" if ":" in serving.host else serving.host
        typer.echo(
            f"hinged starts on http://{host}:{listener.getsockname()[1]} "
            "(a page for browsers; API documentation: /docs)"
        )
        if not _has_keys(settings):
            typer.echo(
                "There are no API keys: every caller may do everything. `hinged key` makes a key."
            )
        typer.echo(f"The models are in {whereabouts}. Press Ctrl-C to stop.")
        sys.stdout.flush()
        if serving.stop_with_stdin:
            supervisor.stop_with_stdin()
        started = supervisor.run(
            uvicorn.Config(
                "hinged_service.cli.serve:worker_app",
                factory=True,
                workers=serving.workers,
                http=FastPathProtocol,
                log_config=log_config(settings),
                access_log=False,
                lifespan="on",
                ws="none",
                proxy_headers=False,
                server_header=False,
                timeout_graceful_shutdown=SHUTDOWN_GRACE_S,
                timeout_worker_healthcheck=_STARTING_S,
            ),
            listener,
        )
        if left_unsaved(settings):
            typer.echo(
                "Acknowledged events are not on disk: the embedded Valkey keeps running. The log "
                "says what to do.",
                err=True,
            )
            return UNSAVED
        return 0 if started else _CANNOT_START


def worker_app() -> FastAPI:
    """Make the application of one worker, which ends when its supervisor does."""
    from hinged_service.app import create_app  # not in the parent of several workers

    supervisor.end_with_supervisor()
    app = create_app()
    spare_imported()
    return app


@contextlib.contextmanager
def _counting_together(settings: Settings, workers: int) -> Iterator[None]:
    """Give several workers a directory for their counters, until the end."""
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
        for fault in setting_faults(error):
            typer.echo(fault, err=True)
        raise typer.Exit(BAD_USAGE) from None


def _has_keys(settings: Settings) -> bool:
    return settings.keys is not None or settings.keys_file is not None


def _cannot_start(why: object) -> typer.Exit:
    typer.echo(why, err=True)
    return typer.Exit(_CANNOT_START)


def _whereabouts(settings: Settings) -> str:
    if settings.redis_url is None:
        record = settings.data_dir.expanduser().resolve() / SOCKET_RECORD
        reach = f'redis-cli -s "$(cat {shlex.quote(str(record))})"'
        return f"an embedded Valkey in {settings.data_dir} ({reach})"
    return f"the Redis at {parse(settings.redis_url)}"  # without its password
