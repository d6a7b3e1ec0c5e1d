"""Commands, checkpoints, streams and aliases through the client, against the running service."""

import itertools
import json
from collections.abc import Callable

import pytest

from hinged_service.client import (
    AsyncClient,
    Client,
    Conflict,
    Invalid,
    NotFound,
    Promoted,
    Unavailable,
    Unreachable,
)
from tests.client.conftest import NewName, Recorder
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.service import Service

_names = itertools.count()


def fresh_name() -> str:
    return f"managed-{next(_names)}"


def teach(api: Client, name: str, *values: float) -> str:
    """Learn one positive event per value; return the last position."""
    return [api.learn(name, {"a": value}, True).position for value in values][-1]


def test_parameters_change_from_the_command_on(api: Client, new_name: NewName) -> None:
    name = new_name(learner={"type": "perceptron", "fit_intercept": False})
    position = api.configure(name, {"learning_rate": 0.5})
    teach(api, name, 2.0)
    assert api.weights(name).weights == {"a": 1.0}
    assert api.model(name, at_least=position).configured == {"learning_rate": 0.5}
    with pytest.raises(Invalid) as refused:
        api.configure(name, {"kernel": 1})
    assert [fault.field for fault in refused.value.errors] == ["set"]


def test_a_frozen_model_only_predicts_until_it_is_thawed(api: Client, name: str) -> None:
    position = api.freeze(name)
    assert api.model(name, at_least=position).frozen
    teach(api, name, 1.0)
    assert api.weights(name).weights == {}
    assert not api.model(name, at_least=api.unfreeze(name)).frozen
    teach(api, name, 1.0)
    assert api.weights(name).weights == {"a": 1.0}


def test_a_reset_forgets_and_a_checkpoint_brings_back(api: Client, name: str) -> None:
    teach(api, name, 3.0)
    kept = api.make_checkpoint(name, "good")
    assert (kept.name, kept.model, kept.events) == ("good", name, 1)
    api.reset(name)
    assert api.weights(name).weights == {}
    api.restore(name, "good")
    assert api.weights(name).weights == {"a": 3.0}
    with pytest.raises(Conflict):
        api.make_checkpoint(name, "good")
    unnamed = api.make_checkpoint(name)
    assert [c.uid for c in api.checkpoints(name)] == [kept.uid, unnamed.uid]
    api.delete_checkpoint(name, unnamed.uid)
    assert [c.uid for c in api.checkpoints(name)] == [kept.uid]
    with pytest.raises(NotFound):
        api.restore(name, "never made")


def test_a_document_makes_the_model_again(api: Client, name: str) -> None:
    teach(api, name, 3.0)
    document = api.export_checkpoint(name, api.make_checkpoint(name).uid)
    assert json.loads(document)["model"] == name
    new = fresh_name()
    assert api.import_model(new, document).name == new
    assert api.weights(new).weights == {"a": 3.0}
    with pytest.raises(Conflict):
        api.import_model(new, document)
    with pytest.raises(Invalid, match="damaged"):
        api.import_model(fresh_name(), document.replace(b"3.0", b"4.0"))


def test_a_replay_learns_the_past_otherwise(api: Client, name: str) -> None:
    api.learn(name, {"a": 1.0}, True, id="wrong")
    api.learn(name, {"b": 5.0}, True, id="right")
    new = fresh_name()
    learner = {"type": "perceptron", "fit_intercept": False}
    made = api.replay(name, new, exclude={"ids": ["wrong"]}, learner=learner)
    assert made.spec["learner"]["fit_intercept"] is False
    wait_until(lambda: api.model(new).progress == 1)
    assert api.weights(new).weights == {"b": 5.0}
    assert api.model(new).excluded == 1


def test_streams_and_aliases(api: Client, new_name: NewName) -> None:
    stream, alias = fresh_name(), fresh_name()
    first, second = new_name(stream=stream), new_name(stream=stream)
    assert api.set_alias(alias, first).model == first
    assert api.set_alias(alias, first).stream == stream
    with pytest.raises(Conflict):
        api.set_alias(alias, second)
    teach(api, alias, 1.0)
    listed = {found.stream: found for found in api.streams()}[stream]
    assert (listed.models, listed.aliases) == ((first, second), (alias,))
    assert {a.alias: a.model for a in api.aliases()}[alias] == first
    assert api.promote(alias, first, second, "d1") == Promoted("promoted", second)
    assert api.promote(alias, first, second, "d1") == Promoted("repeated", second)
    assert api.promote(alias, first, second) == Promoted("refused", second)
    compared = api.stream(stream)
    assert compared.aliases == {alias: second}
    assert {f.name: (f.learner, f.events, f.aliases) for f in compared.models} == {
        first: ("perceptron", 1, ()),
        second: ("perceptron", 1, (alias,)),
    }
    api.delete_alias(alias)
    with pytest.raises(NotFound):
        api.delete_alias(alias)
    with pytest.raises(NotFound):
        api.stream("no-such-stream")


