"""Server-sent events are read the same however their bytes are cut, and in bounded memory."""

import random
from itertools import pairwise

import pytest

from hinged_service.client import BadAnswer
from hinged_service.client.sse import Message, Parser

TEXT = (
    '\ufeff: hello\n\nevent: outcome\ndata: {"x":"\u2028\x85é"}\nid: 1-0\n\n'
    "event:metrics\r\ndata:one\r\ndata:  two\r\nretry: 5\r\n\r\n"
    "event: empty\n\n"
    "data\rdata\r\rfield without colon\nevent: last\ndata: d\n\nevent: cut\ndata: off"
).encode()
MESSAGES = [
    Message("outcome", '{"x":"\u2028\x85é"}'.encode()),
    Message("metrics", b"one\n two"),
    Message("", b"\n"),
    Message("last", b"d"),
]


@pytest.mark.parametrize("seed", range(200))
def test_wherever_the_bytes_are_cut(seed: int) -> None:
    draw = random.Random(seed)
    cuts = [draw.randint(0, len(TEXT)) for _ in range(draw.randint(0, 30))]
    parser = Parser()
    found = []
    for start, end in pairwise(sorted({0, *cuts, len(TEXT)})):
        found += parser.feed(TEXT[start:end])
        found += parser.feed(b"")
    assert found == MESSAGES


def test_byte_by_byte() -> None:
    parser = Parser()
    assert [m for byte in TEXT for m in parser.feed(bytes([byte]))] == MESSAGES


def feed(parser: Parser, text: bytes) -> None:
    for start in range(0, len(text), 7):
        parser.feed(text[start : start + 7])


@pytest.mark.parametrize("part", [b"data: xxxxxxxx\n", b"xxxxxxxx", b"event: xxxx\ndata:y\n"])
def test_too_large_an_event_is_refused(part: bytes) -> None:
    parser = Parser(most_bytes=1000)
    with pytest.raises(BadAnswer, match="more than 1000 bytes"):
        feed(parser, part * 500)


def test_any_number_of_small_events_and_comments_is_taken() -> None:
    parser = Parser(most_bytes=100)
    for number in range(1000):
        assert parser.feed(b": still here\n\n: and\n") == []
        assert parser.feed(b"id: %d\ndata: a\n\n" % number) == [Message("", b"a")]
    assert parser.feed(b": comment\n" * 1000) == []
