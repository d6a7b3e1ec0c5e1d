"""States as the service stores them, and what a damaged one does: nothing but `InvalidState`."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

import hinged
from hinged_service.pipelines import Pipeline
from tests.pipelines.streams import CATALOGUE, holes, of_catalogue, pipeline


def stored(ours: Pipeline) -> Any:
    return json.loads(json.dumps(ours.get_state(), allow_nan=False, sort_keys=True))


@pytest.mark.parametrize("n", [0, 1, 3, 5, 6, 100])
@pytest.mark.parametrize("name", CATALOGUE)
def test_a_restored_pipeline_goes_on_as_if_nothing_had_been(name: str, n: int) -> None:
    ours, events = of_catalogue(name)
    for x in events[:n]:
        ours.learn_transform_one(x)
    again, _ = of_catalogue(name)
    again.learn_transform_one(events[-1])
    again.set_state(stored(ours))
    assert stored(again) == stored(ours)
    for x in events[n:]:
        assert list(again.transform_one(x).items()) == list(ours.transform_one(x).items())
        taught = again.learn_transform_one(x)
        assert list(taught.items()) == list(ours.learn_transform_one(x).items())
    assert stored(again) == stored(ours)


def test_the_count_of_ignored_features_is_restored_too() -> None:
    ours = pipeline("StandardScaler", max_features=1)
    ours.learn_transform_one({"a": 1.0, "b": 2.0})
    again = pipeline("StandardScaler", max_features=1)
    again.set_state(stored(ours))
    assert again.ignored == ours.ignored == 1


def paths(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield at
    if isinstance(data, (list, dict)):
        for key in data if isinstance(data, dict) else range(len(data)):
            yield from paths(data[key], (*at, key))


def damaged(state: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = json.loads(json.dumps(state))
    part = copy
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return copy


DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]
WRONG: list[Any] = [
    None, True, -1, 7, 10**400, -0.5, 1e300, float("nan"), float("inf"), "text", [], {}, [[]],
    ["a", "b"], DEEP,
]  # fmt: skip


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_damaged_state_is_refused_or_harmless(name: str) -> None:
    ours, events = of_catalogue(name)
    for x in events[:7]:
        ours.learn_transform_one(x)
    good = stored(ours)
    found = list(paths(good))
    chosen = found if len(found) < 150 else random.Random(1).sample(found, 150)
    for path in chosen:
        for value in WRONG:
            other, _ = of_catalogue(name)
            try:
                other.set_state(damaged(good, path, value))
            except hinged.InvalidState:
                assert stored(other) == stored(of_catalogue(name)[0])
                continue
            for x in events[:7]:
                assert all(abs(v) <= 1e100 for v in other.learn_transform_one(x).values())
            stored(other)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("StandardScaler", [["a", 1, 0.0, 0.0], ["a", 1, 0.0, 0.0]]),
        ("StandardScaler", [["a", 0, 0.0, 0.0]]),
        ("StandardScaler", [["a", 1, 0.0, -1.0]]),
        ("StandardScaler", [["a", 1, float("inf"), 0.0]]),
        ("StandardScaler", [[]]),
        ("StandardScaler", [[f"f{i}", 1, 0.0, 0.0] for i in range(1_001)]),
        ("AutoScaler", []),
        ("AutoScaler", [0, [["a", 1, 1, 1, True, 0.0, 0.0, 0.0, 0.0]]]),
        ("AutoScaler", [1, [["a", 2, 1, 1, True, 0.0, 0.0, 0.0, 0.0]]]),
        ("AutoScaler", [1, [["a", 1, 1, 1, True, 0.0, 0.0, 1.0, 0.0]]]),
        ("MinMaxScaler", [["a", 2.0, 1.0]]),
        ("MaxAbsScaler", [["a", -1.0]]),
        ("OneHotEncoder", [["a_1", "b"]]),
        ("OneHotEncoder", [["a_1", "a"], ["a_1", "a"]]),
        ("OneHotEncoder without first", [["a_1", "a"]]),
        ("TFIDF", [1, [["a", 2]]]),
        ("TFIDF", [1, [["a", 1], ["a", 1]]]),
        ("BagOfWords", []),
        ("FourierFeatures", None),
        ("FourierFeatures", -1),
        ("FourierFeatures", 1.0),
    ],
)
def test_each_stage_refuses_what_it_cannot_have_stored(name: str, data: Any) -> None:
    ours, _ = of_catalogue(name)
    state = stored(ours)
    state["stages"][0][2] = data
    with pytest.raises(hinged.InvalidState):
        ours.set_state(state)


def test_a_median_is_checked_before_river_gets_it() -> None:
    ours, _ = of_catalogue("RobustScaler")
    for value in (3.0, 1.0, 4.0, 1.5, 9.0, 2.6):
        ours.learn_transform_one({"a": value})
    good = stored(ours)
    desired, positions, heights, used, in_order = good["stages"][0][2][0][1]
    for wrong in (
        [desired, [1.0, 2.0, 2.0, 5.0, 6.0], heights, used, in_order],
        [desired, [1.5, 2.5, 3.5, 5.0, 6.0], heights, used, in_order],
        [desired, positions, heights, used, 0],
        [desired, positions, heights, 4, in_order],
        [desired, positions, heights, 6, in_order],
        [desired, positions, heights, 256, in_order],
    ):
        bad = json.loads(json.dumps(good))
        bad["stages"][0][2][0][1] = wrong
        with pytest.raises(hinged.InvalidState):
            ours.set_state(bad)
    assert stored(ours) == good


def test_the_state_of_other_steps_is_refused() -> None:
    state = stored(pipeline("MinMaxScaler"))
    for other in (pipeline("MaxAbsScaler"), pipeline(), pipeline("MinMaxScaler", "MinMaxScaler")):
        with pytest.raises(hinged.InvalidState):
            other.set_state(state)
    imputer = {"type": "StatImputer", "imputers": [{"feature": "age", "value": 1.0}]}
    ours = pipeline(imputer, {"type": "Select", "keys": ["age"]})
    ours.learn_transform_one(holes()[0])
    state = stored(ours)
    state["version"] = 2
    with pytest.raises(hinged.InvalidState, match="version"):
        ours.set_state(state)
