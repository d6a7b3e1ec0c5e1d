"""Any event: if `transform_one` takes it, it is learned whole, else nothing changes."""

from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import hinged
from tests.pipelines.streams import Event, pipeline

Numbers = Mapping[str, float]
NAMES = ["a", "b", "c"]
SIMPLE: list[dict[str, Any]] = [
    {"type": "AutoScaler"},
    {"type": "StandardScaler"},
    {"type": "StandardScaler", "with_std": False},
    {"type": "MinMaxScaler"},
    {"type": "MaxAbsScaler"},
    {"type": "RobustScaler"},
    {"type": "Normalizer"},
    {"type": "Normalizer", "order": 1},
    {"type": "OneHotEncoder"},
    {"type": "OneHotEncoder", "drop_zeros": True, "drop_first": True},
    {"type": "OneHotEncoder", "categories": {"a": ["x", 1, True], "b": [0.5]}},
    {"type": "FeatureHasher", "n_features": 4},
    {"type": "StatImputer", "imputers": [{"feature": "a", "statistic": "Mean"}]},
    {"type": "StatImputer", "imputers": [{"feature": "b", "statistic": "Mode"}]},
    {
        "type": "StatImputer",
        "imputers": [{"feature": "a", "statistic": "Median"}, {"feature": "c", "value": "x y"}],
    },
    {"type": "BagOfWords", "on": "a", "ngram_range": [1, 2]},
    {"type": "TFIDF", "on": "a"},
    {"type": "TFIDF", "on": "c", "normalize": False},
    {"type": "PolynomialExtender", "degree": 3, "interaction_only": True},
    {"type": "RBFSampler", "n_components": 2},
    {"type": "FourierFeatures", "n_components": 2},
    {"type": "Select", "keys": ["a", "c"]},
    {"type": "Discard", "keys": ["a"]},
]
STAGES = st.lists(st.sampled_from(SIMPLE), min_size=1, max_size=3)
UNIONS = st.builds(
    lambda branches: {"type": "Union", "branches": branches},
    st.lists(STAGES, min_size=1, max_size=3),
)
SPECS = st.lists(st.sampled_from(SIMPLE) | UNIONS, max_size=3)
VALUES = (
    st.floats(-1e100, 1e100)
    | st.sampled_from([0.0, 1.0, 0.5, 1e100, -1e100, 5e-324])
    | st.integers(-(10**100), 10**100)
    | st.booleans()
    | st.none()
    | st.sampled_from(["x", "xx yy", "xx yy xx zz", ""])
    | st.text(max_size=8)
)
NUMBERS = st.floats(-1e100, 1e100)
NUMERIC = st.dictionaries(st.sampled_from(NAMES), NUMBERS)
EVENTS = st.lists(NUMERIC | st.dictionaries(st.sampled_from(NAMES), VALUES), max_size=12)


def taken(call: Callable[[Event], Numbers], x: Event) -> Numbers | str:
    """Return what a call gives, or why it refuses the event."""
    try:
        return call(x)
    except hinged.InvalidEvent as error:
        return str(error)


@settings(max_examples=200, deadline=None)
@given(SPECS, EVENTS)
def test_taken_whole_or_not_at_all(specs: list[Any], events: list[Event]) -> None:
    ours, twin = pipeline(*specs, max_features=3), pipeline(*specs, max_features=3)
    for x in events:
        before = str(ours.get_state())
        asked = taken(ours.transform_one, x)
        assert str(ours.get_state()) == before
        if isinstance(asked, str):
            assert taken(ours.learn_transform_one, x) == asked
            assert str(ours.get_state()) == before
            continue
        assert list(ours.origins(x)) == list(asked)
        assert str(ours.get_state()) == before
        taught = ours.learn_transform_one(x)
        assert list(twin.learn_transform_one(x, checked=True).items()) == list(taught.items())
        assert list(ours.transform_one(x)) == list(taught)
        for value in (*asked.values(), *taught.values()):
            assert type(value) is float
            assert abs(value) <= 1e100
    assert ours.get_state() == twin.get_state()
    again = pipeline(*specs, max_features=3)
    again.set_state(ours.get_state())
    assert again.get_state() == ours.get_state()
