"""With API keys the page asks for one, and keeps it in its tab."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from hinged_service.api.api_keys import new_key
from tests.e2e.page.conftest import Open
from tests.support.redis_server import RedisServer
from tests.support.service import Service


@pytest.fixture
def guarded(own_server: RedisServer) -> Iterator[tuple[Service, dict[str, str]]]:
    tokens, records = {}, []
    wanted: list[Any] = [
        ("root", ("predict", "learn", "admin"), ("*",)),
        ("reader", ("predict",), ("open*",)),
    ]
    for name, scopes, models in wanted:
        tokens[name], record = new_key(name, scopes, models)
        records.append(record.model_dump(mode="json"))
    with Service(own_server.url, keys=json.dumps(records)) as service, service.client() as client:
        client.headers["authorization"] = f"Bearer {tokens['root']}"
        for name in ("open-one", "secret-one"):
            client.put(f"/v1/models/{name}", json={"learner": {"type": "perceptron"}})
        yield service, tokens


def test_a_key_is_asked_for_and_stays_in_the_tab(
    visit: Open, guarded: tuple[Service, dict[str, str]]
) -> None:
    service, keys = guarded
    here = visit(url=service.url)
    here.expected.add(401)
    dialog = here.page.get_by_role("dialog")
    field = here.page.get_by_label("API key", exact=True)
    field.fill("hinged_root_wrong")
    here.button("Use it").click()
    here.until(lambda: "not known" in dialog.inner_text())
    field.fill(keys["root"])
    field.press("Enter")
    here.page.get_by_role("link", name="secret-one").wait_for()
    assert here.page.evaluate("localStorage.length") == 0
    assert here.page.evaluate("document.cookie") == ""
    here.page.reload()
    here.page.get_by_role("link", name="secret-one").click()
    here.page.locator(".status.live").wait_for()
    here.button("Forget the API key").click()
    dialog.wait_for()
    assert here.page.evaluate("sessionStorage.length") == 0


def test_a_user_without_a_key_is_asked_once(
    visit: Open, guarded: tuple[Service, dict[str, str]]
) -> None:
    here = visit(url=guarded[0].url)
    here.expected.add(401)
    here.button("Not now").click()
    here.page.wait_for_timeout(2_500)  # longer than from one look to the next
    assert here.page.get_by_role("dialog").count() == 0
    here.sees("Send an API key")
    here.button("Enter an API key").click()
    here.page.get_by_label("API key", exact=True).fill(guarded[1]["root"])
    here.button("Use it").click()
    here.page.get_by_role("link", name="secret-one").wait_for()


def test_a_key_for_some_models_sees_those_and_is_told_what_it_may_not(
    visit: Open, guarded: tuple[Service, dict[str, str]]
) -> None:
    service, keys = guarded
    here = visit(url=service.url)
    here.expected |= {401, 403}
    here.page.get_by_label("API key", exact=True).fill(keys["reader"])
    here.button("Use it").click()
    here.page.get_by_role("link", name="open-one").wait_for()
    assert here.page.get_by_role("link", name="secret-one").count() == 0
    here.page.get_by_role("link", name="open-one").click()
    here.page.locator(".status.live").wait_for()
    here.button("Freeze").click()
    here.sees("has no scope 'admin'")
    here.go("#/m/secret-one")
    here.sees("is not for 'secret-one'")
