"""Learners in several threads: long runs let go of the interpreter's lock, and wait for others."""

from __future__ import annotations

import contextlib
import copy
import json
import math
import pickle
import random
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from hinged import AROW, BinaryLinearClassifier, Hedge, HingeSGD, LinearUnit, Perceptron
from hinged.kernel import is_compiled, learn_rows, read_events
from tests.core.conftest import BINARY

pytestmark = pytest.mark.skipif(not is_compiled, reason="the loops in Python hold the lock")

RULES = [kind for kind in BINARY if isinstance(kind, BinaryLinearClassifier)]
COMPILED = [kind for kind in RULES if kind._rule and kind.initial_weights is None]
WAIT_S = 60


class Made(NamedTuple):
    """An event that was read."""

    x: Any
    y: Any
    w: float = 1.0
    id: str | None = None


def table(
    rows: int, seed: int = 1, first: int = 0, width: int = 30
) -> tuple[pd.DataFrame, pd.Series]:
    """Return a table and its labels."""
    draw = np.random.default_rng(seed)
    values = draw.normal(size=(rows, width))
    labels = pd.Series(values.sum(axis=1) > 0)
    return pd.DataFrame(values, columns=[f"f{first + i}" for i in range(width)]), labels


def columns(rows: int, width: int = 30) -> tuple[list[Any], list[bool], list[float]]:
    """Return features, labels and weights of events that were read from text."""
    x, y = table(rows, width=width)
    texts = [
        json.dumps({"x": row, "y": bool(label)}).encode()
        for row, label in zip(x.to_dict("records"), y, strict=True)
    ]
    made = read_events(texts, Made, True)
    assert made is not None
    return [one.x for one in made], [one.y for one in made], [one.w for one in made]


