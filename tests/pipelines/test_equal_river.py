"""Pipelines against River's own, event by event, bit for bit unless said otherwise."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from river import compose, datasets, feature_extraction, preprocessing, stats

import hinged
from tests.pipelines.streams import (
    Event,
    categories,
    holes,
    mixed,
    numbers,
    phishing,
    pipeline,
    step,
    texts,
    union,
)

Case = tuple[list[Any], Callable[[], Any], list[Event]]
fx: Any = feature_extraction
pp: Any = preprocessing


def same(kind: Any, events: list[Event], **parameters: Any) -> Case:
    """One of River's transformers under its own name, with the same parameters."""
    spec = json.loads(json.dumps({"type": kind.__name__, **parameters}, default=list))
    return [spec], lambda: kind(**parameters), events


SCALERS: dict[str, Case] = {
    "StandardScaler": same(pp.StandardScaler, phishing()),
    "StandardScaler, sparse": same(pp.StandardScaler, numbers()),
    "StandardScaler without std": same(pp.StandardScaler, numbers(), with_std=False),
    "MinMaxScaler": same(pp.MinMaxScaler, phishing()),
    "MinMaxScaler, sparse": same(pp.MinMaxScaler, numbers()),
    "MaxAbsScaler": same(pp.MaxAbsScaler, phishing()),
    "MaxAbsScaler, sparse": same(pp.MaxAbsScaler, numbers()),
    "RobustScaler": same(pp.RobustScaler, phishing()),
    "RobustScaler, sparse": same(pp.RobustScaler, numbers()),
    "RobustScaler, only centred": same(pp.RobustScaler, numbers(), with_scaling=False),
    "RobustScaler of other quantiles": same(
        pp.RobustScaler, numbers(), with_centering=False, q_inf=0.1, q_sup=0.8
    ),
    "two scalers": (
        ["MinMaxScaler", "StandardScaler"],
        lambda: compose.Pipeline(pp.MinMaxScaler(), pp.StandardScaler()),
        phishing(),
    ),
}
TEXTS: dict[str, Case] = {
    "BagOfWords": same(fx.BagOfWords, texts(), on="text"),
    "BagOfWords as it stands": same(
        fx.BagOfWords, texts(), on="text", lowercase=False, strip_accents=False
    ),
    "BagOfWords, n-grams": same(
        fx.BagOfWords, texts(), on="text", ngram_range=(2, 3), stop_words={"the"}
    ),
    "TFIDF": same(fx.TFIDF, texts(), on="text"),
    "TFIDF, n-grams, not normalised": same(
        fx.TFIDF, texts(), on="text", ngram_range=(1, 2), normalize=False
    ),
    "TFIDF, scaled": (
        [step("TFIDF", on="text"), "StandardScaler"],
        lambda: compose.Pipeline(fx.TFIDF(on="text"), pp.StandardScaler()),
        texts(),
    ),
}
IMPUTERS = [{"feature": "age", "statistic": "Mean"}, {"feature": "colour", "statistic": "Mode"}]
CONSTANTS = [{"feature": "age", "value": -1}, {"feature": "colour", "value": "none"}]
OTHERS: dict[str, Case] = {
    "OneHotEncoder": same(pp.OneHotEncoder, categories()),
    "OneHotEncoder without zeros": same(pp.OneHotEncoder, categories(), drop_zeros=True),
    "OneHotEncoder without first": same(pp.OneHotEncoder, categories(), drop_first=True),
    "FeatureHasher": same(pp.FeatureHasher, categories(), n_features=8, seed=3),
    "FeatureHasher without signs": (
        [step("FeatureHasher", n_features=8, alternate_sign=False)],
        lambda: pp.FeatureHasher(n_features=8, seed=0, alternate_sign=False),
        numbers(),
    ),
    "StatImputer": (
        [step("StatImputer", imputers=IMPUTERS), "OneHotEncoder"],
        lambda: compose.Pipeline(
            pp.StatImputer(("age", stats.Mean()), ("colour", stats.Mode())), pp.OneHotEncoder()
        ),
        [{"age": 3.0, "colour": "red", "one": 1.0}, *holes()],
    ),
    "StatImputer with constants": (
        [step("StatImputer", imputers=CONSTANTS), step("OneHotEncoder", drop_zeros=True)],
        lambda: compose.Pipeline(
            pp.StatImputer(("age", -1.0), ("colour", "none")), pp.OneHotEncoder(drop_zeros=True)
        ),
        holes(),
    ),
    "PolynomialExtender": same(fx.PolynomialExtender, numbers(), degree=3, include_bias=True),
    "PolynomialExtender of interactions": (
        [step("PolynomialExtender", interaction_only=True), "StandardScaler"],
        lambda: compose.Pipeline(fx.PolynomialExtender(interaction_only=True), pp.StandardScaler()),
        numbers(),
    ),
    "Discard": (
        [step("Discard", keys=["f1", "f4"])],
        lambda: compose.Discard("f1", "f4"),
        numbers(),
    ),
    "Select": ([step("Select", keys=["f0"])], lambda: compose.Select("f0"), numbers()),
    "Union": (
        [
            union(
                [step("Select", keys=["length"]), step("StandardScaler")],
                [step("TFIDF", on="text")],
                [step("Select", keys=["colour"]), step("OneHotEncoder")],
                [step("Select", keys=["length"])],
            ),
            "MaxAbsScaler",
        ],
        lambda: compose.Pipeline(
            compose.TransformerUnion(
                compose.Pipeline(compose.Select("length"), pp.StandardScaler()),
                fx.TFIDF(on="text"),
                compose.Pipeline(compose.Select("colour"), pp.OneHotEncoder()),
                compose.Select("length"),
            ),
            pp.MaxAbsScaler(),
        ),
        mixed(),
    ),
}


