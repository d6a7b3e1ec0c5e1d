"""A batch is the sequence of its rows, in every kind of frame.

One file: the same rows go through every kind of frame.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import pickle
import random
import subprocess
import sys
from decimal import Decimal
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from river import datasets

from hinged import (
    AROW,
    HingeSGD,
    InvalidEvent,
    LinearClassifier,
    LinearUnit,
    MulticlassPerceptron,
    Perceptron,
)
from hinged.checks import plain_state as everything

Event = tuple[dict[str, float], bool]
FRAMES = {"pandas": (pd.DataFrame, pd.Series), "polars": (pl.DataFrame, pl.Series)}


@pytest.fixture(params=FRAMES, name="kind")
def kind_of_frame(request: pytest.FixtureRequest) -> Any:
    return FRAMES[request.param]


def total(model: Perceptron) -> tuple[dict[Any, float], float, Any]:
    return dict(model.weights), model.intercept, model.accounting


numbers = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e3, 1e3))
tables = st.lists(
    st.tuples(numbers, numbers, numbers, st.booleans(), st.sampled_from([1.0, 0.0, 0.25, 3.0])),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(tables, st.integers(1, 9), st.sampled_from(sorted(FRAMES)))
def test_any_chunking_equals_single_calls(table: list[Any], chunk: int, kind: str) -> None:
    frame, series = FRAMES[kind]
    one, many = Perceptron(0.3), Perceptron(0.3)
    for a, b, c, y, w in table:
        one.learn_one({"a": a, "b": b, "c": c}, y, w)
    for start in range(0, len(table), chunk):
        part = table[start : start + chunk]
        X = frame({n: [row[i] for row in part] for i, n in enumerate("abc")})
        many.learn_many(X, series([r[3] for r in part]), series([r[4] for r in part]))
    assert total(one) == total(many)


def test_the_second_row_meets_what_the_first_taught(kind: Any) -> None:
    frame, series = kind
    model = Perceptron()
    model.learn_many(frame({"a": [1, 1]}), series([True, True]))
    assert (dict(model.weights), model.intercept) == ({"a": 1.0}, 1.0)
    assert model.accounting.updates == 1
    model = Perceptron()
    model.learn_many(frame({"a": [1, 3]}), series([True, True]))
    assert (dict(model.weights), model.intercept) == ({"a": 1.0}, 1.0)


@pytest.mark.parametrize("chunk", [1, 7, 500])
def test_electricity_in_chunks(elec: list[Event], chunk: int, kind: Any) -> None:
    frame, series = kind
    one, many = Perceptron(), Perceptron()
    for x, y in elec[:500]:
        one.learn_one(x, y)
    for start in range(0, 500, chunk):
        part = elec[start : min(start + chunk, 500)]
        many.learn_many(
            frame({n: [x[n] for x, _ in part] for n in part[0][0]}), series([y for _, y in part])
        )
    assert total(one) == total(many)


def test_weights_belong_to_names_not_to_columns() -> None:
    rows = list(datasets.Phishing().take(200))
    X = pd.DataFrame([x for x, _ in rows])
    y = pd.Series([label for _, label in rows])
    plain, turned, wider = Perceptron(), Perceptron(), Perceptron()
    plain.learn_many(X, y)
    turned.learn_many(X[list(reversed(X.columns))], y)
    wider.learn_many(X.assign(extra=0.0), y)
    for name, weight in plain.weights.items():
        assert turned.weights[name] == pytest.approx(weight, abs=1e-9)
        assert wider.weights[name] == weight
    assert wider.weights["extra"] == 0.0


SCRIPT = """
import pickle, sys
import pandas as pd
model, X, y = pickle.load(sys.stdin.buffer)
model.learn_many(X, y)
sys.stdout.buffer.write(pickle.dumps((dict(model.weights), model.intercept, model.accounting)))
"""


@pytest.mark.parametrize("seed", ["0", "1", "12345"])
def test_another_process_with_another_hash_seed_goes_on_alike(seed: str) -> None:
    rows = list(datasets.Phishing().take(200))
    X = pd.DataFrame([x for x, _ in rows])
    y = pd.Series([label for _, label in rows])
    model = Perceptron(0.1)
    model.learn_many(X[:100], y[:100])
    answer = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=pickle.dumps((model, X[100:], y[100:])),
        env={**os.environ, "PYTHONHASHSEED": seed},
        stdout=subprocess.PIPE,
        check=True,
    )
    model.learn_many(X[100:], y[100:])
    assert pickle.loads(answer.stdout) == total(model)


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({"a": pd.array([2, None], dtype="Int64"), "b": [1.0, 1.0]}),
        pd.DataFrame({"a": pd.array([2.0, None], dtype="Float64"), "b": [1.0, 1.0]}),
        pd.DataFrame({"a": pd.Series([2.0, None], dtype=object), "b": [True, True]}),
        pd.DataFrame({"a": pd.Series([2.0, pd.NA], dtype=object), "b": [1, 1]}),
        pl.DataFrame({"a": [2, None], "b": [1.0, 1.0]}),
        pl.DataFrame({"a": [2.0, None], "b": [True, True]}),
    ],
)
def test_null_is_an_absent_feature(X: Any) -> None:
    model = Perceptron()
    model.learn_many(X, [True, False])
    assert (dict(model.weights), model.intercept) == ({"a": 2.0, "b": 0.0}, 0.0)


@pytest.mark.parametrize("bad", [math.inf, -math.inf])
def test_infinity_is_refused_before_the_first_row(bad: float, kind: Any) -> None:
    frame, series = kind
    model = Perceptron()
    with pytest.raises(InvalidEvent) as refusal:
        model.learn_many(frame({"a": [1.0, bad]}), series([True, True]))
    assert refusal.value.field == "row 1: x['a']"
    assert total(model) == total(Perceptron())


HOLED: list[Any] = [
    pd.DataFrame({"a": [1.0, math.nan, 3.0, 0.5], "b": [math.nan, math.nan, -1.0, 2.0]}),
    pd.DataFrame({"a": [1.0, None, 3.0, 0.5], "b": [None, math.nan, -1.0, 2.0]}, dtype=object),
    pd.DataFrame({"a": [1.0, None, 3.0, 0.5], "b": [None, None, -1.0, 2.0]}, dtype="Float64"),
    pl.DataFrame({"a": [1.0, math.nan, 3.0, 0.5], "b": [math.nan, math.nan, -1.0, 2.0]}),
    pl.DataFrame({"a": [1.0, None, 3.0, 0.5], "b": [None, math.nan, -1.0, 2.0]}),
    pa.table({"a": [1.0, math.nan, 3.0, 0.5], "b": [None, math.nan, -1.0, 2.0]}),
]


@pytest.mark.parametrize("X", HOLED, ids=lambda X: f"{type(X).__module__.split('.')[0]}")
def test_nan_is_an_absent_feature_for_every_learner(learner: LinearClassifier, X: Any) -> None:
    rows: list[dict[str, float]] = [{"a": 1.0}, {}, {"a": 3.0, "b": -1.0}, {"a": 0.5, "b": 2.0}]
    y = ["A", "B", "C", "A"] if learner._multiclass else [True, False, True, False]
    one: Any = learner.clone()
    many: Any = learner.clone()
    for x, label in zip(rows, y, strict=True):
        one.learn_one(x, label)
    many.learn_many(X, y)
    assert everything(many) == everything(one)
    assert list(many.predict_many(X).to_numpy()) == [one.predict_one(x) for x in rows]
    probas = many.predict_proba_many(X)
    for label in ("A", "B", "C") if learner._multiclass else (False, True):
        column = probas[label if isinstance(X, pd.DataFrame) else str(label)]
        assert list(column.to_numpy()) == [one.predict_proba_one(x)[label] for x in rows]


@pytest.mark.parametrize(
    ("y", "w", "field"),
    [
        ([True, 2], 1.0, "row 1: y"),
        ([True, math.nan], 1.0, "row 1: y"),
        ([True, False], [1.0, math.nan], "row 1: w"),
        ([True, None], 1.0, "row 1: y"),
        (["true", "false"], 1.0, "row 0: y"),
        (pd.array([True, None], dtype="boolean"), 1.0, "row 1: y"),
        ([True], 1.0, "y"),
        (True, 1.0, "y"),
        ("10", 1.0, "y"),
        ([True, False], [1.0], "w"),
        ([True, False], [1.0, -1.0], "row 1: w"),
        ([True, False], np.array([math.nan, 1.0]), "row 0: w"),
        ([True, False], -1, "row 0: w"),
        ([True, False], "1", "row 0: w"),
        ([True, False], None, "row 0: w"),
    ],
)
def test_bad_labels_and_weights_are_refused_before_the_first_row(
    y: Any, w: Any, field: str
) -> None:
    model = Perceptron()
    with pytest.raises(InvalidEvent) as refusal:
        model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), y, w)
    assert refusal.value.field == field
    assert total(model) == total(Perceptron())


@pytest.mark.parametrize(
    "X",
    [
        *(None, [{"a": 1.0}], np.ones((1, 2)), pl.LazyFrame({"a": [1.0]})),
        pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]),
    ],
)
def test_an_object_that_is_not_a_frame_in_memory_is_refused(X: Any) -> None:
    with pytest.raises(InvalidEvent) as refusal:
        Perceptron().learn_many(X, [True])
    assert refusal.value.field == "X"


@pytest.mark.parametrize("names", [[0, 1], [("a", 1), ("a", 2)], [0, "0"]])
def test_columns_may_have_any_names(names: list[Any]) -> None:
    X = pd.DataFrame([[1.0, 2.0]])
    X.columns = pd.Index(names, dtype=object)
    model = Perceptron()
    model.learn_many(X, [True])
    assert dict(model.weights) == dict(zip(names, [1.0, 2.0], strict=True))


def test_empty_batches() -> None:
    model = Perceptron()
    model.learn_many(pd.DataFrame({"a": []}), pd.Series([], dtype=bool))
    assert total(model) == total(Perceptron())
    model.learn_many(pd.DataFrame(index=[0, 1]), [True, True])
    assert (dict(model.weights), model.intercept) == ({}, 1.0)
    assert model.accounting.events == 2


@pytest.mark.parametrize("index", [[], [7, 3, 7], ["x", "y", "z"]])
def test_answers_keep_index_and_length(index: list[Any]) -> None:
    X = pd.DataFrame({"a": [float(i) for i in range(len(index))]}, index=index)
    model = Perceptron()
    labels = model.predict_many(X)
    assert labels.tolist() == [False] * len(index)
    assert list(labels.index) == index
    probas = model.predict_proba_many(X)
    assert list(probas.columns) == [False, True]
    assert probas.to_numpy().tolist() == [[0.5, 0.5]] * len(index)
    assert list(probas.index) == index


def test_polars_answers_in_polars() -> None:
    model = Perceptron()
    model.learn_one({"a": 1.0}, True)
    X = pl.DataFrame({"a": [1.0, -3.0]})
    assert model.predict_many(X).to_list() == [True, False]
    probas = model.predict_proba_many(X)
    assert probas.columns == ["False", "True"]
    assert probas["True"].to_list() == [model.predict_proba_one({"a": v})[True] for v in (1, -3)]


BOOLEANS: list[tuple[str, Any]] = [
    ("arrow", pa.array([True, False, True])),
    ("arrow chunks", pa.chunked_array([[True], [False, True]])),
    ("arrow integers", pa.array([1, 0, 1], pa.uint8())),
    ("arrow floats", pa.array([1.0, 0.0, 1.0], pa.float32())),
    ("arrow dictionary", pa.array([1, 0, 1]).dictionary_encode()),
    ("arrow scalars", [pa.scalar(True), pa.scalar(0), pa.scalar(1.0)]),
    ("pandas nullable", pd.array([True, False, True], dtype="boolean")),
    ("pandas of arrow", pd.Series([True, False, True], dtype="bool[pyarrow]")),
    ("pandas integers", pd.Series([1, 0, 1], dtype="Int64")),
    ("pandas categories", pd.Series([True, False, True], dtype="category")),
    ("polars integers", pl.Series([1, 0, 1])),
    ("numpy scalars", [np.bool_(True), np.int64(0), np.float32(1.0)]),
]
TEXTS: list[tuple[str, Any]] = [
    ("arrow", pa.array(["b", "a", "b"])),
    ("large", pa.array(["b", "a", "b"], pa.large_string())),
    ("arrow chunks", pa.chunked_array([["b"], [], ["a", "b"]])),
    ("arrow dictionary", pa.array(["b", "a", "b"]).dictionary_encode()),
    (
        "dictionaries by chunk",
        pa.chunked_array([pa.array(part).dictionary_encode() for part in (["b"], ["a", "b"])]),
    ),
    ("pandas", pd.Series(["b", "a", "b"])),
    ("pandas of arrow", pd.Series(["b", "a", "b"], dtype="string[pyarrow]")),
    ("pandas categories", pd.Series(["b", "a", "b"], dtype="category")),
    ("categorical", pd.Categorical(["b", "a", "b"])),
    ("polars categories", pl.Series(["b", "a", "b"], dtype=pl.Categorical())),
    ("polars enum", pl.Series(["b", "a", "b"], dtype=pl.Enum(["a", "b"]))),
    ("numpy", np.array(["b", "a", "b"])),
]
INTEGERS: list[tuple[str, Any]] = [
    ("arrow", pa.array([2, 1, 2], pa.int16())),
    ("arrow dictionary", pa.array([2, 1, 2]).dictionary_encode()),
    ("pandas nullable", pd.Series([2, 1, 2], dtype="Int64")),
    ("pandas categories", pd.Series([2, 1, 2], dtype="category")),
    ("polars", pl.Series([2, 1, 2], dtype=pl.UInt8)),
    ("numpy", np.array([2, 1, 2], dtype=np.int32)),
]
THREE = {"a": [1.0, 2.0, -3.0], "b": [0.5, 0.0, 1.0]}


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pd", "pl", "pa"])
def test_labels_of_any_library_are_learned_as_plain_python(
    learner: LinearClassifier, make: Any
) -> None:
    series: list[tuple[Any, list[Any]]] = [(BOOLEANS, [True, False, True])]
    if learner._multiclass:
        series = [(TEXTS, ["b", "a", "b"]), (INTEGERS, [2, 1, 2])]
    for kinds, plain in series:
        one: Any = learner.clone()
        for row, y in enumerate(plain):
            one.learn_one({name: values[row] for name, values in THREE.items()}, y)
        for kind, labels in kinds:
            many: Any = learner.clone()
            many.learn_many(make(THREE), labels)
            assert repr(everything(many)) == repr(everything(one)), kind
            json.dumps(many.get_state().get("classes"))
            many.learn_many(make(THREE), plain)


@pytest.mark.parametrize(
    "signs",
    [
        *([1, -1, 1], [1.0, -1.0, 1.0], (1, -1, True), np.array([1, -1, 1], dtype=np.int8)),
        *(pd.Series([1, -1, 1], dtype="Int64"), pd.Series([1.0, -1.0, 1.0], dtype="category")),
        *(pl.Series([1, -1, 1]), pa.array([1, -1, 1]), pa.array([1.0, -1.0, 1.0])),
    ],
    ids=lambda y: f"{type(y).__module__}.{type(y).__name__}",
)
def test_signs_are_labels_of_every_binary_learner(binary: LinearClassifier, signs: Any) -> None:
    by_truth, by_sign, many = binary.clone(), binary.clone(), binary.clone()
    for row, y in enumerate([True, False, True]):
        x = {name: values[row] for name, values in THREE.items()}
        outcome = by_sign.predict_learn_one(x, 1 if y else -1.0)
        assert outcome == by_truth.predict_learn_one(x, y)
        assert type(outcome.y_pred) is bool
    many.learn_many(pd.DataFrame(THREE), signs)
    assert repr(everything(many)) == repr(everything(by_sign)) == repr(everything(by_truth))
    assert {type(many.predict_one({"a": a})) for a in (-5.0, 5.0)} == {bool}
    for bad in (2, 0.5, math.nan, "-1"):
        with pytest.raises(InvalidEvent, match=r"row 1: y must be .* 1 or -1"):
            many.learn_many(pd.DataFrame(THREE), [1, bad, -1])


NULLS: list[Any] = [
    *(pa.nulls(1), pa.array([None], pa.bool_()), pa.array([None], pa.string())),
    *(pa.array([None], pa.string()).dictionary_encode(), [pa.scalar(None, pa.int8())]),
    *(pd.array([None], dtype="boolean"), pd.array([None], dtype="Int64")),
    *(pd.Series([None], dtype="string"), pd.Series([None], dtype="bool[pyarrow]")),
    *(pd.Series([None], dtype="category"), pd.Series([math.nan]), pd.Series([pd.NaT])),
    *(pl.Series([None], dtype=pl.Boolean), pl.Series([None], dtype=pl.Categorical())),
    *([None], [np.float64("nan")], np.array([None])),
]


def test_a_null_label_is_refused_with_its_row(learner: LinearClassifier) -> None:
    model = learner.clone()
    for null in NULLS:
        labels = [*(["A", "B"] if learner._multiclass else [True, False]), *null]
        with pytest.raises(InvalidEvent, match="row 2: y must be"):
            model.learn_many(pa.table(THREE), labels)
        with pytest.raises(InvalidEvent, match="row 0: y must be"):
            model.learn_many(pa.table({"a": [1.0]}), null)
    assert model.accounting.events == 0


def test_nulls_among_labels_of_arrow_are_refused_with_their_row() -> None:
    for kind, labels in (
        (Perceptron(), pa.array([True, None, False])),
        (Perceptron(), np.ma.array([True, True, False], mask=[False, True, False])),
        (AROW(), pa.chunked_array([[True, None], [False]])),
        (MulticlassPerceptron(), pa.array(["a", None, "b"]).dictionary_encode()),
    ):
        with pytest.raises(InvalidEvent, match="row 1: y must be"):
            kind.learn_many(pa.table(THREE), labels)
        assert kind.accounting.events == 0


@pytest.mark.parametrize(
    "w",
    [
        *(pa.array([1, 2, 0]), pa.chunked_array([[1.0], [2.0, 0.0]])),
        *(pa.array([1, 2, 0]).dictionary_encode(), pa.array([1, 2, 0]).cast(pa.decimal128(21, 2))),
        *(pd.Series([1, 2, 0], dtype="Int8"), pd.Series([1, 2, 0], dtype="double[pyarrow]")),
        *(pd.Series([1, 2, 0], dtype="category"), pl.Series([1, 2, 0], dtype=pl.Float32)),
        *(np.array([1, 2, 0]), [pa.scalar(1), np.float16(2), 0]),
    ],
    ids=lambda w: f"{type(w).__module__}.{type(w).__name__}",
)
def test_sample_weights_of_any_library(w: Any) -> None:
    for kind, labels in (
        (LinearUnit(), [True, False, True]),
        (MulticlassPerceptron(), ["b", "a", "b"]),
    ):
        one, many = kind.clone(), kind.clone()
        for row, (y, weight) in enumerate(zip(labels, [1.0, 2.0, 0.0], strict=True)):
            one.learn_one({name: values[row] for name, values in THREE.items()}, y, weight)
        many.learn_many(pa.table(THREE), labels, w)
        assert repr(everything(one)) == repr(everything(many))
    model = LinearUnit()
    for null in (pa.array([1.0, None, 1.0]), pd.array([1.0, None, 1.0], dtype="Float64")):
        with pytest.raises(InvalidEvent, match="row 1: w must be"):
            model.learn_many(pa.table(THREE), [True, False, True], null)
    assert model.accounting.events == 0


def test_one_sample_weight_of_any_library() -> None:
    one = LinearUnit()
    one.learn_one({"a": 1.0}, True, 0.5)
    weights: list[Any] = [pa.scalar(0.5), np.float32(0.5), np.array(0.5), Decimal("0.5")]
    for w in weights:
        many, single = LinearUnit(), LinearUnit()
        many.learn_many(pa.table({"a": [1.0]}), [True], w)
        single.learn_one({"a": 1.0}, True, w)
        assert everything(many) == everything(single) == everything(one)


def test_a_single_label_of_any_library(learner: LinearClassifier) -> None:
    pairs: list[tuple[Any, Any]] = [(True, np.bool_(True)), (True, pa.scalar(True))]
    if learner._multiclass:
        pairs += [("b", np.str_("b")), ("b", pa.scalar("b")), (7, np.uint8(7)), (7, pa.scalar(7))]
    else:
        pairs += [(False, np.float32(0)), (False, pa.scalar(0, pa.int8())), (True, np.array(1))]
    for plain, scalar in pairs:
        one, other = learner.clone(), learner.clone()
        one.learn_one({"a": 1.0}, plain)
        other.learn_one({"a": 1.0}, scalar)
        assert repr(everything(one)) == repr(everything(other))
    refused: list[Any] = [np.array([1]), np.array(["a", "b"]), np.float64(0.5)]
    for bad in [*refused, pa.scalar(None, pa.string())]:
        with pytest.raises(InvalidEvent, match=r"^y must be"):
            learner.clone().learn_one({"a": 1.0}, bad)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pd", "pl", "pa"])
def test_a_frame_is_no_series_of_labels(make: Any) -> None:
    with pytest.raises(InvalidEvent, match=r"^y must be a series"):
        MulticlassPerceptron().learn_many(make({"a": [1.0]}), make({"label": ["b"]}))


def test_two_types_of_label_in_one_batch_are_refused(multiclass: LinearClassifier) -> None:
    model = multiclass.clone()
    with pytest.raises(InvalidEvent, match="row 2: y must be of type int"):
        model.learn_many(pd.DataFrame({"a": [1.0, 2.0, 3.0]}), [1, 2, "1"])
    assert model.accounting.events == 0


def test_multiclass_answers_before_learning(multiclass: LinearClassifier) -> None:
    model: Any = multiclass.clone()
    for index in ([], [5, 6, 5]):
        X = pd.DataFrame({"a": [1.0] * len(index)}, index=index)
        labels = model.predict_many(X)
        assert labels.tolist() == [None] * len(index)
        assert list(labels.index) == index
        assert model.predict_proba_many(X).shape == (len(index), 0)


exact = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-1e6, 1e6),
    st.sampled_from([0.0, -0.0, 0.1, 1e-300, 5e-324]),
)
plain_tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.tuples(st.lists(exact, min_size=width, max_size=width), st.booleans()),
        min_size=1,
        max_size=60,
    )
)


@settings(max_examples=200, deadline=None)
@given(
    plain_tables,
    st.integers(1, 30),
    st.sampled_from(
        [
            {},
            {"learning_rate": 0.1, "margin": 0.5},
            {"fit_intercept": False},
            {"update_on": "mistake", "label_at_zero": True},
            {"update_on": "mistake"},
            {"initial_weights": {"c1": 0.25, "other": -3.0}, "initial_intercept": -0.1},
        ]
    ),
    st.sampled_from(sorted(FRAMES)),
)
def test_whole_tables_give_the_very_bits_of_single_calls(
    rows: list[tuple[list[float], bool]], chunk: int, params: dict[str, Any], kind: str
) -> None:
    frame, series = FRAMES[kind]
    names = [f"c{i}" for i in range(len(rows[0][0]))]
    one, many = Perceptron(**params), Perceptron(**params)
    vectors = [model.get_state()["vectors"]["weights"] for model in (one, many)]
    for vector in vectors:
        vector.track()
    for values, y in rows:
        one.learn_one(dict(zip(names, values, strict=True)), y)
    for start in range(0, len(rows), chunk):
        part = rows[start : start + chunk]
        X = frame({n: [values[i] for values, _ in part] for i, n in enumerate(names)})
        many.learn_many(X, series([y for _, y in part]))
    assert repr(everything(one)) == repr(everything(many))
    assert vectors[0].take_changed() == vectors[1].take_changed()


def test_tables_near_overflow_are_learned_row_by_row() -> None:
    values = [1e200, -1.5e308, 1.5e308, 1e308]
    labels = [True, False, True, False]
    one, many = Perceptron(), Perceptron()
    for value, y in zip(values, labels, strict=True):
        one.learn_one({"a": value}, y)
    many.learn_many(pd.DataFrame({"a": values}), pd.Series(labels))
    assert repr(everything(one)) == repr(everything(many))


@pytest.mark.parametrize(
    "dtypes",
    [
        *itertools.permutations(["float32", "int16", "int64", "uint64", "bool"], 2),
        ("float16", "uint8"),
        ("Int64", "float64"),
        ("Sparse[float64]", "int8"),
    ],
)
def test_tables_of_two_number_types(dtypes: tuple[str, str]) -> None:
    chance = random.Random(5)
    values = [[chance.choice([0, 1, 3, 7]) for _ in dtypes] for _ in range(60)]
    frame = pd.DataFrame(values, columns=["a", "b"]).astype(
        dict(zip(["a", "b"], dtypes, strict=True))
    )
    if dtypes[0].endswith("64"):
        frame.loc[0, "a"] = 2**53 + 1 if "int" in dtypes[0].lower() else 0.1
    labels = pd.Series([chance.random() < 0.5 for _ in values])
    many, one = Perceptron(), Perceptron()
    many.learn_many(frame, labels)
    for a, b, y in zip(frame["a"], frame["b"], labels, strict=True):
        one.learn_one({"a": float(a), "b": float(b)}, y)
    assert dict(many.weights) == dict(one.weights)
    assert many.accounting == one.accounting


@pytest.mark.parametrize("dtype", ["int64", "float32", "bool", "uint8", "Int64", "object"])
def test_tables_of_any_number_type(dtype: str) -> None:
    X = pd.DataFrame({"a": [1, 0, 1, 1], "b": [1, 1, 0, 1]}).astype(dtype)
    labels = [True, False, False, True]
    one, many = Perceptron(), Perceptron()
    for (a, b), y in zip(X.astype(float).to_numpy().tolist(), labels, strict=True):
        one.learn_one({"a": a, "b": b}, y)
    many.learn_many(X, pd.Series(labels))
    assert repr(everything(one)) == repr(everything(many))


class HalfSteps(Perceptron):
    def _update(self, x: Any, target: float, margin: float, norm: float, w: float) -> bool:
        return super()._update(x, target, margin, norm, 0.5 * w)


class OnlyFirst(Perceptron):
    def learn_one(self, x: Any, y: Any, w: float = 1.0) -> None:
        super().learn_one({"a": x["a"]}, y, w)


class Doubled(Perceptron):
    def _raw_score(self, x: Any) -> float:
        return super()._raw_score(x) + 1.0


class DoubledDescent(HingeSGD):
    def _raw_score(self, x: Any) -> float:
        return super()._raw_score(x) + 1.0


class Turned(Perceptron):
    def _learn(self, x: Any, y: Any, w: float) -> Any:
        return super()._learn(x, not y, w)


class Still(Perceptron):
    def _move(self, x: Any, step: float, norm: float) -> bool:
        return super()._move(x, min(step, 0.5), norm)


class TieIsTrue(Perceptron):
    label_at_zero = True

    def __init__(self) -> None:
        super().__init__(update_on="mistake", label_at_zero=True)


class Heavier(Perceptron):
    def check_weight(self, w: Any) -> float:
        return 3.0 * super().check_weight(w)


class EagerAROW(AROW):
    def _update(self, x: Any, target: float, margin: float, norm: float, w: float) -> bool:
        return super()._update(x, target, margin, norm, 2.0 * w)


@pytest.mark.parametrize(
    "kind", [HalfSteps, OnlyFirst, Doubled, DoubledDescent, Turned, Still, TieIsTrue, EagerAROW]
)
@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pd", "pl", "pa"])
def test_a_rule_changed_by_a_subclass_is_the_rule_of_tables_too(kind: Any, make: Any) -> None:
    chance = random.Random(3)
    table = {name: [chance.gauss(0.0, 1.0) for _ in range(40)] for name in "ab"}
    labels = [chance.random() < 0.5 for _ in range(40)]
    one, many, plain = kind(), kind(), kind.__base__()
    for a, b, y in zip(table["a"], table["b"], labels, strict=True):
        one.learn_one({"a": a, "b": b}, y)
        plain.learn_one({"a": a, "b": b}, y)
    many.learn_many(make(table), np.array(labels))
    assert everything(many) == everything(one) != everything(plain)


def test_sample_weights_as_a_subclass_has_them() -> None:
    for w in (1.0, [1.0, 2.0, 0.5]):
        one, many = Heavier(), Heavier()
        for row, y in enumerate([True, False, True]):
            weight = w if isinstance(w, float) else w[row]
            one.learn_one({name: values[row] for name, values in THREE.items()}, y, weight)
        many.learn_many(pd.DataFrame(THREE), np.array([True, False, True]), w)
        assert everything(many) == everything(one)
