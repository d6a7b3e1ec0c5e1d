"""Arguments that several commands take; names are completed from the service."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from hinged_service.cli.command import DEFAULT_URL
from hinged_service.client import Client, ClientError, Retries

__all__ = [
    "AliasName",
    "AtLeast",
    "CheckpointName",
    "ClassName",
    "DataDir",
    "LearnerType",
    "Name",
    "NameOrAll",
    "Proba",
    "RedisUrl",
    "Settings",
    "StreamName",
    "sendable",
]

_COMPLETION_S = 1.0


def _completed(find: Callable[[Client, dict[str, Any]], list[str]]) -> Callable[..., list[str]]:
    """Return a completion: the names that `find` gets from the service, if it answers."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        url = context.params.get("url") or os.environ.get("HINGED_URL") or DEFAULT_URL
        key = context.params.get("api_key") or os.environ.get("HINGED_API_KEY")
        once = Retries(deadline_s=0)
        try:
            with Client(url, api_key=key, timeout_s=_COMPLETION_S, retries=once) as client:
                names = find(client, context.params)
        except (ClientError, ValueError, TypeError):
            return []
        return [name for name in names if name.startswith(incomplete)]

    return complete


def _models(client: Client, _: dict[str, Any]) -> list[str]:
    return [m.name for m in client.models()] + [a.alias for a in client.aliases()]


def _aliases(client: Client, _: dict[str, Any]) -> list[str]:
    return [a.alias for a in client.aliases()]


def _checkpoints(client: Client, arguments: dict[str, Any]) -> list[str]:
    return [c.name or c.uid for c in client.checkpoints(arguments["name"])]


def _streams(client: Client, _: dict[str, Any]) -> list[str]:
    return [s.stream for s in client.streams()]


def _learners(incomplete: str) -> list[str]:
    from hinged_service.model.spec import ModelSpec  # takes a while, and no verb needs it

    found = ModelSpec.model_json_schema()["properties"]["learner"]["discriminator"]["mapping"]
    return [name for name in found if name.startswith(incomplete)]


def sendable(arguments: str | list[str] | None) -> str | list[str] | None:
    """Return an address or a name, which goes over a wire; refuse one that is not valid Unicode."""
    try:
        for text in [arguments] if isinstance(arguments, str) else arguments or ():
            text.encode()
    except UnicodeEncodeError:
        raise typer.BadParameter(f"{text!r} is not valid Unicode.") from None
    return arguments


RedisUrl = Annotated[
    str | None,
    typer.Option(
        callback=sendable,
        envvar="HINGED_REDIS_URL",
        show_envvar=True,
        help="Redis >= 7.0 or Valkey >= 7.2 to keep the models in: redis://, rediss://, unix://, "
        "redis+sentinel:// or redis+cluster://. Without it an embedded Valkey keeps them in the "
        "data directory.",
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        envvar="HINGED_DATA_DIR",
        show_envvar=True,
        file_okay=False,
        help="Directory of the embedded Valkey. All processes that share it share their models.",
    ),
]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="The model, or an alias.", autocompletion=_completed(_models)
    ),
]
NameOrAll = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", help="The model, or an alias.", autocompletion=_completed(_models)
    ),
]
AliasName = Annotated[
    str, typer.Argument(metavar="ALIAS", help="The alias.", autocompletion=_completed(_aliases))
]
StreamName = Annotated[
    str | None,
    typer.Argument(
        metavar="STREAM",
        help="A stream: compare its models.",
        autocompletion=_completed(_streams),
    ),
]
CheckpointName = Annotated[
    str,
    typer.Argument(
        metavar="CHECKPOINT",
        help="The checkpoint's name or uid.",
        autocompletion=_completed(_checkpoints),
    ),
]
LearnerType = Annotated[
    str | None,
    typer.Option(
        "--learner",
        metavar="TYPE",
        help="The update rule, such as perceptron, arow or multiclass_perceptron. "
        "docs/reference/spec-learners.md lists all.",
        autocompletion=_learners,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PARAMETER=VALUE",
        help="A parameter of the learner, such as learning_rate=0.5; repeat it for more.",
    ),
]
ClassName = Annotated[
    str | None, typer.Option("--class", metavar="LABEL", help="Multiclass: only this class.")
]
Proba = Annotated[
    str | None,
    typer.Option(
        metavar="CHOICE",
        help="Probabilities to return: all, none, or top:5 for the five likeliest classes. "
        "Default: top:10.",
    ),
]
AtLeast = Annotated[
    str | None,
    typer.Option(
        metavar="POSITION",
        help="Wait until the model has learned up to this position, which an earlier answer gave.",
    ),
]
