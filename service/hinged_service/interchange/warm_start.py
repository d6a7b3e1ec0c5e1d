"""Documents of models made from linear models that River or scikit-learn has trained.

Unpickling runs code, so it is done for the user's own file, where the command runs. What the
service gets is a document of plain numbers.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

import hinged
from hinged.lifted import Lifted
from hinged_service.engine.export import document_of
from hinged_service.interchange.river_model import ExportedModel
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import restore_state, state_scalars
from hinged_service.wire.strict_model import reason_of

__all__ = ["NotImportable", "Origin", "document_from", "document_of_learner"]

Origin = Literal["river", "sklearn"]

_LEARNERS = {  # by the class of what was trained: the rule that learns on
    "LogisticRegression": "logistic_sgd",
    "LogisticRegressionCV": "logistic_sgd",
    "LogisticSGD": "logistic_sgd",
    "Perceptron": "perceptron",
    "PAClassifier": "passive_aggressive",
    "PassiveAggressive": "passive_aggressive",
    "PassiveAggressiveClassifier": "passive_aggressive",
    "LinearSVC": "hinge_sgd",
    "SGDClassifier": "hinge_sgd",
    "HingeSGD": "hinge_sgd",
    "RidgeClassifier": "linear_unit",
    "LinearUnit": "linear_unit",
    "AROW": "arow",
    "SCW": "scw",
}
_TAKE_A_START = sorted(set(_LEARNERS.values()))


class NotImportable(Exception):
    """A file without a model that can be taken over; the message has the reason."""


@dataclass
class _Trained:
    """Parts of a trained model: a row of weights and an intercept for each score."""

    kind: str
    rows: list[dict[str, float]]
    intercepts: list[float]
    labels: list[Any] | None = None
    steps: list[tuple[dict[str, Any], Any]] = field(default_factory=list)


def document_from(
    path: str,
    origin: Origin,
    name: str,
    learner: dict[str, Any] | None = None,
    labels: list[Any] | None = None,
) -> bytes:
    """Unpickle a file and return the document of a model that starts with its weights.

    Parameters
    ----------
    path
        A pickle, or a file of joblib.
    origin
        The library that the model is of.
    learner
        The spec of the rule that learns on; for several labels that of each label against the
        others. By default the one nearest to the trained model.
    labels
        The two labels of a binary model, the negative one first; by default those of the file.

    Raises
    ------
    NotImportable
        The file cannot be read, or its model is not linear, or has a step that is no scaler.

    """
    model = _loaded(path)
    if isinstance(model, ExportedModel):
        if learner or labels:
            raise NotImportable("An exported model has its own learner and labels: give none.")
        return model.exported()
    try:
        trained = _from_river(model) if origin == "river" else _from_sklearn(model)
    except (AttributeError, TypeError, ValueError) as error:
        raise NotImportable(
            f"The {type(model).__name__} in {path} cannot be read: {error}."
        ) from None
    return _document(trained, name, learner, labels)


def document_of_learner(
    trained: hinged.BinaryLinearClassifier,
    name: str,
    learner: dict[str, Any],
    labels: list[Any] | None,
) -> bytes:
    """Return the document of a model that starts with a learner's weights; as `document_from`."""
    return _document(_from_river(trained), name, learner, labels)


def _loaded(path: str) -> object:
    try:
        with Path(path).open("rb") as file:
            if file.read(1) == b"\x80":
                file.seek(0)
                try:
                    return pickle.load(file)  # noqa: S301 - the user's own file, as the help says
                except pickle.UnpicklingError:
                    pass  # arrays of joblib stand between the parts of its pickle
        import joblib

        return joblib.load(path)
    except OSError as error:
        raise NotImportable(f"Cannot read {path}: {error.strerror}.") from None
    except Exception as error:  # noqa: BLE001 - a pickle runs what it likes
        raise NotImportable(f"{path} cannot be unpickled here: {error}.") from None


