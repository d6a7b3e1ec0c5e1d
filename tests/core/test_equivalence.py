"""Weight by weight against scikit-learn's and River's implementations, one pass in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from river import linear_model, optim
from sklearn.linear_model import SGDClassifier

from hinged import (
    AROW,
    SCW,
    AveragedPerceptron,
    CoinBetting,
    FTRLProximal,
    HingeSGD,
    LinearUnit,
    LogisticSGD,
    MulticlassLogisticSGD,
    PassiveAggressive,
    Perceptron,
    training,
)

Array = np.ndarray[Any, Any]
ONE_PASS: dict[str, Any] = {"shuffle": False, "max_iter": 1, "tol": None}
NAMES = [f"x{i}" for i in range(6)]


@pytest.fixture(scope="module", params=[1, 2, 3])
def rows(request: pytest.FixtureRequest) -> tuple[Array, Array]:
    rng = np.random.default_rng(request.param)
    X = rng.normal(size=(1_500, 6))
    y = X @ rng.normal(size=6) + rng.normal(scale=1.0, size=1_500) > 0.2
    return X, y


def learned(model: Any, X: Array, y: Array) -> Array:
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        model.learn_one(dict(zip(NAMES, row, strict=False)), label)
    return np.array([*(model.weights[n] for n in NAMES), model.score_one({})])


def fitted(model: Any, X: Array, y: Array) -> Array:
    model.fit(X, y)
    return np.append(model.coef_[0], model.intercept_[0])


def close(ours: Array, theirs: Array) -> None:
    assert np.max(np.abs(ours - theirs)) <= 1e-12


def test_averaged_perceptron(rows: tuple[Array, Array]) -> None:
    other = SGDClassifier(
        loss="perceptron", penalty=None, learning_rate="constant", eta0=1, average=True, **ONE_PASS
    )
    close(learned(AveragedPerceptron(), *rows), fitted(other, *rows))


@pytest.mark.parametrize(
    ("steps", "eta", "l2", "theirs"),
    [
        ("constant", 0.05, 0.01, {"learning_rate": "constant", "eta0": 0.05}),
        ("constant", 0.05, 0.5, {"learning_rate": "constant", "eta0": 0.05}),
        ("sqrt", 0.5, 0.01, {"learning_rate": "invscaling", "eta0": 0.5, "power_t": 0.5}),
        ("pegasos", 0.3, 0.1, {"learning_rate": "invscaling", "eta0": 10.0, "power_t": 1.0}),
    ],
)
def test_hinge_with_l2(
    rows: tuple[Array, Array], steps: str, eta: float, l2: float, theirs: dict[str, Any]
) -> None:
    other = SGDClassifier(loss="hinge", penalty="l2", alpha=l2, **theirs, **ONE_PASS)
    close(learned(HingeSGD(eta, steps, l2=l2, project=False), *rows), fitted(other, *rows))


@pytest.mark.parametrize(("mode", "rate"), [("I", "pa1"), ("II", "pa2")])
@pytest.mark.parametrize("C", [0.01, 1.0])
def test_passive_aggressive(rows: tuple[Array, Array], mode: str, rate: str, C: float) -> None:
    X, y = rows
    other = SGDClassifier(
        loss="hinge", penalty=None, learning_rate=rate, eta0=C, fit_intercept=False, **ONE_PASS
    )
    other.fit(np.column_stack([X, np.ones(len(X))]), y)
    close(learned(PassiveAggressive(C, mode), X, y), other.coef_[0])


def both(ours: Any, theirs: Any, rows: tuple[Array, Array], constant: bool) -> None:
    for row, label in zip(rows[0].tolist(), rows[1].tolist(), strict=True):
        x = dict(zip(NAMES, row, strict=False))
        theirs.learn_one({**x, "one": 1.0} if constant else x, label)
        ours.learn_one(x, label)
    intercept = theirs.weights["one"] if constant else theirs.intercept
    assert ours.intercept == pytest.approx(intercept, abs=1e-12)
    for name in NAMES:
        assert ours.weights[name] == pytest.approx(theirs.weights[name], abs=1e-12)


@pytest.mark.parametrize(("mode", "theirs"), [("uncapped", 0), ("I", 1), ("II", 2)])
def test_rivers_passive_aggressive(rows: tuple[Array, Array], mode: str, theirs: int) -> None:
    other: Any = linear_model.PAClassifier  # untyped in River
    both(PassiveAggressive(0.5, mode), other(0.5, theirs, learn_intercept=False), rows, True)


def test_rivers_perceptron(rows: tuple[Array, Array]) -> None:
    both(Perceptron(), linear_model.Perceptron(), rows, False)


@pytest.mark.parametrize("l2", [0.0, 0.05])
def test_rivers_hinge_descent(rows: tuple[Array, Array], l2: float) -> None:
    other = linear_model.LogisticRegression(
        optim.SGD(0.1), loss=optim.losses.Hinge(), l2=l2, intercept_lr=0.1
    )
    both(HingeSGD(0.1, "constant", l2=l2), other, rows, False)


def test_the_linear_unit_meets_least_squares(rows: tuple[Array, Array]) -> None:
    X, y = rows
    targets = np.where(y, 1.0, -1.0)
    exact = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), targets, rcond=None)[0]
    data = [
        (dict(zip(NAMES, row, strict=False)), t) for row, t in zip(X.tolist(), targets, strict=True)
    ]
    batch = training.batch_gradient_descent(data, epochs=500)
    found = np.array([*(batch.weights[n] for n in NAMES), batch.intercept])
    assert np.max(np.abs(found - exact)) <= 1e-9
    assert batch.losses[-1] <= batch.losses[0]
    unit = LinearUnit(optim.schedulers.InverseScaling(0.2, 0.6), capped=False)
    for _ in range(20):
        online = learned(unit, X, y)
    assert np.max(np.abs(online - exact)) <= 0.02


def logistic(optimizer: optim.base.Optimizer, X: Array, y: Array) -> Array:
    """Return the weights of River's logistic regression; the intercept is a feature there."""
    model: Any = linear_model.LogisticRegression(optimizer, intercept_lr=0.0, clip_gradient=np.inf)
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        model.learn_one({**dict(zip(NAMES, row, strict=True)), "1": 1.0}, label)
    return np.array([model.weights[n] for n in [*NAMES, "1"]])


