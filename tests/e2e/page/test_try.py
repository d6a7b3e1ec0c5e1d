"""Try it: predict, explain, teach."""

from __future__ import annotations

import httpx

from tests.e2e.page.conftest import Open


def test_an_event_is_explained_and_taught(visit: Open, client: httpx.Client) -> None:
    path = "/v1/models/tried"
    spec = {"learner": {"type": "perceptron"}, "labels": ["ham", "spam"]}
    client.put(path, json=spec).raise_for_status()
    sent = [{"x": {"free": 2, "lunch": 0}, "y": "spam"}, {"x": {"free": 0, "lunch": 3}, "y": "ham"}]
    client.post(f"{path}/learn", json=sent).raise_for_status()
    here = visit("#/m/tried")
    card = here.card("Try it")
    value = card.get_by_label("Value of free")
    value.wait_for()
    value.fill("1")
    card.get_by_label("Value of lunch").fill("1")
    here.button("Predict and explain").click()
    answer = client.post(f"{path}/explain", json={"x": {"free": 1, "lunch": 1}}).json()
    here.until(lambda: card.locator(".bars li").count() >= 2)
    for name, adds in answer["features"].items():
        row = card.locator(f".bars li:has(.name:text-is('{name}')) .value")
        assert float(row.inner_text().replace("−", "-")) == adds
    assert f"It says {answer['y']}" in card.inner_text()
    other = "ham" if answer["y"] == "spam" else "spam"
    card.get_by_label("The right label is").select_option(other)
    here.button("Teach it").click()
    here.sees("That was a mistake, and the weights moved.")
    model = client.get(path).json()
    assert model["events"] == 3
    now = client.post(f"{path}/explain", json={"x": {"free": 1, "lunch": 1}}).json()
    here.until(lambda: f"It says {now['y']}" in card.inner_text())


def test_pasted_json_and_what_is_wrong_with_it(visit: Open, client: httpx.Client) -> None:
    path = "/v1/models/pasted"
    spec = {
        "learner": {"type": "multiclass_perceptron"},
        "pipeline": [{"type": "BagOfWords", "on": "text"}],
    }
    client.put(path, json=spec).raise_for_status()
    client.post(f"{path}/learn", json={"x": {"text": "free money"}, "y": "spam"})
    client.post(f"{path}/learn", json={"x": {"text": "at noon"}, "y": "ham"})
    here = visit("#/m/pasted")
    card = here.card("Try it")
    here.until(lambda: card.get_by_label("Value of text").count() == 1)
    card.get_by_label("as JSON", exact=True).check()
    area = card.get_by_label("The event's features as JSON")
    area.fill('{"x": {"text": ')
    here.button("Predict and explain").click()
    here.until(lambda: "This is not JSON" in card.inner_text())
    here.expected.add(422)
    area.fill('{"x": {"text": 3}}')
    here.button("Predict and explain").click()
    here.until(lambda: "x['text']" in card.inner_text())
    area.fill('{"x": {"text": "free lunch"}}')
    here.button("Predict and explain").click()
    answer = client.post(f"{path}/predict", json={"x": {"text": "free lunch"}}).json()
    here.until(lambda: f"It says {answer['y']}" in card.inner_text())
    card.get_by_label("The right label is").fill("something new")
    here.button("Teach it").click()
    here.until(lambda: "something new" in client.get(path).json()["classes"])


def test_a_learner_whose_score_is_no_sum_still_predicts(visit: Open, client: httpx.Client) -> None:
    path = "/v1/models/forest"
    client.put(path, json={"learner": {"type": "HoeffdingTreeClassifier"}}).raise_for_status()
    sent = [{"x": {"a": k % 7, "b": k % 3}, "y": f"c{k % 2}"} for k in range(30)]
    client.post(f"{path}/learn", json=sent).raise_for_status()
    here = visit("#/m/forest")
    here.expected.add(409)
    card = here.card("Try it")
    here.until(lambda: card.get_by_label("Value of a").count() == 1)
    here.button("Predict and explain").click()
    here.sees("The score of this learner is not a sum over features.")
    assert "It says c" in card.inner_text()
