"""Names stay within `max_features`, and names left out are counted."""

import pytest

from tests.pipelines.streams import CATALOGUE, of_catalogue, pipeline


@pytest.mark.parametrize("scaler", ["StandardScaler", "MinMaxScaler", "MaxAbsScaler"])
def test_a_scaler_goes_on_with_the_names_it_knows(scaler: str) -> None:
    ours = pipeline(scaler, max_features=1)
    ours.learn_transform_one({"a": 1.0, "b": 1.0})
    made = ours.learn_transform_one({"b": 3.0, "a": 3.0, "c": 3.0})
    assert made == {"b": 0.0, "a": 1.0, "c": 0.0}
    assert ours.ignored == 3
    ours.transform_one({"d": 1.0})
    assert ours.ignored == 3


def test_an_auto_scaler_goes_on_with_the_names_it_knows() -> None:
    ours = pipeline("AutoScaler", max_features=1)
    for value in (1.5, 2.5, 1.5, 2.5):
        ours.learn_transform_one({"a": value, "b": 1.0})
    assert ours.transform_one({"b": 1.0, "a": 3.0, "c": 1.0}) == {"b": 0.0, "a": 2.0, "c": 0.0}
    assert ours.ignored == 4


def test_a_robust_scaler_goes_on_with_the_names_it_knows() -> None:
    ours = pipeline({"type": "RobustScaler", "with_scaling": False}, max_features=1)
    for value in (1.0, 2.0, 3.0):
        ours.learn_transform_one({"a": value, "b": value})
    assert ours.transform_one({"b": 5.0, "a": 5.0}) == {"b": 0.0, "a": 3.0}
    assert ours.ignored == 3


def test_categories_beyond_the_cap_are_given_only_where_they_occur() -> None:
    ours = pipeline("OneHotEncoder", max_features=1)
    assert ours.learn_transform_one({"a": "x"}) == {"a_x": 1.0}
    assert ours.learn_transform_one({"a": "y"}) == {"a_x": 0.0, "a_y": 1.0}
    assert ours.learn_transform_one({"a": "x"}) == {"a_x": 1.0}
    assert ours.ignored == 1


def test_terms_beyond_the_cap_count_as_new() -> None:
    ours = pipeline({"type": "TFIDF", "on": "t", "normalize": False}, max_features=1)
    ours.learn_transform_one({"t": "aa bb"})
    # n = 2 texts: aa in both, so idf log(3/3) + 1 = 1; bb not known, so log(3/1) + 1.
    made = ours.learn_transform_one({"t": "aa bb"})
    assert made == {"aa": 0.5, "bb": pytest.approx(0.5 * (1.0986122886681098 + 1.0))}
    assert ours.ignored == 2


def test_long_terms_are_left_out() -> None:
    ours = pipeline({"type": "BagOfWords", "on": "t"})
    assert ours.transform_one({"t": f"{'a' * 256} {'b' * 257} cc"}) == {"a" * 256: 1.0, "cc": 1.0}


@pytest.mark.parametrize("name", CATALOGUE)
def test_no_stage_keeps_more_than_it_may(name: str) -> None:
    ours, events = of_catalogue(name, max_features=2)
    for x in events:
        ours.learn_transform_one(x)
    assert len(str(ours.get_state())) < 1_500
    assert (ours.ignored > 0) == (name not in NOT_CAPPED)


NOT_CAPPED = {
    "Normalizer",
    "OneHotEncoder without first",
    "OneHotEncoder of listed categories",
    "FeatureHasher",
    "BagOfWords",
    "PolynomialExtender",
    "RBFSampler",
    "FourierFeatures",
    "Select",
    "Discard",
}