def _from_river(model: Any) -> _Trained:  # noqa: ANN401 - of any class
    from river import compose, multiclass, preprocessing

    steps: list[tuple[dict[str, Any], Any]] = []
    if isinstance(model, compose.Pipeline):
        *before, model = model.steps.values()
        for step in before:
            if isinstance(step, hinged.AutoScaler):
                saved = step.get_state()
                records = [[n, *record] for n, record in saved["records"].items()]
                steps.append(({"type": "AutoScaler"}, [saved["events"], records]))
            elif isinstance(step, preprocessing.StandardScaler):
                records = [[n, k, step.means[n], step.vars[n]] for n, k in step.counts.items()]
                steps.append(({"type": "StandardScaler", "with_std": step.with_std}, records))
            elif isinstance(step, preprocessing.MinMaxScaler):
                records = [[n, low.get(), step.max[n].get()] for n, low in step.min.items()]
                steps.append(({"type": "MinMaxScaler"}, records))
            elif isinstance(step, preprocessing.MaxAbsScaler):
                records = [[n, one.get()] for n, one in step.abs_max.items()]
                steps.append(({"type": "MaxAbsScaler"}, records))
            else:
                raise _no_scaler(step)
    if isinstance(model, multiclass.OneVsRestClassifier):
        members = list(model.classifiers.values())
        kind = type(model.classifier).__name__
        found = [_weights(member) for member in members]
        rows, intercepts = [row for row, _ in found], [b for _, b in found]
        return _Trained(kind, rows, intercepts, list(model.classifiers), steps)
    linear = (hinged.MulticlassLinearClassifier, hinged.OneVsRest)
    if isinstance(model, linear) and not isinstance(model, hinged.MulticlassDiscriminant):
        labels = list(model.classes)
        rows = [dict(model.weights[y]) for y in labels]
        kind = type(getattr(model, "learner", None) or model).__name__.removeprefix("Multiclass")
        return _Trained(kind, rows, [model.intercepts[y] for y in labels], labels, steps)
    row, intercept = _weights(model)
    return _Trained(type(model).__name__, [row], [intercept], None, steps)


def _weights(model: Any) -> tuple[dict[str, float], float]:  # noqa: ANN401
    if isinstance(model, hinged.BinaryLinearClassifier) and not isinstance(model, Lifted):
        return dict(model.weights), 0.0 - model.threshold
    if not (hasattr(model, "weights") and hasattr(model, "intercept")):
        raise NotImportable(f"{type(model).__name__} is not a linear model with weights.")
    return {n: float(w) for n, w in model.weights.items()}, float(model.intercept)


def _from_sklearn(model: Any) -> _Trained:  # noqa: ANN401
    import numpy
    from sklearn import preprocessing
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.pipeline import Pipeline

    parts = [part for _, part in model.steps] if isinstance(model, Pipeline) else [model]
    *before, last = parts
    names: list[str] | None = None
    if before and isinstance(before[0], DictVectorizer):
        names = list(before.pop(0).feature_names_)
    first = (before or [last])[0]
    if names is None and hasattr(first, "feature_names_in_"):
        names = list(first.feature_names_in_)
    if not all(hasattr(last, part) for part in ("coef_", "intercept_", "classes_")):
        raise NotImportable(f"{type(last).__name__} is not a fitted linear classifier.")
    weights = last.coef_.toarray() if hasattr(last.coef_, "toarray") else last.coef_
    names = names or [f"x{i}" for i in range(weights.shape[1])]  # as scikit-learn calls them
    if len(names) != weights.shape[1]:
        raise NotImportable(f"{len(names)} features come in, but {weights.shape[1]} have weights.")
    steps: list[tuple[dict[str, Any], Any]] = []
    for step in before:
        if isinstance(step, preprocessing.StandardScaler) and step.with_mean:
            seen = max(1, int(numpy.min(step.n_samples_seen_)))
            spread = step.var_.tolist() if step.with_std else [1.0] * len(names)
            records = [
                [n, seen, *r] for n, *r in zip(names, step.mean_.tolist(), spread, strict=True)
            ]
            steps.append(({"type": "StandardScaler", "with_std": bool(step.with_std)}, records))
        elif isinstance(step, preprocessing.MinMaxScaler) and step.feature_range == (0, 1):
            ends = zip(names, step.data_min_.tolist(), step.data_max_.tolist(), strict=True)
            steps.append(({"type": "MinMaxScaler"}, [list(end) for end in ends]))
        elif isinstance(step, preprocessing.MaxAbsScaler):
            sizes = zip(names, step.max_abs_.tolist(), strict=True)
            steps.append(({"type": "MaxAbsScaler"}, [list(size) for size in sizes]))
        else:
            raise _no_scaler(step)
    kind = type(last).__name__
    if kind == "SGDClassifier" and last.loss == "log_loss":
        kind = "LogisticRegression"
    count = weights.shape[0]
    intercepts = [float(b) for b in last.intercept_] if last.fit_intercept else [0.0] * count
    rows = [dict(zip(names, row, strict=True)) for row in weights.tolist()]
    return _Trained(kind, rows, intercepts, _plain_labels(last.classes_.tolist()), steps)


