"""A server is killed, loses the end of its append-only file, and is started twice, in rounds."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
import redis

import hinged
from hinged_service.store.keys import StreamKeys
from tests.e2e.drills.serving import Serving, workers_on
from tests.support.drill_table import PROPERTY, Row
from tests.support.fleet.balance import agree
from tests.support.fleet.senders import GIVE_UP_S, Event, made
from tests.support.plain_fold import fold_log
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer, server_binaries

pytestmark = pytest.mark.slow

_ROUNDS = 6
_SPEC = {"learner": {"type": "perceptron"}}
_SERVERS = server_binaries()
if (installed := shutil.which("redis-server")) and "redis" not in _SERVERS:
    _SERVERS["redis"] = installed


def cut(directory: Path, count: int) -> None:
    """Take bytes from the end of the append-only file."""
    file = max((directory / "appendonlydir").glob("*.incr.aof"))
    with file.open("r+b") as opened:
        opened.truncate(max(0, file.stat().st_size - count))


class Scene:
    """A model that two workers serve, and what was sent to it."""

    def __init__(self, workers: list[Serving]) -> None:
        self.sent: dict[str, Event] = {}
        self.acknowledged: set[str] = set()
        self._clients = [httpx.Client(base_url=w.url, timeout=30, verify=False) for w in workers]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients:
            client.close()

    def ask(self, method: str, path: str, body: Any = None, worker: int = 0) -> Any:
        """Return what a worker answers when it no longer answers 503."""
        until_s = time.monotonic() + GIVE_UP_S
        while True:
            answer = self._clients[worker].request(method, path, json=body)
            if answer.status_code != 503 or time.monotonic() > until_s:
                assert answer.is_success, answer.text
                return answer.json()
            time.sleep(0.02)

    def learn(self, count: int) -> None:
        """Send events, some by themselves and some together, to the workers in turn."""
        for number in range(count):
            first = len(self.sent)
            events = [made(first + n) for n in range((1, 1, 8)[number % 3])]
            self.sent |= {event["id"]: event for event in events}
            self.ask("POST", "/v1/models/m/learn", events, number % len(self._clients))
            self.acknowledged |= {event["id"] for event in events}


def told_apart(client: redis.Redis) -> tuple[list[str], list[str]]:
    """Return the ids of the entries that lead to the log's end, and of all others."""
    keys = StreamKeys("m")
    found: Any = client.xrange(keys.log)
    end: Any = client.hmget(keys.meta, "last", "chain")
    own: list[str] = []
    following: dict[str, str] = {}
    for entry_id, fields in reversed(found):
        if own:
            is_own = leads(entry_id, fields["chain"], following)
        else:
            is_own = [entry_id, fields["chain"]] == end
        if is_own:
            own.insert(0, entry_id)
            following = fields
    return own, [entry_id for entry_id, _ in found if entry_id not in own]


def leads(entry_id: str, chain: str, to: dict[str, str]) -> bool:
    """Return whether an entry is the one before another, by the chain of that one."""
    if "genesis" in to:
        return False
    text = chain + entry_id + to["from"] + sha1(to["events"])
    return to["chain"] == sha1(text + to["skip"] + to.get("joined", ""))


def sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


@pytest.mark.parametrize("kind", sorted(_SERVERS))
def test_entries_off_the_chain_are_folded_by_no_worker(
    tmp_path: Path, kind: str, record_property: Callable[[str, object], None]
) -> None:
    source = random.Random(kind)
    server = RedisServer(tmp_path, _SERVERS[kind], fsync="always")
    with (
        server,
        workers_on(server.url) as workers,
        Scene(workers) as scene,
        contextlib.closing(server.client()) as client,
    ):
        scene.ask("PUT", "/v1/models/m", _SPEC)
        scene.learn(10)
        longest_s = 0.0
        for _ in range(_ROUNDS):
            for lost_bytes in (int(7 * (20_000 / 7) ** source.random()), 0):
                server.kill()
                cut(tmp_path, lost_bytes)
                server.start()
                begun_s = time.monotonic()
                scene.learn(1)
                longest_s = max(longest_s, time.monotonic() - begun_s)
                scene.learn(5)
        own, foreign = told_apart(client)
        print(f"{kind}: {len(own)} entries of the log, {len(foreign)} off its chain")
        assert bool(foreign) is (kind == "redis")
        # A replay reads all of it, so it meets, tells and leaves out what the others passed.
        scene.ask("PUT", "/v1/models/replay", {**_SPEC, "stream": "m", "start": "log"})

        def all_told(model: str, worker: int) -> bool:
            damaged = scene.ask("GET", f"/v1/models/{model}", worker=worker)["damaged"]
            return {part["where"] for part in damaged} == set(foreign)

        for model, worker in itertools.product(("m", "replay"), range(len(workers))):
            wait_until(functools.partial(all_told, model, worker), 30)
        done = scene.ask("POST", "/v1/models/m/repair")
        assert (set(done["removed"]), done["passed_over"]) == (set(foreign), [])
        assert told_apart(client) == (own, [])
        folded = fold_log(client, "m", hinged.Perceptron())
        for model in ("m", "replay"):
            agree(client, "m", model, folded, workers)
    counted = Counter(folded.counted_ids)
    lost, doubled = scene.acknowledged - counted.keys(), [n for n in counted.values() if n > 1]
    done = f"killed, 7 to 20,000 bytes cut off, started, killed, started again; {_ROUNDS} times"
    row = Row(
        *(f"append-only file cut, {kind}: {len(foreign)} entries came back", done),
        *(len(scene.sent), len(scene.acknowledged), len(counted), len(lost), len(doubled)),
        longest_s,
    )
    record_property(PROPERTY, row.as_json())
    assert not doubled
