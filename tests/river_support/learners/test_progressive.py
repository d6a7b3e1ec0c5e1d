"""Metrics through HTTP are those of River's own progressive validation of the same pipeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from river import evaluate, metrics, utils

from hinged_service.evaluation.log_loss import LogLoss
from tests.river_support.learners.cases import CASES, Case
from tests.river_support.learners.conftest import Start
from tests.support.processes import wait_until

Clients = tuple[httpx.Client, httpx.Client]
Create = Callable[..., str]
_river: Any = metrics

WINDOW = 60


class _Pairs(_river.base.BinaryMetric):  # type: ignore[misc]
    """The area under the ROC curve, pair by pair: River's looks at ten thresholds."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: list[tuple[bool, float]] = []

    @property
    def requires_labels(self) -> bool:
        return False

    def update(self, y_true: bool, y_pred: dict[bool, float]) -> None:
        self._seen.append((y_true, y_pred.get(True, 0.0)))

    def revert(self, y_true: bool, y_pred: dict[bool, float]) -> None:
        self._seen.remove((y_true, y_pred.get(True, 0.0)))

    def get(self) -> float:
        positive = [p for y, p in self._seen if y]
        negative = [p for y, p in self._seen if not y]
        right = sum((p > n) + (p == n) / 2 for p in positive for n in negative)
        return right / (len(positive) * len(negative))


BINARY: dict[str, Any] = {
    "accuracy": _river.Accuracy,
    "balanced_accuracy": _river.BalancedAccuracy,
    "f1": _river.F1,
    "roc_auc": _Pairs,
    "log_loss": _river.LogLoss,
    "mcc": _river.MCC,
}
MULTICLASS: dict[str, Any] = {
    "accuracy": _river.Accuracy,
    "balanced_accuracy": _river.BalancedAccuracy,
    "f1": _river.MacroF1,
    "cohen_kappa": _river.CohenKappa,
}
COMPARED = [
    ("scaled perceptron on Phishing", BINARY),
    ("scaled logistic regression", BINARY),
    ("imputed holes", BINARY),
    ("scaled multiclass perceptron", MULTICLASS),
    ("words to naive Bayes", MULTICLASS),
]


def learn_all(clients: Clients, path: str, case: Case) -> None:
    events = [{"x": x, "y": case.label(y)} for x, y in case.events()]
    for number, i in enumerate(range(0, len(events), 41)):
        answer = clients[number % 2].post(f"{path}/learn", json=events[i : i + 41])
        assert answer.status_code == 200, answer.text


def as_river_counts(case: Case, kinds: dict[str, Any]) -> dict[str, float]:
    found = {}
    for name, kind in kinds.items():
        rolling: Any = utils.Rolling(kind, window_size=WINDOW)
        for key, metric in ((name, kind()), (f"rolling_{name}_{WINDOW}", rolling)):
            events: Any = case.events()
            found[key] = evaluate.progressive_val_score(events, case.river(), metric).get()
    return found


@pytest.mark.parametrize(("name", "kinds"), COMPARED)
def test_metrics_are_those_of_rivers_progressive_validation(
    clients: Clients, start: Start, create: Create, name: str, kinds: dict[str, Any]
) -> None:
    case = CASES[name]
    rolling = [{"type": "rolling", "metric": kind, "window": WINDOW} for kind in kinds]
    path = create(**case.spec, metrics=[*kinds, *rolling])
    learn_all(clients, path, case)
    expected = as_river_counts(case, kinds)
    late = start()
    with late.client() as third:
        wait_until(lambda: third.get(path).json()["progress"] == 1.0)
        for client in (*clients, third):
            found = client.get(path).json()["metrics"]
            if "roc_auc" in found:
                assert found.pop("roc_auc") == pytest.approx(expected["roc_auc"], abs=0.002)
            wanted = {name: value for name, value in expected.items() if name in found}
            assert found == pytest.approx(wanted, rel=1e-9)
    late.stop()


def _fail(*_: Any) -> None:
    raise ValueError("this label is too odd")


@pytest.mark.parametrize("when", ["an event is counted", "the value is read"])
def test_a_metric_that_fails_touches_neither_learning_nor_the_others(
    clients: Clients, start: Start, create: Create, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    case = CASES["imputed holes"]
    sound = create(**case.spec, metrics=["accuracy", "roc_auc"])
    learn_all(clients, sound, case)
    method = "update" if when == "an event is counted" else "get"
    monkeypatch.setattr(LogLoss, method, _fail)
    path = create(**case.spec, metrics=["accuracy", "log_loss", "roc_auc"])
    learn_all(clients, path, case)
    late = start()
    with late.client() as third:
        for client in (*clients, third):
            answer, same = client.get(path), client.get(sound).json()
            assert answer.status_code == 200, answer.text
            model = answer.json()
            reason = model["metrics"].pop("log_loss")
            assert "this label is too odd" in reason["error"]
            for name in ("events", "mistakes", "updates", "hinge_loss", "metrics"):
                assert model[name] == same[name], name
            weights, wanted = (client.get(f"{p}/weights").json() for p in (path, sound))
            assert weights["weights"] == wanted["weights"]
    late.stop()