def _plain_labels(labels: list[Any]) -> list[Any]:
    if all(isinstance(y, float) and y == int(y) for y in labels):
        return [int(y) for y in labels]
    return labels


def _no_scaler(step: object) -> NotImportable:
    return NotImportable(
        f"The step {type(step).__name__}, with its parameters, has no equal here: StandardScaler "
        "(centred), MinMaxScaler (to 0..1) and MaxAbsScaler have, behind a DictVectorizer or not."
    )


def _document(
    trained: _Trained, name: str, learner: dict[str, Any] | None, labels: list[Any] | None
) -> bytes:
    rule = learner or {"type": _LEARNERS.get(trained.kind)}
    if rule["type"] not in _TAKE_A_START:
        rules = ", ".join(_TAKE_A_START)
        raise NotImportable(
            f"Choose the rule that learns on from {trained.kind} with --learner: {rules}."
        )
    many = len(trained.rows) > 1 or (trained.labels is not None and len(trained.labels) > 2)
    if many and labels:
        raise NotImportable(
            "The labels of several classes are those of the file: leave out --label."
        )
    all_labels = labels or trained.labels
    document: dict[str, Any] = {"learner": rule, "pipeline": [step for step, _ in trained.steps]}
    if many:
        document["learner"] = {"type": "one_vs_rest", "learner": rule}
        if not isinstance((all_labels or [""])[0], str):
            document["labels"] = "integers"
    elif all_labels not in (None, [False, True]):
        document["labels"] = all_labels
    try:
        spec = ModelSpec.model_validate_json(json.dumps(document))
        state = ModelState(spec)
        rows = [{n: w for n, w in row.items() if w} for row in trained.rows]
        scalars, vectors = _start(state, rows, trained.intercepts, all_labels if many else None)
        if trained.steps:
            stages = [[step["type"], 0, records] for step, records in trained.steps]
            scalars["pipeline"]["stages"] = stages
        restore_state(state, scalars, vectors)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise NotImportable(f"This model cannot be taken: {where} {reason_of(first)}.") from None
    except hinged.InvalidState as error:
        raise NotImportable(f"This model cannot be taken: {error}.") from None
    return document_of(name, spec, state)


def _start(
    state: ModelState,
    rows: list[dict[str, float]],
    intercepts: list[float],
    labels: list[Any] | None,
) -> tuple[dict[str, Any], dict[str, dict[Any, float]]]:
    """Return scalars and vectors of a model that begins with these weights."""
    scalars = state_scalars(state)
    saved = scalars["learner"]
    if labels is None:
        saved["scalars"]["intercept"] = intercepts[0]
        vectors = {part: dict(vector.view()) for part, vector in state.vectors().items()}
        return scalars, vectors | {"weights": rows[0]}
    assert isinstance(state.learner, hinged.OneVsRest)  # noqa: S101
    rule = state.learner.learner
    assert rule is not None  # noqa: S101
    fresh = rule.get_state()
    saved["classes"], saved["members"] = labels, [type(rule).__name__] * len(labels)
    found: dict[str, dict[Any, float]] = {}
    for i, (row, intercept) in enumerate(zip(rows, intercepts, strict=True)):
        member = fresh["scalars"] | {"intercept": intercept}
        saved["scalars"] |= {f"{i}/{part}": value for part, value in member.items()}
        found |= {f"{i}/{part}": {} for part in fresh["vectors"]} | {f"{i}/weights": row}
    return scalars, found