def _imputed(statistic: str, theirs: Callable[[], Any]) -> Case:
    imputers = [{"feature": "age", "statistic": statistic}]
    return (
        [{"type": "Select", "keys": ["age"]}, {"type": "StatImputer", "imputers": imputers}],
        lambda: compose.Pipeline(compose.Select("age"), pp.StatImputer(("age", theirs()))),
        [{"age": 3.0}, *holes()],
    )


STATISTICS = {
    "StatImputer with the median": _imputed("Median", stats.Quantile),
    "StatImputer with the minimum": _imputed("Min", stats.Min),
    "StatImputer with the maximum": _imputed("Max", stats.Max),
}
CASES = SCALERS | TEXTS | OTHERS | STATISTICS


def named(made: dict[Any, Any]) -> list[tuple[str, Any]]:
    """Return River's features as a pipeline names them, in River's order."""
    return [(" ".join(n) if isinstance(n, tuple) else str(n), v) for n, v in made.items()]


@pytest.mark.parametrize("name", CASES)
def test_each_event_gives_what_river_gives(name: str) -> None:
    specs, make, events = CASES[name]
    ours, theirs = pipeline(*specs), make()
    for x in events:
        theirs.learn_one(dict(x))
        taught = list(ours.learn_transform_one(x).items())
        assert taught == named(theirs.transform_one(dict(x)))
        assert taught == list(ours.transform_one(x).items())
        assert {*map(type, dict(taught).values())} <= {float}


@pytest.mark.parametrize("name", CASES)
def test_an_event_not_learned_gives_what_river_gives_once_its_features_are_known(name: str) -> None:
    specs, make, events = CASES[name]
    ours, theirs = pipeline(*specs), make()
    for x in events[:100]:
        theirs.learn_one(dict(x))
        ours.learn_transform_one(x)
    for x in events[100:]:
        assert list(ours.transform_one(x).items()) == named(theirs.transform_one(dict(x)))


@pytest.mark.parametrize("order", [1, 2])
def test_normalizer_is_rivers_but_for_the_rounding_of_the_norm(order: int) -> None:
    ours = pipeline({"type": "Normalizer", "order": order})
    theirs: Any = pp.Normalizer(order)
    for x in numbers():
        assert ours.transform_one(x) == pytest.approx(theirs.transform_one(x), rel=1e-14)
    assert ours.transform_one({"a": 0.0}) == {"a": 0.0}
    by_hand = {"a": 0.6, "b": -0.8} if order == 2 else {"a": 3 / 7, "b": -4 / 7}
    assert ours.transform_one({"a": 3, "b": -4}) == by_hand


def test_listed_categories_are_rivers() -> None:
    listed: dict[str, list[Any]] = {"colour": ["red", "blue"], "size": [1, 2], "new": [True]}
    ours = pipeline({"type": "OneHotEncoder", "categories": listed})
    theirs: Any = pp.OneHotEncoder(categories={name: set(v) for name, v in listed.items()})
    for x in categories():
        assert ours.transform_one(x) == theirs.transform_one(x)


def test_true_is_not_one_though_python_finds_them_equal() -> None:
    ours = pipeline({"type": "OneHotEncoder", "categories": {"a": [1], "b": [True]}})
    assert ours.transform_one({"a": True, "b": 1}) == {"a_1": 0.0, "b_True": 0.0}
    assert ours.transform_one({"a": 1.0, "b": True}) == {"a_1": 1.0, "b_True": 1.0}


def test_the_cosines_are_rivers_with_other_random_numbers() -> None:
    ours = pipeline({"type": "RBFSampler", "n_components": 400, "gamma": 2.0, "seed": 1})
    at_zero, at_one = ours.transform_one({"a": 0.0}), ours.transform_one({"a": 1.0})
    # Over weights N(0, 2 gamma), the mean of 2 cos(x w + b) cos(y w + b) is exp(-gamma (x - y)^2).
    kernel = sum(2.0 * at_zero[name] * at_one[name] for name in at_one) / 400
    assert kernel == pytest.approx(2.718281828**-2.0, abs=0.15)
    assert sum(2.0 * value**2 for value in at_one.values()) / 400 == pytest.approx(1.0, abs=0.15)
    assert ours.transform_one({"b": 1.0}) != {f"b_{k[2:]}": v for k, v in at_one.items()}


def test_a_learner_behind_a_pipeline_is_the_river_pipeline_on_phishing() -> None:
    ours, learner = pipeline("StandardScaler"), hinged.Perceptron()
    theirs: Any = compose.Pipeline(pp.StandardScaler(), hinged.Perceptron())
    for x, (_, y) in zip(phishing(), datasets.Phishing(), strict=True):
        asked = dict(ours.transform_one(x))
        assert learner.predict_proba_one(asked) == theirs.predict_proba_one(x)
        learner.learn_one(dict(ours.learn_transform_one(x, checked=True)), y)
        theirs.learn_one(x, y)
    assert dict(learner.weights) == dict(theirs["Perceptron"].weights)
