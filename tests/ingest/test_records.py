"""Records as they come from outside: events of a model, or the reason why not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from hinged_service.engine import long_work
from hinged_service.ingest.records import MAX_RECORD_BYTES, Batch, Fault, Lot, Raw, gather, read
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.wire.events import Event

GOOD = b'{"x":{"a":1},"y":true}'


def fold(**spec: Any) -> ModelState:
    return ModelState(
        ModelSpec.model_validate_json(json.dumps({"learner": {"type": "perceptron"}} | spec))
    )


def gathered(records: Sequence[Raw] | Lot) -> Batch:
    """Return records as a batch of a plain perceptron's."""
    return long_work.at_once(gather([fold()], records))


@pytest.mark.parametrize(
    ("body", "field", "reason"),
    [
        (b"", "", "is empty"),
        (b"[" + GOOD + b"]", "", "is an array: a record is one event"),
        (GOOD + b"," + GOOD, "", "is not valid JSON"),
        (b'{"x":{"a":1', "", "is not valid JSON"),
        (b'{"x":{"a":"\xff"},"y":true}', "", "is not valid JSON"),
        (b'{"x":{"a":1}}', "y", "is missing"),
        (b'{"y":true}', "x", "is missing"),
        (b'{"x":{"a":1},"y":"spam"}', "y", "must be true or false (or 1 or 0)"),
        (b'{"x":{"a":1},"y":1.0}', "y", "must be true or false (or 1 or 0)"),
        (b'{"x":{"a":"0.25"},"y":true}', "x['a']", "not '0.25'"),
        (b'{"x":{"a":null},"y":true}', "x['a']", "not null"),
        (b'{"x":{"a":1%s},"y":true}' % (b"0" * 400), "x['a']", "between -1e100 and 1e100"),
        (b'{"x":{"a":1},"y":true,"id":9007199254740993}', "id", "must be text"),
        (b'{"x":' + b'{"a":' * 20_000, "", "nested too deeply"),
        (b"[" * 100_000, "", "is an array"),
        (b" " * (MAX_RECORD_BYTES + 1), "", f"at most {MAX_RECORD_BYTES} are taken"),
    ],
)
def test_a_record_that_is_not_an_event_is_told_by_field_and_reason(
    body: bytes, field: str, reason: str
) -> None:
    found = read([fold()], body)
    assert isinstance(found, Fault)
    assert found.field == field
    assert reason in found.reason


def test_five_thousand_digits_are_refused() -> None:
    found = read([fold()], b'{"x":{"a":1},"y":' + b"1" * 5_000 + b"}")
    assert isinstance(found, Fault)


def test_any_model_of_the_stream_may_take_an_event() -> None:
    numbers, texts = fold(), fold(pipeline=[{"type": "BagOfWords", "on": "t"}])
    body = b'{"x":{"t":"free money"},"y":true}'
    assert isinstance(read([numbers], body), Fault)
    assert not isinstance(read([numbers, texts], body), Fault)
    assert not isinstance(read([texts, numbers], GOOD), Fault)
    assert read([numbers, texts], b'{"x":{},"y":3}') == read([numbers], b'{"x":{},"y":3}')


def test_an_id_beside_the_event_becomes_its_own() -> None:
    for body in (GOOD, GOOD + b" \n", b'{"x":{"a":1},"y":true,"id":null}'):
        found = read([fold()], body, 'e"1')
        assert not isinstance(found, Fault)
        event, text = found
        assert event.id == json.loads(text)["id"] == 'e"1'
    same = read([fold()], b'{"x":{"a":1},"y":true,"id":"e1"}', "e1")
    assert not isinstance(same, Fault)
    other = read([fold()], b'{"x":{"a":1},"y":true,"id":"e1"}', "e2")
    assert other == Fault("id", "is 'e1' within the event and 'e2' beside it")
    assert isinstance(read([fold()], GOOD, ""), Fault)


def test_mappings_and_bytes_give_the_same_batch_and_the_bad_ones_go_to_the_dead() -> None:
    records: list[dict[str, Any]] = [
        {"x": {"a": 0.1 + 0.2, "b": 3}, "y": True, "w": 0.5},
        {"x": {"a": float("nan")}, "y": True},
        {"x": {"a": 10**400}, "y": True},
        {"x": {"a": object()}, "y": True},
        {"x": {"a": 1e-300}, "y": 0, "id": "e"},
    ]
    from_mappings = gathered([Raw(str(n), r) for n, r in enumerate(records)])
    assert from_mappings.places == ["0", "4"]
    assert [letter.offset for letter in from_mappings.letters] == ["1", "2", "3"]
    assert msgspec.json.decode(b"[" + from_mappings.payload + b"]")[0]["x"]["a"] == 0.1 + 0.2
    good = [Raw(str(n), msgspec.json.encode(records[n])) for n in (0, 4)]
    from_bytes = gathered(good)
    assert values(from_bytes.events) == values(from_mappings.events)
    assert from_bytes.payload == from_mappings.payload
    lot = gathered([Raw("7", Fault("", "line 3: is cut off"))])
    assert lot.letters == [("7", "line 3: is cut off", "")]
    long = gathered([Raw("8", b"x" * 9_000)])
    assert len(long.letters[0].record) == 8_192


