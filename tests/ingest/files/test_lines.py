"""Lines are the same however their bytes come."""

from __future__ import annotations

import io
import itertools
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hinged_service.ingest.files import FileError, lines
from hinged_service.ingest.files.lines import Lines
from tests.fuzz.budget import tries

LONGEST, PIECE, PEEKED = 20, 16, 12
MARK = b"\xef\xbb\xbf"

content = st.lists(
    st.sampled_from([b"\n", b"\r\n", b"a", b"bc", b"\r", b"x" * 19, b"x" * 20, b"y" * 50, MARK])
).map(b"".join)


class Stream:
    """Bytes that come in pieces of certain sizes, and perhaps a fault behind them."""

    def __init__(self, whole: bytes, sizes: list[int], fault: bool) -> None:
        self.reader: Any = self
        self.counter: Any = self
        self.position = 0
        self._bytes = io.BytesIO(whole)
        self._sizes = itertools.cycle(sizes)
        self._fault = fault

    def read1(self, most: int) -> bytes:
        some = self._bytes.read(min(most, next(self._sizes)))
        if not some and self._fault:
            raise FileError("is cut off")
        self.position += len(some)
        return some


def expected(whole: bytes, fault: bool) -> list[bytes | None]:
    """Return the lines that there are; of a stream with a fault only those that end."""
    found = io.BytesIO(whole).readlines()
    if fault and found and not found[-1].endswith(b"\n"):
        found.pop()
    lines_of = [line if len(line) <= LONGEST else None for line in found]
    if lines_of and lines_of[0] is not None:
        while lines_of[0].lstrip(b"\r").startswith(MARK):
            lines_of[0] = lines_of[0].lstrip(b"\r").removeprefix(MARK)
    return [line for line in lines_of if line != b""]


@given(
    whole=content,
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    steps=st.lists(st.tuples(st.sampled_from(["next", "peek", "hand"]), st.integers(1, 9))),
    fault=st.booleans(),
)
@example(whole=MARK, sizes=[1], steps=[], fault=False)
@example(whole=b"x" * 19 + b"\n" + b"a\n", sizes=[5], steps=[("peek", 2)], fault=True)
@tries(300)
def test_lines_are_those_of_readline(
    whole: bytes, sizes: list[int], steps: list[tuple[str, int]], fault: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "MAX_LINE_BYTES", LONGEST)
        patch.setattr(lines, "_PEEK_BYTES", PEEKED)
        patch.setattr(lines, "_READ_BYTES", PIECE)
        check(Lines(Stream(whole, sizes, fault)), steps, expected(whole, fault), fault)  # type: ignore[arg-type]


def check(found: Lines, steps: list[tuple[str, int]], there: list[Any], fault: bool) -> None:
    """Go through lines in some way; it must give what is there, and the fault in the end."""
    given_out = 0
    one_by_one = iter(found)
    try:
        for step, count in [*steps, ("next", len(there) + 1)]:
            left = there[given_out:]
            if step == "peek":
                assert found.peek(count) == up_to(left[:count], PEEKED)
            elif step == "hand":
                some = found.at_hand(count, PEEKED)
                assert some == up_to(left[: len(some)], PEEKED)
                assert bool(some) is bool(left)
                found.pass_over(len(some))
                given_out += len(some)
            else:
                for line in itertools.islice(one_by_one, count):
                    assert line == there[given_out]
                    given_out += 1
            assert found.number == given_out
        assert not fault
    except FileError:
        assert fault
    assert given_out == len(there)


def up_to(some: list[bytes | None], size: int) -> list[bytes | None]:
    """Return the lines up to the one with which they have that size."""
    sums = itertools.accumulate((len(line or b"") for line in some), initial=0)
    return [line for line, before in zip(some, sums, strict=False) if before < size]
