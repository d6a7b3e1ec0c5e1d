"""Training in passes, batch descent and mixing."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from river import datasets
from sklearn.svm import SVC

from hinged import (
    AROW,
    AveragedPerceptron,
    Calibrated,
    HingeSGD,
    InvalidEvent,
    InvalidParameter,
    LinearUnit,
    MulticlassPerceptron,
    PassiveAggressive,
    Perceptron,
    PocketPerceptron,
    mix,
    training,
)

Rows = list[tuple[dict[str, float], bool]]
AND: Rows = [({"a": a, "b": b}, a == b == 1.0) for a in (0.0, 1.0) for b in (0.0, 1.0)]
XOR: Rows = [(x, x["a"] != x["b"]) for x, _ in AND]


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


POINTS = [({"x": 1.0}, 2.0), ({"x": 2.0}, 1.0), ({"x": 3.0}, 4.0), ({"x": 4.0}, 3.0)]


def test_batch_descent_on_four_points() -> None:
    steps: list[int] = []
    line = training.batch_gradient_descent(
        POINTS, tolerance=1e-12, progress=lambda number, loss: steps.append(number)
    )
    assert line.weights["x"] == pytest.approx(3 / 5, abs=1e-10)
    assert line.intercept == pytest.approx(1.0, abs=1e-10)
    assert line.converged
    assert steps == list(range(1, len(line.losses)))
    assert len(steps) < 20
    # residuals 0.4, -1.2, 1.2, -0.4: their squares sum to 3.2
    assert line.losses[-1] == pytest.approx(3.2 / 8, abs=1e-10)
    assert line.sums[-1] == pytest.approx(3.2 / 2, abs=1e-10)
    # at the start all outputs are 0: 4 + 1 + 16 + 9 = 30
    assert (line.losses[0], line.sums[0]) == (30 / 8, 30 / 2)
    early = training.batch_gradient_descent(POINTS, tolerance=1e-2)
    assert early.converged
    assert len(early.losses) < len(line.losses)
    short = training.batch_gradient_descent(POINTS, epochs=2)
    assert (short.converged, len(short.losses)) == (False, 3)


@pytest.mark.parametrize("xs", [range(11), range(-10, 11), range(101), range(5, 15)], ids=str)
def test_batch_descent_finds_the_square(xs: range) -> None:
    rows = [({"x": float(x), "x2": float(x * x)}, float(x * x)) for x in xs]
    fit = training.batch_gradient_descent(rows)
    assert fit.converged
    assert fit.weights == pytest.approx({"x": 0.0, "x2": 1.0}, abs=1e-7)
    assert fit.intercept == pytest.approx(0.0, abs=1e-7)
    assert len(fit.losses) < 200
    rounding = 1e-12 * fit.losses[0]
    assert all(b <= a + rounding for a, b in itertools.pairwise(fit.losses))
    largest = np.linalg.svd(np.array([[x, x * x, 1.0] for x in xs]))[1][0] ** 2
    constant = training.batch_gradient_descent(rows, learning_rate=1.0 / float(largest))
    assert not constant.converged
    assert len(constant.losses) == 1_001


def test_batch_descent_of_the_line_through_a_parabola() -> None:
    # x^2 on 0..10 without x^2: slope 10 (the sum of the ends), through (5, 35), the means
    fit = training.batch_gradient_descent([({"x": float(x)}, float(x * x)) for x in range(11)])
    assert fit.converged
    assert (fit.weights["x"], fit.intercept) == pytest.approx((10.0, -15.0), abs=1e-7)


def test_batch_descent_of_columns_that_depend_on_each_other() -> None:
    rows = [({"a": a, "b": 2.0 * a}, 5.0 * a) for a in (1.0, 2.0, 3.0)]
    fit = training.batch_gradient_descent([*rows, ({"c": 0.0}, 0.0)], fit_intercept=False)
    assert fit.converged
    assert fit.weights["a"] + 2.0 * fit.weights["b"] == pytest.approx(5.0, abs=1e-9)
    assert fit.weights["c"] == 0.0
    huge = training.batch_gradient_descent([({"a": 1e200}, 2.0), ({"b": 1e-160}, 3.0)])
    assert all(map(math.isfinite, [*huge.weights.values(), huge.intercept, *huge.losses]))
    assert training.batch_gradient_descent([]) == ({}, 0.0, [], [], True)


def test_batch_descent_converges_up_to_two_over_the_largest_eigenvalue() -> None:
    X = np.array([[x["x"], 1.0] for x, _ in POINTS])
    limit = 2.0 / float(np.linalg.eigvalsh(X.T @ X)[-1])
    line = training.batch_gradient_descent(POINTS, learning_rate=0.95 * limit, epochs=5_000)
    assert line.converged
    assert line.weights["x"] == pytest.approx(3 / 5, abs=1e-8)
    with pytest.raises(InvalidParameter, match="learning_rate"):
        training.batch_gradient_descent(POINTS, learning_rate=1.01 * limit)
    with pytest.raises(ValueError, match="finite"):
        training.batch_gradient_descent([({"x": 1.0}, math.nan)])
    through_zero = training.batch_gradient_descent(POINTS, epochs=200, fit_intercept=False)
    # sum of xy over sum of xx
    assert through_zero.weights["x"] == pytest.approx(28 / 30, abs=1e-10)
    assert through_zero.intercept == 0.0


def test_hinge_descent_approaches_the_largest_margin() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 2))
    side = X @ np.array([1.0, 0.5])
    X, side = X[np.abs(side) > 0.4], side[np.abs(side) > 0.4]
    y = side > 0.0
    svm = SVC(kernel="linear", C=1e6).fit(X, y)
    best = 1.0 / np.linalg.norm(svm.coef_[0])
    rows = [({"a": a, "b": b}, bool(t)) for (a, b), t in zip(X.tolist(), y, strict=True)]
    model = HingeSGD(steps="pegasos", l2=1e-3)
    training.fit(model, rows, epochs=300, order="shuffled", stop_without_mistakes=False)
    norm = math.hypot(*model.weights.values())
    margin = min((1 if t else -1) * model.score_one(x) / norm for x, t in rows)
    assert margin >= 0.9 * best
    assert margin <= best + 1e-9


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


def halves(model: Any) -> list[Any]:
    rows = list(datasets.Phishing().take(400))
    workers = []
    for shard in (rows[:200], rows[200:]):
        worker = model.clone()
        for x, y in shard:
            worker.learn_one(x, y)
        workers.append(worker)
    return workers


@pytest.mark.parametrize("model", [Perceptron(), PassiveAggressive(), LinearUnit()])
def test_mixing_is_the_weighted_mean(model: Any) -> None:
    one, two = halves(model)
    mixed = mix([one, two], [1.0, 3.0])
    names = {*one.weights, *two.weights}
    for name in names:
        expected = 0.25 * one.weights.get(name, 0.0) + 0.75 * two.weights.get(name, 0.0)
        assert mixed.weights[name] == pytest.approx(expected, abs=1e-15)
    assert mixed.intercept == pytest.approx(0.25 * one.intercept + 0.75 * two.intercept, abs=1e-15)
    assert mixed.accounting.events == 0
    assert mixed.clock == 200
    mixed.learn_one({"ip_in_url": 100.0}, not mixed.predict_one({"ip_in_url": 100.0}))
    assert one.accounting.events == 200


def test_mixing_averaged_perceptrons_mixes_both() -> None:
    one, two = halves(AveragedPerceptron())
    mixed: Any = mix([one, two])
    for name in {*one.weights, *two.weights}:
        mean = (one.weights.get(name, 0.0) + two.weights.get(name, 0.0)) / 2
        assert mixed.weights[name] == pytest.approx(mean, abs=1e-12)
    assert mixed.intercept == (one.intercept + two.intercept) / 2
    assert mixed.score_one({}) == pytest.approx((one.score_one({}) + two.score_one({})) / 2)


def test_mixing_averages_of_uneven_shards() -> None:
    one, two = AveragedPerceptron(), AveragedPerceptron()
    for x, y in datasets.Phishing().take(30):
        one.learn_one(x, y)
    for x, y in datasets.Phishing().take(90):
        two.learn_one(x, y)
    mixed = mix([one, two], [3.0, 1.0])
    for name in {*one.weights, *two.weights}:
        mean = 0.75 * one.weights.get(name, 0.0) + 0.25 * two.weights.get(name, 0.0)
        assert mixed.weights[name] == pytest.approx(mean, abs=1e-12)


def test_mixing_one_learner_gives_it_back() -> None:
    one, _ = halves(Perceptron())
    assert dict(mix([one]).weights) == dict(one.weights)


def test_iterative_mixing_separates_within_the_bound() -> None:
    shards = [AND[:2] * 2, AND[2:] * 2]
    model: Any = Perceptron()
    updates = 0
    for _ in range(60):
        workers = []
        for shard in shards:
            worker = Perceptron()
            worker.set_state(model.get_state())
            for x, y in shard:
                updates += worker.predict_learn_one(x, y).updated
            workers.append(worker)
        model = mix(workers)
    assert all(model.predict_one(x) is y for x, y in AND)
    assert updates / 2 <= 51  # uniform mixing: the mean over shards keeps Novikoff's bound


@pytest.mark.parametrize(
    ("models", "weights"),
    [
        ([], None),
        ([AROW()], None),
        ([MulticlassPerceptron()], None),
        ([Perceptron(), LinearUnit()], None),
        ([Perceptron(), Perceptron(0.5)], None),
        ([Perceptron()], [1.0, 1.0]),
        ([Perceptron()], [0.0]),
        ([Perceptron()], [-1.0]),
        ([Perceptron()], [math.nan]),
    ],
)
def test_mixing_refuses(models: Any, weights: Any) -> None:
    with pytest.raises(InvalidParameter):
        mix(models, weights)


@pytest.mark.parametrize(("rule", "parts"), [(AveragedPerceptron, 4), (PassiveAggressive, 8)])
def test_parts_of_a_stream_mixed_once_are_close_to_one_model(rule: Any, parts: int) -> None:
    """Each part learns its share of 2,000 events, one in ten of them with a wrong label."""
    rng = random.Random(1)
    truth = {f"f{i}": rng.gauss(0, 1) for i in range(30)}
    rows: Rows = []
    for _ in range(3_000):
        x = {name: rng.gauss(0, 1) for name in truth}
        right = sum(w * x[name] for name, w in truth.items()) > 0
        rows.append((x, right is not (rng.random() < 0.1)))
    make = {"C": 0.01} if rule is PassiveAggressive else {}
    one, apart = rule(**make), [rule(**make) for _ in range(parts)]
    for number, (x, y) in enumerate(rows[:2_000]):
        one.learn_one(x, y)
        apart[number % parts].learn_one(x, y)
    accuracy = [
        sum(model.predict_one(x) is y for x, y in rows[2_000:]) / 1_000
        for model in (one, mix(apart), apart[0])
    ]
    assert accuracy[1] > accuracy[0] - 0.02
    assert accuracy[1] > accuracy[2] + 0.01
