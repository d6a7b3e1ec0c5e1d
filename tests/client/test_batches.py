"""Streams of any length in bodies of bounded size."""

import itertools
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from hinged_service.client import Client, Event, Invalid
from tests.client.conftest import NewName, Recorder

Pair = tuple[dict[str, float], bool]


def pairs() -> Iterator[Pair]:
    for i in itertools.count():
        yield {"a": float(i % 7), f"f{i % 13}": 1.0}, i % 3 == 0


def test_batches_learn_what_single_events_learn(api: Client, new_name: NewName) -> None:
    one, many = new_name(), new_name()
    events = list(itertools.islice(pairs(), 200))
    alone = [api.learn(one, x, y) for x, y in events]
    together = list(api.learn_many(many, events, batch_events=7))

    def fields(outcome: Any) -> tuple[Any, ...]:
        return outcome.y_pred, outcome.score, outcome.mistake, outcome.updated, outcome.hinge_loss

    assert [*map(fields, together)] == [*map(fields, alone)]
    weights = [
        api.weights(name, at_least=last.position)
        for name, last in ((one, alone[-1]), (many, together[-1]))
    ]
    assert weights[0].weights == weights[1].weights
    xs = [x for x, _ in events]
    at_least = together[-1].position
    found = list(api.predict_many(many, iter(xs), batch_events=9, at_least=at_least))
    assert [p.score for p in found] == [api.predict(one, x).score for x in xs]


def test_bodies_keep_to_the_bytes_and_the_count(api: Client, name: str, recorder: Recorder) -> None:
    sizes = [1, 40, 3, 3, 90, 1, 1, 1, 1, 200, 5]
    events = [Event({f"{i}-{k}": 1.0 for k in range(size)}, True) for i, size in enumerate(sizes)]
    outcomes = list(api.learn_many(name, events, batch_events=3, batch_bytes=1_000))
    assert len(outcomes) == len(events)
    bodies = [r.content for r in recorder.requests]
    lengths = [len(json.loads(body)) for body in bodies]
    assert sum(lengths) == len(events)
    assert max(lengths) == 3
    assert all(len(body) <= 1_000 for body, n in zip(bodies, lengths, strict=True) if n > 1)
    assert any(len(body) > 1_000 for body in bodies)
    for body, following in itertools.pairwise(bodies):  # no batch ends before it is full
        first = json.dumps(json.loads(following)[0], separators=(",", ":"))
        assert len(json.loads(body)) == 3 or len(body) + 1 + len(first) > 1_000


def test_events_are_taken_from_an_endless_stream_as_they_are_sent(api: Client, name: str) -> None:
    taken = 0

    def counted() -> Iterator[Pair]:
        nonlocal taken
        for pair in pairs():
            taken += 1
            yield pair

    outcomes = api.learn_many(name, counted(), batch_events=10)
    assert taken == 0
    next(outcomes)
    assert taken == 10
    last = list(itertools.islice(outcomes, 35))[-1]
    assert taken == 40
    assert api.model(name, at_least=last.position).events == 40


def test_memory_stays_bounded() -> None:
    outcome = {"position": "1-1.a", "duplicate": True}

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=[outcome] * request.content.count(b'"id"'))

    with Client("http://s", transport=httpx.MockTransport(answer)) as client:
        events = itertools.islice(pairs(), 45_000)
        outcomes = client.learn_many("m", events, batch_events=500)
        for _ in itertools.islice(outcomes, 2_000):
            pass
        tracemalloc.start()
        try:
            assert sum(1 for _ in outcomes) == 43_000
            assert tracemalloc.get_traced_memory()[1] < 6 * 2**20
        finally:
            tracemalloc.stop()


def test_a_refusal_by_the_service_names_the_place_in_the_whole_stream(
    api: Client, name: str
) -> None:
    events: list[Any] = [({"a": 1.0}, True)] * 30
    events[23] = ({"a": 1.0}, "no label")
    outcomes: list[Any] = []
    with pytest.raises(Invalid) as refused:
        outcomes.extend(api.learn_many(name, events, batch_events=10))
    assert [fault.field for fault in refused.value.errors] == ["[23].y"]
    assert refused.value.errors[0].index == 23
    assert len(refused.value.event_ids) == 10
    assert api.model(name).events == 20


def test_a_refusal_by_the_client_names_it_too(api: Client, name: str) -> None:
    events: list[Any] = [({"a": 1.0}, True)] * 30
    events[23] = ({"a": float("nan")}, True)
    with pytest.raises(Invalid) as refused:
        list(api.learn_many(name, events, batch_events=10))
    assert [fault.field for fault in refused.value.errors] == ["[23].x['a']"]
    assert api.model(name).events == 20


def test_all_forms_of_an_event(api: Client, name: str) -> None:
    x = {"a": 1.0}
    forms: list[Any] = [
        (x, True),
        (x, True, 2.0),
        (x, True, 1.0, "named"),
        Event(x, True, id="event"),
        {"x": x, "y": True},
        {"x": x, "y": True, "w": 0.5, "id": "mapped"},
        {"id": "mapped", "y": True, "w": 0.5, "x": x},
    ]
    outcomes = list(api.learn_many(name, forms))
    assert [o.duplicate for o in outcomes] == [False] * 6 + [True]


@pytest.mark.parametrize(
    "odd", [{"x": {}}, {"x": {}, "y": 1, "z": 2}, ({},), ({}, 1, 1.0, "i", 5), "text", 3, None]
)
def test_what_is_no_event_is_refused(api: Client, name: str, odd: Any) -> None:
    with pytest.raises(Invalid, match=r"\[0\].event must be"):
        list(api.learn_many(name, [odd]))


def test_limits_that_cannot_be_are_refused_at_once(api: Client) -> None:
    with pytest.raises(ValueError, match="batch_events"):
        api.learn_many("m", [], batch_events=0)
    with pytest.raises(ValueError, match="batch_bytes"):
        api.predict_many("m", [], batch_bytes=0)


def test_no_events_are_no_call(api: Client, recorder: Recorder) -> None:
    assert list(api.learn_many("never-made", [])) == []
    assert recorder.requests == []
