"""The form: what the schema says can be filled in, and what the service refuses is shown there."""

from __future__ import annotations

import httpx

from tests.e2e.page.conftest import Open


def test_a_model_is_created_from_the_form(visit: Open, client: httpx.Client) -> None:
    here = visit("#/new")
    page = here.page
    page.get_by_label("name", exact=True).fill("made-here")
    page.get_by_label("learner", exact=True).select_option("passive_aggressive")
    page.get_by_label("C", exact=True).fill("0.5")
    page.get_by_label("labels", exact=True).fill("ham, spam")
    pipeline = page.get_by_role("group", name="pipeline", exact=True)
    pipeline.get_by_role("button", name="Add one").click()
    page.get_by_label("pipeline 1", exact=True).select_option("StandardScaler")
    metrics = page.get_by_role("group", name="metrics", exact=True)
    metrics.get_by_role("button", name="Add one").click()
    page.get_by_label("metrics 1: form").select_option("one of")
    page.get_by_label("metrics 1", exact=True).select_option("f1")
    here.sees('"C": 0.5')
    here.button("Create").click()
    page.get_by_role("heading", name="made-here", level=1).wait_for()
    spec = client.get("/v1/models/made-here").json()["spec"]
    assert spec["learner"]["type"] == "passive_aggressive"
    assert spec["learner"]["C"] == 0.5
    assert spec["labels"] == ["ham", "spam"]
    assert [step["type"] for step in spec["pipeline"]] == ["StandardScaler"]
    assert spec["metrics"] == ["f1"]


def test_every_learner_and_step_of_the_schema_has_a_form(visit: Open, client: httpx.Client) -> None:
    here = visit("#/new")
    schema = client.get("/openapi.json").json()["components"]["schemas"]["ModelSpec"]
    wanted = schema["properties"]["learner"]["discriminator"]["mapping"]
    choice = here.page.locator("[data-path='learner.type']")
    choice.wait_for()
    assert choice.input_value() == "auto", "the recommended one comes first"
    assert choice.locator("optgroup").first.get_attribute("label") == "Recommended"
    texts = {o.get_attribute("value"): o.inner_text() for o in choice.locator("option").all()}
    assert [kind for kind in wanted if texts[kind] == kind] == ["custom"], "others have advice"
    for kind in wanted:
        choice.select_option(kind)
        here.sees(f'"type": "{kind}"')
    here.page.get_by_role("group", name="pipeline").get_by_role("button", name="Add one").click()
    step = here.page.locator("[data-path='pipeline.0.type']")
    for kind in schema["properties"]["pipeline"]["items"]["discriminator"]["mapping"]:
        step.select_option(kind)
        here.sees(f'"type": "{kind}"')


def test_a_refusal_is_shown_at_the_field(visit: Open, client: httpx.Client) -> None:
    here = visit("#/new")
    here.expected.add(422)
    page = here.page
    page.get_by_label("name", exact=True).fill("refused")
    page.get_by_label("learner", exact=True).select_option("perceptron")
    rate = page.get_by_label("learning_rate", exact=True)
    rate.fill("-1")
    page.get_by_label("labels", exact=True).fill("a, b, c")
    here.button("Create").click()
    here.until(lambda: rate.get_attribute("aria-invalid") == "true")
    near = page.locator(".formrow", has=rate)
    assert "greater than 0" in near.get_by_role("alert").inner_text()
    rate.fill("2")
    here.button("Create").click()
    labels = page.get_by_label("labels", exact=True)
    here.until(lambda: labels.get_attribute("aria-invalid") == "true")
    assert rate.get_attribute("aria-invalid") is None
    assert page.evaluate("document.activeElement.dataset.path") == "labels"
    labels.fill("a, b")
    here.button("Create").click()
    page.get_by_role("heading", name="refused", level=1).wait_for()
    assert client.get("/v1/models/refused").json()["spec"]["learner"]["learning_rate"] == 2
