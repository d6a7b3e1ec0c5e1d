"""The fate of features, labels, weights and ids on their way into JSON."""

import enum
import json
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from hinged_service.client import Event, Invalid
from hinged_service.client.events import encode_event, encode_question


class Color(enum.Enum):
    RED = 1


def sent(x: Any, **options: Any) -> Any:
    return json.loads(encode_question(x, **options).json)["x"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("age", "age"),
        (np.str_("age"), "age"),
        (3, "3"),
        (np.int64(-3), "-3"),
        (("free", "money"), '["free","money"]'),
        (("a", (1, "b")), '["a",[1,"b"]]'),
        ("", ""),
    ],
)
def test_names_become_text(name: Any, text: str) -> None:
    assert sent({name: 1.0}) == {text: 1.0}


@pytest.mark.parametrize("name", [None, 1.5, True, b"a", Color.RED, 2**63, ("a", None)])
def test_names_of_other_types_are_refused(name: Any) -> None:
    with pytest.raises(Invalid, match="has a name that is not text, an integer of 64 bits or"):
        sent({name: 1.0})


@pytest.mark.parametrize("x", [{1: 1.0, "1": 2.0}, {("a",): 1.0, '["a"]': 2.0}])
def test_names_that_become_one_are_refused(x: Any) -> None:
    with pytest.raises(Invalid, match="has the same text as another name"):
        sent(x)


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (3, 3.0),
        (0.1, 0.1),
        (5e-324, 5e-324),
        (-0.0, -0.0),
        (2**53 + 1, float(2**53 + 1)),
        (np.float32(0.1), float(np.float32(0.1))),
        (np.float64(0.1), 0.1),
        (np.int8(-3), -3.0),
        (np.array(2.5), 2.5),
        (Fraction(1, 4), 0.25),
        (Decimal("0.5"), 0.5),
        (True, True),
        (np.bool_(False), False),
        ("red", "red"),
        (np.str_("red"), "red"),
        (None, None),
    ],
)
def test_values_become_plain(value: Any, plain: Any) -> None:
    found = sent({"a": value})["a"]
    assert repr(found) == repr(plain)


def test_flags_can_be_numbers() -> None:
    x = {"a": True, "b": np.bool_(False), "c": "text", "d": 2}
    assert repr(sent(x, flags_are_numbers=True)) == repr(
        {"a": 1.0, "b": 0.0, "c": "text", "d": 2.0}
    )


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (float("nan"), "must be finite, not nan"),
        (float("-inf"), "must be finite"),
        (np.float32("inf"), "must be finite"),
        (10**400, "must be finite"),
        pytest.param(10**5000, "must be finite, not a very long int", id="long"),
        (1j, "must be a number"),
        (b"1", "must be a number"),
        ([1.0], "must be a number"),
        (np.array([1.0, 2.0]), "must be a number"),
        (Color.RED, "must be a number"),
    ],
)
def test_other_values_are_refused(value: Any, reason: str) -> None:
    with pytest.raises(Invalid, match=reason) as refused:
        sent({"a": value})
    assert refused.value.errors[0].field == "x['a']"
    assert refused.value.status is None


@pytest.mark.parametrize("x", [None, [1.0], "a", 3])
def test_features_that_are_no_mapping_are_refused(x: Any) -> None:
    with pytest.raises(Invalid, match="x must be a mapping"):
        sent(x)


@pytest.mark.parametrize(
    ("y", "plain"),
    [
        (True, True),
        (np.bool_(True), True),
        (1, 1),
        (np.int32(7), 7),
        (np.uint8(7), 7),
        ("spam", "spam"),
        (np.str_("spam"), "spam"),
    ],
)
def test_labels_keep_their_type(y: Any, plain: Any) -> None:
    found = json.loads(encode_event(({}, y)).json)["y"]
    assert (found, type(found)) == (plain, type(plain))


@pytest.mark.parametrize("y", [None, 1.0, np.float64(1.0), b"spam", ("a",), Color.RED, 2**63])
def test_other_labels_are_refused(y: Any) -> None:
    with pytest.raises(Invalid, match="y must be a boolean, an integer of 64 bits or text"):
        encode_event(({}, y))


@pytest.mark.parametrize("w", ["1", None, float("nan"), float("inf"), 1j])
def test_other_weights_are_refused(w: Any) -> None:
    with pytest.raises(Invalid, match="w must be a finite number"):
        encode_event(({}, True, w))


@pytest.mark.parametrize("name", [3, b"a", 1.5])
def test_other_ids_are_refused(name: Any) -> None:
    with pytest.raises(Invalid, match="id must be text"):
        encode_event(Event({}, True, id=name))
    with pytest.raises(Invalid, match="id must be text"):
        encode_question({}, name)


def test_every_event_gets_an_id_of_its_own() -> None:
    ids = {encode_event(({}, True)).id for _ in range(1_000)}
    assert len(ids) == 1_000
    assert encode_event(Event({}, True, id="mine")).id == "mine"


def test_text_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(Invalid, match="not valid Unicode"):
        sent({"\ud800": 1.0})
