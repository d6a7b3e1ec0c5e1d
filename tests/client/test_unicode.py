"""Text that is not valid Unicode, at every door of the client: refused, and nothing is sent."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from hinged_service.client import AsyncClient, Client, Invalid, NotFound, RemoteClassifier
from tests.client.conftest import Recorder
from tests.support.service import Service

X = {"a": 1.0}
PLACES: dict[str, tuple[str, Callable[[Client, str], Any]]] = {
    "model": ("name", lambda api, bad: api.model(bad)),
    "create": ("name", lambda api, bad: api.create_model(bad, {})),
    "delete": ("name", lambda api, bad: api.delete_model(bad)),
    "weights": ("name", lambda api, bad: api.weights(bad)),
    "predict": ("name", lambda api, bad: api.predict(bad, X)),
    "predict many": ("name", lambda api, bad: list(api.predict_many(bad, [X]))),
    "learn": ("name", lambda api, bad: api.learn(bad, X, True)),
    "learn many": ("name", lambda api, bad: list(api.learn_many(bad, [(X, True)]))),
    "explain": ("name", lambda api, bad: api.explain(bad, X)),
    "live": ("name", lambda api, bad: next(api.events(bad))),
    "freeze": ("name", lambda api, bad: api.freeze(bad)),
    "import": ("name", lambda api, bad: api.import_model(bad, b"{}")),
    "stream": ("name", lambda api, bad: api.stream(bad)),
    "alias": ("name", lambda api, bad: api.set_alias(bad, "m")),
    "checkpoint": ("name", lambda api, bad: api.export_checkpoint("m", bad)),
    "remote": ("name", lambda api, bad: RemoteClassifier(api, bad).predict_one(X)),
    "at_least": ("at_least", lambda api, bad: api.model("m", at_least=bad)),
    "label": ("label", lambda api, bad: api.weights("m", label=bad)),
    "label explained": ("label", lambda api, bad: api.explain("m", X, label=bad)),
    "feature": ("event", lambda api, bad: api.predict("m", {bad: 1})),
    "n-gram": ("x[", lambda api, bad: api.predict("m", {("a", bad): 1})),
    "value": ("event", lambda api, bad: api.learn("m", {"a": bad}, True)),
    "y": ("event", lambda api, bad: api.learn("m", X, bad)),
    "id": ("event", lambda api, bad: api.learn("m", X, True, id=bad)),
    "one of many": ("[1].event", lambda api, bad: list(api.predict_many("m", [X, {bad: 1}]))),
    "spec": ("spec", lambda api, bad: api.create_model("m", {"learner": {"type": bad}})),
    "new name": ("replay", lambda api, bad: api.replay("m", bad)),
    "decision": ("promotion", lambda api, bad: api.promote("a", "b", "c", bad)),
}


@pytest.mark.parametrize("bad", ["\ud800", "a\udfff", "\udced\udca0\udc80"], ids=ascii)
@pytest.mark.parametrize("place", PLACES)
def test_a_lone_surrogate_is_refused(api: Client, recorder: Recorder, place: str, bad: str) -> None:
    field, call = PLACES[place]
    with pytest.raises(Invalid) as caught:
        call(api, bad)
    (fault,) = caught.value.errors
    assert fault.field.startswith(field)
    assert "valid Unicode" in fault.reason or "surrogates not allowed" in fault.reason
    str(caught.value).encode()
    assert recorder.requests == []


async def test_asynchronously_too(service: Service) -> None:
    async with AsyncClient(service.url) as api:
        with pytest.raises(Invalid):
            await api.predict("\ud800", X)
        async with contextlib.aclosing(api.events("\ud800")) as events:
            with pytest.raises(Invalid):
                await anext(events)


def test_names_that_are_valid_go_out_as_they_are(api: Client, recorder: Recorder) -> None:
    with pytest.raises(NotFound, match="no model"):
        api.model("\U0001f600é")
    assert recorder.requests[0].url.raw_path == b"/v1/models/%F0%9F%98%80%C3%A9"


@pytest.mark.parametrize("key", ["\ud800", "é", "a\nb", "a b\x00"])
def test_no_key_can_be_like_that(service: Service, key: str) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(Invalid, match="api_key"):
            kind(service.url, api_key=key)


@pytest.mark.parametrize("url", ["http://\ud800", "http://127.0.0.1/\ud800", "http://h:port"])
def test_no_address_can_be_like_that(url: str) -> None:
    for kind in (Client, AsyncClient):
        with pytest.raises(Invalid, match="base_url"):
            kind(url)


def test_a_name_without_end_is_refused(api: Client, recorder: Recorder) -> None:
    with pytest.raises(Invalid, match="at most"):
        api.model("a" * 100_000)
    assert recorder.requests == []
