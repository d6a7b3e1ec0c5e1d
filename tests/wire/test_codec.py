"""Names, numbers and states go through Redis as text and come back as they were."""

import itertools
import json
import math
from typing import Any

import pytest
import redis
from hypothesis import given
from hypothesis import strategies as st

from hinged_service.wire.codec import (
    DamagedState,
    decode_name,
    decode_state,
    decode_value,
    encode_name,
    encode_state,
    place,
)
from hinged_service.wire.position import Mark, Position
from tests.support.engine import fold_of, stored_state, worker

names = st.recursive(
    st.text(st.characters(exclude_categories=["Cs"]))
    | st.integers()
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda parts: st.lists(parts, max_size=3).map(tuple),
    max_leaves=5,
)
POSITION = Position("123-4", "ab" * 20)

EDGES = [
    *(1e-300, 5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 0.1 + 0.2, 1 / 3, 1e16),
    *(0.0, -0.0, 1e22, 1e23, 9007199254740993.0, 2.2250738585072014e-308, 1e-18, 123456789.123),
]


def same(a: Any, b: Any) -> bool:
    """Equal in type and bits, so that 1, 1.0, True and -0.0 are told apart."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and repr(a) == repr(b)


@given(names)
def test_every_name_comes_back(name: Any) -> None:
    assert same(decode_name(encode_name(name)), name)


@given(names, names)
def test_different_names_are_stored_under_different_fields(a: Any, b: Any) -> None:
    assert (encode_name(a) == encode_name(b)) == same(a, b)


@pytest.mark.parametrize("name", [math.nan, math.inf, object(), b"bytes", frozenset({1}), (1, b"")])
def test_names_that_would_not_come_back_are_refused(name: Any) -> None:
    with pytest.raises(TypeError, match="cannot be stored"):
        encode_name(name)


@pytest.mark.parametrize(
    "field", ["\0json:", "\0json:{}", '\0json:["a",{}]', "\0json:" + "[" * 9999]
)
def test_a_damaged_name_is_refused(field: str) -> None:
    with pytest.raises(DamagedState):
        decode_name(field)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_comes_back_bit_for_bit(value: float) -> None:
    assert decode_value(repr(value)).hex() == value.hex()


@pytest.mark.parametrize(
    "text", ["nan", "inf", "-inf", "1e999", "", "x", "1,5", "0x10", "__import__"]
)
def test_a_weight_that_is_not_finite_is_refused(text: str) -> None:
    with pytest.raises(DamagedState):
        decode_value(text)


async def test_weights_at_the_edges_of_floats_live_through_redis(
    redis_url: str, db: redis.Redis
) -> None:
    """Written by one worker, read by a client of any kind and by another worker, bit for bit."""
    weights = {f"w{i}": value for i, value in enumerate(EDGES)}

    async with worker(redis_url) as one, worker(redis_url) as two:
        await one.create("m")
        small = {name: v for name, v in weights.items() if abs(v) <= 1e100}
        await one.learn("m", {"x": small, "y": True})
        await one.learn("m", {"x": {"a": 0.1}, "y": False}, {"x": {"a": 0.2}, "y": False})
        await one.learn("m", {"x": {"tiny": 5e-324, "a": 1e-18}, "y": True, "w": 0.3})
        await one.save("m")
        assert stored_state(db) == fold_of(db) == await one.state("m")
        assert await two.state("m") == fold_of(db)
        learner: Any = (await two.open("m")).state.learner
        loaded = learner.weights
        for name, value in small.items():
            # a tie moves every weight by the value: from 0.0 to it, -0.0 to 0.0
            assert loaded[name].hex() == (0.0 + value).hex()


def _fields(**changes: Any) -> dict[str, str]:
    parts: dict[str, Any] = {
        "position": POSITION,
        "scalars": {"intercept": 0.1 + 0.2, "events": 3},
        "sizes": {"weights": 2},
        "marks": [Mark("1-0", 7, 3)],
    }
    return encode_state(**(parts | changes))


def test_a_state_comes_back() -> None:
    state = decode_state(_fields())
    assert state.position == POSITION
    assert state.scalars == {"intercept": 0.30000000000000004, "events": 3}
    assert (state.sizes, state.marks) == ({"weights": 2}, [Mark("1-0", 7, 3)])


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_state_that_is_not_finite_is_not_written(value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        _fields(scalars={"intercept": value})


def test_no_field_of_a_state_can_be_lost_changed_added_or_swapped() -> None:
    whole = _fields()
    for name in whole:
        for damaged in (
            {k: v for k, v in whole.items() if k != name},
            whole | {name: whole[name] + " "},
            whole | {name: ""},
        ):
            with pytest.raises(DamagedState):
                decode_state(damaged)
    with pytest.raises(DamagedState):
        decode_state(whole | {"more": ""})
    for a, b in itertools.combinations(whole, 2):
        with pytest.raises(DamagedState):
            decode_state(whole | {a: whole[b], b: whole[a]})


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "1-0", "1-0.", f"1-0.{'g' * 40}", f"1-0.{'a' * 39}", f"1.{'a' * 40}"),
        *(f"-1-0.{'a' * 40}", f"1-0.{'A' * 40}", f"{'9' * 21}-0.{'a' * 40}", f"1-0.{'a' * 40}\n"),
        f"١-0.{'a' * 40}",
    ],
)
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a position"):
        Position.parse(text)


def test_positions_are_ordered_as_numbers() -> None:
    ids = ["9-1", "9-2", "9-10", "10-0", "100-0", "1700000000000-0"]
    orders = [Position(i, "").order for i in ids]
    assert orders == sorted(orders)
    assert Position.parse(str(POSITION)) == POSITION


def test_vectors_of_members_within_members_are_told_apart() -> None:
    names = ["0/weights/3", "0/3/weights", "1/weights/3", "1/0/weights/3", "0/weights"]
    places = [place(name, {"classes": ["a"]} if name.count("/") > 1 else {}) for name in names]
    assert {kind for kind, _ in places} == {"weights"}
    assert len(set(places)) == len(names)


@pytest.mark.parametrize(
    ("vector", "learner"),
    [
        ("other", {}),
        ("weights/x", {}),
        ("0/weights/x", {}),
        ("0/1", {}),
        ("weights/1", {"classes": ["A"]}),
        ("weights/0", {"classes": {}}),
        ("weights/0", {"classes": 3}),
        ("weights/0", {"classes": [["A"]]}),
        ("weights/0", {"classes": [None]}),
    ],
)
def test_a_vector_that_no_learner_has_is_damage(vector: str, learner: dict[str, Any]) -> None:
    with pytest.raises(DamagedState):
        place(vector, learner)


def test_a_state_written_in_pieces_reads_as_written_at_once() -> None:
    terms = [[f"t{i}", i] for i in range(2_500)]
    scalars: dict[str, Any] = {
        "b": [1, 2.5, None, True, 'é\n"', {}],
        "a": {"x": terms, "": [[["n", 0, terms]]]},
    }
    scalars |= {"c": list(range(70)), "d": [], "e": {"": {}}, "f": [5e-324, -0.0]}
    written = encode_state(Position("1-0", "0" * 40), scalars, {}, [])["scalars"]
    assert written == json.dumps(scalars, allow_nan=False, sort_keys=True)
