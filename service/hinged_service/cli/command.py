"""Options and errors that all commands share: the address, the key, `--json`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Concatenate, Final, ParamSpec

import httpx
import typer

from hinged_service.cli.errors import report
from hinged_service.cli.output import print_json
from hinged_service.client import Client, ClientError, Retries

__all__ = ["DEFAULT_URL", "Session", "verb"]

P = ParamSpec("P")

DEFAULT_URL: Final = "http://127.0.0.1:8000"
_RETRIES: Final = Retries(deadline_s=2.0)  # a restarting service is met, a missing one reported


class Session:
    """One run of a verb.

    Parameters
    ----------
    client
        The client of the service.
    as_json
        Whether the result is for machines.

    """

    def __init__(self, client: Client, as_json: bool) -> None:
        self.client = client
        self._as_json = as_json

    def show(self, value: Any, draw: Callable[[], None]) -> None:
        """Print the result: `value` as JSON for machines, or what `draw` prints for people."""
        if self._as_json:
            print_json(value)
        else:
            draw()


def verb(
    cli: typer.Typer, name: str, panel: str
) -> Callable[[Callable[Concatenate[Session, P], None]], Callable[Concatenate[Session, P], None]]:
    """Return a decorator that adds a function as a verb.

    Parameters
    ----------
    cli
        The command line.
    name
        The verb.
    panel
        The heading under which the help lists it.

    """

    def decorate(
        function: Callable[Concatenate[Session, P], None],
    ) -> Callable[Concatenate[Session, P], None]:
        @functools.wraps(function)
        def run(url: str, api_key: str | None, as_json: bool, **given: Any) -> None:
            try:
                with Client(url, api_key=api_key, retries=_RETRIES) as client:
                    function(Session(client, as_json), **given)  # type: ignore[call-arg]
            except ClientError as error:
                raise typer.Exit(report(error, url)) from None

        signature = inspect.signature(function, eval_str=True)
        own = list(signature.parameters.values())[1:]
        run.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*own, *_SHARED]
        )
        cli.command(name, rich_help_panel=panel)(run)
        return function

    return decorate


def _checked_url(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeEncodeError) as error:
        raise typer.BadParameter(f"{url!r} is no address: {error}.") from None
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise typer.BadParameter(f"{url!r} is no address; one is like {DEFAULT_URL}.")
    return url


def _shared(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )


_SHARED: Final = [
    _shared(
        "url",
        Annotated[
            str,
            typer.Option(
                envvar="HINGED_URL",
                show_envvar=True,
                callback=_checked_url,
                help="Address of the service.",
                rich_help_panel="Service",
            ),
        ],
        DEFAULT_URL,
    ),
    _shared(
        "api_key",
        Annotated[
            str | None,
            typer.Option(
                envvar="HINGED_API_KEY",
                show_envvar=True,
                help="Key for what stands before the service, sent as a bearer token.",
                rich_help_panel="Service",
            ),
        ],
        None,
    ),
    _shared(
        "as_json",
        Annotated[
            bool,
            typer.Option(
                "--json",
                help="Print one JSON document and nothing else.",
                rich_help_panel="Service",
            ),
        ],
        False,
    ),
]
