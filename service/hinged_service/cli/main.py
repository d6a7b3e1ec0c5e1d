"""The command `hinged` and its verbs.

A verb imports what no other needs when it runs: most only call a running service.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer

from hinged_service.cli import checkpoints, events, models, plot, streams, watch
from hinged_service.cli.arguments import DataDir, RedisUrl, sendable
from hinged_service.cli.command import add_verb
from hinged_service.cli.errors import ABOUT_CODES
from hinged_service.cli.ingest import ingest
from hinged_service.cli.keys import key
from hinged_service.cli.output import Output, OutputOption, Table, print_result
from hinged_service.cli.train import train
from hinged_service.cli.version import git_version

__all__ = ["main"]

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
    "Events": (events.predict, events.learn, events.label, events.explain, watch.tail),
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
        from hinged import __version__, kernel

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
    from hinged_service.cli.serve import Serving, run_service

    serving = Serving(host, port, workers, insecure, stop_with_stdin)
    raise typer.Exit(run_service(serving, redis_url, data_dir, models or []))


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


@cli.command()
def doctor(
    url: Annotated[
        str | None,
        typer.Option(envvar="HINGED_URL", show_envvar=True, help="Address of a running service."),
    ] = None,
    output: OutputOption = Output.TABLE,
) -> None:
    """Check the settings, the Redis, its disk and a running service, and report what to change.

    It reads the environment as `hinged serve` does, and changes nothing; without a Redis it starts
    the embedded Valkey while it checks.

    hinged doctor --url http://127.0.0.1:8000
    """
    from hinged_service.cli.doctor import findings

    found = findings(url)
    print_result(output, [one._asdict() for one in found], Table(found[0]._fields, found))
    if any(one.state == "fault" for one in found):
        raise typer.Exit(1)


for _panel, _verbs in _VERBS.items():
    for _verb in _verbs:
        add_verb(cli, _panel, _verb)
cli.command(
    epilog="The service reads the file at its start: HINGED_KEYS_FILE=keys.json hinged serve"
)(key)
cli.add_typer(ingest, name="ingest")


if __name__ == "__main__":
    main()
