"""Sources in real processes, and what they must come to."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import redis

import hinged
from tests.support.engine import fold_of
from tests.support.forked_command import ForkedCommand
from tests.support.redis_server import RedisServer

Event = dict[str, Any]


def events(count: int) -> list[Event]:
    """Return events whose order matters to a perceptron."""
    draw = random.Random(7)
    found = []
    for _ in range(count):
        x = {f"f{i}": round(draw.gauss(0, 1), 4) for i in range(4)}
        found.append({"x": x, "y": sum(x.values()) + draw.gauss(0, 1) > 0})
    return found


def learned(rows: Sequence[Event]) -> dict[str, float]:
    """Return the weights of a perceptron that learned the events in this order."""
    learner = hinged.Perceptron()
    for row in rows:
        learner.learn_one(row["x"], row["y"])
    return dict(learner.weights)


def taken(server: RedisServer) -> int:
    """Return the sum of the offsets of the model `m`: of a stream of entries, their ms."""
    with server.client() as client, contextlib.suppress(redis.RedisError):
        offsets: Any = client.hvals("hinged:{m}:offsets")
        return sum(int(offset.partition("-")[0]) for offset in offsets)
    return 0


def weights(server: RedisServer) -> dict[str, float]:
    """Return the weights of a plain fold over the log of `m`."""
    with server.client() as client:
        return {name: float.fromhex(v) for name, v in fold_of(client)["weights"].items()}


def up_to_date(redis_url: str | None, stream: str) -> dict[str, str]:
    """Return the query of a read that has all of a stream's log, from any appender."""
    with redis.Redis.from_url(str(redis_url), decode_responses=True) as client:
        end: Any = client.hmget(f"hinged:{{{stream}}}:meta", ["last", "chain"])
    last, chain = end
    return {"at_least": f"{last}.{chain}"}


def letters(server: RedisServer, model: str = "m") -> list[dict[str, str]]:
    """Return the dead letters of a model."""
    with server.client() as client:
        found: Any = client.xrange(f"hinged:{{{model}}}:dead")
    return [fields for _, fields in found]


def reasons(server: RedisServer, model: str = "m") -> dict[str, str]:
    """Return the reasons of the dead letters by their offsets."""
    return {letter["offset"]: letter["reason"] for letter in letters(server, model)}


class Ingest:
    """A `hinged ingest …` process; a `whole` one does all that a start takes."""

    def __init__(self, *words: str, redis_url: str, whole: bool = False) -> None:
        arguments = ["ingest", *words, "--json"]
        environment = os.environ | {"HINGED_REDIS_URL": redis_url}
        self.process: subprocess.Popen[str] | ForkedCommand
        if whole:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "hinged_service.cli.main", *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        else:
            self.process = ForkedCommand(arguments, environment)

    def kill(self) -> None:
        """Kill it hard."""
        self.process.kill()
        self.process.communicate()

    def end(self, timeout_s: float = 120) -> tuple[int, dict[str, Any], str]:
        """Wait for its end; return exit code, summary, and what it told."""
        out, stderr = self.process.communicate(timeout=timeout_s)
        return self.process.wait(), json.loads(out or "{}"), stderr


def kill_often(
    start: Callable[[], Ingest],
    taken: Callable[[], int],
    total: int,
    at: Callable[[int], None],
    kills: int,
) -> Ingest:
    """Start a source, kill it after some more was taken, many times; return the last one, alive.

    `at` is called before each start, with its number.
    """
    draw = random.Random(total)
    for number in range(kills):
        at(number)
        running = start()
        wanted = taken() + draw.randrange(total // 40 + 1)
        deadline = time.monotonic() + 60
        while taken() < wanted and running.process.poll() is None:
            assert time.monotonic() < deadline, "nothing is taken"
            time.sleep(0.001)
        time.sleep(draw.random() * 0.02)
        running.kill()
    return start()
