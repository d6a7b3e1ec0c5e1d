"""Models of few names decode in another way than those of many: nothing else differs."""

import json
import random

import hinged
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import restore_state, state_scalars
from hinged_service.wire.decoding import FEW_NAMES, parse_events
from hinged_service.wire.events import Event, MeasuredEvent
from tests.support.engine import spec


def body(names: list[str], draw: random.Random) -> bytes:
    return json.dumps(
        [
            {"x": {n: draw.gauss(0, 1) for n in draw.sample(names, 5)}, "y": draw.random() < 0.5}
            for _ in range(20)
        ]
    ).encode()


def learn(fold: ModelState, sent: bytes) -> set[type]:
    events, _, _ = parse_events(sent, 1_000, fold.accepts_non_numeric, fold.small_vocabulary)
    fold.learn_all(events, frozenset(), "1-1")
    return set(map(type, events))


def test_a_model_that_comes_to_know_many_names_learns_the_same() -> None:
    draw = random.Random(1)
    names = [f"n{i}" for i in range(3 * FEW_NAMES)]
    fold, alone = ModelState(spec()), hinged.Perceptron()
    kinds: list[set[type]] = []
    for number in range(60):
        sent = body(names[: 5 * (number + 1)], draw)
        kinds.append(learn(fold, sent))
        for event in json.loads(sent):
            alone.learn_one(event["x"], event["y"])
    assert kinds[0] == {MeasuredEvent}
    assert kinds[-1] == {Event}
    assert list(map(str, kinds)) == sorted(map(str, kinds), reverse=True)
    assert dict(fold.learner.weights) == dict(alone.weights)
    assert fold.learner.accounting == alone.accounting


def test_what_is_expected_follows_a_reset_and_a_restored_state() -> None:
    many = ModelState(spec())
    assert many.small_vocabulary
    learn(many, json.dumps({"x": {f"n{i}": 1 for i in range(FEW_NAMES + 1)}, "y": True}).encode())
    assert not many.small_vocabulary
    copy = ModelState(spec())
    restore_state(copy, state_scalars(many), {n: dict(v.view()) for n, v in many.vectors().items()})
    assert not copy.small_vocabulary
    many.reset()
    assert many.small_vocabulary
    assert not ModelState(
        spec(learner={"type": "multiclass_perceptron"}, labels=["a", "b", "c"])
    ).small_vocabulary
