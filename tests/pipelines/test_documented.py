"""Claims of the catalogue about each transformer, checked by numbers worked out by hand."""

import math
from typing import Any

import pytest

from tests.pipelines.streams import pipeline, step, union

E = math.e
ROOT2 = math.sqrt(2.0)
A, B = {"a": 1.0}, {"a": 5.0}

NUMERIC = ("Mean", "Median", "Min", "Max")


def imputer(*statistics: str) -> dict[str, Any]:
    return step("StatImputer", imputers=[{"feature": s, "statistic": s} for s in statistics])


BY_HAND: dict[str, tuple[Any, list[Any], Any, dict[str, float]]] = {
    # mean 3 and variance 6.25; the flag f stays, b was never seen
    "AutoScaler": (
        *("AutoScaler", [{"a": v, "f": 1.0} for v in (5.5, 0.5, 5.5, 0.5)]),
        *({"a": 6.0, "f": 0.0, "b": 1.0}, {"a": 1.2, "f": 0.0, "b": 0.0}),
    ),
    "AutoScaler, beyond": ("AutoScaler", [{"a": v} for v in (5.5, 0.5, 5.5, 0.5)], A, {"a": -0.8}),
    # mean 3, variance 4; b was never seen
    "StandardScaler": ("StandardScaler", [A, B], {"a": 7.0, "b": 1.0}, {"a": 2.0, "b": 0.0}),
    "StandardScaler, centred": (
        *(step("StandardScaler", with_std=False), [A, B]),
        *({"a": 7.0, "b": 1.0}, {"a": 4.0, "b": 0.0}),
    ),
    "MinMaxScaler": ("MinMaxScaler", [A, B], {"a": 3.0, "b": 1.0}, {"a": 0.5, "b": 0.0}),
    "MinMaxScaler, beyond": ("MinMaxScaler", [A, B], {"a": 7.0}, {"a": 1.5}),
    "MinMaxScaler, one value": ("MinMaxScaler", [A, A], {"a": 9.0}, {"a": 0.0}),
    "MaxAbsScaler": ("MaxAbsScaler", [{"a": -4.0}, A], {"a": 3.0, "b": 1.0}, {"a": 0.75, "b": 0}),
    "MaxAbsScaler, beyond": ("MaxAbsScaler", [{"a": -4.0}], {"a": -6.0}, {"a": -1.5}),
    # median 5, quartiles 3 and 7
    "RobustScaler": (
        *("RobustScaler", [{"a": v} for v in (1.0, 3.0, 5.0, 7.0, 9.0)]),
        *({"a": 7.0, "b": 1.0}, {"a": 0.5, "b": 0.0}),
    ),
    "RobustScaler, two values": (
        *(step("RobustScaler", with_scaling=False), [A, B], {"a": 7.0}, {"a": 2.0}),
    ),
    "Normalizer": ("Normalizer", [], {"a": 3.0, "b": -4.0}, {"a": 0.6, "b": -0.8}),
    "Normalizer, sum": (
        *(step("Normalizer", order=1), [], {"a": 3.0, "b": -1.0}, {"a": 0.75, "b": -0.25}),
    ),
    "Normalizer, zeros": ("Normalizer", [], {"a": 0.0}, {"a": 0.0}),
    "OneHotEncoder": (
        *("OneHotEncoder", [{"c": "x"}], {"c": "y", "n": 1.0, "t": True, "s": "1"}),
        {"c_x": 0.0, "c_y": 1.0, "n_1.0": 1.0, "t_True": 1.0, "s_1": 1.0},
    ),
    "OneHotEncoder, first dropped": (
        *(step("OneHotEncoder", drop_first=True), [{"c": "x"}], {"c": "y"}, {"c_y": 1.0}),
    ),
    "StatImputer, fresh": (
        *(imputer(*NUMERIC, "Mode"), [], {"Mean": None}, dict.fromkeys(NUMERIC, 0.0)),
    ),
    "StatImputer": (
        *(imputer(*NUMERIC, "Mode"), [dict.fromkeys((*NUMERIC, "Mode"), v) for v in (1.0, 5.0)]),
        *({"Mean": None}, {"Mean": 3.0, "Median": 5.0, "Min": 1.0, "Max": 5.0, "Mode": 1.0}),
    ),
    "BagOfWords": (
        *(step("BagOfWords", on="t", ngram_range=[1, 2]), []),
        {"t": "Of THE, of é a", "u": "left out"},
        {"of": 2.0, "the": 1.0, "of the": 1.0, "the of": 1.0},
    ),
    # each word is half of the text; both texts had "aa", one of them "bb"
    "TFIDF": (
        *(step("TFIDF", on="t", normalize=False), [{"t": "aa bb"}, {"t": "aa"}]),
        *({"t": "aa bb"}, {"aa": 0.5, "bb": 0.5 * (math.log(1.5) + 1.0)}),
    ),
    "TFIDF, normalised": (
        *(step("TFIDF", on="t"), [], {"t": "aa bb"}, {"aa": 1.0 / ROOT2, "bb": 1.0 / ROOT2}),
    ),
    "PolynomialExtender": (
        *(step("PolynomialExtender", include_bias=True), [], {"b": 2.0, "a": 3.0}),
        {"b": 2.0, "a": 3.0, "b*b": 4.0, "a*b": 6.0, "a*a": 9.0, "bias": 1.0},
    ),
    "PolynomialExtender, others": (
        *(step("PolynomialExtender", degree=3, interaction_only=True), []),
        {"b": 2.0, "a": 3.0, "c": 5.0},
        {"b": 2.0, "a": 3.0, "c": 5.0, "a*b": 6.0, "b*c": 10.0, "a*c": 15.0, "a*b*c": 30.0},
    ),
    "Select": (step("Select", keys=["b", "c"]), [], {"a": 1.0, "b": 2.0}, {"b": 2.0}),
    "Discard": (step("Discard", keys=["b", "c"]), [], {"a": 1.0, "b": 2.0}, {"a": 1.0}),
    "Union": (
        *(union([step("MaxAbsScaler")], [step("Discard", keys=[])]), [{"a": 2.0}]),
        *({"a": 1.0, "b": 3.0}, {"a": 0.5, "b": 0.0}),
    ),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_the_catalogue_by_hand(name: str) -> None:
    spec, learned, x, wanted = BY_HAND[name]
    ours = pipeline(spec)
    for one in learned:
        ours.learn_transform_one(one)
    assert ours.transform_one(x) == pytest.approx(wanted, abs=1e-15)


def test_a_hasher_adds_up_by_name_or_by_name_and_text() -> None:
    hashed = pipeline("FeatureHasher").transform_one
    (bucket,) = hashed({"a": 1.0})
    assert hashed({"a": True}) == hashed({"a": 1.0})
    assert hashed({"a": 3.0}) == {bucket: 3.0 * hashed({"a": 1.0})[bucket]}
    assert hashed({"a": "x"}) == hashed({"a=x": 1.0})  # the collision that is documented
    one = pipeline({"type": "FeatureHasher", "n_features": 1, "alternate_sign": False})
    assert one.transform_one({"a": 2.0, "b": 3.0, "c": "x", "d": False}) == {"0": 6.0}
    signs = [pipeline("FeatureHasher").transform_one({f"n{i}": 1.0}) for i in range(400)]
    assert 160 < sum(value < 0 for made in signs for value in made.values()) < 240


GAMMA = 0.5
EVENTS: list[tuple[dict[str, float], dict[str, float], float, float]] = [
    # one feature: exp(-0.5), and so is the Gaussian kernel
    ({"a": 0.0}, {"a": 1.0}, E**-0.5, E**-0.5),
    # exp(-0.5) + exp(-2) = 0.742; the Gaussian kernel would be exp(-2.5) = 0.082
    ({"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 2.0}, E**-0.5 + E**-2.0, E**-2.5),
    # three equal features, one far away: 3 and next to nothing, instead of nothing
    ({"a": 1.0, "b": 1.0, "c": 1.0, "d": 0.0}, {"a": 1.0, "b": 1.0, "c": 1.0, "d": 9.0}, 3.0, 0.0),
    # only the features that both have
    ({"a": 0.0, "b": 5.0}, {"a": 1.0, "c": 5.0}, E**-0.5, 0.0),
    ({"b": 5.0}, {"c": 5.0}, 0.0, 0.0),
]


@pytest.mark.parametrize(("x", "z", "wanted", "gaussian"), EVENTS)
def test_the_kernel_of_the_cosines_is_a_sum_over_the_features(
    x: dict[str, float], z: dict[str, float], wanted: float, gaussian: float
) -> None:
    n = 1_000
    ours = pipeline({"type": "RBFSampler", "n_components": n, "gamma": GAMMA, "seed": 3})
    left, right = ours.transform_one(x), ours.transform_one(z)
    assert len(left) == n * len(x)
    kernel = sum(value * right.get(name, 0.0) for name, value in left.items()) / (n / 2)
    # a product of cosines has a variance below 1 / 2: 4 standard errors per feature
    assert kernel == pytest.approx(wanted, abs=0.13 * len(x))
    if abs(gaussian - wanted) > 0.3:
        assert kernel != pytest.approx(gaussian, abs=0.3)


def test_the_catalogue_does_not_promise_the_gaussian_kernel() -> None:
    from hinged_service.pipelines.kernel import RBFSamplerSpec

    schema = RBFSamplerSpec.model_json_schema()
    assert "a sum of kernels of one dimension" in schema["description"].replace("\n", " ")
    assert "of one feature" in schema["properties"]["gamma"]["description"]
