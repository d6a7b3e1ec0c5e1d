"""Every feature given is traced to the features of the event."""

from typing import Any

import pytest

from hinged_service.pipelines import Value
from tests.pipelines.streams import CATALOGUE, of_catalogue, pipeline

COLOUR = [{"type": "Select", "keys": ["colour"]}, {"type": "OneHotEncoder"}]
TEXT = [{"type": "BagOfWords", "on": "text"}]
AGE = [{"type": "Select", "keys": ["age", "size"]}, {"type": "StandardScaler"}]


@pytest.mark.parametrize(
    ("specs", "x", "origins"),
    [
        (["StandardScaler"], {"a": 1.0}, {"a": ("a",)}),
        (["OneHotEncoder"], {"a": "x"}, {"a_x": ("a",)}),
        ([{"type": "TFIDF", "on": "t"}], {"t": "aa bb"}, {"aa": ("t",), "bb": ("t",)}),
        (
            [{"type": "PolynomialExtender", "include_bias": True}],
            {"b": 1.0, "a": 2.0},
            {"b": ("b",), "a": ("a",), "b*b": ("b",), "a*b": ("b", "a"), "a*a": ("a",), "bias": ()},
        ),
        ([{"type": "RBFSampler", "n_components": 1}], {"a": 1.0}, {"a_0": ("a",)}),
        (
            [{"type": "FourierFeatures", "n_components": 1, "prefix": "w"}],
            {"a": 1.0, "b": 2.0},
            {"w_0": ("a", "b")},
        ),
        ([{"type": "FeatureHasher", "n_features": 1}], {"a": 1.0, "b": "x"}, {"0": ("a", "b")}),
        (
            [
                {"type": "Union", "branches": [COLOUR, TEXT, AGE]},
                {"type": "PolynomialExtender", "interaction_only": True},
                {"type": "Select", "keys": ["colour_red*free", "age*size", "free"]},
            ],
            {"colour": "red", "text": "free", "age": 3.0, "size": 4.0},
            {"colour_red*free": ("text", "colour"), "age*size": ("age", "size"), "free": ("text",)},
        ),
    ],
)
def test_origins(
    specs: list[Any], x: dict[str, Value], origins: dict[str, tuple[str, ...]]
) -> None:
    assert pipeline(*specs).origins(x) == origins


def test_a_category_that_is_not_in_the_event_still_comes_from_its_feature() -> None:
    ours = pipeline("OneHotEncoder")
    ours.learn_transform_one({"a": "x", "b": "y"})
    assert ours.origins({"a": "z"}) == {"a_x": ("a",), "b_y": ("b",), "a_z": ("a",)}


@pytest.mark.parametrize("name", CATALOGUE)
def test_origins_name_what_transform_gives_in_the_same_order(name: str) -> None:
    ours, events = of_catalogue(name)
    for x in events[:20]:
        ours.learn_transform_one(x)
        assert list(ours.origins(x)) == list(ours.transform_one(x))
