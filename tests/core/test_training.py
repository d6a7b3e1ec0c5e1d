"""Training in passes, with shuffles, stopping rules and the pocket."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from river import datasets

from hinged import (
    AROW,
    AveragedPerceptron,
    Calibrated,
    InvalidEvent,
    InvalidParameter,
    LinearUnit,
    MulticlassPerceptron,
    Perceptron,
    PocketPerceptron,
    training,
)
from tests.core.truth_tables import AND, XOR, Rows


def test_stops_when_clean() -> None:
    seen: list[training.Epoch] = []
    model = Perceptron()
    history = training.fit(model, AND, progress=seen.append)
    assert history.stopped == "no mistakes"
    assert seen == history.epochs
    assert history.column("number") == list(range(1, 10))
    assert sum(history.column("updates")) == model.accounting.updates == 18
    assert history.column("mistakes")[-1] == 0
    assert sum(history.column("hinge_loss")) == pytest.approx(model.accounting.hinge_loss)


def test_an_epoch_sums_the_losses_of_its_rows() -> None:
    rows: Rows = [({"a": 1.0}, True), ({"a": 2.0}, False), ({"a": 1.0}, True)]
    history = training.fit(Perceptron(fit_intercept=False), rows, epochs=1)
    # w = 0, 1, -1 before each: margins 0, -2, -1
    (epoch,) = history.epochs
    assert (epoch.hinge_loss, epoch.perceptron_loss) == (1.0 + 3.0 + 2.0, 0.0 + 2.0 + 1.0)
    # (1 - 0)^2 + (-1 - 2)^2 + (1 + 1)^2 = 14
    assert (epoch.squared_loss, epoch.rows) == (7.0, 3)
    assert history.column("perceptron_loss", mean=True) == [1.0]
    assert history.column("squared_loss", mean=True) == [7.0 / 3.0]
    with pytest.raises(InvalidParameter, match="name"):
        history.column("learning_rate", mean=True)
    letters: Any = [({"a": 1.0}, "A"), ({"a": 2.0}, "B")]
    many = MulticlassPerceptron(fit_intercept=False)
    for learner in (many, Calibrated(many)):
        (epoch,) = training.fit(learner, letters, epochs=1).epochs
        assert (epoch.squared_loss, epoch.perceptron_loss) == (None, 0.0)


def test_perceptron_losses_are_those_of_the_accounting() -> None:
    rows = list(datasets.Phishing().take(200))
    model = AveragedPerceptron()
    history = training.fit(model, rows, epochs=5)
    total = math.fsum(history.column("perceptron_loss"))
    assert total == pytest.approx(model.accounting.perceptron_loss, rel=1e-12)
    losses = training.fit(LinearUnit(), rows, epochs=5).column("squared_loss", mean=True)
    assert losses[-1] < losses[0] < 0.5


def fewest_errors(rows: Rows) -> int:
    """Return the errors of the best line: one between two points, turned a little either way."""
    points = [(x["a"], x["b"], 1 if y else -1) for x, y in rows]
    positives = sum(t > 0 for *_, t in points)
    least = min(positives, len(points) - positives)
    for (a, b, _), (c, d, _) in itertools.combinations(points, 2):
        sides = [(((p - a) * (d - b) - (q - b) * (c - a)), t) for p, q, t in points]
        on = sorted(t for side, t in sides if side == 0.0)
        right = sum((side > 0.0) is (t > 0) for side, t in sides if side != 0.0)
        off = len(points) - len(on)
        assert len(on) == 2  # turned about their middle or moved, the line splits them as it likes
        least = min(least, off - right, right)
    return least


def test_the_ratchet_finds_the_best_line_more_often_than_the_run_alone() -> None:
    alone = ratchet = 0
    for seed in range(40):
        draw = random.Random(seed)
        rows: Rows = []
        for _ in range(15):
            x = {"a": draw.gauss(0.0, 1.0), "b": draw.gauss(0.0, 1.0)}
            rows.append((x, (x["a"] + x["b"] > 0.0) is not (draw.random() < 0.15)))
        best = fewest_errors(rows)
        model = Perceptron()
        found = training.fit_pocket(model, rows, seed=seed, picks=10_000)
        assert found.errors >= best
        assert found.errors == sum(model.predict_one(dict(x)) is not y for x, y in rows)
        ratchet += found.errors == best
        pocket = PocketPerceptron()
        training.fit(pocket, rows, epochs=670, order="shuffled", seed=seed)
        alone += sum(pocket.predict_one(dict(x)) is not y for x, y in rows) == best
    assert ratchet >= 36
    assert ratchet > alone


def test_the_ratchet_keeps_a_good_start_and_stops_when_all_are_right() -> None:
    good = Perceptron(initial_weights={"a": 1.0, "b": 1.0}, initial_intercept=-1.5)
    assert training.fit_pocket(good, AND) == (0, 0, 0)
    model = Perceptron()
    found = training.fit_pocket(model, AND, seed=1)
    assert found.errors == 0
    assert found.picks < 1_000
    assert all(model.predict_one(dict(x)) is y for x, y in AND)
    letters: Any = [({"a": 1.0}, "A"), ({"b": 1.0}, "B"), ({"a": 1.0}, "B")]
    assert training.fit_pocket(MulticlassPerceptron(), letters).errors == 1
    assert training.fit_pocket(Perceptron(), XOR, picks=500).errors == 1
    for bad in (PocketPerceptron(), AveragedPerceptron()):
        with pytest.raises(InvalidParameter, match="weights that learn"):
            training.fit_pocket(bad, AND)


def test_stops_after_the_epochs() -> None:
    history = training.fit(Perceptron(), XOR, epochs=7)
    assert (len(history.epochs), history.stopped) == (7, "epochs")


def test_stops_when_mistakes_settle() -> None:
    history = training.fit(Perceptron(), XOR, epochs=100, patience=3)
    assert history.stopped == "mistakes settled"
    assert len(set(history.column("mistakes")[-4:])) == 1


def test_stops_when_held_out_errors_settle() -> None:
    rows = list(datasets.Phishing().take(300))
    history = training.fit(
        LinearUnit(), rows[:200], epochs=60, held_out=rows[200:], held_out_patience=4
    )
    assert history.stopped == "held-out errors settled"
    errors = history.column("held_out_errors")
    assert len(set(errors[-5:])) == 1
    assert all(0 <= e <= 100 for e in errors)


SPELLINGS: list[tuple[Any, Any]] = [(1, -1), (1.0, -1.0), (1, 0)]
SPELLINGS += [(np.int64(1), np.int64(-1)), (np.float32(1), np.float32(-1)), (np.True_, np.False_)]


@pytest.mark.parametrize("labels", SPELLINGS, ids=repr)
def test_labels_of_any_spelling_train_alike(labels: tuple[Any, Any]) -> None:
    spelled = [(x, labels[0] if y else labels[1]) for x, y in AND]
    plain, other = Perceptron(), Perceptron()
    expected = training.fit(plain, AND, held_out=AND)
    assert training.fit(other, spelled, held_out=spelled) == expected
    assert (dict(other.weights), other.intercept) == (dict(plain.weights), plain.intercept)
    assert expected.column("held_out_errors")[-1] == 0
    assert training.fit_until_separated(Perceptron(), spelled, seed=1)


@pytest.mark.parametrize("bad", [2, 0.5, math.nan, None, "spam", "-1"])
def test_a_label_that_is_none_is_refused_before_training(bad: Any) -> None:
    model = Perceptron()
    rows = [*AND, ({"a": 1.0}, bad)]
    for train in (
        lambda: training.fit(model, rows),
        lambda: training.fit(model, AND, held_out=rows),
        lambda: training.fit_until_separated(model, rows),
    ):
        with pytest.raises(InvalidEvent, match="row 4: y must be true or false"):
            train()
    assert model.accounting.events == 0


def test_decay_multiplies_the_rate_each_pass() -> None:
    model = Perceptron(0.5)
    history = training.fit(model, XOR, epochs=4, decay=0.5)
    assert history.column("learning_rate") == [0.5, 0.25, 0.125, 0.0625]


def test_shuffling_is_seeded_and_fresh_each_pass() -> None:
    rows = list(datasets.Phishing().take(100))
    ends = []
    for seed in (1, 1, 2):
        model = Perceptron()
        training.fit(model, rows, epochs=3, order="shuffled", seed=seed)
        ends.append(dict(model.weights))
    assert ends[0] == ends[1] != ends[2]
    assert rows == list(datasets.Phishing().take(100))


@pytest.mark.parametrize("seed", range(5))
def test_any_misclassified_point_until_separated(seed: int) -> None:
    model = Perceptron()
    assert training.fit_until_separated(model, AND, seed=seed)
    assert all(model.predict_one(x) is y for x, y in AND)
    assert all(model.score_one(x) != 0.0 for x, _ in AND)
    assert model.accounting.updates <= 51
    letters: Any = [({"a": 1.0}, "A"), ({"b": 1.0}, "B"), ({"c": 1.0}, "C")]
    many = MulticlassPerceptron()
    assert training.fit_until_separated(many, letters, seed=seed)
    assert not training.fit_until_separated(Perceptron(), XOR, seed=seed, max_updates=500)


@pytest.mark.parametrize(
    "params",
    [
        {"epochs": 0},
        {"epochs": None},
        {"order": "random"},
        {"decay": 0.0},
        {"decay": 1.5},
        {"decay": math.nan},
        {"patience": 0},
        {"held_out_patience": 2},
    ],
)
def test_fit_refuses(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        training.fit(Perceptron(), AND, **params)
    with pytest.raises(InvalidParameter, match="decay"):
        training.fit(AROW(), AND, decay=0.5)


def test_the_pocket_beats_the_last_perceptron_on_noisy_labels() -> None:
    last, pocket = [], []
    for seed in range(60):
        draw = random.Random(seed)
        u = [draw.gauss(0, 1) for _ in range(5)]

        def event(draw: random.Random = draw, u: list[float] = u) -> tuple[dict[int, float], bool]:
            x = {i: draw.gauss(0, 1) for i in range(5)}
            return x, math.fsum(u[i] * x[i] for i in x) > 0.0

        model = PocketPerceptron()
        for _ in range(2_000):
            x, clean = event()
            model.learn_one(x, clean is not (draw.random() < 0.1))
        state = model.get_state()
        raw_weights = state["vectors"]["weights"]
        test = [event() for _ in range(300)]
        pocket.append(sum(model.predict_one(dict(x)) is y for x, y in test) / 300)
        last.append(sum((raw_weights.dot(x) + model.intercept > 0.0) is y for x, y in test) / 300)
    assert math.fsum(pocket) / 60 > math.fsum(last) / 60