@pytest.mark.parametrize(
    ("model", "theirs"),
    [
        (LogisticSGD(), optim.RMSProp(0.01, rho=0.999)),
        (LogisticSGD(0.1, decay=0.9), optim.RMSProp(0.1, rho=0.9)),
        (LogisticSGD(0.3, "adagrad"), optim.AdaGrad(0.3)),
        (LogisticSGD(0.1, "constant"), optim.SGD(0.1)),
    ],
    ids=["rms", "rms-fast", "adagrad", "constant"],
)
def test_logistic_regression(rows: tuple[Array, Array], model: Any, theirs: Any) -> None:
    close(learned(model.clone(), *rows), logistic(theirs.clone(), *rows))


def signed(X: Array, y: Array) -> Iterator[tuple[Array, float]]:
    """Yield the events with a constant feature, and their targets."""
    yield from zip(np.column_stack([X, np.ones(len(X))]), np.where(y, 1.0, -1.0), strict=True)


@pytest.mark.parametrize(("alpha", "beta", "l1", "l2"), [(0.3, 0.1, 0, 0), (0.1, 1.0, 4.0, 2.0)])
def test_follow_the_proximal_leader(
    rows: tuple[Array, Array], alpha: float, beta: float, l1: float, l2: float
) -> None:
    """Algorithm 1 of McMahan et al., 2013: weights from both sums whenever they are needed."""
    z, n = np.zeros(7), np.zeros(7)
    strength, ridge = np.array([l1] * 6 + [0.0]), np.array([l2] * 6 + [0.0])

    def leader() -> Array:
        w = -(z - np.sign(z) * strength) / ((beta + np.sqrt(n)) / alpha + ridge)
        return np.where(np.abs(z) <= strength, 0.0, w)

    for x, t in signed(*rows):
        w = leader()
        g = (1.0 / (1.0 + np.exp(-w @ x)) - (t > 0.0)) * x
        z += g - (np.sqrt(n + g * g) - np.sqrt(n)) / alpha * w
        n += g * g
    close(learned(FTRLProximal(alpha, beta, l1, l2), *rows), leader())


