"""Lazy averages and penalties equal their dense definitions, computed here step by step."""

from __future__ import annotations

import math
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from hinged import AveragedPerceptron, HingeSGD, Perceptron

NAMES = "abcd"
numbers = st.integers(-4, 4).map(lambda n: n / 2)
streams = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(NAMES), numbers, max_size=3),
        st.booleans(),
        st.sampled_from([1.0, 1.0, 1.0, 0.0, 0.5, 2.0]),
    ),
    max_size=30,
)
Stream = list[tuple[dict[str, float], bool, float]]


@settings(max_examples=150, deadline=None)
@given(streams)
def test_average(stream: Stream) -> None:
    raw, lazy = Perceptron(0.5), AveragedPerceptron(0.5)
    total = dict.fromkeys([*NAMES, "bias"], 0.0)
    count = 0
    for x, y, w in stream:
        raw.learn_one(x, y, w)
        lazy.learn_one(x, y, w)
        if w > 0.0:
            count += 1
            for name in NAMES:
                total[name] += raw.weights.get(name, 0.0)
            total["bias"] += raw.intercept
        for name in NAMES:
            assert lazy.weights.get(name, 0.0) == pytest.approx(
                total[name] / max(count, 1), abs=1e-12
            )
        assert lazy.score_one({}) == pytest.approx(total["bias"] / max(count, 1), abs=1e-12)


class Dense:
    """The hinge rule as its docstring states it, over all names at every event."""

    def __init__(
        self, steps: str, rate: float, l2: float, l1: float, project: bool = False
    ) -> None:
        self.steps, self.rate, self.l2, self.l1, self.project = steps, rate, l2, l1, project
        self.w = dict.fromkeys(NAMES, 0.0)
        self.squares = dict.fromkeys(NAMES, 0.0)
        self.bias_squares = 0.0
        self.bias = 0.0
        self.t = 0

    def eta(self, squares: float) -> float:
        if self.steps == "pegasos":
            return 1.0 / (self.l2 * self.t)
        if self.steps == "adagrad":
            return self.rate / math.sqrt(squares) if squares > 0.0 else 0.0
        return self.rate / math.sqrt(self.t) if self.steps == "sqrt" else self.rate

    def learn(self, x: dict[str, float], y: bool, w: float) -> None:
        if w == 0.0:
            return
        self.t += 1
        target = 1.0 if y else -1.0
        score = math.fsum(self.w[n] * v for n, v in x.items()) + self.bias
        hit = target * score <= 1.0
        if hit:
            for name, value in x.items():
                self.squares[name] += (w * value) ** 2
            self.bias_squares += w**2
        for name in NAMES:
            eta = self.eta(self.squares[name])
            weight = max(0.0, 1.0 - eta * self.l2) * self.w[name]
            if hit:
                weight += eta * w * target * x.get(name, 0.0)
            self.w[name] = math.copysign(max(0.0, abs(weight) - eta * self.l1), weight)
        if self.project:
            self.bias *= max(0.0, 1.0 - self.eta(0.0) * self.l2)
        if hit:
            self.bias += self.eta(self.bias_squares) * w * target
        norm = math.hypot(*self.w.values(), self.bias)
        if self.project and norm > self.l2**-0.5:
            self.bias *= self.l2**-0.5 / norm
            self.w = {n: v * self.l2**-0.5 / norm for n, v in self.w.items()}


@settings(max_examples=300, deadline=None)
@given(
    streams,
    st.sampled_from(["constant", "sqrt", "pegasos", "projected", "adagrad"]),
    st.sampled_from([0.1, 0.5, 3.0]),
    st.sampled_from([0.0, 0.01, 0.5]),
    st.sampled_from([0.0, 0.01, 0.3]),
)
def test_penalties(stream: Stream, steps: str, rate: float, l2: float, l1: float) -> None:
    project = steps == "projected"
    if project:
        steps, l1 = "pegasos", 0.0
    if steps == "pegasos":
        l2 = max(l2, 0.01)
    lazy = HingeSGD(rate, steps, l2=l2, l1=l1, project=project)
    dense = Dense(steps, rate, l2, l1, project)
    for x, y, w in stream:
        margin = (1.0 if y else -1.0) * lazy.score_one(x)
        if abs(margin - 1.0) < 1e-9:  # a tie that rounding may break either way
            continue
        lazy.learn_one(x, y, w)
        dense.learn(x, y, w)
        assert lazy.intercept == pytest.approx(dense.bias, abs=1e-10)
        for name in NAMES:
            assert lazy.weights.get(name, 0.0) == pytest.approx(dense.w[name], abs=1e-10)
            assert lazy.explain_one({name: 1.0})[name] == lazy.weights.get(name, 0.0)


@pytest.mark.parametrize("steps", ["constant", "sqrt", "adagrad"])
def test_a_new_rate_applies_from_now_on(steps: str) -> None:
    lazy, dense = HingeSGD(0.5, steps, l2=0.1, l1=0.01), Dense(steps, 0.5, 0.1, 0.01)
    events: list[tuple[dict[str, float], bool]]
    events = [({"a": 1.0}, True), ({"b": 1.0}, True), ({"c": 1.0}, False), ({"b": -1.0}, False)]
    for number, (x, y) in enumerate(events):
        if number == 2:
            lazy.mutate({"learning_rate": 0.05})
            dense.rate = 0.05
        lazy.learn_one(x, y)
        dense.learn(x, y, 1.0)
    for name in "abc":
        assert lazy.weights[name] == pytest.approx(dense.w[name], abs=1e-12)


def test_reading_pays_nothing_back() -> None:
    model: Any = HingeSGD(0.1, "constant", l1=0.1, l2=0.1)
    model.learn_one({"a": 1.0}, True)
    model.learn_one({"b": 1.0}, True)
    vectors = model.get_state()["vectors"]
    before = {name: dict(v.view()) for name, v in vectors.items()}
    vectors["weights"].track()
    for _ in range(3):
        model.score_one({"a": 1.0, "c": 1.0})
        assert set(model.weights) == {"a", "b"}
    assert {name: dict(v.view()) for name, v in vectors.items()} == before
    assert vectors["weights"].changed_count() == 0
    assert model.weights["a"] < before["weights"]["a"]