def at_once(*works: Callable[[], object]) -> None:
    """Do works, each in a thread; raise what one of them raises."""
    failed: list[BaseException] = []

    def run(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive()
    for error in failed:
        raise error


def numbers(model: BinaryLinearClassifier) -> str:
    """Return the state of a learner as text."""
    state = model.get_state()
    vectors = {name: list(vector.view().items()) for name, vector in state["vectors"].items()}
    return repr((vectors, {name: part for name, part in state.items() if name != "vectors"}))


@pytest.fixture
def _patient() -> Iterator[None]:
    """Let no thread take the lock from one that does not let go of it."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("_patient")
@pytest.mark.parametrize("way", ["table", "events"])
def test_other_threads_go_on_during_a_run(way: str) -> None:
    (x, y), (xs, ys, ws) = table(200_000), columns(1024, 300)
    model, began, ended = Perceptron(), threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        if way == "table":
            model.learn_many(x, y)
        else:
            assert len(model.predict_learn_run(xs, ys, ws, 0, 1024, 10**9)) == 1024
        ended.set()

    seen: list[bool] = []
    for _ in range(20):  # a run of events is short: this thread may come too late
        thread = threading.Thread(target=work)
        began.clear()
        ended.clear()
        thread.start()
        began.wait(WAIT_S)
        seen.append(ended.is_set())
        thread.join(WAIT_S)
    assert False in seen


@pytest.mark.parametrize("kind", RULES, ids=repr)
def test_models_in_two_threads_learn_as_alone(kind: BinaryLinearClassifier) -> None:
    (x, y), (xs, ys, ws) = table(2_000), columns(500)

    def work(model: BinaryLinearClassifier) -> None:
        for at in range(0, 500, 100):
            model.learn_many(x[at : at + 100], y[at : at + 100])
            done = at
            while done < at + 100:
                if not (run := model.predict_learn_run(xs, ys, ws, done, at + 100, 10**9)):
                    run = [model.predict_learn_one(xs[done], ys[done], ws[done])]
                done += len(run)
        model.learn_many(x, y)

    alone, one, other = (copy.deepcopy(kind) for _ in range(3))
    work(alone)
    at_once(lambda: work(one), lambda: work(other))
    assert numbers(one) == numbers(other) == numbers(alone)


@pytest.mark.parametrize("kind", COMPILED, ids=repr)
def test_a_model_in_two_threads_counts_all_events(kind: BinaryLinearClassifier) -> None:
    model = copy.deepcopy(kind)
    ended = threading.Event()

    def learn(seed: int) -> None:
        for at in range(20):  # of new names each time, so that all arrays are moved
            model.learn_many(*table(200, seed, 30 * at))

    def look() -> None:
        x = {f"f{at}": 0.5 for at in range(0, 600, 7)}
        while not ended.is_set():
            model.predict_one(x)
            model.learn_one(x, True)
            assert all(map(np.isfinite, model.get_state()["vectors"]["weights"].view().values()))

    def work() -> None:
        try:
            at_once(lambda: learn(1), lambda: learn(2))
        finally:
            ended.set()

    at_once(work, look)
    assert model.accounting.events == model.clock >= 8_000
    assert all(np.isfinite(list(model.weights.values())))


def test_experts_that_share_names_learn_in_two_threads() -> None:
    experts: list[BinaryLinearClassifier] = [Perceptron(), AROW()]
    alone = copy.deepcopy(experts)
    (x, y), (more, labels) = table(50), table(4_000, 2)
    for pool in (Hedge(experts), Hedge(alone)):
        for row, label in zip(x.to_dict("records"), y, strict=True):
            pool.learn_one(row, bool(label))
        experts_of_pool: Any = pool.experts
        experts, alone = alone, list(experts_of_pool)
    for model in alone:
        model.learn_many(more, labels)
    at_once(*(lambda model=model: model.learn_many(more, labels) for model in experts))
    assert [numbers(model) for model in experts] == [numbers(model) for model in alone]


def sent_events(seed: int, count: int) -> list[dict[str, Any]]:
    """Return events, many of whose names are new."""
    draw = random.Random(seed)

    def name() -> str:
        return draw.choice(["a", "é", "x" * 50]) + str(draw.randrange(20_000))

    return [
        {
            "x": {name(): draw.gauss(0, 1) for _ in range(8)},
            "y": draw.choice([True, False, "a", f"é{seed}", -3, 10**17]),
            "w": 1.0,
            "id": f"é{number}",
        }
        for number in range(count)
    ]


def test_texts_are_read_in_several_threads() -> None:
    sent = [[sent_events(seed, count) for count in (2, 900) * 6] for seed in range(3)]

    def check(parts: list[list[dict[str, Any]]]) -> None:
        for some in parts:
            texts = [json.dumps(event, ensure_ascii=False).encode() for event in some]
            for text in (b"[" + b",".join(texts) + b"]", texts):
                read = read_events(text, Made, True)
                assert read is not None
                assert repr([one._replace(x=dict(one.x))._asdict() for one in read]) == repr(some)

    at_once(*(lambda parts=parts: check(parts) for parts in sent))


def test_a_name_that_stands_twice_is_found_beside_other_readers() -> None:
    text = b"[" + b",".join([b'{"x":{"twice":1,"b":2,"twice":3},"y":true}'] * 1000) + b"]"
    fine = json.dumps(sent_events(1, 900), ensure_ascii=False).encode()

    def refuse() -> None:
        for _ in range(50):
            assert read_events(text, Made, True) is None

    def read() -> None:
        for _ in range(10):
            assert read_events(fine, Made, True) is not None

    at_once(refuse, read, read)


class Name:
    """A name whose comparison comes back to the learner."""

    def __init__(self, text: str, back: Callable[[], object]) -> None:
        self.text, self.back = text, back

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        self.back()
        return self.text == (other.text if isinstance(other, Name) else other)


def test_a_comparison_of_names_may_learn_within_a_run() -> None:
    model, depth = Perceptron(), [0]
    x, y = table(40)

    def back() -> None:
        if not depth[0]:
            depth[0] = 1
            model.learn_many(x, y)
            depth[0] = 0

    model.learn_many(x, y)
    named = x.set_axis([Name(name, back) for name in x.columns], axis=1)
    at_once(lambda: model.learn_many(named, y))
    assert model.accounting.events >= 120


def test_a_run_that_fails_lets_others_go_on() -> None:
    class Unsound(str):
        __slots__ = ()
        __hash__ = None  # type: ignore[assignment]

    unsound: Any = Unsound("a")
    (x, y), model = table(40, width=2), Perceptron()
    model.learn_many(x, y)
    rows, labels = x.to_numpy(), y.to_numpy().view(np.uint8)
    with pytest.raises(TypeError, match="unhashable"):
        learn_rows(model, [unsound, "b"], rows, labels)
    model.clock = "unsound"  # type: ignore[assignment]
    with pytest.raises(TypeError):
        learn_rows(model, ["a", "b"], rows, labels)
    at_once(lambda: model.weights.get("f0"))


def test_others_have_their_turn_between_runs() -> None:
    (xs, ys, ws), model, ended = columns(1024, 100), Perceptron(), threading.Event()

    def learn() -> None:
        while not ended.is_set():
            model.predict_learn_run(xs, ys, ws, 0, 1024, 10**9)

    def look() -> None:
        began = time.monotonic()
        while not ended.is_set():
            time.sleep(0.001)
            model.predict_one({"f1": 1.0})
            waits.append(time.monotonic() - began)
            if len(waits) == 40 or waits[-1] > 5.0:
                ended.set()

    waits: list[float] = []
    at_once(learn, look)
    assert len(waits) == 40


def test_a_pool_waits_before_it_reads_the_numbers_of_an_expert() -> None:
    pool = Hedge([HingeSGD(0.01, "constant", l2=0.001), Perceptron()])
    (x, y), ended = table(20_000), threading.Event()
    events = x[:50].to_dict("records")
    experts: Any = pool.experts
    expert = experts[0]

    def learn() -> None:
        for _ in range(20):
            expert.learn_many(x, y)
        ended.set()

    def look() -> None:
        while not ended.is_set():
            for event in events:
                pool.learn_one(event, True)

    at_once(learn, look)
    assert expert.log_shrink == pytest.approx(expert.clock * math.log1p(-0.00001), rel=1e-6)


def test_changed_names_are_taken_beside_a_run() -> None:
    sent = [{"x": {f"f{20 * i + k}": 1.0 for k in range(20)}, "y": i % 2 == 0} for i in range(1000)]
    read = read_events([json.dumps(event).encode() for event in sent], Made, True)
    assert read is not None
    xs, ys, ws = [one.x for one in read], [one.y for one in read], [one.w for one in read]
    model = LinearUnit()
    changed: set[Any] = set()
    vector: Any = model.get_state()["vectors"]["weights"]
    for _ in range(30):
        assert len(model.predict_learn_run(xs, ys, ws, 0, 1000, 10**9)) == 1000
        vector.track()
        vector.take_changed()
        changed.clear()
        ended = threading.Event()

        def learn(ended: threading.Event = ended) -> None:
            model.predict_learn_run(xs, ys, ws, 0, 1000, 10**9)
            ended.set()

        def take(ended: threading.Event = ended) -> None:
            while not ended.is_set():
                changed.update(vector.take_changed())

        at_once(learn, take)
        changed.update(vector.take_changed())
        assert changed == set(model.weights)


@pytest.mark.parametrize("kind", COMPILED, ids=repr)
def test_a_model_is_saved_and_set_anew_beside_runs(kind: BinaryLinearClassifier) -> None:
    model, ended = copy.deepcopy(kind), threading.Event()
    x, y = table(2_000)
    model.learn_many(x[:100], y[:100])
    saved = pickle.loads(pickle.dumps(model.get_state()))
    parameters = model._get_params()

    def learn() -> None:
        for at in range(15):
            model.learn_many(*table(2_000, at, at))
        ended.set()

    def change() -> None:
        while not ended.is_set():
            for vector in copy.deepcopy(model).get_state()["vectors"].values():
                assert all(map(math.isfinite, vector.numbers()))
            sys.getsizeof(model.get_state()["vectors"]["weights"])
            model.set_state(copy.deepcopy(saved))
            model.learn_one({f"new{at}": 0.5 for at in range(40)}, True)
            with contextlib.suppress(ValueError):  # it reads names, then numbers, of two runs
                type(model).__init__(model, **parameters)
            model.predict_one({"f1": 1.0})
            pickle.dumps(model)

    at_once(learn, change)
    model.predict_one({"f1": 1.0})


@pytest.mark.parametrize("kind", COMPILED, ids=repr)
def test_a_comparison_of_names_may_set_the_model_anew(kind: BinaryLinearClassifier) -> None:
    model = copy.deepcopy(kind)
    x, y = table(40)
    model.learn_many(x, y)
    saved = pickle.dumps(model.get_state())
    event = {Name(f"f{at}", lambda: model.set_state(pickle.loads(saved))): 0.5 for at in range(5)}
    for right in (True, False):
        with contextlib.suppress(RuntimeError):  # the comparisons go on coming back
            model.learn_one(event, right)
    model.learn_one({"f1": 0.5}, True)


def test_runs_that_wait_for_each_other_fail() -> None:
    models, x, y = [Perceptron(), Perceptron()], *table(40)
    rows, labels = x.to_numpy(), y.to_numpy().view(np.uint8)
    both = threading.Barrier(2)
    failed: list[BaseException] = []

    def learn(model: Perceptron, other: Perceptron) -> None:
        def back() -> None:
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(5)
            other.predict_one({"f1": 1.0})

        try:
            learn_rows(model, [Name("f0", back), *x.columns[1:]], rows, labels)
        except RuntimeError as error:
            failed.append(error)
        finally:
            both.abort()

    for model in models:
        model.learn_many(x, y)
    at_once(lambda: learn(*models), lambda: learn(*models[::-1]))
    assert [str(error) for error in failed] == ["two runs wait for each other"]


def test_tables_of_known_names_are_let_go() -> None:
    def learned(names: int) -> int:
        """Return the memory that so many new names take, and what they are found by."""
        before = tracemalloc.get_traced_memory()[0]
        for at in range(0, names, 100):
            x = {f"{names}-{number}": 1.0 for number in range(at, at + 100)}
            assert read_events([json.dumps({"x": x, "y": True}).encode()], Made, True)
        return tracemalloc.get_traced_memory()[0] - before

    learned(32_800)  # more than half of the most: the next ones begin another table
    tracemalloc.start()
    try:
        taken = learned(32_700)
    finally:
        tracemalloc.stop()
    assert taken < 8_000_000  # 4 MiB of them for the last table, and as much for those before it
