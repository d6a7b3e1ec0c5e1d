"""By keyboard, by screen reader, in the dark, on a phone; and names that look like markup."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.e2e.page.conftest import Open

HOSTILE = "<img src=x onerror=alert(1)>"
VIEWS = ("#/", "#/new", "#/play/and", "#/m/reached")


@pytest.fixture
def reached(client: httpx.Client) -> str:
    path = "/v1/models/reached"
    spec = {"learner": {"type": "perceptron"}, "labels": ["no", "yes"]}
    client.put(path, json=spec).raise_for_status()
    sent = [
        {"id": str(k), "x": {"a": k % 5, "b": k % 3}, "y": "yes" if k % 5 > 2 else "no"}
        for k in range(40)
    ]
    client.post(f"{path}/learn", json=sent).raise_for_status()
    return path


@pytest.mark.parametrize("where", VIEWS)
def test_everything_has_a_name(visit: Open, reached: str, where: str) -> None:
    here = visit(where)
    here.page.locator("h1").wait_for()
    here.page.wait_for_load_state("load")
    here.until(lambda: here.page.locator("main .card, main table").count() > 0)
    unnamed = here.page.evaluate(
        """() => {
          const named = (node) => node.getAttribute("aria-label") || node.textContent.trim()
            || node.title || (node.labels && node.labels.length);
          const wanted = "button, a, input, select, textarea, [role=region]";
          const nodes = [...document.querySelectorAll(wanted)].filter((n) => n.checkVisibility());
          const charts = [...document.querySelectorAll("svg[role=img]")].filter((n) =>
            n.checkVisibility() && n.clientWidth && !n.querySelector("title")?.textContent);
          return [...nodes.filter((n) => !named(n)), ...charts].map((n) => n.outerHTML);
        }"""
    )
    assert unnamed == []
    assert here.page.locator("h1").count() == 1


def test_a_walk_by_keyboard(visit: Open, reached: str) -> None:
    here = visit()
    page = here.page
    page.get_by_role("link", name="reached").wait_for()

    def press_until(key: str, condition: str) -> None:
        for _ in range(80):
            page.keyboard.press(key)
            if page.evaluate(
                f"(() => {{ const at = document.activeElement; return {condition} }})()"
            ):
                return
        raise AssertionError(f"{condition} was not reached by {key}")

    press_until("Tab", "at.className === 'skip'")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    press_until("Tab", "at.textContent === 'reached'")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="reached", level=1).wait_for()
    assert page.evaluate("document.activeElement.tagName") == "H1"
    here.until(lambda: here.card("Try it").get_by_label("Value of a").count() == 1)
    press_until("Tab", "at.getAttribute('aria-label') === 'Value of a'")
    page.keyboard.press("Enter")  # a form answers to Enter
    here.sees("It says")
    press_until("Tab", "at.textContent === 'Teach it'")
    before = here.number("events")
    page.keyboard.press("Space")
    here.until(lambda: here.number("events") == before + 1)
    announcement = page.locator("#said")
    here.until(lambda: announcement.inner_text() != "")
    assert announcement.get_attribute("aria-live") == "polite"


@pytest.mark.parametrize("where", VIEWS)
def test_on_a_phone_nothing_is_wider_than_the_screen(visit: Open, reached: str, where: str) -> None:
    here = visit(where, viewport={"width": 360, "height": 740})
    here.until(lambda: here.page.locator("main .card, main table").count() > 0)
    assert here.page.evaluate("document.documentElement.scrollWidth") == 360


def test_in_the_dark(visit: Open, reached: str) -> None:
    def brightness(scheme: str) -> list[float]:
        here = visit("#/m/reached", color_scheme=scheme)
        here.page.locator(".card").first.wait_for()
        colors: Any = here.page.evaluate(
            """() => [[document.body, "backgroundColor"], [document.body, "color"],
                      [document.querySelector(".card"), "backgroundColor"]]
              .map(([node, what]) => getComputedStyle(node)[what].match(/[0-9]+/g).slice(0, 3))"""
        )
        return [sum(map(int, color)) / 3 for color in colors]

    ground, ink, card = brightness("dark")
    assert max(ground, card) < 60 < 200 < ink
    ground, ink, card = brightness("light")
    assert min(ground, card) > 230 > 60 > ink


def test_names_full_of_markup_are_text(visit: Open, client: httpx.Client) -> None:
    path = "/v1/models/hostile"
    labels = ["<b>no</b>", HOSTILE]
    spec = {"learner": {"type": "perceptron"}, "labels": labels}
    client.put(path, json=spec).raise_for_status()
    sent = [
        {
            "x": {
                HOSTILE: k % 5,
                "<script>alert(2)</script>": k % 3,
                "__proto__": 1,
                "toString": 2,
            },
            "y": labels[k % 2],
        }
        for k in range(30)
    ]
    client.post(f"{path}/learn", json=sent).raise_for_status()
    here = visit("#/m/hostile")
    dialogs: list[str] = []
    here.page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    here.until(lambda: here.card("Two features").locator(".point").count() == 30)
    client.post(f"{path}/learn", json=sent).raise_for_status()
    here.until(lambda: here.number("events") == 60)
    here.button("Predict and explain").click()
    here.sees("It says")
    for title in ("Largest weights", "Latest events", "Confusion", "Two features", "Try it"):
        here.until(lambda card: card.get_by_text(HOSTILE).count() > 0, here.card(title))
    assert here.card("Try it").get_by_label("Value of __proto__").input_value() == "1"
    explained = client.post(f"{path}/explain", json={"x": sent[0]["x"]}).json()
    assert len(explained["features"]) == here.card("Try it").locator(".bars li").count() - 1
    assert here.page.locator("main img, main b b, main script").count() == 0
    assert dialogs == []


def test_leaving_at_any_moment_is_no_error(visit: Open, reached: str) -> None:
    here = visit()
    for pause_ms in (0, 30, 120):
        for where in (*VIEWS, "#/play/xor"):
            here.page.evaluate(f"location.hash = {where!r}")
            here.page.wait_for_timeout(pause_ms)
    here.page.locator("h1").wait_for()
