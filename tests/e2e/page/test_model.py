"""A model's page: it moves as the model learns, and what can be done there is done."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest

from tests.e2e.page.conftest import Open
from tests.e2e.page.visiting import Visit

SPEC: dict[str, Any] = {"learner": {"type": "perceptron"}, "labels": ["down", "up"]}


def put(client: httpx.Client, name: str, **spec: Any) -> str:
    path = f"/v1/models/{name}"
    client.put(path, json={**SPEC, **spec}).raise_for_status()
    return path


def events(n: int, first: int = 0) -> list[dict[str, Any]]:
    """Points of a grid, up where a + b is more than 4."""
    points = [(k % 5, k // 5 % 5) for k in range(first, first + n)]
    return [{"x": {"a": a, "b": b}, "y": "up" if a + b > 4 else "down"} for a, b in points]


def contradict(client: httpx.Client, path: str, x: dict[str, Any]) -> None:
    """Teach the label that the model would not predict, so that its weights move."""
    predicted = client.post(f"{path}/predict", json={"x": x}).json()
    y = "up" if predicted["y"] == "down" else "down"
    assert client.post(f"{path}/learn", json={"x": x, "y": y}).json()["updated"]


def watching(visit: Open, name: str) -> Visit:
    here = visit(f"#/m/{name}")
    here.page.locator(".status.live").wait_for()
    return here


def test_numbers_and_charts_move_as_it_learns(visit: Open, client: httpx.Client) -> None:
    path = put(client, "moving")
    here = watching(visit, "moving")
    learned = client.post(f"{path}/learn", json=events(50)).json()
    here.until(lambda: here.number("events") == 50)
    mistakes = sum(one["mistake"] for one in learned)
    here.until(lambda: here.number("mistakes") == mistakes)
    here.until(lambda: here.number("updates") == sum(one["updated"] for one in learned))
    here.until(lambda: here.number("accuracy") == 100 - 2 * mistakes)
    weights = client.get(f"{path}/weights").json()
    bars = here.card("Largest weights").locator("li")
    here.until(lambda: bars.count() == 2)

    def shown() -> dict[str, float]:
        pairs = [(b.locator(".name"), b.locator(".value").inner_text()) for b in bars.all()]
        return {name.inner_text(): float(value.replace("−", "-")) for name, value in pairs}

    here.until(lambda: shown() == weights["weights"])
    rows = here.card("Latest events").locator("tbody tr")
    here.until(lambda: rows.count() > 5)
    here.until(lambda: "right" in rows.locator(".badge").all_inner_texts())
    cells = here.card("Confusion").locator("tbody td")
    here.until(lambda: sum(map(int, cells.all_inner_texts())) == 20)  # as many as a tick shows
    here.until(lambda: here.card("Margins").locator("rect.bin").count() > 1)
    client.post(f"{path}/learn", json=events(10)).raise_for_status()
    here.until(lambda: here.number("events") == 60)
    for title in ("Accuracy", "Mistakes and updates", "Throughput"):
        line = here.card(title).locator("path.line").first
        here.until(lambda drawn: len(re.findall("[ML]", drawn.get_attribute("d") or "")) > 1, line)


def test_calibration_shows_what_came_true(visit: Open, client: httpx.Client) -> None:
    path = put(client, "reliable", metrics=["reliability", "log_loss"], calibrate=True)
    here = watching(visit, "reliable")
    card = here.card("Calibration")
    client.post(f"{path}/learn", json=events(50)).raise_for_status()
    bins = client.get(path).json()["metrics"]["reliability"]
    dots = card.locator("circle.dot")
    here.until(lambda: dots.count() == len(bins) > 1)
    texts = card.locator("svg text").all_text_contents()
    assert {"Predicted probability", "Observed share"} <= set(texts)
    assert "perfectly calibrated" in card.locator(".legend").inner_text()
    gap = sum(one["events"] * abs(one["probability"] - one["share"]) for one in bins) / 50
    note = card.locator("p.soft").inner_text()
    assert "by the probability of the label up" in note
    assert float(re.findall("Calibration error ([0-9.]+),", note)[0]) == pytest.approx(gap, 1e-3)


def test_events_learned_before_the_visit_are_there(visit: Open, client: httpx.Client) -> None:
    path = put(client, "past")
    client.post(f"{path}/learn", json=events(60)).raise_for_status()
    here = watching(visit, "past")
    here.until(lambda: here.number("events") == 60)
    here.until(lambda: here.card("Latest events").locator("tbody tr").count() == 14)
    here.until(lambda: here.card("Two features").locator(".point").count() == 60)
    now = here.card("Latest events").get_by_text(re.compile("^would be (right|wrong)$"))
    here.until(lambda: now.count() == 14)


def drawn(here: Visit, title: str) -> int:
    """Return of how many points the first line of a chart is made."""
    path = here.card(title).locator("path.line").first
    return len(re.findall("[ML]", path.get_attribute("d") or "")) if path.count() else 0


def test_charts_show_the_whole_life_and_go_on_live(visit: Open, client: httpx.Client) -> None:
    path = put(client, "lived", metrics=["log_loss"])
    client.post(f"{path}/learn", json=events(400)).raise_for_status()
    client.post(f"{path}/configure", json={"set": {"learning_rate": 0.5}}).raise_for_status()
    client.post(f"{path}/learn", json=events(400)).raise_for_status()
    here = watching(visit, "lived")
    for title in ("Accuracy", "Log loss", "Mistakes and updates"):
        here.until(lambda t: drawn(here, t) >= 100, title)
        for anchor in ("end", "middle"):  # of the values; of the places and the titles
            labels = here.card(title).locator(f".axes text[text-anchor={anchor}]")
            texts = labels.all_text_contents()
            assert len(set(texts)) == len(texts) > 1, f"equal labels: {texts}"
        assert "Events learned" in texts
    predicted = here.card("Accuracy").locator(".mark.command title").text_content()
    assert 'configure {"learning_rate": 0.5}, after 400 events' in (predicted or "")
    chart = here.card("Accuracy").locator("svg.chart")
    chart.focus()
    here.page.keyboard.press("ArrowLeft")
    here.until(lambda: "800 events" in here.card("Accuracy").locator(".readout").inner_text())
    here.button("Zoom in on the newest: Accuracy").click()
    here.until(lambda: 40 < drawn(here, "Accuracy") < 60)
    client.post(f"{path}/learn", json=events(50)).raise_for_status()
    here.until(lambda: "850" in (here.page.locator("[data-number=events]").inner_text()))
    box = chart.bounding_box()
    for x, act in ((0.3, here.page.mouse.down), (0.6, here.page.mouse.up)):
        here.page.mouse.move(box["x"] + x * box["width"], box["y"] + 50)
        act()
    here.until(lambda: 10 < drawn(here, "Accuracy") < 30)
    here.button("Show all: Accuracy").click()
    here.until(lambda: drawn(here, "Accuracy") >= 100)


def test_a_model_without_events_says_what_to_do(visit: Open, client: httpx.Client) -> None:
    put(client, "idle")
    here = watching(visit, "idle")
    here.until(lambda: here.page.locator("[data-number=last]").inner_text() == "none yet")
    assert here.page.locator("[data-number=accuracy]").inner_text() == "–"
    for title in ("Accuracy", "Mistakes and updates", "Throughput", "Latest events"):
        here.until(lambda t: "No events yet. Send" in here.card(t).first.inner_text(), title)
    assert not here.card("Accuracy").locator("svg").is_visible()


def test_a_model_that_is_not_there_has_no_commands(visit: Open) -> None:
    here = visit("#/m/nowhere")
    here.expected.add(404)
    here.page.locator(".empty").get_by_text("There is no model 'nowhere'").wait_for()
    assert not here.button("Freeze").is_visible()
    here.page.get_by_role("link", name="create one").click()
    here.page.get_by_role("heading", name="Create a model").wait_for()


def test_weights_come_by_size_under_any_names(visit: Open, client: httpx.Client) -> None:
    path = put(client, "sized")
    x = {"1": 1, "10": 3, "b": -2, "2": 0.10638299999999999}
    here = watching(visit, "sized")
    client.post(f"{path}/learn", json=[{"x": x, "y": "up"}]).raise_for_status()
    names = here.card("Largest weights").locator("li .name")
    here.until(lambda: names.all_inner_texts() == ["10", "b", "1", "2"])
    values = here.card("Try it").get_by_label(re.compile("^Value of 2"))
    here.until(lambda: values.count() == 1 and values.input_value() == "0.1064")
    with here.page.expect_request("**/predict") as asked:
        here.button("Predict and explain").click()
    assert asked.value.post_data_json["x"]["2"] == 0.10638299999999999


def test_text_has_no_plane_but_room(visit: Open, client: httpx.Client) -> None:
    path = put(client, "texts", pipeline=[{"type": "BagOfWords", "on": "text"}])
    text = "a long subject of very many words indeed"
    client.post(f"{path}/learn", json=[{"x": {"text": text}, "y": "up"}]).raise_for_status()
    here = watching(visit, "texts")
    here.until(lambda: "hold text" in here.card("Two features").inner_text())
    field = here.card("Try it").locator("textarea").first
    here.until(lambda: field.input_value() == text)
    assert field.bounding_box()["width"] > 250


def test_nothing_is_cut_off_on_a_telephone(visit: Open, client: httpx.Client) -> None:
    path = put(client, "narrow")
    put(client, "narrow-too", learner={"type": "averaged_perceptron"}, stream="narrow")
    client.post(f"{path}/learn", json=events(300)).raise_for_status()
    client.post(f"{path}/checkpoints", json={"name": "good"}).raise_for_status()
    here = visit("#/m/narrow", viewport={"width": 390, "height": 844})
    here.button("Restore good").wait_for()
    here.until(lambda: here.card("Challengers").locator(".share").count() == 2)
    here.until(lambda: here.card("Latest events").locator("tbody tr").count() == 14)
    for view in ("#/m/narrow", "#/new", "#/play/and", "#/"):
        here.go(view)
        here.page.wait_for_timeout(300)
        wide = """() => [document.documentElement, ...document.querySelectorAll(".scroll")]
          .map((node) => node.scrollWidth - node.clientWidth)"""
        assert max(here.page.evaluate(wide)) <= 0, view


def test_the_boundary_lies_where_the_weights_say_and_moves(
    visit: Open, client: httpx.Client
) -> None:
    path = put(client, "plane")
    client.post(f"{path}/learn", json=events(75)).raise_for_status()
    here = watching(visit, "plane")
    line = here.card("Two features").locator("path.boundary").last
    here.until(lambda: line.count() and line.get_attribute("d"))
    x0, y0, width, height = here.card("Two features").evaluate(
        """card => {
          const box = card.querySelector("rect.box");
          return ["x", "y", "width", "height"].map((name) => Number(box.getAttribute(name)));
        }"""
    )
    weights = client.get(f"{path}/weights").json()
    w, b = weights["weights"], weights["intercept"]

    def scores() -> list[float]:
        """The score at each end of the pieces, read back from the pixels."""
        numbers = [float(v) for v in re.findall(r"-?[\d.]+", line.get_attribute("d") or "")]
        low, size = -0.6, 5.2  # 0 to 4 and 15 % more on either side
        return [
            w["a"] * (low + size * (px - x0) / width)
            + w["b"] * (low + size * (1 - (py - y0) / height))
            + b
            for px, py in zip(numbers[::2], numbers[1::2], strict=True)
        ]

    here.until(lambda: max(map(abs, scores())) < 0.05 * max(abs(w["a"]), abs(w["b"])))
    before = line.get_attribute("d")
    contradict(client, path, {"a": 4, "b": 1})
    here.until(lambda: line.get_attribute("d") != before)


def test_more_than_two_classes_have_regions(visit: Open, client: httpx.Client) -> None:
    path = put(client, "regions", learner={"type": "multiclass_perceptron"}, labels=None)
    sent = [
        {"x": {"a": a, "b": b}, "y": "<i>left</i>" if a < 2 else "low" if b < 2 else "high"}
        for a in range(5)
        for b in range(5)
    ]
    client.post(f"{path}/learn", json=sent * 4).raise_for_status()
    here = watching(visit, "regions")
    canvas = here.card("Two features").locator("canvas")
    colors = """node => {
      const data = node.getContext("2d").getImageData(0, 0, node.width, node.height).data;
      const seen = new Set();
      for (let i = 0; i < data.length; i += 4) seen.add(data.slice(i, i + 4).join());
      return seen.size;
    }"""
    here.until(lambda: canvas.is_visible() and canvas.evaluate(colors) == 3)
    legend = here.card("Two features").locator(".sides")
    assert legend.get_by_text("<i>left</i>", exact=True).count() == 1
    names = here.card("Two features").locator(".region")
    here.until(lambda: sorted(names.all_text_contents()) == ["<i>left</i>", "high", "low"])
    here.card("Largest weights").get_by_role("combobox").select_option("low")


def test_a_state_is_kept_and_restored(visit: Open, client: httpx.Client) -> None:
    path = put(client, "kept")
    client.post(f"{path}/learn", json=events(30)).raise_for_status()
    before = client.get(f"{path}/weights").json()["weights"]
    here = watching(visit, "kept")
    here.page.get_by_label("Name of the new checkpoint").fill("good")
    here.button("Keep the present state").click()
    here.sees("The checkpoint is saved.")
    contradict(client, path, {"a": 4, "b": 1})
    here.until(lambda: here.number("events") == 31)
    assert client.get(f"{path}/weights").json()["weights"] != before
    here.button("Restore good").click()
    here.sees("The model is restored to good.")
    here.until(lambda: here.number("events") == 30)
    assert client.get(f"{path}/weights").json()["weights"] == before
    here.until(lambda: here.card("Accuracy").locator(".mark.command title").count() == 1)
    assert "restore" in here.card("Accuracy").locator(".mark.command title").inner_html()
    # until the restored state is saved, the checkpoint is still needed; a click may come too late
    here.expected.update({404, 409})

    def deleted() -> bool:
        # the button may go in any moment: click if it is there, and do not wait for it
        here.button("Delete good").evaluate_all("found => found.forEach((one) => one.click())")
        return not client.get(f"{path}/checkpoints").json()

    here.until(deleted)


def test_freezing_and_forgetting(visit: Open, client: httpx.Client) -> None:
    path = put(client, "frozen")
    client.post(f"{path}/learn", json=events(10)).raise_for_status()
    here = watching(visit, "frozen")
    here.button("Freeze").click()
    here.button("Unfreeze").wait_for()
    assert client.get(path).json()["frozen"]
    here.button("Unfreeze").click()
    here.button("Freeze").wait_for()
    here.button("Reset").click()
    assert client.get(path).json()["features"] == 2, "one press only asks"
    here.button("Really forget what it learned?").click()
    here.until(lambda: client.get(path).json()["features"] == 0)


def test_drifts_are_marked_and_challengers_compared(visit: Open, client: httpx.Client) -> None:
    detector = {"detector": {"type": "DDM", "warm_start": 30}, "action": "mark"}
    path = put(client, "drifting", drift=detector)
    put(client, "steady", learner={"type": "averaged_perceptron"}, stream="drifting")
    here = watching(visit, "drifting")
    client.post(f"{path}/learn", json=events(300)).raise_for_status()
    turned = [{**one, "y": "down" if one["y"] == "up" else "up"} for one in events(60)]
    client.post(f"{path}/learn", json=turned).raise_for_status()
    here.until(lambda: client.get(path).json()["drifts"] > 0)
    here.until(lambda: here.card("Accuracy").locator(".mark.drift").count() > 0)
    rows = here.card("Challengers").locator("tbody tr")
    here.until(lambda: rows.count() == 2 and "360" in rows.nth(1).inner_text())
    assert "averaged_perceptron" in here.card("Challengers").inner_text()


def test_mistakes_are_held_against_the_theorem(visit: Open, client: httpx.Client) -> None:
    path = put(client, "bounded")
    client.post(f"{path}/learn", json=events(100)).raise_for_status()
    here = watching(visit, "bounded")
    here.button("Compare with the mistake bound").click()
    here.sees("It holds.")
    bound = client.get(f"{path}/bound").json()
    least = min(one["value"] for one in bound["bounds"].values())
    text = here.card("Mistakes and updates").inner_text()
    assert f"{bound['updates']} updates" in text
    assert f"allows {float(f'{least:.4g}'):g} " in text


def test_labels_that_come_later_are_accounted(visit: Open, client: httpx.Client) -> None:
    path = put(client, "late")
    for n in range(4):
        question = {"x": {"a": n}, "id": f"p{n}"}
        client.post(f"{path}/predict", json=question).raise_for_status()
    for n in range(3):
        client.post(f"{path}/learn", json={"id": f"p{n}", "y": "up"}).raise_for_status()
    here = watching(visit, "late")
    facts = here.card("Labels that come later")
    here.until(lambda: "100.0%" in facts.inner_text())
    here.until(lambda: re.search(r"Waiting\s+1\b", facts.inner_text()))
    here.until(lambda: facts.locator("circle.dot").count() == 1)
