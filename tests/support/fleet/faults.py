"""Faults of a Redis, of the way to it and of worker processes; each call brings about one."""

from __future__ import annotations

import asyncio
import functools
import random
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.worker import Worker

Fault = Callable[[], Awaitable[None]]


class Faults:
    """Faults of one server, of the proxies before it and of the processes behind those.

    Parameters
    ----------
    rng
        Decides how bad a fault is.
    server, proxies
        What they happen to; `which` below is the number of a proxy.
    copy
        Folder for a copy of the server's data.

    """

    def __init__(
        self,
        rng: random.Random,
        server: RedisServer,
        proxies: Sequence[Proxy],
        copy: Path | None = None,
    ) -> None:
        self._rng = rng
        self._server = server
        self._proxies = proxies
        self._copy = copy

    def lose_answers(self, fewest: int = 1, most: int = 4, which: int = 0) -> None:
        """Let Redis run some commands and lose what it says."""
        self._proxies[which].drop_replies += self._rng.randint(fewest, most)

    def cut(self, which: int = 0) -> None:
        """Cut the connections wherever they are."""
        self._proxies[which].cut()

    def slow(self, which: int = 0) -> None:
        """Let answers come late from now on, or no longer."""
        self._proxies[which].delay_s = self._rng.choice((0.0, 0.002, 0.02))

    def calm(self) -> None:
        """Lose and delay nothing any more."""
        for proxy in self._proxies:
            proxy.drop_replies, proxy.delay_s = 0, 0.0

    def forget_scripts(self) -> None:
        """Make Redis forget the scripts."""
        with self._server.client() as client:
            client.script_flush()

    def restart(self) -> None:
        """Stop Redis in order and start it from its append-only file."""
        self._server.stop()
        self._server.start()

    def crash(self) -> None:
        """Kill Redis in mid-write; with appendfsync always it keeps what it acknowledged."""
        self._server.kill()
        self._server.start()

    def stand_still(self, seconds: float) -> None:
        """Stop Redis from answering for a while; then it does all that was asked."""
        self._server.signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._server.signal(signal.SIGCONT)

    def copy_data(self) -> None:
        """Note how the data are."""
        assert self._copy is not None
        self._server.copy_data(self._copy)

    def set_back(self) -> None:
        """Lose what came since the copy, as a failover does that loses the tail."""
        assert self._copy is not None
        self._server.set_back(self._copy)

    @staticmethod
    def kill(worker: Worker, others: Sequence[Worker] = ()) -> None:
        """Kill a worker as soon as the others answer, and start it again."""
        for other in others:
            other.wait_until_alive()
        worker.kill()
        worker.start(wait=False)


def beside(fault: Callable[..., None], *given: object) -> Fault:
    """Return a fault that happens in a thread, while the clients of this one go on."""
    return functools.partial(asyncio.to_thread, fault, *given)
