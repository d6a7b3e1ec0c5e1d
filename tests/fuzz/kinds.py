"""A learned model of every kind of stored state: learners, transformers, metrics, detectors."""

from __future__ import annotations

import functools
import json
import random
from typing import Any

from hinged_service.engine import export
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import state_scalars
from hinged_service.store.checkpoints import Checkpoint
from hinged_service.store.snapshot import Loaded
from hinged_service.wire.codec import decode_state, encode_state
from hinged_service.wire.events import Event, MixedEvent
from hinged_service.wire.position import Mark, Position

__all__ = ["KINDS", "event_of", "exported", "learned", "spec_of"]

_POSITION = Position("123-4", "ab" * 20)
_TREE: dict[str, Any] = {"type": "HoeffdingTreeClassifier", "grace_period": 5, "delta": 0.5}
_LOGISTIC: dict[str, Any] = {"type": "LogisticRegression"}
_BINARY: list[dict[str, Any]] = [
    *({"type": name} for name in ("perceptron", "averaged_perceptron", "pocket_perceptron")),
    *(
        {"type": name}
        for name in ("passive_aggressive", "linear_unit", "arow", "hedge", "curved", "quadratic")
    ),
    *({"type": name} for name in ("scw", "logistic_sgd", "coin_betting", "ftrl_proximal")),
    *({"type": "hinge_sgd", "steps": name} for name in ("adagrad", "constant", "sqrt")),
    *({"type": name} for name in ("PAClassifier", "ALMAClassifier")),
    *(
        {"type": "LogisticRegression", "optimizer": {"type": name}}
        for name in ("SGD", "Momentum", "AdaGrad", "Adam", "RMSProp")
    ),
    {"type": "BaggingClassifier", "model": _LOGISTIC, "n_models": 2, "seed": 1},
]
_CURVED_HEDGE: dict[str, Any] = {"type": "hedge", "curved": True}
_MULTICLASS: list[dict[str, Any]] = [
    *(
        {"type": f"multiclass_{name}"}
        for name in (
            "perceptron",
            "passive_aggressive",
            "arow",
            "discriminant",
            "quadratic",
            "hedge",
        )
    ),
    *({"type": f"multiclass_{name}_perceptron"} for name in ("averaged", "pocket")),
    {"type": "auto"},
    {"type": "one_vs_rest", "learner": {"type": "perceptron"}},
    {"type": "SoftmaxRegression"},
    *({"type": f"{name}NB"} for name in ("Gaussian", "Bernoulli", "Multinomial", "Complement")),
    *({**_TREE, "leaf_prediction": name} for name in ("mc", "nb", "nba")),
    {"type": "OneVsRestClassifier", "classifier": _LOGISTIC},
    {"type": "OneVsOneClassifier", "classifier": {"type": "PAClassifier"}},
    {"type": "BaggingClassifier", "model": _TREE, "n_models": 2, "seed": 1},
]
_DETECTORS: list[dict[str, Any]] = [
    *({"type": name} for name in ("ADWIN", "PageHinkley", "DDM", "EDDM", "HDDMA", "HDDMW")),
    {"type": "KSWIN", "window_size": 20, "stat_size": 5, "seed": 1},
]
_SHARED = ("accuracy", "balanced_accuracy", "precision", "recall", "f1", "cohen_kappa")
_METRICS: list[Any] = [*_SHARED, "log_loss", "calibration_error", "reliability", "confusion_matrix"]
_ROLLING = [{"type": "rolling", "metric": name, "window": 10} for name in _METRICS]
_IMPUTERS = [
    {"feature": f"n{n}", "statistic": name}
    for n, name in enumerate(("Mean", "Median", "Min", "Max", "Mode"))
]
_NUMBERS: list[dict[str, Any]] = [
    *({"type": f"{name}Scaler"} for name in ("Standard", "MinMax", "MaxAbs", "Robust", "Auto")),
    *({"type": name} for name in ("Normalizer", "PolynomialExtender", "FeatureHasher")),
    {"type": "RBFSampler", "n_components": 3, "seed": 1},
    {"type": "FourierFeatures", "n_components": 3, "seed": 1},
    {"type": "StatImputer", "imputers": _IMPUTERS},
]
_TEXTS: list[dict[str, Any]] = [
    {"type": "OneHotEncoder"},
    {"type": "BagOfWords", "on": "word"},
    {"type": "TFIDF", "on": "word"},
]
_ON: dict[str, Any] = {"learner": {"type": "perceptron"}}


def _named(one: dict[str, Any]) -> str:
    return "-".join(str(v["type"] if isinstance(v, dict) else v) for v in one.values())


KINDS: dict[str, dict[str, Any]] = {
    "curved hedge": {"learner": _CURVED_HEDGE},
    **{_named(one): {"learner": one} for one in (*_BINARY, *_MULTICLASS)},
    **{_named(one): {**_ON, "drift": {"detector": one}} for one in _DETECTORS},
    "balanced": {**_ON, "class_weight": "balanced"},
    "balanced classes": {"learner": {"type": "multiclass_arow"}, "class_weight": "balanced"},
    "metrics": {**_ON, "metrics": [*_METRICS, "roc_auc", "mcc"]},
    "rolling metrics": {**_ON, "metrics": [*_ROLLING, {**_ROLLING[0], "metric": "roc_auc"}]},
    "metrics of classes": {
        "learner": {"type": "multiclass_perceptron"},
        "metrics": [*_METRICS, *_ROLLING],
    },
    **{step["type"]: {**_ON, "pipeline": [step]} for step in (*_NUMBERS, *_TEXTS)},
    "union": {**_ON, "pipeline": [{"type": "Union", "branches": [[s] for s in _NUMBERS[:4]]}]},
}
_WORDY = frozenset(step["type"] for step in _TEXTS)
_WORDS = ("red", "wheel", "barrow", "glazed with rain")


def event_of(spec: ModelSpec, n: int) -> Event | MixedEvent:
    """Return the n-th event of one row that every model of the spec can take."""
    source = random.Random(n)
    labels: Any = ("p", "q", "r") if spec.multiclass else (False, True)
    y = labels[n % len(labels)]
    x: dict[str, Any] = {"a": (n % len(labels)) + source.random(), f"n{n % 5}": 1.0 + n / 3}
    if not spec.accepts_non_numeric:
        return Event(x, y)
    if any(step.type in _WORDY for step in spec.pipeline):
        x |= {"word": _WORDS[n % 4]}
    return MixedEvent(x, y)


def learned(spec: ModelSpec, count: int = 60) -> ModelState:
    """Return a model that has learned the first events."""
    state = ModelState(spec)
    state.learn_all([event_of(spec, n) for n in range(count)], frozenset(), "1-1")
    return state


@functools.cache
def spec_of(kind: str) -> ModelSpec:
    """Return the spec of a kind."""
    return ModelSpec.model_validate_json(json.dumps(KINDS[kind]))


@functools.cache
def exported(kind: str) -> str:
    """Return the document of a learned model of a kind."""
    spec = spec_of(kind)
    state = learned(spec)
    stored = decode_state(encode_state(_POSITION, state_scalars(state), {}, [Mark("1-1", 1, 1)]))
    vectors = {name: dict(vector.view()) for name, vector in state.vectors().items()}
    checkpoint = Checkpoint(uid="u", model="m", spec=spec, created_ms=1, events=60, mistakes=3)
    pieces = export.exported(checkpoint, Loaded(_POSITION, stored, vectors))
    return b"".join(pieces).decode()
