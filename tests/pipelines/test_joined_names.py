"""Names that transformers join from parts: as River joins them, or kept apart."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hinged_service.pipelines import Value
from tests.pipelines.streams import pipeline


def test_two_features_of_one_name_share_it_unless_a_separator_keeps_them_apart() -> None:
    x: dict[str, Value] = {"a": "x_y", "a_x": "y"}
    shared, apart = pipeline("OneHotEncoder"), {"type": "OneHotEncoder", "separator": "|"}
    assert shared.transform_one(x) == {"a_x_y": 1.0}
    assert shared.origins(x) == {"a_x_y": ("a", "a_x")}
    ours = pipeline(apart)
    assert ours.learn_transform_one(x) == {"a|x_y": 1.0, "a_x|y": 1.0}
    assert ours.origins(x) == {"a|x_y": ("a",), "a_x|y": ("a_x",)}
    again = pipeline(apart)
    again.set_state(ours.get_state())
    assert again.transform_one({"a": "z"}) == {"a|x_y": 0.0, "a_x|y": 0.0, "a|z": 1.0}
    listed = {"a": ["x_y", "z"], "a_x": ["y"]}
    shared = pipeline({"type": "OneHotEncoder", "categories": listed})
    assert shared.transform_one({"a": "z"}) == {"a_x_y": 0.0, "a_z": 1.0}
    assert shared.origins({"a": "z"}) == {"a_x_y": ("a", "a_x"), "a_z": ("a",)}
    ours = pipeline({**apart, "categories": listed})
    assert ours.transform_one(x) == {"a|x_y": 1.0, "a|z": 0.0, "a_x|y": 1.0}


@given(
    st.dictionaries(st.text("ab_", max_size=4), st.text("ab_=", max_size=4), max_size=6),
    st.sampled_from(["=", "==", "=|="]),
)
def test_a_separator_of_other_characters_keeps_all_features_apart(
    x: dict[str, str], separator: str
) -> None:
    ours = pipeline({"type": "OneHotEncoder", "separator": separator})
    assert len(ours.transform_one(x)) == len(x)
    products = pipeline({"type": "PolynomialExtender", "degree": 3, "separator": separator})
    n = len(x)
    wanted = n + n * (n + 1) // 2 + n * (n + 1) * (n + 2) // 6
    assert len(products.transform_one(dict.fromkeys(x, 1.0))) == wanted


def test_within_a_feature_a_text_that_reads_like_a_number_shares_its_name() -> None:
    ours = pipeline("OneHotEncoder")
    assert ours.transform_one({"a": "1.0"}) == ours.transform_one({"a": 1.0}) == {"a_1.0": 1.0}
    assert ours.transform_one({"a": "True"}) == ours.transform_one({"a": True}) == {"a_True": 1.0}


def test_a_product_keeps_apart_from_a_feature_of_its_name_with_another_separator() -> None:
    x: dict[str, Value] = {"a*b": 7.0, "a": 2.0, "b": 3.0}
    of = {"type": "PolynomialExtender", "interaction_only": True}
    assert pipeline(of).transform_one(x)["a*b"] == 6.0
    ours = pipeline({**of, "separator": " x "})
    assert ours.transform_one(x) == {
        "a*b": 7.0,
        "a": 2.0,
        "b": 3.0,
        "a x a*b": 14.0,
        "a*b x b": 21.0,
        "a x b": 6.0,
    }
    assert ours.origins(x)["a*b x b"] == ("a*b", "b")


@pytest.mark.parametrize("kind", ["BagOfWords", "TFIDF"])
def test_the_words_of_two_texts_keep_apart_with_a_prefix(kind: str) -> None:
    def both(**prefix: str) -> Any:
        title, body = {"type": kind, "on": "title"}, {"type": kind, "on": "body", **prefix}
        return pipeline({"type": "Union", "branches": [[title], [body]]})

    x: dict[str, Value] = {"title": "free", "body": "lunch lunch free free free"}
    assert set(both().transform_one(x)) == {"free", "lunch"}
    ours = both(prefix="body:")
    made = ours.learn_transform_one(x)
    assert set(made) == {"free", "body:lunch", "body:free"}
    assert made["body:free"] / made["body:lunch"] == pytest.approx(1.5, abs=1e-12)
    again = both(prefix="body:")
    again.set_state(ours.get_state())
    assert again.transform_one(x) == ours.transform_one(x)
    assert ours.origins(x)["body:free"] == ("body",)


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "OneHotEncoder", "separator": ""},
        {"type": "OneHotEncoder", "separator": "x" * 17},
        {"type": "OneHotEncoder", "separator": None},
        {"type": "PolynomialExtender", "separator": ""},
        {"type": "BagOfWords", "on": "t", "prefix": "x" * 65},
        {"type": "TFIDF", "on": "t", "prefix": 1},
    ],
)
def test_a_separator_is_a_short_text(spec: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"separator|prefix"):
        pipeline(spec)
