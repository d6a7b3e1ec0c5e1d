"""Verbs about models: list, create, look at, change, delete."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import msgspec
import typer

from hinged_service.cli.arguments import AtLeast, ClassName, LearnerType, Name, NameOrAll, Settings
from hinged_service.cli.command import Session
from hinged_service.cli.inputs import pairs, read_bytes, read_documents, value_of
from hinged_service.cli.output import Facts, Share, Table, accuracy, staleness
from hinged_service.cli.progress import counted, progress
from hinged_service.client import ClientError, LinearWeights, ModelInfo, Upgraded, Weights

__all__ = [
    "configure",
    "create",
    "delete",
    "freeze",
    "learner_spec",
    "models",
    "repair",
    "reset",
    "show",
    "typed",
    "unfreeze",
    "upgrade",
    "weights",
]


def models(session: Session) -> None:
    """List the models.

    hinged models
    """
    found = session.client.models()
    session.show(
        found,
        Table(
            ("model", "learner", "stream", "labels"),
            [(m.name, m.spec["learner"]["type"], m.spec["stream"], _labels(m.spec)) for m in found],
            "There are no models. Make one: hinged create NAME --learner perceptron",
        ),
    )


def create(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The new model's name.")],
    learner: LearnerType = None,
    parameters: Settings = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            help="A label; repeat it for each. Binary: the negative one first. Without it: true "
            "and false; of a multiclass learner any text.",
        ),
    ] = None,
    steps: Annotated[
        list[str] | None,
        typer.Option(
            "--step",
            metavar="TRANSFORMER",
            help="A transformer, such as StandardScaler; repeat it for more, in order.",
        ),
    ] = None,
    stream: Annotated[
        str | None, typer.Option(help="The stream to follow. Default: a stream of its own.")
    ] = None,
    spec: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-", help="The whole spec as JSON, from a file or standard input."
        ),
    ] = None,
) -> None:
    """Create a model. The same command again changes nothing.

    hinged create mail --learner perceptron --label ham --label spam

    echo '{"learner": {"type": "arow"}}' | hinged create mail --spec -
    """
    parts = (learner, parameters, labels, steps, stream)
    if (spec is None) is (learner is None) or (spec is not None and any(parts)):
        raise typer.BadParameter("Give either --learner with its options, or --spec alone.")
    if spec is not None:
        wanted = _read_spec(spec)
    else:
        document: dict[str, Any] = {
            "learner": learner_spec(learner, parameters),
            "pipeline": [{"type": step} for step in steps or ()],
            "labels": typed(labels or []),
            "stream": stream,
        }
        wanted = {key: value for key, value in document.items() if value}
    with progress("creating") as bar:
        made = session.client.create_model(name, wanted, progress=bar.step)
    session.show(
        made,
        f"Created the model {made.name}: {made.spec['learner']['type']} on the stream "
        f"{made.spec['stream']}.",
    )


def show(session: Session, name: Name, at_least: AtLeast = None) -> None:
    """Show a model: its spec, how much it has learned and how well.

    hinged show mail
    """
    with progress("asking") as bar:
        found = session.client.model(name, at_least=at_least, progress=bar.step)
    session.show(found, _facts(found))


def weights(
    session: Session,
    name: Name,
    top: Annotated[
        int | None, typer.Option(min=1, help="Only this many of the largest weights of each class.")
    ] = None,
    skip: Annotated[
        int | None, typer.Option(min=0, help="Skip this many of the largest weights of each class.")
    ] = None,
    label: ClassName = None,
    at_least: AtLeast = None,
) -> None:
    """Show the weights that predict, largest magnitude first.

    hinged weights mail --top 10

    hinged weights mail --top 1000 --skip 1000
    """
    found = session.client.weights(name, top=top, skip=skip, label=label, at_least=at_least)
    session.show(found, _weights(found))


def configure(
    session: Session,
    name: Name,
    parameters: Annotated[
        list[str],
        typer.Argument(
            metavar="PARAMETER=VALUE",
            help="learning_rate, C, r, phi, margin, share or forgetting, if the learner has it.",
        ),
    ],
) -> None:
    """Change parameters of the learner from now on. The model keeps its weights.

    hinged configure mail learning_rate=0.1
    """
    wanted = pairs(parameters, "PARAMETER=VALUE")
    _obeyed(
        session,
        name,
        session.client.configure(name, wanted),
        "learns with these parameters from now on",
    )


def freeze(session: Session, name: Name) -> None:
    """Stop learning. The model predicts, and scores events without learning them.

    hinged freeze mail
    """
    _obeyed(session, name, session.client.freeze(name), "only predicts from now on")


def unfreeze(session: Session, name: Name) -> None:
    """Resume learning.

    hinged unfreeze mail
    """
    _obeyed(session, name, session.client.unfreeze(name), "learns again")


def reset(session: Session, name: Name) -> None:
    """Forget what was learned; the counters continue. A checkpoint before lets you go back.

    hinged reset mail
    """
    _obeyed(session, name, session.client.reset(name), "was reset")


def delete(
    session: Session,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Delete without asking.")] = False,
) -> None:
    """Delete a model. The last model of a stream takes the stream with it.

    hinged delete mail --yes
    """
    if not yes and not _agreed(f"Delete the model {name} and what it learned?"):
        typer.echo("Nothing was deleted. Use --yes to delete without a question.", err=True)
        raise typer.Exit(1)
    session.client.delete_model(name)
    session.show({"deleted": name}, f"The model {name} is deleted.")


def upgrade(
    session: Session,
    name: NameOrAll = None,
    every: Annotated[bool, typer.Option("--all", help="All models.")] = False,
) -> None:
    """Upgrade a model to the version of the service that answers.

    Versions whose arithmetic may differ never share a model. Workers of the new version answer 503
    for it before the upgrade, workers of the old version after it. A model that has the version
    already does not change.

    hinged upgrade mail

    hinged upgrade --all
    """
    if (name is None) is not every:
        raise typer.BadParameter("Name a model, or give --all.")

    def upgraded(one: str) -> Upgraded | ClientError:
        try:
            return session.client.upgrade(one)
        except ClientError as error:
            return error

    done: dict[str, Upgraded | ClientError]
    if name is None:
        names = [m.name for m in session.client.models()]
        results = counted("upgrading", map(upgraded, names), len(names), "models")
        done = dict(zip(names, results, strict=True))
    else:
        with progress("upgrading") as display:
            done = {name: session.client.upgrade(name, progress=display.step)}
    listed = [_upgrade_result(one, result) for one, result in done.items()]
    session.show(
        listed if every else listed[0],
        Table(
            ("model", "", "version"),
            [_upgrade_row(one, result) for one, result in done.items()],
            "There are no models.",
        ),
    )
    for result in done.values():
        if isinstance(result, ClientError):
            raise result


def learner_spec(kind: str | None, parameters: list[str] | None) -> dict[str, Any]:
    """Return a learner's spec from `--learner` and `--set`."""
    return {"type": kind, **pairs(parameters or [], "--set")}


