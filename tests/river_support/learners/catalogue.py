"""Every learner and every transformer that a spec may name, found from the unions themselves.

Each has a spec and a witness: the same by `hinged` and River alone, made by their own
constructors. A new one without an entry here fails the tests by its name.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, get_args

from river import (
    compose,
    ensemble,
    feature_extraction,
    linear_model,
    multiclass,
    naive_bayes,
    preprocessing,
    stats,
    tree,
)

import hinged
from hinged_service.model.spec import Learner
from hinged_service.pipelines import Step
from tests.pipelines.streams import categories, holes, numbers
from tests.river_support.learners.cases import CATEGORICAL, Select, messages, without_holes

Event = dict[str, Any]
lm: Any = linear_model
nb: Any = naive_bayes
mc: Any = multiclass
fx: Any = feature_extraction
pp: Any = preprocessing

OPERATORS_OWN = {"custom"}
"""Learners that only a service with the operator's code has; they have tests of their own."""


def types_of(union: Any) -> list[str]:
    """Return the types that a discriminated union tells apart."""
    members = get_args(get_args(union)[0])
    named = {get_args(member.model_fields["type"].annotation)[0] for member in members}
    return sorted(named - OPERATORS_OWN)


LEARNERS = types_of(Learner)
TRANSFORMERS = types_of(Step)

PARAMETERS: dict[str, dict[str, Any]] = {
    "curved": {"n_components": 20},
    "auto": {"max_classes": 100},
    "multiclass_hedge": {"max_classes": 100},
    "hinge_sgd": {"l2": 0.01, "l1": 0.001},
    "ftrl_proximal": {"l1": 0.1},
    "one_vs_rest": {"learner": {"type": "averaged_perceptron"}},
    "HoeffdingTreeClassifier": {"grace_period": 20, "delta": 0.01},
    "OneVsRestClassifier": {"classifier": {"type": "LogisticRegression"}},
    "OneVsOneClassifier": {"classifier": {"type": "PAClassifier"}},
    "BaggingClassifier": {"model": {"type": "GaussianNB"}, "n_models": 3, "seed": 7},
}
"""Parameters that a learner's spec needs, or that make its state richer."""


def _tree() -> Any:
    return tree.HoeffdingTreeClassifier(grace_period=20, delta=0.01, max_depth=10)


WITNESSES: dict[str, Callable[[], Any]] = {
    "perceptron": hinged.Perceptron,
    "averaged_perceptron": hinged.AveragedPerceptron,
    "pocket_perceptron": hinged.PocketPerceptron,
    "passive_aggressive": hinged.PassiveAggressive,
    "linear_unit": hinged.LinearUnit,
    "hinge_sgd": lambda: hinged.HingeSGD(l2=0.01, l1=0.001),
    "arow": hinged.AROW,
    "auto": hinged.Auto,
    "scw": hinged.SCW,
    "logistic_sgd": hinged.LogisticSGD,
    "coin_betting": hinged.CoinBetting,
    "ftrl_proximal": lambda: hinged.FTRLProximal(l1=0.1),
    "curved": lambda: hinged.Curved(n_components=20),
    "quadratic": hinged.Quadratic,
    "hedge": hinged.Hedge,
    "multiclass_perceptron": hinged.MulticlassPerceptron,
    "multiclass_averaged_perceptron": hinged.MulticlassAveragedPerceptron,
    "multiclass_pocket_perceptron": hinged.MulticlassPocketPerceptron,
    "multiclass_passive_aggressive": hinged.MulticlassPassiveAggressive,
    "multiclass_arow": hinged.MulticlassAROW,
    "multiclass_logistic_sgd": hinged.MulticlassLogisticSGD,
    "multiclass_discriminant": hinged.MulticlassDiscriminant,
    "multiclass_quadratic": hinged.MulticlassQuadratic,
    "multiclass_hedge": hinged.MulticlassHedge,
    "one_vs_rest": lambda: hinged.OneVsRest(hinged.AveragedPerceptron()),
    "LogisticRegression": lambda: lm.LogisticRegression(intercept_lr=0.01),
    "PAClassifier": lm.PAClassifier,
    "ALMAClassifier": lm.ALMAClassifier,
    "SoftmaxRegression": lm.SoftmaxRegression,
    "GaussianNB": nb.GaussianNB,
    "BernoulliNB": nb.BernoulliNB,
    "MultinomialNB": nb.MultinomialNB,
    "ComplementNB": nb.ComplementNB,
    "HoeffdingTreeClassifier": _tree,
    "OneVsRestClassifier": lambda: mc.OneVsRestClassifier(lm.LogisticRegression()),
    "OneVsOneClassifier": lambda: mc.OneVsOneClassifier(lm.PAClassifier()),
    "BaggingClassifier": lambda: ensemble.BaggingClassifier(nb.GaussianNB(), n_models=3, seed=7),
}


