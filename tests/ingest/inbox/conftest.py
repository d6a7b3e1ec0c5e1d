"""Producers that know nothing but Redis, and what is to come of their entries."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.support.ingest import Event, letters, weights
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service

INBOX = "hinged:{m}:inbox"
BAD: list[tuple[dict[Any, Any], str]] = [
    ({"event": '{"x":'}, "is not valid JSON"),
    ({"id": "i"}, "event is not a field of the entry"),
    ({"event": '{"x":{"a":1},"y":true,"id":"j"}', "id": "k"}, "id is 'j' within the event"),
    ({"event": '{"x":{"a":1},"y":true}', "id": b"\xff"}, "id is not UTF-8"),
    ({"event": '{"x":{"a":1},"y":true}', "id": ""}, "id must be text of 1"),
    ({"event": '{"x":{"a":"1"},"y":true}'}, "x['a'] must be a number"),
    ({"event": '{"x":{"a":1},"y":7}'}, "y must be"),
    ({"event": '{"y":true,"id":"never predicted"}'}, "id names no prediction"),
    ({"event": '{"x":{"other":1},"y":true,"id":"e0"}'}, "id names another event already"),
]


class Inbox:
    """The inbox of the stream `m` on a server, as a producer sees it; and what became of it."""

    def __init__(self, server: RedisServer) -> None:
        self.server = server

    def add(self, rows: list[Event], first: int = 0, entry_id: str = "*") -> list[str]:
        """Write events with ids, the first of them `e{first}`; return the entries' ids."""
        with self.server.client() as client, client.pipeline(transaction=False) as pipe:
            for number, row in enumerate(rows, first):
                pipe.xadd(INBOX, {"id": f"e{number}", "event": json.dumps(row)}, id=entry_id)
            return list(pipe.execute())

    def write(self, fields: dict[Any, Any], entry_id: str = "*") -> str:
        """Write an entry; return its id."""
        with self.server.client() as client:
            return str(client.xadd(INBOX, fields, id=entry_id))

    def wait_until_empty(self, timeout_s: float = 120) -> None:
        """Return once all was taken and removed."""
        with self.server.client() as client:
            wait_until(lambda: not client.xlen(INBOX), timeout_s)

    def offset(self) -> str | None:
        """Return where the service says that it is."""
        with self.server.client() as client:
            found: Any = client.hget("hinged:{m}:offsets", "inbox")
        return None if found is None else str(found)

    def weights(self) -> dict[str, float]:
        """Return what a plain fold over the log comes to."""
        return weights(self.server)

    def reasons(self) -> dict[str, str]:
        """Return the reasons of the dead letters by offset."""
        found = letters(self.server)
        assert all(letter["source"] == "inbox" for letter in found)
        assert len({letter["offset"] for letter in found}) == len(found)
        return {letter["offset"]: letter["reason"] for letter in found}


def make(service: Service, **spec: object) -> None:
    """Make the model `m`."""
    with service.client() as client:
        body = {"learner": {"type": "perceptron"}, **spec}
        assert client.put("/v1/models/m", json=body).status_code in (200, 201)


@pytest.fixture
def inbox(own_server: RedisServer) -> Inbox:
    """The inbox on a server of the test's own."""
    return Inbox(own_server)


def draw(seed: int) -> random.Random:
    """Return random numbers that are the same each time."""
    return random.Random(seed)
