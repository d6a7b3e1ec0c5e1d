"""The examples, step by step, against what a perceptron does by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from tests.e2e.page.conftest import Open
from tests.e2e.page.visiting import Visit


def step(here: Visit, times: int) -> None:
    button = here.button("Next event")
    facts = here.card("The weights").locator("p")
    for _ in range(times):
        before = facts.inner_text()
        button.click()
        here.until(lambda old: facts.inner_text() != old and button.is_enabled(), before)


def shown(here: Visit) -> dict[str, float]:
    rows = here.card("The weights").locator("li").all()
    return {
        row.locator(".name").inner_text(): float(
            row.locator(".value").inner_text().replace("−", "-")
        )
        for row in rows
    }


def test_and_is_learned_in_eight_passes(visit: Open, client: httpx.Client) -> None:
    here = visit("#/play/and")
    here.sees("There is no model yet")
    here.until(lambda: here.card("The boundary").locator(".point").count() == 4)
    assert client.get("/v1/models/example-and").status_code == 404, "to look creates nothing"
    step(here, 4)
    # 00, 01 and 10 are ties with label false: -1 to the intercept at 00; then 11 is missed.
    assert shown(here) == {"a": 1, "b": 1, "(intercept)": 0}
    line = here.card("The boundary").locator("path.boundary").last
    here.until(lambda: line.get_attribute("d"))
    rows = [{"x": {"a": a, "b": b}, "y": a == b == 1} for a in (0, 1) for b in (0, 1)]
    path = "/v1/models/example-and/learn"
    learned = [client.post(path, json=rows).json() for _ in range(7)]
    assert any(one["updated"] for one in learned[-1]), "the eighth pass still moves it"
    here.page.reload()
    here.sees("Pass 9.")
    here.button("Play").click()
    here.sees("it has learned it")
    here.until(lambda: here.button("Play").count() == 1)
    assert "36 events" in here.card("The weights").inner_text(), "it stops by itself"
    here.button("Start over").click()
    here.sees("A new model, all weights zero.")
    here.sees("In all 0 events")
    here.button("Delete the model").click()
    here.sees("There is no model yet")
    assert client.get("/v1/models/example-and").status_code == 404


def test_the_six_rows(visit: Open, client: httpx.Client) -> None:
    here = visit("#/play/six-rows")
    here.sees("There is no model yet")
    step(here, 6)
    expected = {"x0": 0, "x1": 1, "x2": 0, "x3": -0.5, "x4": 0.5, "(intercept)": 0}
    assert shown(here) == expected
    assert "6 events, 4 mistakes, 4 updates" in here.card("The weights").inner_text()
    assert here.card("The events").get_by_text("right").count() == 6


@pytest.mark.parametrize(("key", "right"), [("xor", False), ("xor-product", True)])
def test_xor_needs_the_product(visit: Open, client: httpx.Client, key: str, right: bool) -> None:
    here = visit(f"#/play/{key}")
    here.sees("There is no model yet")
    step(here, 1)
    path = f"/v1/models/example-{key}"
    rows = [{"x": {"a": a, "b": b}, "y": a != b} for a in (0, 1) for b in (0, 1)]
    client.post(f"{path}/learn", json=rows * 20).raise_for_status()
    step(here, 1)
    predicted: list[Mapping[str, Any]] = client.post(
        f"{path}/predict", json=[{"x": r["x"]} for r in rows]
    ).json()
    assert all(t["y"] == r["y"] for t, r in zip(predicted, rows, strict=True)) is right
    badges = here.card("The events").locator("tbody .badge").all_inner_texts()
    assert all(text.startswith("right") for text in badges) is right
