"""Clients that keep sending labelled events while something breaks."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Self

import httpx

from tests.support.processes import wait_until

GIVE_UP_S = 60.0
PATIENCE_S = 3.0

Event = dict[str, Any]


def made(number: int) -> Event:
    """Return one of an endless row of different events whose order matters to a perceptron."""
    x = {"a": number % 7 / 10 - 0.3, f"n{number % 40}": 1 / (1 + number), "b": number % 5 - 2.0}
    return {"x": x, "y": number % 3 == 0, "id": f"e{number}"}


class Load:
    """Clients in a thread of their own, each with one event or a few at a time.

    An event is sent, to any worker, until one acknowledges it; some are sent
    once more after that. A context: at its end all that was sent is acknowledged.

    Attributes
    ----------
    sent, acknowledged
        By event id; for an acknowledged one the position of the last answer.
    first_s
        By event id, when it was first acknowledged, on the monotonic clock.
    counted
        By event id, the positions at which it was acknowledged as new.
    trouble
        What else came back, and how often.

    """

    def __init__(self, urls: Sequence[str], path: str, clients: int = 8) -> None:
        self.sent: dict[str, Event] = {}
        self.acknowledged: dict[str, str] = {}
        self.first_s: dict[str, float] = {}
        self.counted: defaultdict[str, list[str]] = defaultdict(list)
        self.trouble: Counter[str] = Counter()
        self._urls = urls
        self._path = path
        self._clients = clients
        self._answers: list[tuple[float, float, int]] = []  # when asked, when answered, by whom
        self._over = False
        self._given_up = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._over = True
        self._given_up = kind is not None
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

    def _until(self, condition: Any) -> None:
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
                group.create_task(self._client(random.Random(number)))

    async def _client(self, rng: random.Random) -> None:
        limits = httpx.Limits(max_connections=len(self._urls))
        async with httpx.AsyncClient(
            limits=limits, timeout=PATIENCE_S, verify=False, trust_env=False
        ) as client:
            while not self._over:
                first = len(self.sent)
                events = [made(first + i) for i in range(rng.choice((1, 1, 1, 8)))]
                self.sent |= {event["id"]: event for event in events}
                body = events if len(events) > 1 else events[0]
                for _ in range(rng.choice((1, 1, 1, 2))):
                    await self._send(client, rng, body)
                await asyncio.sleep(rng.uniform(0.005, 0.03))

    async def _send(
        self, client: httpx.AsyncClient, rng: random.Random, body: Event | list[Event]
    ) -> None:
        while not self._given_up:
            number = rng.randrange(len(self._urls))
            asked_s = time.monotonic()
            try:
                answer = await client.post(f"{self._urls[number]}{self._path}/learn", json=body)
            except httpx.TransportError as error:
                self.trouble[type(error).__name__] += 1
            else:
                if answer.status_code == 200:
                    self._answers.append((asked_s, time.monotonic(), number))
                    self._note(body, answer.json())
                    return
                assert answer.status_code in (429, 503), answer.text
                assert int(answer.headers["retry-after"]) >= 1
                self.trouble[str(answer.status_code)] += 1
            await asyncio.sleep(rng.uniform(0.01, 0.05))

    def _note(self, body: Event | list[Event], answer: Any) -> None:
        events, answers = (body, answer) if isinstance(body, list) else ([body], [answer])
        for event, one in zip(events, answers, strict=True):
            self.acknowledged[event["id"]] = one["position"]
            self.first_s.setdefault(event["id"], time.monotonic())
            if not one["duplicate"]:
                self.counted[event["id"]].append(one["position"])