def values(events: list[Event]) -> list[tuple[Any, ...]]:
    """Return what events hold, without the names known when they were decoded."""
    return list(map(msgspec.structs.astuple, events))


def test_halves_of_events_are_not_put_together() -> None:
    halves = [b'{"x":{"a":1}', b'"y":true}', GOOD + b"," + GOOD]
    batch = gathered([Raw(str(n), body) for n, body in enumerate(halves)])
    assert batch.events == []
    assert [letter.offset for letter in batch.letters] == ["0", "1", "2"]


@pytest.mark.parametrize("bad", [None, b'{"x":{"a":1}}', b'{"x":{"a":1},"y":"spam"}'])
def test_a_batch_is_read_as_its_records_by_themselves(bad: bytes | None) -> None:
    bodies = [GOOD, b'{"y":false,"x":{"b": 1e-3},"w":2}', b'{"x":{},"y":1,"id":"n"}']
    bodies += [] if bad is None else [bad]
    batch = gathered([Raw(str(n), body) for n, body in enumerate(bodies)])
    alone = [gathered([Raw(str(n), body)]) for n, body in enumerate(bodies)]
    assert values(batch.events) == [value for one in alone for value in values(one.events)]
    assert batch.payload == b",".join(bodies[:3])
    assert batch.letters == [letter for one in alone for letter in one.letters]


def columns(
    texts: list[bytes | None], events: list[dict[str, Any]] | None, each: list[Raw] | None = None
) -> Lot:
    """Return columns; single ones are only looked at if they are given."""

    def records() -> list[Raw]:
        assert each is not None
        return each

    return Lot([str(n) for n in range(len(texts))], texts, events, records)


def test_what_was_checked_is_the_event_that_its_json_is() -> None:
    made = [
        {"x": {"a": 0.1 * n, "b": -0.0, "é": 1e-310}, "y": n % 2 == 0, "w": 0.5 * n, "id": f"{n}"}
        for n in range(50)
    ]
    alone = gathered([Raw(str(n), event) for n, event in enumerate(made)])
    assert gathered(columns([None] * 50, made))._replace(places=alone.places) == alone
    texts = [msgspec.json.encode(event) if n % 3 else None for n, event in enumerate(made)]
    assert gathered(columns(texts, made))._replace(places=alone.places) == alone
    assert [type(event) for event in alone.events] == [Event] * 50


def test_columns_of_which_one_is_no_event_are_read_one_by_one() -> None:
    made: list[dict[str, Any]] = [{"x": {"a": 1.0}, "y": True}, {"x": {"a": "text"}, "y": True}]
    each = [Raw(str(n), event) for n, event in enumerate(made)]
    assert gathered(columns([None, None], made, each)) == gathered(each)
    assert [letter.offset for letter in gathered(each).letters] == ["1"]
    no_features = [{"y": True, "id": "a"}]
    late = gathered(columns([None], no_features, [Raw("0", no_features[0])]))
    assert late.payload == b'{"y":true,"id":"a"}'


@pytest.mark.parametrize("as_columns", [True, False])
def test_records_read_one_at_a_time_are_the_same_batch(
    monkeypatch: pytest.MonkeyPatch, as_columns: bool
) -> None:
    bodies = [GOOD, b"{", GOOD, b'{"y":true,"id":"a"}', b"[]"]
    raws = [Raw(str(n), body) for n, body in enumerate(bodies)]
    records: Sequence[Raw] | Lot = columns(list(bodies), None, raws) if as_columns else raws
    whole = gathered(records)
    assert (len(whole.events), len(whole.letters)) == (3, 2)
    monkeypatch.setattr(long_work, "_PORTION_S", 0.0)
    singly = gathered(records)
    assert values(singly.events) == values(whole.events)
    assert singly._replace(events=whole.events) == whole
    assert gathered([]) == Batch([], b"", [], [], [])


def test_unread_json_is_read_by_its_source_only_if_it_is_no_event() -> None:
    assert gathered(columns([GOOD], None)).payload == GOOD
    fault = [Raw("0", Fault("", "is cut off"), line="line 7:")]
    letters = gathered(columns([b"{"], None, fault)).letters
    assert letters[0].reason == "line 7: is cut off"


def test_a_letter_names_the_line_of_what_the_model_refuses() -> None:
    refused = [Raw("0", b'{"x":{"a":"b"},"y":true}', line="line 7:")]
    assert gathered(refused).letters[0].reason.startswith("line 7: x['a'] must be")