def _agreed(question: str) -> bool:
    typer.echo(f"{question} [y/N] ", err=True, nl=False)  # typer's own prompt writes to stdout
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _read_spec(path: str) -> dict[str, Any]:
    documents, _ = read_documents(read_bytes(path), "The spec")
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise typer.BadParameter("The spec must be one JSON object.", param_hint="--spec")
    return documents[0]


def typed(labels: list[str]) -> list[Any]:
    """Return labels as integers or booleans if all are, else as text."""
    values = [value_of(label) for label in labels]
    kinds = {type(value) for value in values}
    return values if kinds in ({int}, {bool}) else labels


def _labels(spec: dict[str, Any]) -> str:
    labels = spec.get("labels")
    if isinstance(labels, list):
        return ", ".join(str(label) for label in labels)
    return labels or ("any text" if "max_classes" in spec["learner"] else "false, true")


def _facts(info: ModelInfo) -> Facts:
    spec = info.spec
    parameters = {k: v for k, v in spec["learner"].items() if k != "type"}
    return Facts(
        {
            "model": info.name,
            "learner": spec["learner"]["type"],
            "parameters": {**parameters, **info.configured} or None,
            "pipeline": ", ".join(step["type"] for step in spec.get("pipeline", ())) or None,
            "scale": spec.get("scale"),
            "stream": spec["stream"],
            "classes": ", ".join(str(label) for label in info.classes),
            "events": info.events,
            "accuracy": accuracy(info.judged, info.mistakes),
            "not judged": info.events - info.judged or None,
            "mistakes": info.mistakes,
            "updates": info.updates,
            "hinge loss": info.hinge_loss,
            "features": info.features,
            **{n: _metric(n, value) for n, value in info.metrics.items() if n != "accuracy"},
            "drifts": info.drifts or None,
            "rejected": info.rejected or None,
            **{f"not learned from {door}": _counted(counts) for door, counts in info.doors.items()},
            "excluded": info.excluded or None,
            "overflows": info.overflows or None,
            "ignored features": info.ignored_features or None,
            "frozen": info.frozen or None,
            "catching up": f"{info.progress:.0%}" if info.progress < 1 else None,
            "stale": staleness(info.stale_s),
            "position": info.position,
        }
    )


