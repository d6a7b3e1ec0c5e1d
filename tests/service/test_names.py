"""The bound on the names of features, read off the text wherever that is enough."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hinged_service.errors import Unprocessable
from hinged_service.events import Event, parse_events, parse_log, parse_questions
from hinged_service.names import MAX_NAME, are_short, check_names
from hinged_service.routes.line_reading import Batch, LineReader, event_parser

_pieces = st.lists(
    st.tuples(st.sampled_from(["a", '"', "\\", "é", "\U0001f600", "\n"]), st.integers(0, 140)),
    max_size=4,
)
_names = _pieces.map(lambda pieces: "".join(char * count for char, count in pieces))
_features = st.lists(st.dictionaries(_names, st.just(1.0), max_size=4), max_size=4)


def refused(text: bytes, features: list[dict[str, Any]]) -> bool:
    try:
        if not are_short(text):
            check_names(features)
    except msgspec.ValidationError:
        return True
    return False


@given(_features, st.booleans())
@example([{"a" * 256: 1.0}], False)
@example([{"a" * 257: 1.0}], False)
@example([{"é" * 256: 1.0}], False)
@example([{"a" * 128 + '"' + "a" * 128: 1.0}], False)
@example([{"a": 1.0}, {}, {"b" * 200: 1.0, "c" * 300: 1.0}], False)
def test_a_name_is_refused_where_one_that_is_looked_at_would_be(
    features: list[dict[str, Any]], as_ascii: bool
) -> None:
    text = json.dumps(features, ensure_ascii=as_ascii).encode()
    longest = max((len(name) for x in features for name in x), default=0)
    assert refused(text, features) == (longest > MAX_NAME)


@pytest.mark.parametrize("before", range(0, 600, 37))
def test_it_is_found_wherever_it_stands(before: int) -> None:
    text = json.dumps([{"x": {"f" * 5: 1.0, "n" * 257: 1.0}, "y": True, "id": "i" * 9}]).encode()
    shifted = b" " * before + text
    assert refused(shifted, [{"n" * 257: 1.0}])
    assert not refused(shifted, [{"n" * 256: 1.0}])


@pytest.mark.parametrize("mixed", [False, True])
def test_every_reader_keeps_the_bound_and_names_the_feature(mixed: bool) -> None:
    good, bad = {"n" * 256: 1.0}, {"ok": 1.0, "n" * 257: 1.0}
    for many in (False, True):
        question: Any = {"x": bad}
        event = question | {"y": True}
        bodies = [json.dumps([one] if many else one).encode() for one in (question, event)]
        with pytest.raises(Unprocessable) as first:
            parse_questions(bodies[0], 10, mixed)
        with pytest.raises(Unprocessable) as second:
            parse_events(bodies[1], 10, mixed)
        for told in (first.value, second.value):
            assert [detail.reason for detail in told.errors] == ["has a name over 256 characters"]
    events, _, _ = parse_events(json.dumps({"x": good, "y": True}).encode(), 10, mixed)
    assert events[0].x == good


def test_a_log_whose_names_are_too_long_loses_those_events_alone() -> None:
    entry = json.dumps([{"x": {"n" * 257: 1.0}, "y": True}, {"x": {"a": 1.0}, "y": True}])
    first, second = parse_log(entry.encode())
    assert first is None
    assert second is not None
    assert second.x == {"a": 1.0}


async def read_lines(body: bytes) -> Batch[Event]:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    reader = LineReader(receive, event_parser(mixed=False), 2**20)
    batch = await reader.next()
    assert batch is not None
    return batch


@pytest.mark.parametrize("length", [256, 257, 300])
def test_a_line_with_a_long_name_is_a_fault_beside_good_lines(length: int) -> None:
    names = ["a", "n" * length, "b", "é" * 256]
    lines = [json.dumps({"x": {name: 1.0}, "y": True}, ensure_ascii=False) for name in names]
    batch = asyncio.run(read_lines("\n".join(lines).encode()))
    good = [1, 2, 3, 4] if length == 256 else [1, 3, 4]
    assert batch.numbers == good
    assert [item.x for item in batch.items] == [{names[n - 1]: 1.0} for n in good]
    assert list(batch.faults) == ([] if length == 256 else [2])
    for fault in batch.faults.values():
        assert [detail.reason for detail in fault.errors] == ["has a name over 256 characters"]
