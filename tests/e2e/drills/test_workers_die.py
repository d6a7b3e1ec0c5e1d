"""Workers are killed; `hinged serve` starts others in their place."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from tests.e2e.drills.drill import Drill
from tests.e2e.drills.serving import Serving
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

pytestmark = pytest.mark.slow

WORKERS = 2
_SOON_S = 40
"""Less than the parent waits for the answer of a worker that lives."""


@pytest.fixture
def service(own_server: RedisServer) -> Iterator[Serving]:
    serving = Serving(own_server.url, workers=WORKERS)
    serving.start()
    yield serving
    children = serving.children()
    serving.kill()
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def test_killed_workers_are_replaced_and_nothing_is_lost(
    own_server: RedisServer, service: Serving, record_property: Callable[[str, object], None]
) -> None:
    drill = Drill([service], own_server.client, record_property)
    wait_until(lambda: len(service.children()) == WORKERS)
    first = service.children()
    with drill.load() as load:
        os.kill(first[0], signal.SIGSTOP)
        load.until_more(300)  # the other one serves; the parent waits for an answer of the first
        os.kill(first[0], signal.SIGKILL)
        wait_until(lambda: len(set(service.children()) - {first[0]}) == WORKERS, _SOON_S)
        load.until_more()
        for pid in service.children():
            os.kill(pid, signal.SIGKILL)
        recover_s = load.recovered(time.monotonic())
        load.until_more()
    assert not set(first) & set(service.children())
    done = f"one of {WORKERS} under `hinged serve` stopped, then killed -9; then all at once"
    drill.judge("workers killed", done, load, recover_s)
