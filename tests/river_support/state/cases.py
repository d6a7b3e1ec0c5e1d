"""Every kind of object that is stored, each with events to go on with."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from river import (
    compose,
    drift,
    ensemble,
    feature_extraction,
    linear_model,
    metrics,
    multiclass,
    naive_bayes,
    optim,
    preprocessing,
    stats,
    tree,
    utils,
)
from river.drift import binary

import hinged

__all__ = ["CASES", "Case", "flat"]

# Some of their classes have no annotations.
DRIFT: Any = drift
ENSEMBLE: Any = ensemble
EXTRACTION: Any = feature_extraction
LINEAR: Any = linear_model
MULTICLASS: Any = multiclass
BAYES: Any = naive_bayes
PREPROCESSING: Any = preprocessing

_random = random.Random(20)
_WORDS = "so much depends upon a red wheel barrow glazed with rain".split(" ")  # noqa: SIM905
X = [
    {
        "a": _random.gauss(0.0, 1.0),
        "b": _random.random() * 10.0,
        "c": float(_random.randrange(3)),
        "d": float(_random.random() < 0.3),
    }
    for _ in range(400)
]
LABELS = [x["a"] + x["b"] / 10.0 > 0.5 for x in X]
CLASSES = [("p", "q", "r")[int(x["c"]) if x["a"] > -0.5 else 2] for x in X]
GUESSES = [x["a"] > 0.2 for x in X]
CHANCES = [{True: x["b"] / 10.0, False: 1.0 - x["b"] / 10.0} for x in X]
TEXTS = [" ".join(_random.choices(_WORDS, k=6)) for _ in X]


@dataclass(frozen=True)
class Case:
    """An object to be made, and what one event does to it and gives."""

    make: Callable[[], Any]
    step: Callable[[Any, int], Any]

    def run(self, made: Any, start: int, count: int) -> list[Any]:
        """Let the object go on from event number `start`; return what each event gave."""
        return [flat(self.step(made, number)) for number in range(start, start + count)]


def flat(output: Any) -> Any:
    """Return an output in a form that compares exactly, for any order of its keys."""
    if isinstance(output, dict):
        return sorted([repr(key), repr(value)] for key, value in output.items())
    return repr(output)


def _transform(made: Any, number: int) -> Any:
    made.learn_one(X[number])
    return made.transform_one(X[number])


def _impute(made: Any, number: int) -> Any:
    x = {**X[number], "word": TEXTS[number].split()[0]}
    made.learn_one(x)
    return made.transform_one({name: None if number % 2 else value for name, value in x.items()})


def _text(made: Any, number: int) -> Any:
    x = {"text": TEXTS[number]}
    made.learn_one(x)
    return made.transform_one(x)


def _label(made: Any, number: int) -> Any:
    made.learn_one(X[number], LABELS[number])
    return made.predict_proba_one(X[number]) if _has_proba(made) else made.predict_one(X[number])


def _class(made: Any, number: int) -> Any:
    made.learn_one(X[number], CLASSES[number])
    return made.predict_proba_one(X[number]) if _has_proba(made) else made.predict_one(X[number])


def _has_proba(made: Any) -> bool:
    return (
        not isinstance(made, LINEAR.ALMAClassifier | MULTICLASS.OneVsOneClassifier)
        and type(made) is not LINEAR.Perceptron
    )


def _decide(made: Any, number: int) -> Any:
    made.update(LABELS[number], GUESSES[number])
    return made.get()


def _decide_class(made: Any, number: int) -> Any:
    made.update(CLASSES[number], CLASSES[number - 1])
    return made.get()


def _matrix(made: Any, number: int) -> Any:
    made.update(CLASSES[number], CLASSES[number - 1])
    return made["p"]["q"]


def _chance(made: Any, number: int) -> Any:
    made.update(LABELS[number], CHANCES[number])
    return made.get()


def _drift(made: Any, number: int) -> Any:
    made.update(X[number]["a"] + number // 100)
    return made.drift_detected


def _error(made: Any, number: int) -> Any:
    made.update(X[number]["a"] > (number % 200) / 100)
    return made.drift_detected, made.warning_detected


def _statistic(made: Any, number: int) -> Any:
    made.update(X[number]["a"])
    return made.get()


def _mode(made: Any, number: int) -> Any:
    made.update(CLASSES[number])
    return made.get()


def _logistic(**arguments: Any) -> Callable[[], Any]:
    return lambda: LINEAR.LogisticRegression(**arguments)


def _optimised(make: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: LINEAR.LogisticRegression(make())


def _tree(**arguments: Any) -> Callable[[], Any]:
    return lambda: tree.HoeffdingTreeClassifier(
        grace_period=20, delta=0.05, memory_estimate_period=10**9, **arguments
    )


def _imputer() -> Any:
    arguments: Any = [
        ("a", stats.Mean()),
        ("b", stats.Quantile(0.7)),
        ("c", stats.Max()),
        ("d", 4.5),
        ("word", stats.Mode()),
    ]
    return PREPROCESSING.StatImputer(*arguments)


def _mixed() -> Any:
    return compose.Pipeline(
        ("scale", PREPROCESSING.StandardScaler()),
        compose.TransformerUnion(compose.Select("a"), PREPROCESSING.MinMaxScaler()),
        LINEAR.LogisticRegression(optimizer=optim.Adam(0.05)),
    )


_TRANSFORMERS: dict[str, Callable[[], Any]] = {
    "StandardScaler": PREPROCESSING.StandardScaler,
    "StandardScaler-means": lambda: PREPROCESSING.StandardScaler(with_std=False),
    "StandardScaler-window": lambda: PREPROCESSING.StandardScaler(window_size=9),
    "AdaptiveStandardScaler": PREPROCESSING.AdaptiveStandardScaler,
    "MinMaxScaler": PREPROCESSING.MinMaxScaler,
    "MinMaxScaler-window": lambda: PREPROCESSING.MinMaxScaler(window_size=9),
    "MaxAbsScaler": PREPROCESSING.MaxAbsScaler,
    "MaxAbsScaler-window": lambda: PREPROCESSING.MaxAbsScaler(window_size=9),
    "hinged-AutoScaler": lambda: hinged.AutoScaler(max_features=9),
    "hinged-FourierFeatures": lambda: hinged.FourierFeatures(6, seed=2),
    "RobustScaler": PREPROCESSING.RobustScaler,
    "Normalizer": PREPROCESSING.Normalizer,
    "Binarizer": lambda: PREPROCESSING.Binarizer(threshold=0.5),
    "OneHotEncoder": PREPROCESSING.OneHotEncoder,
    "OneHotEncoder-drop": lambda: PREPROCESSING.OneHotEncoder(drop_zeros=True, drop_first=True),
    "OneHotEncoder-known": lambda: (
        compose.Select("c") | PREPROCESSING.OneHotEncoder(categories={"c": {0.0, 1.0}})
    ),
    "FeatureHasher": lambda: PREPROCESSING.FeatureHasher(n_features=8, seed=3),
    "PolynomialExtender": lambda: EXTRACTION.PolynomialExtender(include_bias=True),
    "RBFSampler": lambda: EXTRACTION.RBFSampler(n_components=4, seed=3),
    "Select": lambda: compose.Select("a", "b"),
    "Discard": lambda: compose.Discard("a"),
    "Grouper": lambda: compose.Grouper(PREPROCESSING.StandardScaler(), by="c"),
    "TransformerUnion": lambda: (
        PREPROCESSING.StandardScaler() + (compose.Select("b") | PREPROCESSING.MinMaxScaler())
    ),
    "Pipeline-transformers": lambda: compose.Pipeline(
        PREPROCESSING.MaxAbsScaler(), compose.Discard("d")
    ),
}

_IMPUTERS: dict[str, Callable[[], Any]] = {
    "StatImputer": _imputer,
    "PreviousImputer": PREPROCESSING.PreviousImputer,
}

_TEXT: dict[str, Callable[[], Any]] = {
    "BagOfWords": lambda: EXTRACTION.BagOfWords(on="text", ngram_range=(1, 2)),
    "TFIDF": lambda: EXTRACTION.TFIDF(on="text", stop_words={"so", "with"}),
}

_OPTIMISERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: optim.SGD(0.1),
    "SGD-scaling": lambda: optim.SGD(optim.schedulers.InverseScaling(0.1)),
    "SGD-optimal": lambda: optim.SGD(optim.schedulers.Optimal(optim.losses.Log())),
    "AdaGrad": optim.AdaGrad,
    "AdaDelta": optim.AdaDelta,
    "AdaMax": optim.AdaMax,
    "Adam": optim.Adam,
    "AMSGrad": optim.AMSGrad,
    "Averager": lambda: optim.Averager(optim.SGD(0.01)),
    "FTRLProximal": optim.FTRLProximal,
    "Momentum": optim.Momentum,
    "Nadam": optim.Nadam,
    "NesterovMomentum": optim.NesterovMomentum,
    "RMSProp": optim.RMSProp,
}

_BINARY: dict[str, Callable[[], Any]] = {
    **{f"LogisticRegression-{name}": _optimised(make) for name, make in _OPTIMISERS.items()},
    "LogisticRegression-l1": _logistic(l1=0.01),
    "LogisticRegression-l2": _logistic(l2=0.01, loss=optim.losses.Log(weight_pos=2.0)),
    "LogisticRegression-hinge": _logistic(loss=optim.losses.Hinge(), intercept_lr=0.0),
    "Perceptron": LINEAR.Perceptron,
    "PAClassifier-0": lambda: LINEAR.PAClassifier(mode=0),
    "PAClassifier-1": LINEAR.PAClassifier,
    "PAClassifier-2": lambda: LINEAR.PAClassifier(C=0.1, mode=2),
    "ALMAClassifier": LINEAR.ALMAClassifier,
    "Pipeline": _mixed,
    "HoeffdingTree-mc": _tree(leaf_prediction="mc", split_criterion="gini"),
    "Bagging-logistic": lambda: ENSEMBLE.BaggingClassifier(
        LINEAR.LogisticRegression(), n_models=3, seed=4
    ),
    "Bagging-pipeline": lambda: ENSEMBLE.BaggingClassifier(
        PREPROCESSING.StandardScaler() | LINEAR.PAClassifier(), n_models=2, seed=4
    ),
    "Bagging-hinged": lambda: ENSEMBLE.BaggingClassifier(hinged.AROW(), n_models=3, seed=4),
    "hinged-AROW": hinged.AROW,
    "hinged-AROW-forgetting": lambda: hinged.AROW(forgetting=0.05),
    "hinged-AveragedPerceptron": hinged.AveragedPerceptron,
    "hinged-Calibrated": lambda: hinged.Calibrated(hinged.Hedge()),
    "hinged-CoinBetting": hinged.CoinBetting,
    "hinged-FTRLProximal": lambda: hinged.FTRLProximal(l1=0.01),
    "hinged-Curved": lambda: hinged.Curved(hinged.LinearUnit(), n_components=9),
    "hinged-Quadratic": lambda: hinged.Quadratic(hinged.LinearUnit()),
    "hinged-Hedge": hinged.Hedge,
    "hinged-Hedge-curved": lambda: hinged.Hedge([hinged.Curved(n_components=5)]),
    "hinged-Hedge-models": lambda: hinged.Hedge([hinged.AROW(), hinged.LinearUnit()], share=0.1),
    "hinged-HingeSGD": lambda: hinged.HingeSGD(l1=0.01),
    "hinged-HingeSGD-schedule": lambda: hinged.HingeSGD(
        optim.schedulers.InverseScaling(0.1), steps="constant", l2=0.01
    ),
    "hinged-LinearUnit": hinged.LinearUnit,
    "hinged-LogisticSGD": hinged.LogisticSGD,
    "hinged-PassiveAggressive": lambda: hinged.PassiveAggressive(mode="II"),
    "hinged-Perceptron": lambda: hinged.Perceptron(initial_weights={"a": 1.0}, max_features=3),
    "hinged-PocketPerceptron": hinged.PocketPerceptron,
    "hinged-SCW": hinged.SCW,
}

_MULTICLASS: dict[str, Callable[[], Any]] = {
    "SoftmaxRegression": LINEAR.SoftmaxRegression,
    "GaussianNB": BAYES.GaussianNB,
    "BernoulliNB": BAYES.BernoulliNB,
    "MultinomialNB": lambda: PREPROCESSING.MinMaxScaler() | BAYES.MultinomialNB(),
    "ComplementNB": lambda: PREPROCESSING.MinMaxScaler() | BAYES.ComplementNB(),
    "HoeffdingTree": _tree(),
    "HoeffdingTree-nb": _tree(leaf_prediction="nb"),
    "HoeffdingTree-nominal": _tree(nominal_attributes=["c"]),
    "HoeffdingTree-nominal-binary": _tree(nominal_attributes=["c"], binary_split=True),
    "OneVsRestClassifier": lambda: MULTICLASS.OneVsRestClassifier(
        PREPROCESSING.StandardScaler() | LINEAR.LogisticRegression()
    ),
    "OneVsOneClassifier": lambda: MULTICLASS.OneVsOneClassifier(LINEAR.LogisticRegression()),
    "OneVsOneClassifier-hinged": lambda: MULTICLASS.OneVsOneClassifier(hinged.PassiveAggressive()),
    "Bagging-tree": lambda: ENSEMBLE.BaggingClassifier(_tree()(), n_models=2, seed=4),
    "hinged-Calibrated-OneVsRest": lambda: hinged.Calibrated(hinged.OneVsRest()),
    "hinged-MulticlassQuadratic": lambda: hinged.MulticlassQuadratic(
        hinged.OneVsRest(hinged.LinearUnit())
    ),
    "hinged-OneVsRest": lambda: hinged.OneVsRest(hinged.HingeSGD(l2=0.01)),
    "hinged-MulticlassAROW": hinged.MulticlassAROW,
    "hinged-Auto": hinged.Auto,
    "hinged-MulticlassDiscriminant": hinged.MulticlassDiscriminant,
    "hinged-MulticlassHedge": lambda: hinged.MulticlassHedge(
        [hinged.MulticlassAROW(), hinged.OneVsRest(hinged.HingeSGD())], share=0.1
    ),
    "hinged-MulticlassAveragedPerceptron": hinged.MulticlassAveragedPerceptron,
    "hinged-MulticlassPassiveAggressive": hinged.MulticlassPassiveAggressive,
    "hinged-MulticlassPerceptron": lambda: hinged.MulticlassPerceptron(max_features=3),
    "hinged-MulticlassPocketPerceptron": hinged.MulticlassPocketPerceptron,
    "hinged-MulticlassLogisticSGD": hinged.MulticlassLogisticSGD,
}

_DECISIONS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        metrics.Accuracy,
        metrics.BalancedAccuracy,
        metrics.CohenKappa,
        metrics.F1,
        metrics.GeometricMean,
        metrics.MacroF1,
        metrics.MCC,
        metrics.MicroF1,
        metrics.Precision,
        metrics.Recall,
        metrics.WeightedF1,
    )
}
_CHANCES: dict[str, Any] = {
    kind.__name__: kind for kind in (metrics.CrossEntropy, metrics.LogLoss, metrics.ROCAUC)
}

_DRIFT: dict[str, Callable[[], Any]] = {
    "ADWIN": lambda: DRIFT.ADWIN(delta=0.01, clock=5),
    "PageHinkley": lambda: DRIFT.PageHinkley(threshold=5.0),
    "PageHinkley-up": lambda: DRIFT.PageHinkley(threshold=5.0, mode="up"),
    "KSWIN": lambda: DRIFT.KSWIN(window_size=40, stat_size=15, seed=4),
}

_ERRORS: dict[str, Callable[[], Any]] = {
    "DDM": binary.DDM,
    "EDDM": binary.EDDM,
    "HDDM_A": binary.HDDMA,
    "HDDM_W": binary.HDDMW,
}

_STATISTICS: dict[str, Callable[[], Any]] = {
    "AbsMax": stats.AbsMax,
    "Count": stats.Count,
    "EWMean": stats.EWMean,
    "EWVar": stats.EWVar,
    "IQR": stats.IQR,
    "Kurtosis": stats.Kurtosis,
    "Max": stats.Max,
    "Mean": stats.Mean,
    "Min": stats.Min,
    "PeakToPeak": stats.PeakToPeak,
    "Quantile": lambda: stats.Quantile(0.9),
    "RollingIQR": lambda: stats.RollingIQR(7),
    "RollingMax": lambda: stats.RollingMax(7),
    "RollingQuantile": lambda: stats.RollingQuantile(0.3, 7),
    "SEM": stats.SEM,
    "Shift": lambda: stats.Shift(3),
    "Skew": stats.Skew,
    "Sum": stats.Sum,
    "Var": stats.Var,
}


def _rolling(kind: Any) -> Callable[[], Any]:
    return lambda: utils.Rolling(kind, window_size=30)


CASES: dict[str, Case] = {
    **{name: Case(make, _transform) for name, make in _TRANSFORMERS.items()},
    **{name: Case(make, _impute) for name, make in _IMPUTERS.items()},
    **{name: Case(make, _text) for name, make in _TEXT.items()},
    **{name: Case(make, _label) for name, make in _BINARY.items()},
    **{name: Case(make, _class) for name, make in _MULTICLASS.items()},
    **{name: Case(kind, _decide) for name, kind in _DECISIONS.items()},
    **{f"Rolling-{name}": Case(_rolling(kind), _decide) for name, kind in _DECISIONS.items()},
    "MacroF1-classes": Case(metrics.MacroF1, _decide_class),
    "FBeta": Case(lambda: metrics.FBeta(beta=2.0), _decide),
    "ConfusionMatrix": Case(metrics.ConfusionMatrix, _matrix),
    "Rolling-ConfusionMatrix": Case(_rolling(metrics.ConfusionMatrix), _matrix),
    **{name: Case(kind, _chance) for name, kind in _CHANCES.items()},
    **{f"Rolling-{name}": Case(_rolling(kind), _chance) for name, kind in _CHANCES.items()},
    **{name: Case(make, _drift) for name, make in _DRIFT.items()},
    **{name: Case(make, _error) for name, make in _ERRORS.items()},
    **{f"stats-{name}": Case(make, _statistic) for name, make in _STATISTICS.items()},
    "stats-Mode": Case(stats.Mode, _mode),
    "stats-RollingMode": Case(lambda: stats.RollingMode(7), _mode),
}
