"""Bodies of events, damaged by the thousand: read as every JSON reader reads them, or refused."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import msgspec
import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hinged_service.api.open_inference.tensors import Tensor, rows
from hinged_service.errors import Malformed, ServiceError, TooLarge, Unprocessable
from hinged_service.wire.decoding import (
    completed,
    parse_events,
    parse_joined,
    parse_log,
    parse_questions,
    sent_features,
)
from hinged_service.wire.dedup import mark
from hinged_service.wire.events import Event
from hinged_service.wire.faults import MAX_DETAILS
from tests.fuzz.budget import tries
from tests.fuzz.damage import ODD, damaged_bytes, damaged_json, text_of

SEEDS = [
    b'{"x":{"a":1,"b":-2.5},"y":true,"id":"e1"}',
    b'[{"x":{"a":1e3},"y":false,"w":0.5},{"x":{},"y":"ham","id":"e2"}]',
    '{ "x" : { "é\\n\\u00e9" : 0.1 , "\\ud83d\\ude00": 1E-7 } , "y" : 1 }'.encode(),
    b'[{"x":{"c":0},"y":0,"id":null},{"x":{"c":-0},"y":1}, {"x":{"c":-0.0},"y":1}]',
    b'{"x":{"text":"free entry","up":true,"gap":null,"n":3},"y":"spam"}',
    b'[{"id":"e1","y":true},{"x":{"a":2},"y":true},{"id":"e3","y":3,"w":2}]',
]
DOCUMENTS = [json.loads(seed) for seed in SEEDS]
BODIES = damaged_bytes(SEEDS) | damaged_json(DOCUMENTS).map(text_of)
MOST = 3


def checked(error: ServiceError) -> None:
    """Check that a refusal says what is wrong, briefly."""
    assert error.detail
    assert len(error.errors) <= MAX_DETAILS
    if isinstance(error, Unprocessable):
        assert error.errors, error.detail
    for fault in error.errors:
        assert fault.field
        assert fault.reason
        assert len(fault.field) + len(fault.reason) < 700


def finite(event: Any, mixed: bool) -> None:
    """Check that what was taken is within the limits."""
    if not event.is_label:
        assert len(event.x) <= 10_000
        for name, value in event.x.items():
            assert len(name) <= 256
            name.encode()
            if type(value) is float:
                assert -1e100 <= value <= 1e100
            else:
                assert mixed
                assert value is None or type(value) in (bool, str)
    assert 0 <= event.w <= 1e100
    assert math.isfinite(event.w)
    assert event.id is None or 1 <= len(event.id) <= 256
    assert type(event.y) in (bool, int, float, str)


def is_huge(y: Any) -> bool:
    """Return whether a label is an integer of more than 64 bits."""
    return type(y) is int and not -(2**63) <= y < 2**63


def same_event(event: Any, other: Any) -> bool:
    """Return whether an event is what another JSON reader reads, bit for bit."""
    x = {} if event.is_label else event.x
    features = other.get("x", {})
    return (
        (type(other["y"]), other["y"]) == (type(event.y), event.y)
        and (float(other.get("w", 1.0)), other.get("id")) == (event.w, event.id)
        and list(features) == list(x)
        and all(
            repr(float(features[name]) if type(value) is float else features[name]) == repr(value)
            for name, value in x.items()
        )
    )


def plain(text: bytes) -> Any:
    """Return what the standard library reads."""
    return json.loads(text.decode())


@given(body=BODIES, mixed=st.booleans())
@example(body=b'{"x":{"a":1e999},"y":true}', mixed=False)
@example(body=b'{"x":{"a":01},"y":true}', mixed=False)
@example(body=b'{"x":{"a":NaN},"y":true}', mixed=True)
@example(body=b'{"x":{"a":-0},"y":1E0}', mixed=False)
@example(body=b'{"x":{"\\ud800":1},"y":true}', mixed=False)
@example(body=b'\xef\xbb\xbf{"x":{},"y":true}', mixed=False)
@example(body=b'{"x":{},"y":' + b"9" * 5000 + b"}", mixed=False)
@example(body=b'{"x":{},"y":true,"w":1000000000000000000000000000000}', mixed=False)
@example(body=b"[" * 100_000, mixed=False)
@example(body=b'{"x":{"a":1,"a":2},"y":true,"y":false}', mixed=False)
@example(body=b'[{"x":{"a":1e999,"a":-0},"y":{},"y":1E0,"y":1,"id":7,"id":"e"}]', mixed=False)
@example(body=b'{"x":{"a":"\xff","a":2},"y":true}', mixed=False)
@tries(300)
def test_a_body_is_events_or_says_what_is_wrong(body: bytes, mixed: bool) -> None:
    try:
        events, payload, _ = parse_events(body, MOST, mixed)
    except (Malformed, Unprocessable, TooLarge) as error:
        checked(error)
        return
    assert len(events) <= MOST
    for event in events:
        finite(event, mixed)
    # the log is read again by other workers, and by any JSON reader
    logged = b"[" + bytes(payload) + b"]" if events else b"[]"
    for event, again in zip(events, parse_log(logged), strict=True):
        assert again is not None
        assert (again.x, again.y, again.w, again.id) == (event.x, event.y, event.w, event.id)
    readers = [plain] if any(is_huge(event.y) for event in events) else [plain, orjson.loads]
    for read in readers:
        for event, other in zip(events, read(logged), strict=True):
            assert same_event(event, other)
    # what is written of what was read is read alike
    written = msgspec.json.encode(events)
    assert parse_events(written, MOST, mixed)[0] == events
    for index, event in enumerate(events):
        if event.id is not None and not is_huge(event.y):  # no model has such a label
            _, late, _, digests = mark(index, event)
            assert late == event.is_label
            assert len(digests) >= 28 or late


@given(body=BODIES, mixed=st.booleans())
@tries(300)
def test_a_question_is_read_or_says_what_is_wrong(body: bytes, mixed: bool) -> None:
    try:
        questions, sent, many = parse_questions(body, MOST, mixed)
    except (Malformed, Unprocessable, TooLarge) as error:
        checked(error)
        return
    assert many or len(questions) == 1
    for question, x in zip(questions, sent_features(questions, sent, many), strict=True):
        again, *_ = parse_questions(b'{"x":%b}' % x.encode(), 1, mixed)
        assert again[0].x == question.x
    assert parse_questions(msgspec.json.encode(questions), MOST, mixed)[0] == questions


@given(body=BODIES, joined=damaged_json([{"0": {"at": 1, "served": {"u": True}, "x": {"a": 1}}}]))
@tries(300)
def test_any_element_of_a_log_is_an_event_or_nothing(body: bytes, joined: Any) -> None:
    found = parse_joined(text_of(joined))
    events = completed(parse_log(body), found)
    for event in events:
        assert event is None or isinstance(event, Event)
        if event is not None:
            finite(event, mixed=True)


TENSORS = [
    [{"name": "a", "shape": [2], "datatype": "FP64", "data": [0.4, 1.5]}],
    [
        {"name": "a", "shape": [2, 1], "datatype": "INT64", "data": [3, 0]},
        {"name": "b", "shape": [2], "datatype": "BOOL", "data": [True, False]},
    ],
    [
        {
            "name": "x",
            "shape": [2, 2],
            "datatype": "BYTES",
            "parameters": {"feature_names": ["a", "b"]},
            "data": [["u", "v"], ["w", None]],
        }
    ],
]


@st.composite
def odd_tensors(draw: st.DrawFn) -> Any:
    """Draw a tensor of any type with anything in it."""
    kinds = [f"{kind}{bits}" for kind in ("INT", "UINT") for bits in (8, 16, 32, 64)]
    data = draw(st.lists(st.sampled_from(ODD), min_size=1, max_size=2))
    datatype = draw(st.sampled_from([*kinds, "FP16", "FP32", "FP64", "BOOL", "BYTES"]))
    return [{"name": "a", "shape": [len(data)], "datatype": datatype, "data": data}]


@given(document=damaged_json(TENSORS) | odd_tensors(), mixed=st.booleans())
@tries(300)
def test_tensors_are_events_or_say_what_is_wrong(document: Any, mixed: bool) -> None:
    try:
        tensors = msgspec.json.decode(text_of(document), type=list[Tensor])
    except msgspec.MsgspecError:
        return
    try:
        events = rows(tensors, MOST, mixed)
    except (Unprocessable, TooLarge) as error:
        checked(error)
        return
    for x in events:
        finite(Event(x, True), mixed)


NUMBERS: list[tuple[str, bool]] = [
    *(("0", True), ("-0", True), ("-0.0", True), ("1E5", True), ("1e-400", True), ("1e22", True)),
    *(("1e999", False), ("-1e999", False), ("1e101", False), ("NaN", False), ("Infinity", False)),
    *(("01", False), ("+1", False), (".5", False), ("1.", False), ("1e", False), ("0x1", False)),
    *(("1_0", False), ("9" * 101, False), ("9" * 99, True), ("9" * 6_000, False), ("- 1", False)),
]


@pytest.mark.parametrize(("text", "good"), NUMBERS, ids=[text[:12] for text, _ in NUMBERS])
def test_a_number_is_one_for_every_reader_or_for_none(text: str, good: bool) -> None:
    body = f'{{"x":{{"a":{text}}},"y":true}}'.encode()
    readers: list[Callable[[bytes], Any]] = [
        lambda body: parse_events(body, 1)[0][0].x["a"],
        lambda body: parse_log(b"[" + body + b"]")[0].x["a"],  # type: ignore[union-attr]
    ]
    if good:
        assert {repr(read(body)) for read in readers} == {repr(float(plain(body)["x"]["a"]))}
        return
    with pytest.raises((Malformed, Unprocessable)):
        readers[0](body)
    assert parse_log(b"[" + body + b"]") in ([], [None])
