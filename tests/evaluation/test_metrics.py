"""Progressive metrics: River's numbers, also if one of them fails."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from river import evaluate, linear_model, metrics, preprocessing, utils

import hinged
from hinged_service.evaluation.metrics import Metrics
from hinged_service.evaluation.specs import MetricSpecs, check_metrics
from tests.evaluation.specs import dataset

BINARY: dict[str, Any] = {
    "accuracy": metrics.Accuracy,
    "balanced_accuracy": metrics.BalancedAccuracy,
    "f1": metrics.F1,
    "precision": metrics.Precision,
    "recall": metrics.Recall,
    "log_loss": metrics.LogLoss,
    "mcc": metrics.MCC,
    "cohen_kappa": metrics.CohenKappa,
}
MULTICLASS: dict[str, Any] = {
    "accuracy": metrics.Accuracy,
    "balanced_accuracy": metrics.BalancedAccuracy,
    "f1": metrics.MacroF1,
    "precision": metrics.MacroPrecision,
    "recall": metrics.MacroRecall,
    "log_loss": metrics.CrossEntropy,
    "cohen_kappa": metrics.CohenKappa,
}
WINDOWS = (1, 7, 100)
RELIABILITY = ("reliability", "calibration_error")
ADAPTER: TypeAdapter[Any] = TypeAdapter(MetricSpecs)


def rolling(name: str, window: int) -> dict[str, Any]:
    return {"type": "rolling", "metric": name, "window": window}


def parsed(specs: list[Any]) -> Any:
    return ADAPTER.validate_json(json.dumps(specs))


def everything(names: Any) -> Any:
    """Return specs of all metrics of these names, and of each over a window."""
    both = [*names, *RELIABILITY, "confusion_matrix", *(["roc_auc"] if "mcc" in names else [])]
    return [*parsed(both), *parsed([rolling(name, 7) for name in both])]


def model(multiclass: bool) -> Any:
    last = linear_model.SoftmaxRegression() if multiclass else linear_model.LogisticRegression()
    return preprocessing.StandardScaler() | last


def events(multiclass: bool, count: int = 600) -> Iterator[tuple[Any, Any, dict[Any, float]]]:
    """Return label, prediction and probabilities of a River model, event by event."""
    learner = model(multiclass)
    for x, y in dataset(multiclass).take(count):
        proba = learner.predict_proba_one(x)
        yield y, max(proba, key=proba.get, default=None), proba
        learner.learn_one(x, y)


def wants_labels(metric: Any) -> bool:
    return bool(metric.requires_labels)


@pytest.mark.parametrize("multiclass", [False, True])
def test_metrics_are_those_of_rivers_progressive_validation(multiclass: bool) -> None:
    kinds = MULTICLASS if multiclass else BINARY
    ours = Metrics(parsed(list(kinds)), multiclass)
    for y, y_pred, proba in events(multiclass):
        ours.update(y, y_pred, proba)
    report = ours.report()
    for name, kind in kinds.items():
        theirs = kind()
        evaluate.progressive_val_score(dataset(multiclass).take(600), model(multiclass), theirs)
        assert report[name] == pytest.approx(theirs.get(), rel=1e-12), name


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("multiclass", [False, True])
def test_rolling_metrics_are_rivers_at_every_event(multiclass: bool, window: int) -> None:
    kinds = MULTICLASS if multiclass else BINARY
    ours = Metrics(parsed([rolling(name, window) for name in kinds]), multiclass)
    theirs: dict[str, Any] = {name: utils.Rolling(kind, window) for name, kind in kinds.items()}
    for y, y_pred, proba in events(multiclass):
        ours.update(y, y_pred, proba)
        if y_pred is None:
            continue
        report = ours.report()
        for name, metric in theirs.items():
            metric.update(y, y_pred if wants_labels(metric) else proba)
            value = report[f"rolling_{name}_{window}"]
            assert value == pytest.approx(metric.get(), rel=1e-9, abs=1e-9), name


def test_confusion_matrices_count_pairs_by_the_text_of_labels() -> None:
    ours = Metrics(parsed(["confusion_matrix", rolling("confusion_matrix", 2)]), False)
    for y, y_pred in ((True, True), (True, False), (False, True), (True, True)):
        ours.update(y, y_pred, {False: 0.5, True: 0.5})
    assert ours.report() == {
        "confusion_matrix": {"false": {"true": 1}, "true": {"false": 1, "true": 2}},
        "rolling_confusion_matrix_2": {"false": {"true": 1}, "true": {"true": 1}},
    }
    named = Metrics(parsed(["confusion_matrix"]), False, ("ham", "spam"))
    named.update(True, False, {})
    assert named.report() == {"confusion_matrix": {"spam": {"ham": 1}}}
    many = Metrics(parsed(["confusion_matrix"]), True)
    for number, guess in ((3, 3), (-1, 3), (3, -1)):
        many.update(number, guess, {3: 1.0})
    assert many.report() == {"confusion_matrix": {"3": {"3": 1, "-1": 1}, "-1": {"3": 1}}}


def test_a_large_confusion_matrix_is_cut_to_the_classes_that_occur_most() -> None:
    ours = Metrics(parsed(["confusion_matrix", "accuracy"]), True)
    pairs = [(f"c{n}", f"c{n}") for n in range(60)] + [("c59", "c3"), ("c3", "c58"), ("c0", "c59")]
    for y, y_pred in pairs:
        ours.update(y, y_pred, {})
    # c59 occurs 4 times, c3 4 times, c0 and c58 3 times, all others twice: the first ones count
    assert ours.report(3) == {
        "confusion_matrix": {
            "c0": {"c0": 1, "c59": 1}, "c3": {"c3": 1}, "c59": {"c3": 1, "c59": 1}
        },
        "confusion_matrix_classes": {"shown": 3, "of": 60},
        "accuracy": 60 / 63,
    }  # fmt: skip
    report = ours.report()
    most_frequent = [*(f"c{n}" for n in range(48)), "c58", "c59"]
    assert list(report["confusion_matrix"]) == most_frequent
    assert report["confusion_matrix_classes"] == {"shown": 50, "of": 60}
    assert "confusion_matrix_classes" not in ours.report(60)


def test_a_confusion_matrix_of_long_names_is_bounded_by_bytes() -> None:
    ours = Metrics(parsed(["confusion_matrix"]), True)
    names = [chr(1) * 250 + f"{n:03}" for n in range(40)]
    for y in names:
        for y_pred in names:
            ours.update(y, y_pred, {})
    report = ours.report()
    assert 200_000 < len(json.dumps(report)) < 2**18 + 2**15
    assert report["confusion_matrix_classes"]["of"] == 40
    only = Metrics(parsed(["confusion_matrix"]), True)
    only.update("x" * 300_000, "x" * 300_000, {})
    assert only.report() == {"confusion_matrix": {"x" * 300_000: {"x" * 300_000: 1}}}


def test_without_an_event_there_is_no_number() -> None:
    ours = Metrics(everything(BINARY), False)
    report = ours.report()
    assert {k: v for k, v in report.items() if "confusion" not in k and v is not None} == {}
    assert report["confusion_matrix"] == {}
    many = Metrics(parsed(list(MULTICLASS)), True)
    many.update("a", None, {})  # the first event of all has no prediction
    assert set(many.report().values()) == {None}


@pytest.mark.parametrize("multiclass", [False, True])
def test_metrics_go_on_exactly_where_their_state_stood(multiclass: bool) -> None:
    specs = everything(MULTICLASS if multiclass else BINARY)
    plain, moved = Metrics(specs, multiclass), Metrics(specs, multiclass)
    for number, (y, y_pred, proba) in enumerate(events(multiclass, 300)):
        if number in (0, 1, 2, 50, 150, 299):
            state = json.loads(json.dumps(moved.get_state(), sort_keys=True, allow_nan=False))
            moved = Metrics(specs, multiclass)
            moved.set_state(state)
            assert moved.get_state() == state
            assert moved.report() == plain.report()
        for one in (plain, moved):
            one.update(y, y_pred, proba)
    assert moved.report() == plain.report()
    assert moved.get_state() == plain.get_state()


def test_a_metric_that_fails_touches_no_other() -> None:
    specs = parsed(["accuracy", "log_loss", rolling("log_loss", 5), "roc_auc"])
    ours, spared = Metrics(specs, False), Metrics(parsed(["accuracy"]), False)
    stream: list[tuple[bool, bool, dict[bool, float]]] = [
        (True, True, {False: 0.1, True: 0.9}),
        (False, True, {False: math.nan, True: math.nan}),
        (True, False, {False: 0.6, True: 0.4}),
    ]
    for event in stream:
        ours.update(*event)
        spared.update(*event)
    report = ours.report()
    assert report["accuracy"] == spared.report()["accuracy"] == pytest.approx(1 / 3)
    for name in ("log_loss", "rolling_log_loss_5", "roc_auc"):
        assert report[name] == {"error": "ValueError: a probability is not finite"}
    again = Metrics(specs, False)
    again.set_state(json.loads(json.dumps(ours.get_state())))
    again.update(*stream[0])
    assert again.report()["log_loss"] == report["log_loss"]


@pytest.mark.parametrize("y", ["spam", 1, None, [1], 0.5])
def test_a_label_that_no_metric_takes_is_said_not_raised(y: Any) -> None:
    ours = Metrics(everything(BINARY), False)
    ours.update(y, True, {False: 0.5, True: 0.5})
    assert all(set(value) == {"error"} for value in ours.report().values())
    json.dumps(ours.get_state(), allow_nan=False)


def test_labels_that_are_one_key_in_python_are_never_merged() -> None:
    ours = Metrics(parsed(["accuracy"]), True)
    ours.update(1, 1, {1: 1.0})
    ours.update(True, 1, {1: 1.0})
    assert ours.report()["accuracy"] == {"error": "TypeError: cannot take labels of several types"}


def test_values_do_not_depend_on_the_hash_seed() -> None:
    code = (
        "import json, random\n"
        "from hinged_service.evaluation.metrics import Metrics\n"
        "from hinged_service.evaluation.specs import MetricSpec\n"
        "names = ['f1', 'precision', 'recall', 'balanced_accuracy', 'cohen_kappa',"
        " 'confusion_matrix']\n"
        "rng = random.Random(1)\n"
        "ours = Metrics([MetricSpec(type=n) for n in names], True)\n"
        "labels = [f'class {i}' for i in range(40)]\n"
        "for _ in range(3000):\n"
        "    y = rng.choice(labels)\n"
        "    ours.update(y, y if rng.random() < 0.6 else rng.choice(labels), {})\n"
        "print(json.dumps([ours.report(), ours.get_state()]))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(4)
    }
    assert len(outputs) == 1


@settings(deadline=None)
@given(
    stream=st.lists(
        st.tuples(st.booleans(), st.booleans(), st.sampled_from([0.0, 1e-300, 0.5, 1.0])),
        max_size=30,
    ),
    window=st.integers(1, 5),
)
def test_every_value_is_finite(stream: list[tuple[bool, bool, float]], window: int) -> None:
    names = [*BINARY, "confusion_matrix", "roc_auc"]
    ours = Metrics(parsed([*names, *(rolling(name, window) for name in names)]), False)
    for y, y_pred, p in stream:
        ours.update(y, y_pred, {False: 1.0 - p, True: p})
    json.dumps(ours.report(), allow_nan=False)
    assert not any(isinstance(v, dict) and "error" in v for v in ours.report().values())


def test_a_damaged_state_is_refused_and_changes_nothing() -> None:
    specs = parsed(["accuracy", "roc_auc", "log_loss", rolling("f1", 3), rolling("roc_auc", 4)])
    ours = Metrics(specs, False)
    for y, y_pred, proba in events(False, 20):
        ours.update(y, y_pred, proba)
    sound = json.loads(json.dumps(ours.get_state()))
    counts = sound["counts"]

    def having(key: str, **parts: Any) -> dict[str, Any]:
        return {**sound, "counts": {**counts, key: {**counts[key], **parts}}}

    for broken in (
        {},
        None,
        {**sound, "version": 2},
        {**sound, "counts": {}},
        {**sound, "errors": {"f1": "unknown"}},
        {**sound, "errors": {"roc_auc": 1}},
        having("confusion", cells=[[0, 2, 1]]),
        having("confusion", cells=[[0, 1, -1]]),
        having("confusion", cells=[[0, 1]]),
        having("confusion", classes=[False, False]),
        having("confusion", classes=["a", "b"]),
        having("confusion", window=[[0, 1]]),
        having("confusion/3", window=[[0, 1]] * 4),
        having("confusion/3", window=[[0, -1]]),
        having("log_loss", sum=math.nan),
        having("log_loss", n="3"),
        having("log_loss", window=[1.0]),
        having("roc_auc", counts=[[0] * 11]),
        having("roc_auc", counts=[[0] * 11, [0] * 10]),
        having("roc_auc", window=None),
        having("roc_auc", ranks=[[]]),
        having("roc_auc", ranks=[[[1.0, 1, 0], [0.5, 1, 0]], []]),
        having("roc_auc", ranks=[[[1.0, 0, 0]], []]),
        having("roc_auc", ranks=[[[math.inf, 1, 0]], []]),
        having("roc_auc", ranks=[[["1", 1, 0]], []]),
        having("roc_auc/4", window=[[2, 0.5]]),
        having("roc_auc/4", window=[[1, "0.5"]]),
    ):
        with pytest.raises(hinged.InvalidState):
            ours.set_state(broken)  # type: ignore[arg-type]
        assert json.loads(json.dumps(ours.get_state())) == sound
    ours.set_state(sound)


def test_specs_are_names_or_objects_and_refused_where_they_cannot_work() -> None:
    specs = parsed(["accuracy", {"type": "f1"}, rolling("accuracy", 50)])
    assert list(Metrics(specs, False).report()) == ["accuracy", "f1", "rolling_accuracy_50"]
    for bad in (["auc"], [{"type": "rolling"}], [rolling("f1", 0)], [{"type": "f1", "x": 1}]):
        with pytest.raises(ValidationError):
            parsed(bad)
    for name in ("roc_auc", "mcc"):
        with pytest.raises(ValueError, match=name):
            check_metrics(parsed([rolling(name, 5)]), multiclass=True)
        check_metrics(parsed([name]), multiclass=False)
    with pytest.raises(ValueError, match="accuracy appears twice"):
        check_metrics(parsed(["accuracy", {"type": "accuracy"}]), multiclass=False)


def test_reliability_by_hand() -> None:
    ours = Metrics(parsed([*RELIABILITY, *(rolling(name, 2) for name in RELIABILITY)]), False)
    assert set(ours.report().values()) == {None}
    for y, p in ((True, 0.72), (False, 0.78), (True, 0.7), (False, 0.04), (True, 1.0)):
        ours.update(y, p > 0.5, {False: 1.0 - p, True: p})
    assert ours.report()["reliability"] == [
        {"probability": 0.04, "share": 0.0, "events": 1},
        {"probability": pytest.approx(2.2 / 3), "share": 2 / 3, "events": 3},
        {"probability": 1.0, "share": 1.0, "events": 1},
    ]
    assert ours.report()["calibration_error"] == pytest.approx((0.04 + 2.2 - 2.0) / 5)
    assert [one["events"] for one in ours.report()["rolling_reliability_2"]] == [1, 1]
    assert ours.report()["rolling_calibration_error_2"] == pytest.approx(0.02)
    many = Metrics(parsed(["reliability", "calibration_error"]), True)
    many.update("a", "b", {"a": 0.2, "b": 0.45, "c": 0.35})
    many.update("b", "b", {"a": 0.2, "b": 0.41, "c": 0.39})
    # what counts is the probability of the label that was predicted
    assert many.report()["reliability"] == [
        {"probability": pytest.approx(0.43), "share": 0.5, "events": 2}
    ]
    assert many.report()["calibration_error"] == pytest.approx(0.07)


@pytest.mark.parametrize(
    "change",
    [
        lambda state: state["bins"].pop(),
        lambda state: state["bins"][0].__setitem__(1, 5),
        lambda state: state["bins"][0].__setitem__(2, -1.0),
        lambda state: state.update(window=[[10, 1, 0.5]]),
        lambda state: state.update(window=[[1, 2, 0.5]]),
        lambda state: state.update(window=[[1, 1, 1.5]]),
    ],
)
def test_damaged_reliability_is_refused(change: Any) -> None:
    ours = Metrics(parsed([rolling("reliability", 5)]), False)
    ours.update(True, True, {True: 0.9})
    saved = ours.get_state()
    change(saved["counts"]["reliability/5"])
    with pytest.raises(hinged.InvalidState):
        Metrics(parsed([rolling("reliability", 5)]), False).set_state(saved)
