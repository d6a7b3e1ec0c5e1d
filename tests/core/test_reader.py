"""Features that the kernel has read: learned and answered as dictionaries, to the last bit."""

from __future__ import annotations

import copy
import gc
import json
import pickle
import random
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
import pytest

from hinged import BinaryLinearClassifier, LinearClassifier
from hinged.kernel import is_compiled, packed_features, read_events, sent_text
from tests.core.conftest import BINARY, MULTICLASS

pytestmark = pytest.mark.skipif(not is_compiled, reason="nothing is read in Python")


class Made(NamedTuple):
    """An event."""

    x: Mapping[str, float]
    y: Any = None
    w: float = 1.0
    id: str | None = None


def events(labels: list[Any], seed: int) -> list[dict[str, Any]]:
    """Return events of names that stay, change, come and go, some huge and some of weight 0."""
    draw, names, made = random.Random(seed), [f"n{i}" for i in range(40)], []
    few = names[:6]
    for _ in range(150):
        if draw.random() < 0.5:
            few = draw.sample(names, draw.randrange(9))
        x = {name: draw.choice([draw.gauss(0, 1), 0, -0.0, 1e90, 3]) for name in few}
        w: dict[str, Any] = draw.choice([{}, {}, {"w": 2.0}, {"w": 0}])
        made.append({"x": x, "y": draw.choice(labels), **w})
    return made


@pytest.mark.parametrize("kind", [*BINARY, *MULTICLASS], ids=repr)
def test_what_was_read_is_learned_like_a_dictionary(kind: LinearClassifier) -> None:
    labels = [True, False] if kind in BINARY else ["a", "b", "c"]
    sent = events(labels, seed=1)
    if "uncapped" in repr(kind):  # takes whole weights alone
        sent = [{**event, "w": min(1, event.get("w", 1))} for event in sent]
    models = copy.deepcopy(kind), copy.deepcopy(kind)
    for start in range(0, len(sent), 50):
        some = sent[start : start + 50]
        read = read_events(json.dumps(some).encode(), Made, True)
        assert read is not None
        for one, event in zip(read, some, strict=True):
            x, w = {n: float(v) for n, v in event["x"].items()}, float(event.get("w", 1.0))
            assert repr(models[0].predict_proba_one(one.x)) == repr(models[1].predict_proba_one(x))
            told = models[0].predict_learn_one(one.x, one.y, one.w)
            assert repr(told) == repr(models[1].predict_learn_one(x, event["y"], w))
            gc.collect(0)  # no name is kept by its event alone
    states = [repr(model.get_state()) for model in models]
    vectors = [
        {name: list(v.view().items()) for name, v in model.get_state()["vectors"].items()}
        for model in models
    ]
    assert repr(vectors[0]) == repr(vectors[1])
    assert [state.partition("'vectors'")[0] for state in states[:1]] == [
        state.partition("'vectors'")[0] for state in states[1:]
    ]


@pytest.mark.parametrize(
    "kind", [kind for kind in BINARY if isinstance(kind, BinaryLinearClassifier)], ids=repr
)
def test_a_run_is_learned_like_its_events(kind: BinaryLinearClassifier) -> None:
    draw, sent = random.Random(3), events([True, False, 1, 0], seed=2)
    if "uncapped" in repr(kind):
        sent = [{**event, "w": min(1, event.get("w", 1))} for event in sent]
    read = read_events(json.dumps(sent).encode(), Made, True)
    assert read is not None
    xs, ys, ws = ([getattr(one, name) for one in read] for name in "xyw")
    models = copy.deepcopy(kind), copy.deepcopy(kind)
    at = taken = 0
    while at < len(read):
        end, names = at + draw.randrange(1, 40), draw.choice([3, 30, 10**9])
        run = models[0].predict_learn_run(xs, ys, ws, at, end, names)
        assert len(run) <= end - at
        assert sum(map(len, xs[at : at + len(run)])) <= names
        taken += len(run)
        if not run:  # the event is not ordinary, or has too many names
            run = [models[0].predict_learn_one(xs[at], ys[at], ws[at])]
        for told in run:
            x = dict(xs[at])
            assert repr(told) == repr(models[1].predict_learn_one(x, ys[at], ws[at]))
            at += 1
    states = [repr(model.get_state()) for model in models]
    assert states[0].partition("'vectors'")[0] == states[1].partition("'vectors'")[0]
    vectors = [model.get_state()["vectors"] for model in models]
    assert [list(v.view().items()) for v in vectors[0].values()] == [
        list(v.view().items()) for v in vectors[1].values()
    ]
    assert taken > 40 or not kind._rule or kind.initial_weights is not None


