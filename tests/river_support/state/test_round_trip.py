import json
import math
import random
from collections import Counter, OrderedDict, defaultdict, deque
from typing import Any

import numpy as np
import pytest
from river import feature_extraction, linear_model, preprocessing, stats, tree

from hinged_service.river_support import state
from hinged_service.river_support.state import SCHEMA, Unencodable, digest, encode
from hinged_service.river_support.state.catalogue import classes
from hinged_service.river_support.state.naming import stored_name
from tests.river_support.state.cases import CASES


def stored(value: Any) -> Any:
    return json.loads(json.dumps(encode(value), allow_nan=False))


def decode(data: object) -> Any:
    """Return the restored object, of a type that the test knows."""
    return state.decode(data)


@pytest.mark.parametrize("events", [0, 1, 150])
@pytest.mark.parametrize("name", CASES)
def test_a_restored_object_goes_on_bit_for_bit(name: str, events: int) -> None:
    case = CASES[name]
    original = case.make()
    case.run(original, 1, events)
    before = digest(original)

    restored = decode(stored(original))

    assert type(restored) is type(original)
    assert digest(original) == digest(restored) == before
    assert case.run(restored, 151, 150) == case.run(original, 151, 150)
    assert digest(restored) == digest(original)


def test_what_is_stored_does_not_depend_on_the_order_of_keys_in_json() -> None:
    case = CASES["Pipeline"]
    original = case.make()
    case.run(original, 0, 50)
    text = json.dumps(encode(original), sort_keys=True)
    assert digest(decode(json.loads(text))) == digest(original)


def test_reading_keeps_nothing_of_the_data() -> None:
    data = stored([{"a": 1.0}, [2.0]])
    first, second = decode(data), decode(data)
    first[0]["a"] = 5.0
    first[1].append(3.0)
    assert second == [{"a": 1.0}, [2.0]] == decode(data)


PLAIN = [
    None,
    True,
    False,
    0,
    -3,
    2**900,
    0.1,
    -0.0,
    1e308,
    5e-324,
    math.inf,
    -math.inf,
    "",
    "\ud800 \x00 ☂",
    (),
    (1, (2.5, "a"), (None,)),
    frozenset({1, "a", (2,)}),
    [1, [2, []]],
    {"b": 1, "a": 2},
    {1: "a", 2.5: "b", (1, "x"): "c", False: "d", None: "e", math.inf: 3},
    {3, "a", (1, 2), None},
    deque([1, 2], maxlen=2),
    deque([1]),
    Counter({"a": 2, "b": -1}),
    OrderedDict(b=1, a=2),
    np.float32(0.1),
    np.float64(-0.0),
    np.int64(-5),
    np.uint64(2**64 - 1),
    np.bool_(True),
]


@pytest.mark.parametrize("value", PLAIN, ids=lambda value: str(type(value).__name__))
def test_plain_data_comes_back_as_it_was(value: Any) -> None:
    restored = decode(stored(value))
    assert type(restored) is type(value)
    assert repr(restored) == repr(value) or restored == value
    if isinstance(value, dict):
        assert list(restored.items()) == list(value.items())
        assert list(map(type, restored)) == list(map(type, value))


def test_nan_comes_back() -> None:
    assert math.isnan(decode(stored(math.nan)))
    assert math.isnan(decode(stored(np.float32("nan"))))


def test_arrays_come_back() -> None:
    for array in (
        np.arange(6, dtype="int32").reshape(2, 3),
        np.array([0.1, np.inf]),
        np.ones((2, 0)),
    ):
        restored = decode(stored(array))
        assert restored.dtype == array.dtype
        assert np.array_equal(restored, array)
        assert restored.shape == array.shape


def test_a_windows_bound_and_a_defaults_function_come_back() -> None:
    window = decode(stored(deque([1, 2], maxlen=2)))
    window.append(3)
    assert list(window) == [2, 3]
    table: Any = decode(stored(defaultdict(list, a=[1])))
    table["b"].append(2)
    assert table == {"a": [1], "b": [2]}


