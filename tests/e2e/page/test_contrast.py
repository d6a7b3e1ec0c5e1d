"""Visibility of the page: contrast, more than colours, and numbers of each chart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.page.conftest import Open
from tests.e2e.page.visiting import Visit

CONTRAST = Path(__file__).with_name("contrast.js").read_text()
BINARY = {"learner": {"type": "perceptron"}, "labels": ["down", "up"]}
SIZES = ((1440, 900), (390, 844))
THEMES = ("light", "dark")

Shown = Callable[[Visit], object]


def _learn(client: httpx.Client, name: str, spec: dict[str, Any], sent: list[Any]) -> None:
    client.put(f"/v1/models/{name}", json=spec).raise_for_status()
    if sent:
        client.post(f"/v1/models/{name}/learn", json=sent).raise_for_status()


def _points(n: int) -> list[dict[str, Any]]:
    """Points of a grid, down above a line for a while, then up."""
    grid = [(k % 5, k // 5 % 5) for k in range(n)]
    return [
        {"x": {"a": a, "b": b}, "y": "up" if (a + b > 4) is (k < 2 * n / 3) else "down"}
        for k, (a, b) in enumerate(grid)
    ]


def _no_model(client: httpx.Client) -> tuple[str, Shown]:
    return "#/m/contrast-nowhere", lambda here: here.page.locator(".empty a").count()


def _empty(client: httpx.Client) -> tuple[str, Shown]:
    _learn(client, "contrast-empty", BINARY, [])
    return "#/m/contrast-empty", lambda here: here.page.get_by_text("No events yet").count() > 3


def _binary(client: httpx.Client) -> tuple[str, Shown]:
    metrics = ["log_loss", "reliability", "confusion_matrix"]
    drift = {"detector": {"type": "DDM", "warm_start": 30}, "action": "mark"}
    _learn(client, "contrast-binary", {**BINARY, "metrics": metrics, "drift": drift}, _points(300))
    path = "/v1/models/contrast-binary"
    client.post(f"{path}/checkpoints", json={"name": "good"}).raise_for_status()
    client.post(f"{path}/configure", json={"set": {"learning_rate": 0.5}}).raise_for_status()
    client.post(f"{path}/predict", json={"x": {"a": 1}, "id": "late"}).raise_for_status()
    client.post(f"{path}/learn", json={"id": "late", "y": "up"}).raise_for_status()

    def shown(here: Visit) -> object:
        if here.card("Margins").locator("rect.bin").count() == 0:
            client.post(f"{path}/learn", json=_points(30)).raise_for_status()
        there = (".boundary", ".mark.drift path", ".mark.command path", ".dot", ".barrow")
        return all(here.page.locator(f"{one}").count() for one in (*there, "rect.bin"))

    return "#/m/contrast-binary", shown


def _multiclass(client: httpx.Client) -> tuple[str, Shown]:
    sent = [
        {"x": {"a": k % 8, "b": k // 8 % 5}, "y": f"class {(k % 8 + k // 8) % 9}"}
        for k in range(160)
    ]
    _learn(client, "contrast-classes", {"learner": {"type": "multiclass_perceptron"}}, sent)
    return "#/m/contrast-classes", lambda here: here.page.locator(".region").count()


def _challengers(client: httpx.Client) -> tuple[str, Shown]:
    _learn(client, "contrast-one", BINARY, [])
    other = {"learner": {"type": "averaged_perceptron"}, "labels": ["down", "up"]}
    _learn(client, "contrast-two", {**other, "stream": "contrast-one"}, _points(60))
    return "#/m/contrast-one", lambda here: here.card("Challengers").locator(".share").count() == 2


def _text(client: httpx.Client) -> tuple[str, Shown]:
    spec = {**BINARY, "pipeline": [{"type": "BagOfWords", "on": "text"}]}
    sent = [{"x": {"text": "a text of so many words that it is long"}, "y": "up"}] * 3
    _learn(client, "contrast-text", spec, sent)
    return "#/m/contrast-text", lambda here: here.card("Try it").locator("textarea").count() > 1


def _overview(client: httpx.Client) -> tuple[str, Shown]:
    _learn(client, "contrast-listed", BINARY, _points(30))
    return "#/", lambda here: here.page.get_by_role("link", name="contrast-listed").count()


def _elsewhere(view: str, there: str) -> Callable[[httpx.Client], tuple[str, Shown]]:
    return lambda _: (view, lambda here: here.page.locator(there).count())


STATES = {
    "no model": _no_model,
    "empty": _empty,
    "binary": _binary,
    "multiclass": _multiclass,
    "challengers": _challengers,
    "text": _text,
    "overview": _overview,
    "create": _elsewhere("#/new", "form select"),
    "example": _elsewhere("#/play/xor", ".point"),
}


@pytest.mark.parametrize("state", STATES)
def test_contrast_is_that_of_wcag_aa(visit: Open, client: httpx.Client, state: str) -> None:
    where, shown = STATES[state](client)
    here = visit("#/nothing")
    here.expected.add(404)
    here.go(where)
    here.until(shown, here)
    if (ask := here.button("Predict and explain")).count():
        ask.click()
        here.sees("It says")
    failed = []
    for width, height in SIZES:
        here.page.set_viewport_size({"width": width, "height": height})
        for theme in THEMES:
            here.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            found = here.page.evaluate(CONTRAST)
            failed += [f"{theme}, {width} px: {one}" for one in found["failed"]]
            assert found["judged"] > 10
    assert not failed, "\n".join(failed)


def test_every_chart_tells_its_numbers_to_pointer_and_keys(
    visit: Open, client: httpx.Client
) -> None:
    spec = {**BINARY, "metrics": ["log_loss", "reliability"]}
    _learn(client, "contrast-read", spec, _points(100))
    here = visit("#/m/contrast-read")
    here.page.locator(".status.live").wait_for()
    client.post("/v1/models/contrast-read/learn", json=_points(40)).raise_for_status()
    for title in (
        *("Accuracy", "Log loss", "Two features", "Mistakes and updates", "Throughput"),
        *("Margins", "Calibration"),
    ):
        card = here.card(title)
        chart, readout = card.locator("svg.chart"), card.locator(".readout")
        here.until(chart.is_visible)
        names = [name for name in card.locator(".axes .name").all_text_contents() if name]
        assert len(names) == 2, title
        chart.focus()
        here.page.keyboard.press("ArrowLeft")
        here.until(lambda told: any(c.isdigit() for c in told.inner_text()), readout)
        assert here.page.locator("#said").inner_text() != ""
        chart.blur()
        here.until(lambda told: not told.is_visible(), readout)
        chart.hover()
        here.until(lambda told: any(c.isdigit() for c in told.inner_text()), readout)
        here.page.mouse.move(0, 0)


def test_series_differ_by_more_than_colour(visit: Open) -> None:
    here = visit("#/")
    dashes, shapes = here.page.evaluate(
        """async () => {
          const { mark } = await import("./page/charts/marks.js");
          const svg = document.body.appendChild(document.createElementNS(
            "http://www.w3.org/2000/svg", "svg"));
          const dashes = [0, 1, 2].map((i) => {
            const line = svg.appendChild(document.createElementNS(svg.namespaceURI, "path"));
            line.setAttribute("class", `line c${i}`);
            return getComputedStyle(line).strokeDasharray;
          });
          return [dashes, Array.from({ length: 8 }, (_, i) => mark(i, 0, 0, 5).getAttribute("d"))];
        }"""
    )
    assert len(set(dashes)) == 3
    assert len(set(shapes)) == 8