def _metric(name: str, value: object) -> object:
    return Share(value) if "accuracy" in name and isinstance(value, float) else value


def _counted(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in counts.items())


def _weights(found: Weights) -> Table:
    if found.classes is not None:
        return Table(
            ("class", "feature", "weight"),
            ((label, *row) for label, part in found.classes.items() for row in _rows(part)),
            "The model knows no class yet.",
        )
    if found.experts is not None:
        return Table(
            ("expert", "trust", "feature", "weight"),
            (
                (str(i), expert.trust, *row)
                for i, expert in enumerate(found.experts)
                for row in _rows(expert)
            ),
            "There are no experts.",
        )
    part = LinearWeights(found.weights or {}, found.intercept or 0.0)
    return Table(("feature", "weight"), _rows(part))


def _rows(part: LinearWeights) -> list[tuple[str, float]]:
    return [*part.weights.items(), ("(intercept)", part.intercept)]


def repair(
    session: Session,
    name: Name,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            help="Name or uid of a checkpoint to continue from, if the model's snapshot is lost "
            "and the log no longer holds the events before. Later events are not learned again."
        ),
    ] = None,
) -> None:
    """Remove foreign entries from the log of a model, and skip damaged ones.

    Every worker goes on from the models' snapshots without their events. A log that is sound stays
    as it is.

    hinged repair mail

    hinged repair mail --checkpoint monday
    """
    with progress("repairing") as bar:
        done = session.client.repair(name, checkpoint, progress=bar.step)
    result = {"model": name, **msgspec.to_builtins(done)}
    text = f"{len(done.removed)} entries removed, {len(done.passed_over)} skipped."
    text += "".join(f"\nRemoved: {one}." for one in done.records)
    if checkpoint is not None:
        text = f"The model {name} continues from the checkpoint {checkpoint}."
    session.show(result, text)


def _obeyed(session: Session, name: str, position: str, what: str) -> None:
    session.show(
        {"model": name, "position": position},
        f"The model {name} {what}.",
    )


def _upgrade_result(name: str, result: Upgraded | ClientError) -> dict[str, Any]:
    if isinstance(result, ClientError):
        return {"model": name, "error": result.detail}
    return {"model": name, **msgspec.to_builtins(result)}


def _upgrade_row(name: str, result: Upgraded | ClientError) -> tuple[str, str, str]:
    if isinstance(result, ClientError):
        return name, "failed", result.detail
    return name, "as before" if result.before == result.fold else "upgraded", result.fold
