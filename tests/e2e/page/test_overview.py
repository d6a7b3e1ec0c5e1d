"""The overview: every model, and numbers that move."""

from __future__ import annotations

import httpx

from tests.e2e.page.conftest import Open

SPEC = {"learner": {"type": "perceptron"}}


def row(name: str) -> str:
    return f"tr:has(a:text-is('{name}'))"


def test_models_are_listed_with_numbers_that_move(visit: Open, client: httpx.Client) -> None:
    client.put("/v1/models/seen", json=SPEC).raise_for_status()
    client.put("/v1/models/seen-too", json={**SPEC, "stream": "seen"}).raise_for_status()
    client.post("/v1/models/seen/learn", json=[{"x": {"a": 1}, "y": True}] * 3)
    here = visit()
    cells = here.page.locator(row("seen")).locator("td")
    here.until(lambda: cells.nth(1).inner_text() == "3")
    assert cells.nth(0).inner_text() == "perceptron"
    client.post("/v1/models/seen/learn", json=[{"x": {"a": 1}, "y": True}] * 5)
    here.until(lambda: cells.nth(1).inner_text() == "8")
    assert cells.nth(3).inner_text() == "87.5%", "one mistake of eight"
    here.until(lambda: float(cells.nth(2).inner_text()) > 0)
    here.sees("on seen")
    here.page.get_by_role("link", name="seen-too").click()
    here.page.get_by_role("heading", name="seen-too", level=1).wait_for()


def test_models_are_found_by_name(visit: Open, client: httpx.Client) -> None:
    for name in ("needle-1", "needle-2", "haystack"):
        client.put(f"/v1/models/{name}", json=SPEC).raise_for_status()
    here = visit()
    here.page.locator(row("haystack")).wait_for()
    here.page.get_by_role("searchbox").fill("needle")
    here.until(lambda: here.page.locator("tbody tr").count() == 2)
    here.page.get_by_role("searchbox").fill("no such name")
    here.sees("No model has this in its name.")


def test_a_model_that_cannot_be_served_says_why(visit: Open, client: httpx.Client) -> None:
    client.put("/v1/models/fleeting", json=SPEC).raise_for_status()
    here = visit("#/m/fleeting")
    here.sees("live")
    client.delete("/v1/models/fleeting").raise_for_status()
    here.expected.add(404)
    here.sees("The model was deleted.")


def test_a_hidden_tab_asks_nothing(visit: Open, client: httpx.Client) -> None:
    client.put("/v1/models/unseen", json=SPEC).raise_for_status()
    here = visit()
    here.page.locator(row("unseen")).wait_for()
    here.page.evaluate(
        """() => {
          Object.defineProperty(document, "hidden", {value: true, configurable: true});
          document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    asked: list[str] = []
    here.page.wait_for_timeout(300)  # what was on its way when the tab was hidden
    here.page.on("request", lambda request: asked.append(request.url))
    here.page.wait_for_timeout(2_500)  # longer than from one look to the next
    assert asked == []
    here.page.evaluate(
        """() => {
          Object.defineProperty(document, "hidden", {value: false});
          document.dispatchEvent(new Event("visibilitychange"));
        }"""
    )
    here.until(lambda: asked)