@pytest.mark.parametrize(("C", "phi"), [(0.1, 0.35), (1.0, 1.0), (1e6, 1.64)])
def test_soft_confidence(rows: tuple[Array, Array], C: float, phi: float) -> None:
    """Proposition 1 of Wang, Zhao and Hoi, 2012, of whose matrix the diagonal is kept."""
    w, S = np.zeros(7), np.ones(7)
    psi, zeta = 1.0 + phi**2 / 2.0, 1.0 + phi**2
    for x, t in signed(*rows):
        v, m = float(x @ (S * x)), t * float(w @ x)
        if phi * np.sqrt(v) - m <= 0.0:
            continue
        root = np.sqrt(m**2 * phi**4 / 4.0 + v * phi**2 * zeta)
        alpha = min(C, max(0.0, (-m * psi + root) / (v * zeta)))
        u = (-alpha * v * phi + np.sqrt(alpha**2 * v**2 * phi**2 + 4.0 * v)) ** 2 / 4.0
        w += alpha * t * S * x
        S -= alpha * phi / (np.sqrt(u) + v * alpha * phi) * (S * x) ** 2
    close(learned(SCW(C, phi), *rows), w)


def test_coin_betting(rows: tuple[Array, Array]) -> None:
    """Algorithm 1 of Orabona and Tommasi, 2017, with a first wealth of 1 and outcomes over L."""
    w, outcomes, sizes, winnings, L = (np.zeros(7) for _ in range(5))
    for x, t in signed(*rows):
        c = t * x / (1.0 + np.exp(t * (w @ x)))
        L = np.maximum(L, np.abs(x))
        winnings = np.maximum(0.0, winnings + c * w)
        outcomes, sizes = outcomes + c, sizes + np.abs(c)
        w = outcomes / (L * (sizes + L)) * (1.0 + winnings)
    close(learned(CoinBetting(), *rows), w)


@pytest.mark.parametrize("decay", [0.0, 0.01, 0.2])
def test_confidence_that_is_forgotten(rows: tuple[Array, Array], decay: float) -> None:
    """AROW by the confidences P = 1 / S: they add up, and go back towards 1."""
    w, P = np.zeros(7), np.ones(7)
    for x, t in signed(*rows):
        v, m = x @ (x / P), t * (w @ x)
        if m < 1.0:
            beta = 1.0 / (v + 1.0)
            w += (1.0 - m) * beta * t * x / P
            P = P / (1.0 - beta * x * x / P)
            P = (1.0 - decay) * P + decay
    close(learned(AROW(forgetting=decay), *rows), w)


def test_multiclass_logistic(rows: tuple[Array, Array]) -> None:
    X, y = rows
    model = MulticlassLogisticSGD(0.3, least=0.0, initial_intercepts=dict.fromkeys("ABC", 0.0))
    river: Any = linear_model
    other = river.SoftmaxRegression(optim.AdaGrad(0.3))
    for label in "ABC":
        other.weights[label]["1"] = 0.0  # River has no intercept, and meets classes later
    for row, true in zip(X.tolist(), y.tolist(), strict=True):
        x = dict(zip(NAMES, row, strict=True))
        label = "A" if true else "B" if row[0] > 0.0 else "C"
        model.learn_one(x, label)
        other.learn_one({**x, "1": 1.0}, label)
    for label in "ABC":
        ours = [*(model.weights[label][name] for name in NAMES), model.intercepts[label]]
        theirs = [other.weights[label][name] for name in (*NAMES, "1")]
        close(np.array(ours), np.array(theirs))
