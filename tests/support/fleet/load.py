"""Clients that keep sending labelled events while something breaks."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Sequence
from typing import Self

from tests.support.fleet.senders import GIVE_UP_S, Body, Event, HttpSenders, made
from tests.support.processes import wait_until

PATIENCE_S = 3.0


class Load(HttpSenders):
    """Clients in a thread of their own, each with one event or a few at a time.

    Some events are sent once more after they were acknowledged. A context: at its end
    all that was sent is acknowledged.

    Attributes
    ----------
    sent
        By event id.

    """

    def __init__(self, urls: Sequence[str], path: str, clients: int = 8) -> None:
        super().__init__(urls, lambda rng, body: path, PATIENCE_S)
        self.sent: dict[str, Event] = {}
        self._clients = clients
        self._over = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._over = True
        self.given_up = kind is not None
        self._thread.join(GIVE_UP_S)
        assert kind is not None or not self._thread.is_alive(), "some events find no worker"
        if self._error is not None and kind is None:
            raise self._error

    def until_more(self, count: int = 150) -> None:
        """Return once so many more events are acknowledged."""
        enough = len(self.acknowledged) + count
        self._until(lambda: len(self.acknowledged) >= enough)

    def until_refused(self, count: int = 3) -> None:
        """Return once so many more calls have failed."""
        enough = self.trouble.total() + count
        self._until(lambda: self.trouble.total() >= enough)

    def recovered(self, since_s: float, workers: Sequence[int] | None = None) -> float:
        """Return how long it took the last worker to acknowledge what came after a moment.

        Parameters
        ----------
        since_s
            The moment, on the monotonic clock.
        workers
            Their numbers; all if left out.

        """
        wanted = set(range(len(self._urls)) if workers is None else workers)
        first: dict[int, float] = {}

        def all_did() -> bool:
            first.clear()
            for asked_s, answered_s, worker in reversed(self._answers):
                if answered_s < since_s:
                    break
                if asked_s >= since_s:
                    first[worker] = answered_s - since_s
            return wanted <= first.keys()

        self._until(all_did)
        return max(first[worker] for worker in wanted)

    def _until(self, condition: Callable[[], bool]) -> None:
        wait_until(lambda: self._error is not None or condition(), GIVE_UP_S)
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            asyncio.run(self._all())
        except BaseException as error:
            self._error = error

    async def _all(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(self._clients):
                group.create_task(self._keep_sending(random.Random(number)))

    async def _keep_sending(self, rng: random.Random) -> None:
        async with self.opened() as ask:
            while not self._over:
                first = len(self.sent)
                events = [made(first + i) for i in range(rng.choice((1, 1, 1, 8)))]
                self.sent |= {event["id"]: event for event in events}
                body: Body = events if len(events) > 1 else events[0]
                for _ in range(rng.choice((1, 1, 1, 2))):
                    await self.send(ask, rng, body)
                await asyncio.sleep(rng.uniform(0.005, 0.03))