def test_random_numbers_go_on() -> None:
    source = random.Random(3)
    source.gauss(0, 1)
    restored = decode(stored(source))
    assert [restored.gauss(0, 1) for _ in range(5)] == [source.gauss(0, 1) for _ in range(5)]
    assert restored.random() == source.random()


def test_shared_parts_stay_shared_and_cycles_close() -> None:
    part: list[Any] = [1]
    whole: dict[str, Any] = {"a": part, "b": part, "mean": stats.Mean()}
    whole["again"] = whole["mean"]
    part.append(whole)
    restored = decode(stored(whole))
    assert restored["a"] is restored["b"]
    assert restored["a"][1] is restored
    assert restored["mean"] is restored["again"]


def test_a_trees_shared_splitter_stays_shared() -> None:
    case = CASES["HoeffdingTree"]
    original = case.make()
    case.run(original, 0, 300)
    restored = decode(stored(original))
    assert original.n_leaves == restored.n_leaves > 1
    leaf = next(restored._root.iter_leaves())
    assert leaf.splitter is restored.splitter


def test_a_long_chain_is_no_deep_nesting() -> None:
    chain: list[Any] = []
    for _ in range(5_000):
        chain = [chain]
    data = stored(chain)
    assert len(data["rows"]) == 5_001
    assert len(decode(data)) == 1


def test_the_schema_stands_at_the_root() -> None:
    assert encode(1)["schema"] == SCHEMA == 1


def test_every_name_names_one_class() -> None:
    names = [stored_name(kind) for kind in classes()]
    assert len(set(names)) == len(names) > 100


class Stranger:
    pass


REFUSED = [
    (Stranger(), "Stranger cannot be stored"),
    ([{"a": Stranger()}], "Stranger cannot be stored"),
    (tree.ExtremelyFastDecisionTreeClassifier(), "river.tree.*Decision.* cannot be stored"),
    (preprocessing.GaussianRandomProjector(), "river.*GaussianRandomProjector cannot be stored"),
    (defaultdict(lambda: 0), "the function .*lambda.* cannot be stored"),
    (print, "the function print cannot be stored"),
    (b"bytes", "bytes cannot be stored"),
    (2**1000, "an integer so large"),
    ({Stranger(): 1}, "Stranger cannot be stored as a key"),
    ({(Stranger(),): 1}, "Stranger cannot be stored as a key"),
    (np.array([object()]), "an array of object cannot be stored"),
    (np.datetime64("2020-01-01"), "datetime64 cannot be stored"),
    (stats, "module cannot be stored"),
]


@pytest.mark.parametrize(("value", "message"), REFUSED, ids=[m for _, m in REFUSED])
def test_a_value_without_a_stored_form_is_refused_by_name(value: Any, message: str) -> None:
    with pytest.raises(Unencodable, match=message):
        encode(value)


def test_functions_as_parameters_are_refused() -> None:
    with pytest.raises(Unencodable, match=r"the function str\.upper"):
        encode(feature_extraction.BagOfWords(preprocessor=str.upper))


def test_an_unknown_attribute_is_refused() -> None:
    scaler: Any = preprocessing.StandardScaler()
    scaler.extra = 1
    with pytest.raises(Unencodable, match="extra"):
        encode(scaler)


def test_a_deeply_nested_tuple_is_refused() -> None:
    value: Any = ()
    for _ in range(300):
        value = (value,)
    with pytest.raises(Unencodable, match="deeply nested"):
        encode(value)
    with pytest.raises(Unencodable):
        encode({value: 1})


def test_predicting_changes_no_digest() -> None:
    case = CASES["LogisticRegression-Adam"]
    model = case.make()
    case.run(model, 0, 20)
    before = digest(model)
    model.predict_proba_one({"new": 1.0, "a": 2.0})
    assert digest(model) == before
    model.learn_one({"new": 1.0}, True)
    assert digest(model) != before


def test_a_model_of_many_weights_is_quick() -> None:
    model = linear_model.LogisticRegression()
    model.learn_one({f"f{i}": float(i % 7) for i in range(50_000)}, True)
    data = encode(model)
    assert len(data["rows"]) < 20
    assert digest(decode(data)) == digest(model)
