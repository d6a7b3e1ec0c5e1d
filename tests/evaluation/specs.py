"""One spec of each River learner, and streams for them."""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter
from river import datasets

from hinged_service.river_support.learners import RiverLearner

LOGISTIC = {"type": "LogisticRegression"}
TREE = {"type": "HoeffdingTreeClassifier", "grace_period": 20}

BINARY: dict[str, dict[str, Any]] = {
    "logistic": LOGISTIC,
    "logistic_l2": {**LOGISTIC, "optimizer": {"type": "SGD", "lr": 0.5}, "l2": 0.1},
    "logistic_momentum": {**LOGISTIC, "optimizer": {"type": "Momentum"}},
    "logistic_adagrad": {**LOGISTIC, "optimizer": {"type": "AdaGrad"}, "intercept_lr": 0.0},
    "logistic_rmsprop": {**LOGISTIC, "optimizer": {"type": "RMSProp"}},
    "logistic_adam": {**LOGISTIC, "optimizer": {"type": "Adam"}},
    "pa_1": {"type": "PAClassifier", "C": 0.1},
    "pa_2": {"type": "PAClassifier", "C": 0.5, "mode": 2},
    "alma": {"type": "ALMAClassifier"},
    "bagging": {"type": "BaggingClassifier", "model": LOGISTIC, "n_models": 3, "seed": 7},
}
MULTICLASS: dict[str, dict[str, Any]] = {
    "softmax": {"type": "SoftmaxRegression"},
    "softmax_adam": {"type": "SoftmaxRegression", "optimizer": {"type": "Adam"}, "l2": 0.01},
    "gaussian": {"type": "GaussianNB"},
    "bernoulli": {"type": "BernoulliNB", "true_threshold": 5.0},
    "multinomial": {"type": "MultinomialNB"},
    "complement": {"type": "ComplementNB"},
    "tree": TREE,
    "tree_gini_nb": {**TREE, "split_criterion": "gini", "leaf_prediction": "nb"},
    "one_vs_rest": {"type": "OneVsRestClassifier", "classifier": LOGISTIC},
    "one_vs_one": {"type": "OneVsOneClassifier", "classifier": {"type": "PAClassifier"}},
    "bagged_trees": {"type": "BaggingClassifier", "model": TREE, "n_models": 3, "seed": 7},
    "bagged_bayes": {
        "type": "BaggingClassifier",
        "model": {"type": "GaussianNB"},
        "n_models": 3,
        "seed": 7,
    },
}
ALL = BINARY | MULTICLASS

_datasets: Any = datasets  # not all of River is typed
_ADAPTER: TypeAdapter[Any] = TypeAdapter(RiverLearner)


def parsed(spec: dict[str, Any]) -> Any:
    return _ADAPTER.validate_json(json.dumps(spec))


def built(name: str, max_features: int = 1_000) -> Any:
    return parsed(ALL[name]).build(max_features)


def dataset(multiclass: bool) -> Any:
    return _datasets.ImageSegments() if multiclass else _datasets.Phishing()


def stream(name: str, events: int = 350) -> Iterator[tuple[dict[str, float], Any]]:
    """Return labelled events that the learner can take: floats, none below 0."""
    for x, y in dataset(multiclass=name in MULTICLASS).take(events):
        yield {key: abs(float(value)) for key, value in x.items()}, y
