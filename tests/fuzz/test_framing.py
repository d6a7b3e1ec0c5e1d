"""Any bytes on a connection: what is carried out is what another parser of HTTP takes them for."""

from __future__ import annotations

import asyncio
import logging
import random
import re
from typing import Any

import h11
import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hinged_service.server.fast_path import FastPathProtocol
from tests.fuzz.budget import ASKED
from tests.fuzz.framing import Outcome, Recorder, cut, outcome, stream

STREAMS = ASKED or 300
FIRST = random.randrange(2**32) if ASKED else 0
_STATUS = re.compile(rb"HTTP/1\.1 (\d+) ")


class Reference(H11Protocol):
    """h11, but that blank lines before a request line and blanks in it are no fault."""

    def handle_events(self) -> None:
        """Take them out of what is read next."""
        buffer: Any = self.conn._receive_buffer
        if self.conn.their_state is h11.IDLE:
            line = re.sub(rb"\A([^ \r\n]+) +([^ \r\n]+) +HTTP/", rb"\1 \2 HTTP/", buffer._data)
            buffer._data[:] = line.lstrip(b"\r\n")
            buffer._next_line_search = buffer._multiple_lines_search = 0
        super().handle_events()


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Keep thousands of refusals out of the log."""
    caplog.set_level(logging.CRITICAL)


def refused(found: Outcome, sent: bytes) -> bool:
    """Return whether the connection ended with a refusal of what came last.

    A HEAD is answered before its body is read: a fault in there has no answer of its own.
    """
    statuses = [status for status in _STATUS.findall(found.answers) if status != b"100"]
    answered = b"HEAD " in sent and len(statuses) == len(found.done)
    return found.closed and (statuses[-1:] == [b"400"] or answered)


def test_what_is_carried_out_is_what_h11_takes_it_for() -> None:
    """llhttp refuses more than h11: it may do less then, but nothing else."""

    async def compare() -> None:
        recorder, done = Recorder(), 0
        for seed in range(FIRST, FIRST + STREAMS):
            chance = random.Random(seed)
            sent = stream(chance)
            found = await outcome(FastPathProtocol, recorder, cut(chance, sent))
            expected = await outcome(Reference, recorder, cut(chance, sent))
            if found.done != expected.done:
                assert found.done == expected.done[: len(found.done)], (seed, sent)
                assert refused(found, sent), (seed, sent)
            done += len(found.done)
        assert done > STREAMS / 2

    asyncio.run(compare())


def test_no_byte_of_a_body_is_carried_out_by_uvicorn_as_it_comes() -> None:
    async def compare() -> None:
        recorder = Recorder()
        for seed in range(FIRST, FIRST + STREAMS):
            chance = random.Random(seed)
            sent = stream(chance)
            if b"#" in sent or b"ftp:" in sent:  # it takes such targets, and then what follows
                continue
            found = await outcome(HttpToolsProtocol, recorder, cut(chance, sent))
            expected = await outcome(Reference, recorder, cut(chance, sent))
            paths = [path for _, path, *_ in expected.done]
            assert {path for _, path, *_ in found.done} <= {*paths, "/v1/models/m/learn"}, sent
            hit = [path for _, path, *_ in found.done if "victim" in path]
            assert len(hit) <= len([path for path in paths if "victim" in path]), (seed, sent)

    asyncio.run(compare())