def test_what_a_prediction_is_made_of(api: Client, new_name: NewName) -> None:
    name = new_name()
    api.learn(name, {"a": 2.0, "b": -3.0}, True)
    found = api.explain(name, {"a": 1.0, "b": 1.0})
    assert (found.y, found.score, found.intercept) == (False, 0.0, 1.0)
    assert list(found.features.items()) == [("b", -3.0), ("a", 2.0)]
    assert found.contributions == found.features
    many = new_name(learner={"type": "multiclass_perceptron"}, labels="integers")
    list(api.learn_many(many, [({"a": 1.0}, 3), ({"a": 1.0}, 5)]))
    assert api.explain(many, {"a": 1.0}, label=5).y == 5
    with pytest.raises(NotFound):
        api.explain(many, {"a": 1.0}, label=4)
    with pytest.raises(Conflict):
        api.explain(new_name(learner={"type": "GaussianNB"}), {"a": 1.0})


def test_metrics_and_drift_are_in_the_account(api: Client, new_name: NewName) -> None:
    name = new_name(metrics=["accuracy"])
    teach(api, name, 1.0, 1.0)
    info = api.model(name)
    assert info.metrics == {"accuracy": 0.5}
    assert (info.drifts, info.detections, info.progress) == (0, (), 1.0)


@pytest.mark.parametrize("what", ["reset", "make_checkpoint"])
def test_calls_that_must_not_happen_twice_are_sent_once(lossy: Proxy, name: str, what: str) -> None:
    with Client(f"http://127.0.0.1:{lossy.port}") as client:
        lossy.drop_replies = 1
        with pytest.raises((Unreachable, Unavailable)):
            getattr(client, what)(name)
    assert lossy.dropped == 1


def test_a_promotion_whose_answer_was_lost_counts_once(
    lossy: Proxy, api: Client, new_name: NewName
) -> None:
    stream, alias = fresh_name(), fresh_name()
    first, second = new_name(stream=stream), new_name(stream=stream)
    api.set_alias(alias, first)
    with Client(f"http://127.0.0.1:{lossy.port}") as client:
        lossy.drop_replies = 1
        assert client.promote(alias, first, second) == Promoted("repeated", second)


def test_names_that_are_none_are_refused_before_they_are_sent(
    api: Client, name: str, recorder: Recorder
) -> None:
    before = len(recorder.requests)
    calls: list[Callable[[], object]] = [
        lambda: api.stream(""),
        lambda: api.delete_alias(".."),
        lambda: api.delete_checkpoint(name, "."),
        lambda: api.export_checkpoint(name, ""),
    ]
    for call in calls:
        with pytest.raises(Invalid, match="must name a"):
            call()
    assert len(recorder.requests) == before


async def test_every_call_awaited(service: Service) -> None:
    one, two, copy, past, alias = (fresh_name() for _ in range(5))
    async with AsyncClient(service.url) as client:
        spec = {"learner": {"type": "perceptron"}, "stream": one}
        for name in (one, two):
            await client.create_model(name, spec)
        await client.learn(one, {"a": 1.0}, True)
        assert (await client.explain(one, {"a": 1.0})).score == 2.0
        kept = await client.make_checkpoint(one, "kept")
        assert await client.checkpoints(one) == [kept]
        document = await client.export_checkpoint(one, "kept")
        assert (await client.import_model(copy, document)).name == copy
        assert (await client.replay(one, past)).name == past
        await client.configure(one, {"learning_rate": 2.0})
        await client.freeze(one)
        await client.unfreeze(one)
        await client.reset(one)
        position = await client.restore(one, "kept")
        assert (await client.weights(one, at_least=position)).weights == {"a": 1.0}
        await client.delete_checkpoint(copy, (await client.make_checkpoint(copy)).uid)
        assert (await client.set_alias(alias, one)).model == one
        assert (await client.promote(alias, one, two)).result == "promoted"
        assert alias in {a.alias for a in await client.aliases()}
        assert (await client.stream(one)).aliases == {alias: two}
        assert one in {s.stream for s in await client.streams()}
        await client.delete_alias(alias)
