"""`hinged plot`: pictures of a model as files, drawn with Matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from hinged_service.cli.arguments import Name
from hinged_service.cli.command import Session
from hinged_service.cli.output import printable
from hinged_service.cli.progress import progress
from hinged_service.client import Client, LinearWeights, ModelHistory, Weights
from hinged_service.client.calls import Call, model_path, reader
from hinged_service.wire.reports import CertificateShown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot"]

_MOST_PARTS: Final = 6
_POSITIVE, _NEGATIVE, _NEUTRAL = "#0072b2", "#d55e00", "#7f7f7f"  # distinct for the colour-blind


class What(StrEnum):
    """The thing to draw."""

    ACCURACY = "accuracy"
    WEIGHTS = "weights"
    BOUND = "bound"
    CALIBRATION = "calibration"


def plot(
    session: Session,
    name: Name,
    out: Annotated[
        Path,
        typer.Option(dir_okay=False, help="The picture to write; its suffix is .png or .svg."),
    ],
    what: Annotated[
        What,
        typer.Option(
            help="accuracy over the events; the largest weights; updates against the mistake "
            "bound; calibration, which needs the metric reliability in the spec."
        ),
    ] = What.ACCURACY,
    top: Annotated[int, typer.Option(min=1, max=100, help="Weights to draw at most.")] = 20,
) -> None:
    """Draw a picture of a model into a file. It needs Matplotlib: pip install 'hinged[plot]'.

    hinged plot mail --out mail.png

    hinged plot mail --what weights --top 30 --out weights.svg
    """
    if out.suffix not in (".png", ".svg"):
        raise typer.BadParameter(f"{out} does not end with .png or .svg.", param_hint="--out")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        typer.echo("Pictures need Matplotlib. Install it: pip install 'hinged[plot]'", err=True)
        raise typer.Exit(1) from None
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    with progress("drawing"):
        _DRAWN[what](figure, session.client, name, top)
    try:
        figure.savefig(out, dpi=150)
    except OSError as error:
        typer.echo(f"Cannot write {out}: {error.strerror}.", err=True)
        raise typer.Exit(1) from None
    session.show({"model": name, "what": what, "file": str(out)}, f"Wrote the picture to {out}.")


def _accuracy(figure: Figure, client: Client, name: str, top: int) -> None:
    found: ModelHistory = client.history(name)
    points = [point for point in found.points if point.accuracy is not None]
    axes = figure.subplots()
    events = [point.events for point in points]
    for label, colour, values in (
        ("all events", _POSITIVE, [p.accuracy for p in points]),
        ("newest events (rolling)", _NEGATIVE, [p.rolling_accuracy for p in points]),
    ):
        shares = [float("nan") if value is None else 100 * value for value in values]
        axes.plot(events, shares, color=colour, label=label)
    for turn_events, turns in groupby(found.turns, lambda turn: turn.events):
        axes.axvline(turn_events, color=_NEUTRAL, linestyle=":", linewidth=1)
        at: dict[str, Any] = {"x": turn_events, "y": 0.98, "transform": axes.get_xaxis_transform()}
        axes.text(s=", ".join(turn.kind for turn in turns), rotation=90, ha="right", va="top", **at)
    axes.set(title=f"Accuracy of {name}", xlabel="events learned", ylabel="accuracy, %")
    axes.legend()


def _weights(figure: Figure, client: Client, name: str, top: int) -> None:
    parts = _parts(client.weights(name, top=top))
    figure.set_size_inches(8, max(4.5, sum(0.25 * len(p.weights) + 1 for p in parts.values())))
    for axes, (title, part) in zip(
        figure.subplots(len(parts), squeeze=False)[:, 0], parts.items(), strict=True
    ):
        found = dict(reversed(part.weights.items()))
        colours = [_POSITIVE if weight > 0 else _NEGATIVE for weight in found.values()]
        axes.barh([_axis_text(feature) for feature in found], list(found.values()), color=colours)
        axes.axvline(0, color=_NEUTRAL, linewidth=1)
        axes.set(title=title.format(name), xlabel=f"weight (intercept {part.intercept:.6g})")


def _parts(found: Weights) -> dict[str, LinearWeights]:
    """Return the linear functions to draw by title: at most six classes, one expert."""
    if found.classes is not None:
        some = list(found.classes.items())[:_MOST_PARTS]
        parts = {f"{{}}: the largest weights of {_axis_text(label)}": part for label, part in some}
        return parts or {"{} knows no class yet": LinearWeights({}, 0.0)}
    if found.experts is not None:
        best = max(found.experts, key=lambda expert: expert.trust)
        return {f"{{}}: the largest weights of its expert of trust {best.trust:.2%}": best}
    linear = LinearWeights(found.weights or {}, found.intercept or 0.0)
    return {"{}: the largest weights": linear}


def _bound(figure: Figure, client: Client, name: str, top: int) -> None:
    found = client.send(Call("GET", model_path(name, "/bound"), reader(CertificateShown)))
    axes = figure.subplots()
    values = {
        "mistakes": found.mistakes,
        "updates": found.updates,
        **{f"bound: {kind}": bound.value for kind, bound in found.bounds.items()},
    }
    colours = [_NEGATIVE, _NEGATIVE, *([_POSITIVE] * len(found.bounds))]
    bars = axes.bar(list(values), list(values.values()), color=colours)
    axes.bar_label(bars, fmt="{:,.6g}")
    axes.margins(y=0.2)
    title = f"{name}: updates of {found.events:,} events, and the bounds on them"
    axes.set(title=title, ylabel="number", yscale="symlog")


def _calibration(figure: Figure, client: Client, name: str, top: int) -> None:
    info = client.model(name)
    names = [metric for metric in info.metrics if "reliability" in metric]
    if not names:
        raise typer.BadParameter(
            f"{name} does not count it. Create a model with the metric in its spec: "
            '"metrics": ["accuracy", "reliability"].',
            param_hint="--what",
        )
    bins: list[Mapping[str, Any]] = info.metrics[names[0]] or []
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color=_NEUTRAL, linestyle=":", label="calibrated")
    probabilities = [one["probability"] for one in bins]
    axes.plot(probabilities, [one["share"] for one in bins], "o-", color=_POSITIVE, label=name)
    for one in bins:
        place = one["probability"], one["share"]
        axes.annotate(
            f"{one['events']:,}", place, (0, 6), textcoords="offset points", fontsize="small"
        )
    kind = "calibrated" if info.calibrated else "uncalibrated"
    title = f"Reliability of {name}, {kind}; numbers are events"
    axes.set(title=title, xlabel="predicted probability", ylabel="share that came true")
    axes.legend()


def _axis_text(text: str) -> str:
    """Return a name as a picture can show it; Matplotlib parses text between dollars."""
    short = text if len(text) <= 40 else f"{text[:37]}..."
    return printable(short).replace("$", r"\$")


_DRAWN: Final[Mapping[What, Callable[[Figure, Client, str, int], None]]] = {
    What.ACCURACY: _accuracy,
    What.WEIGHTS: _weights,
    What.BOUND: _bound,
    What.CALIBRATION: _calibration,
}