def learner(kind: str) -> dict[str, Any]:
    """Return a learner's part of a spec."""
    return {"type": kind, **PARAMETERS.get(kind, {})}


def points(count: int, several: bool) -> list[Event]:
    """Return events of counts and sizes, none below 0, of two labels or of three."""
    r = random.Random(11)
    events = []
    for number in range(count):
        x = {"a": r.random(), "b": float(r.randrange(3)), f"n{r.randrange(9)}": r.expovariate(1.0)}
        place = x["a"] + x["b"] / 2 + r.gauss(0, 0.1)
        y = "low" if place < 0.7 else "middle" if place < 1.2 else "high"
        events.append({"x": x, "y": y if several else y == "low", "id": f"e{number}"})
    return events


IMPUTERS = {
    "type": "StatImputer",
    "imputers": [
        {"feature": "age", "statistic": "Mean"},
        {"feature": "colour", "value": "none"},
    ],
}
STEPS: dict[str, list[dict[str, Any]]] = {
    "StandardScaler": [],
    "MinMaxScaler": [],
    "MaxAbsScaler": [],
    "RobustScaler": [],
    "Normalizer": [],
    "OneHotEncoder": [],
    "FeatureHasher": [{"type": "FeatureHasher", "n_features": 8, "seed": 3}],
    "StatImputer": [IMPUTERS, {"type": "OneHotEncoder"}],
    "BagOfWords": [{"type": "BagOfWords", "on": "text"}],
    "TFIDF": [{"type": "TFIDF", "on": "text"}],
    "PolynomialExtender": [{"type": "PolynomialExtender", "include_bias": True}],
    "RBFSampler": [{"type": "RBFSampler", "n_components": 7, "seed": 3}],
    "FourierFeatures": [{"type": "FourierFeatures", "n_components": 7, "seed": 3}],
    "AutoScaler": [{"type": "AutoScaler"}],
    "Select": [{"type": "Select", "keys": ["f0"]}],
    "Discard": [{"type": "Discard", "keys": ["f1", "f2"]}],
    "Union": [CATEGORICAL],
}


def _categories() -> list[Event]:
    return [{"colour": x["colour"], "new": x["new"]} for x in categories()]


def _holes() -> list[Event]:
    return [{"age": 3.0, "colour": "red", "one": 1.0}, *holes()]


FEATURES: dict[str, Callable[[], list[Event]]] = {
    "OneHotEncoder": _categories,
    "FeatureHasher": _categories,
    "StatImputer": _holes,
    "BagOfWords": lambda: [x for x, _ in messages()],
    "TFIDF": lambda: [x for x, _ in messages()],
    "Union": lambda: [x for x, _ in without_holes()],
}
"""Features for a transformer; numbers if it is not here."""

RIVERS: dict[str, Callable[[], Any]] = {
    "StandardScaler": pp.StandardScaler,
    "MinMaxScaler": pp.MinMaxScaler,
    "MaxAbsScaler": pp.MaxAbsScaler,
    "RobustScaler": pp.RobustScaler,
    "Normalizer": pp.Normalizer,
    "OneHotEncoder": pp.OneHotEncoder,
    "FeatureHasher": lambda: pp.FeatureHasher(n_features=8, seed=3),
    "StatImputer": lambda: compose.Pipeline(
        pp.StatImputer(("age", stats.Mean()), ("colour", "none")), pp.OneHotEncoder()
    ),
    "BagOfWords": lambda: fx.BagOfWords(on="text"),
    "TFIDF": lambda: fx.TFIDF(on="text"),
    "PolynomialExtender": lambda: fx.PolynomialExtender(include_bias=True),
    "Select": lambda: compose.Select("f0"),
    "Discard": lambda: compose.Discard("f1", "f2"),
    "Union": lambda: (
        (Select("colour", "member") | pp.OneHotEncoder())
        + (Select("price", "size") | pp.StandardScaler())
    ),
}
"""River's transformer, where there is one with the same numbers: its RBFSampler draws others."""

NEARLY = {"FeatureHasher", "Normalizer"}
"""River names the buckets by integers, and takes a norm with numpy."""


def steps(kind: str) -> list[dict[str, Any]]:
    """Return a pipeline with the transformer in it."""
    return STEPS[kind] or [{"type": kind}]


def fed(kind: str, count: int) -> list[Event]:
    """Return events that the transformer takes."""
    r = random.Random(12)
    made = FEATURES.get(kind, numbers)()[:count]
    if kind == "Union":
        made = [{k: x[k] for k in ("colour", "member", "price", "size")} for x in made]
    as_sent = [{k: float(v) if type(v) is int else v for k, v in x.items()} for x in made]
    return [
        {"x": x, "y": (n % 3 == 0) is not (r.random() < 0.2), "id": f"e{n}"}
        for n, x in enumerate(as_sent)
    ]