def read(text: str) -> Any:
    """Return the features of one event."""
    made = read_events([f'{{"x":{text}}}'.encode()], Made, False)
    assert made is not None
    return made[0].x


def test_features_are_a_mapping_in_the_order_of_the_text() -> None:
    x = read('{"b": 1, "a": -0.5, "é": 1e3}')
    assert isinstance(x, Mapping)
    assert not isinstance(x, dict)
    assert (len(x), list(x), list(x.values())) == (3, ["b", "a", "é"], [1.0, -0.5, 1e3])
    assert dict(x) == x == {"a": -0.5, "b": 1.0, "é": 1e3}
    assert (x["a"], x.get("c"), x.get("c", 2), "b" in x, "c" in x) == (-0.5, None, 2, True, False)
    assert x != {"a": -0.5}
    assert repr(x) == repr({"b": 1.0, "a": -0.5, "é": 1e3})
    assert type(pickle.loads(pickle.dumps(x))) is dict
    assert copy.deepcopy(x) == x
    with pytest.raises(KeyError):
        x["c"]


def test_features_are_packed_in_the_order_of_their_names_bytes() -> None:
    draw = random.Random(1)
    long = ["a" * 31, "a" * 32, "a" * 255, "a" * 256, "é" * 128]
    names = ["b", "a", "aa", "é", "Z", "\uffff", "\U0001f600", "", *long, *map(str, range(70))]
    pack = msgspec.msgpack.Encoder(order="deterministic").encode
    for count in (0, 1, 15, 16, len(names), *(draw.randrange(40) for _ in range(200))):
        some = draw.sample(names, count)
        for _ in range(2):  # the second time in a known order
            sent = {name: draw.choice([0.1, -0.0, 1e90, 3]) for name in some}
            text = json.dumps({"id": "i", "x": sent}, ensure_ascii=False).encode()
            found = read_events(b"[" + text + b"," + text + b"]", Made, False)
            assert found is not None
            for made in found:
                assert packed_features(made.x) == pack({n: float(v) for n, v in sent.items()})
    assert packed_features({"a": 1.0}) is None


def test_features_are_returned_as_they_were_sent() -> None:
    texts = ['{"b": 1,\n "é":-0.50}', "{ }", '{"a":1e3}']
    body = (
        f'[{{"x": {texts[0]} }},{{"id":"1","x":{texts[1]}}},{{"x":{texts[2]},"id":"2"}}]'.encode()
    )
    read_all = read_events(body, Made, False)
    assert read_all is not None
    assert [sent_text(made.x, body) for made in read_all] == [text.encode() for text in texts]
    assert sent_text({"a": 1.0}, body) is None


def test_more_names_than_are_kept_are_read_all_the_same() -> None:
    most, width = 200_000, 1_000
    kept: list[Any] = []
    for start in range(0, most, width):
        names = [f"name-{n}-{'x' * (n % 60)}" for n in range(start, start + width)]
        x = read(json.dumps(dict.fromkeys(names, 1)))
        kept.append((names, x))
    for names, x in kept:
        assert list(x) == names
    assert (
        read_events(
            [json.dumps({"x": dict.fromkeys(map(str, range(10_001)), 1)}).encode()], Made, False
        )
        is None
    )
