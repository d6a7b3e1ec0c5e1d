"""Values that a stage does not take are refused by name, with a remedy."""

from typing import Any

import pytest

import hinged
from hinged_service.pipelines import Value
from tests.pipelines.streams import pipeline

NUMERIC = [
    "StandardScaler",
    "MinMaxScaler",
    "MaxAbsScaler",
    "RobustScaler",
    "Normalizer",
    "PolynomialExtender",
    "RBFSampler",
    "FourierFeatures",
    "AutoScaler",
]
NOTHING = {"type": "Discard", "keys": []}


def refusal(specs: list[Any], x: dict[str, Value]) -> hinged.InvalidEvent:
    ours = pipeline(*specs)
    with pytest.raises(hinged.InvalidEvent) as learning:
        ours.learn_transform_one(x)
    with pytest.raises(hinged.InvalidEvent) as predicting:
        ours.transform_one(x)
    assert str(learning.value) == str(predicting.value)
    return predicting.value


@pytest.mark.parametrize("stage", [*NUMERIC, None])
@pytest.mark.parametrize(
    ("value", "remedy"), [("3.5", "OneHotEncoder"), (True, "OneHotEncoder"), (None, "StatImputer")]
)
def test_only_numbers_go_where_numbers_are_needed(
    stage: str | None, value: Value, remedy: str
) -> None:
    error = refusal([stage or NOTHING], {"a": 1.0, "it's": value})
    assert error.field == 'x["it\'s"]'
    assert remedy in error.reason
    assert (stage or "the learner") in error.reason


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2e100, -(10**101), 10**400])
@pytest.mark.parametrize("stage", [*NUMERIC, NOTHING])
def test_no_number_beyond_the_bound_gets_in(stage: Any, value: Value) -> None:
    assert refusal([stage], {"a": value}).field == "x['a']"


@pytest.mark.parametrize(
    ("spec", "x", "field", "words"),
    [
        ("OneHotEncoder", {"a": None}, "x['a']", "StatImputer"),
        ("OneHotEncoder", {"a": "b" * 257}, "x['a']", "BagOfWords"),
        ({"type": "OneHotEncoder", "categories": {"b": ["c"]}}, {"a": "c"}, "x['a']", "Select"),
        ({"type": "FeatureHasher"}, {"a": None}, "x['a']", "StatImputer"),
        ({"type": "FeatureHasher"}, {"a": "\ud800"}, "x", "Unicode"),
        ({"type": "BagOfWords", "on": "a"}, {"a": 1.0}, "x['a']", "must be text"),
        ({"type": "TFIDF", "on": "a"}, {"a": False}, "x['a']", "must be text"),
        ({"type": "TFIDF", "on": "a"}, {"a": None}, "x['a']", "StatImputer"),
        (
            {"type": "StatImputer", "imputers": [{"feature": "a", "statistic": "Max"}]},
            {"a": "b"},
            "x['a']",
            "StatImputer takes numbers",
        ),
        ("PolynomialExtender", {f"f{i}": 1.0 for i in range(150)}, "x", "11475 features"),
        ("RBFSampler", {f"f{i}": 1.0 for i in range(101)}, "x", "10100 features"),
        ("FourierFeatures", {f"f{i}": 1.0 for i in range(1_001)}, "x", "1001 features"),
    ],
)
def test_other_refusals(spec: Any, x: dict[str, Value], field: str, words: str) -> None:
    error = refusal([spec], x)
    assert error.field == field
    assert words in error.reason


def test_absent_features_are_left_out_or_imputed() -> None:
    assert pipeline({"type": "BagOfWords", "on": "text"}).transform_one({"a": 1.0}) == {}
    assert pipeline({"type": "Select", "keys": ["b", "a"]}).transform_one({"a": 1.0}) == {"a": 1.0}
    tfidf = pipeline({"type": "TFIDF", "on": "text"})
    tfidf.learn_transform_one({"a": 1.0})
    assert tfidf.get_state() == pipeline({"type": "TFIDF", "on": "text"}).get_state()
    imputers = [
        {"feature": "mode", "statistic": "Mode"},
        {"feature": "mean", "statistic": "Mean"},
        {"feature": "median", "statistic": "Median"},
        {"feature": "min", "statistic": "Min"},
        {"feature": "fixed", "value": 2},
    ]
    imputed = pipeline({"type": "StatImputer", "imputers": imputers})
    assert imputed.transform_one({"mode": None, "mean": None}) == {
        "mean": 0.0,
        "median": 0.0,
        "min": 0.0,
        "fixed": 2.0,
    }


def test_numbers_are_cut_at_the_bound_and_stay_finite() -> None:
    products = pipeline({"type": "PolynomialExtender", "degree": 3}, "StandardScaler")
    for x in ({"a": 1e100, "b": -1e100}, {"a": -1e100, "b": 0.0}, {"a": 1e-300, "b": 1e100}):
        assert all(abs(v) <= 1e100 for v in products.learn_transform_one(x).values())
    assert pipeline("PolynomialExtender").transform_one({"a": -1e80}) == {"a": -1e80, "a*a": 1e100}
    for scaler in ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler"):
        narrow = pipeline(scaler)
        for value in (1.0, 1.0 + 1e-15, 1.0 + 2e-15, 1.0, 1.0 + 1e-15, 1.0):
            narrow.learn_transform_one({"a": value * 1e-100})
        assert abs(narrow.transform_one({"a": 1e100})["a"]) == 1e100
