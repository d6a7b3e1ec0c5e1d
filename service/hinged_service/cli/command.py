"""Run a command with the options that all of its kind share: the address, the key, `--output`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated, Any, Final

import httpx
import typer

from hinged_service.cli.errors import report
from hinged_service.cli.output import PANEL, JsonOption, Output, OutputOption, Part, print_result
from hinged_service.client import Client, ClientError, Retries

__all__ = ["DEFAULT_URL", "Session", "add_verb", "with_shared"]

DEFAULT_URL: Final = "http://127.0.0.1:8000"
_RETRIES: Final = Retries(deadline_s=2.0)  # a restarting service is met, a missing one reported


class Session:
    """One run of a command that calls the service; `output` is the form of its result."""

    def __init__(self, client: Client, output: Output) -> None:
        self.client = client
        self.output = output

    def show(self, value: object, *parts: Part) -> None:
        """Print the result: `value` for machines, sentences, facts and tables for people."""
        print_result(self.output, value, *parts)


def add_verb(cli: typer.Typer, panel: str, function: Callable[..., None]) -> None:
    """Add a function of a session as the command of its name, listed by the help under `panel`."""
    name = function.__name__.rstrip("_")
    cli.command(name, rich_help_panel=panel)(with_shared(_session, function))


def with_shared(
    shared: Callable[..., AbstractContextManager[object]], function: Callable[..., None]
) -> Callable[..., None]:
    """Return a command that takes the options of two functions, those of `shared` last.

    The value of the context that `shared` returns is the first argument of `function`.
    """
    parameters = [inspect.signature(f, eval_str=True).parameters for f in (function, shared)]
    own, more = (list(found.values()) for found in parameters)

    @functools.wraps(function)
    def run(**arguments: Any) -> None:
        with shared(**{option.name: arguments.pop(option.name) for option in more}) as made:
            function(made, **arguments)

    keyword = inspect.Parameter.KEYWORD_ONLY
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [option.replace(kind=keyword) for option in (*own[1:], *more)]
    )
    return run


def _checked_url(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeEncodeError) as error:
        raise typer.BadParameter(f"{url!r} is not an address: {error}.") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise typer.BadParameter(f"{url!r} is not an address. An address looks like {DEFAULT_URL}.")
    return url


@contextmanager
def _session(
    url: Annotated[
        str,
        typer.Option(
            envvar="HINGED_URL",
            show_envvar=True,
            callback=_checked_url,
            help="Address of the service.",
            rich_help_panel=PANEL,
        ),
    ] = DEFAULT_URL,
    api_key: Annotated[
        str | None,
        typer.Option(
            envvar="HINGED_API_KEY",
            show_envvar=True,
            help="Key for the service or a proxy before it, sent as a bearer token.",
            rich_help_panel=PANEL,
        ),
    ] = None,
    output: OutputOption = Output.TABLE,
    as_json: JsonOption = False,
) -> Iterator[Session]:
    try:
        with Client(url, api_key=api_key, retries=_RETRIES) as client:
            yield Session(client, Output.JSON if as_json else output)
    except ClientError as error:
        raise typer.Exit(report(error, url)) from None
