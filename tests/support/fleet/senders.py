"""Clients that send each body of events, to any worker, until one acknowledges it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import httpx

from hinged_service.engine.live_model import AppendResult
from hinged_service.errors import ModelGone, NotFound, SetAside, Unavailable
from tests.support.fleet.faults import Fault

GIVE_UP_S = 60.0
_IMPATIENT = 0.04
"""Share of bodies whose first answer is not waited for."""

Event = dict[str, Any]
Body = Event | list[Event]


class Answer(NamedTuple):
    """Place of an event in the log, and whether it counted before."""

    position: str
    duplicate: bool


Ask = Callable[[random.Random, Body, bool], Awaitable[Sequence[Answer] | None]]
"""Ask a worker once, patiently or not; no answers if it does not acknowledge the body."""


def made(number: int) -> Event:
    """Return one of an endless row of different events whose order matters to a perceptron."""
    x = {"a": number % 7 / 10 - 0.3, f"n{number % 40}": 1 / (1 + number), "b": number % 5 - 2.0}
    return {"x": x, "y": number % 3 == 0, "id": f"e{number}"}


def in_bodies(rng: random.Random, events: Sequence[Event], sizes: Sequence[int]) -> list[Body]:
    """Return every event at least once, in arrays of some sizes, a third of them again later."""
    bodies: list[Body] = []
    rest = list(events)
    while rest:
        size = rng.choice(sizes)
        bodies.append(rest[:size])
        del rest[:size]
        if rng.random() < 0.3:
            bodies.append(rng.choice(bodies[-20:]))
    return bodies


class Senders:
    """Clients of some workers; a subclass says how to ask one.

    Attributes
    ----------
    acknowledged
        By event id the position of the last answer.
    counted
        By event id the positions at which it was acknowledged as new.
    first_s
        By event id, when it was first acknowledged, on the monotonic clock.
    positions
        Every position that an answer named.
    trouble
        What else came back, and how often.

    """

    def __init__(self) -> None:
        self.acknowledged: dict[str, str] = {}
        self.counted: defaultdict[str, list[str]] = defaultdict(list)
        self.first_s: dict[str, float] = {}
        self.positions: set[str] = set()
        self.trouble: Counter[str] = Counter()
        self.given_up = False

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Ask]:
        """Give one client's way to ask a worker."""
        raise NotImplementedError
        yield

    async def run(self, bodies: Sequence[Body], faults: Sequence[Fault], clients: int) -> None:
        """Send all bodies, with every fault under load; return when all are acknowledged."""
        jobs: asyncio.Queue[Body] = asyncio.Queue()
        share = len(bodies) // (len(faults) + 1)
        sending = iter(bodies)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._client(number, jobs)) for number in range(clients)]
            for fault in faults:
                for body in itertools.islice(sending, share):
                    jobs.put_nowait(body)
                while jobs.qsize() > share // 2:  # noqa: ASYNC110 - the queue has no such event
                    await asyncio.sleep(0.005)
                await fault()
            for body in sending:
                jobs.put_nowait(body)
            await jobs.join()
            for task in tasks:
                task.cancel()

    async def _client(self, number: int, jobs: asyncio.Queue[Body]) -> None:
        rng = random.Random(number)
        async with self.opened() as ask:
            while True:
                body = await jobs.get()
                async with asyncio.timeout(GIVE_UP_S):
                    await self.send(ask, rng, body, rng.random() < _IMPATIENT)
                jobs.task_done()

    async def send(self, ask: Ask, rng: random.Random, body: Body, impatient: bool = False) -> None:
        """Ask until a worker acknowledges the body."""
        events = body if isinstance(body, list) else [body]
        while not self.given_up:
            answers = await ask(rng, body, impatient)
            if answers is not None:
                for event, answer in zip(events, answers, strict=True):
                    self._note(event["id"], answer)
                return
            impatient = False
            await asyncio.sleep(rng.uniform(0.01, 0.05))

    def _note(self, name: str, answer: Answer) -> None:
        self.acknowledged[name] = answer.position
        self.positions.add(answer.position)
        self.first_s.setdefault(name, time.monotonic())
        if not answer.duplicate:
            self.counted[name].append(answer.position)


class HttpSenders(Senders):
    """Clients over HTTP.

    Parameters
    ----------
    urls
        Of the workers.
    path
        Returns the path of a model that takes the body.
    patience_s
        How long a client waits for an answer.

    """

    def __init__(
        self,
        urls: Sequence[str],
        path: Callable[[random.Random, Body], str],
        patience_s: float = 5.0,
    ) -> None:
        super().__init__()
        self._urls = urls
        self._path = path
        self._patience_s = patience_s
        self._answers: list[tuple[float, float, int]] = []  # when asked, when answered, by whom

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Ask]:
        """Give a client with a connection to each worker."""
        limits = httpx.Limits(max_connections=len(self._urls))
        async with httpx.AsyncClient(limits=limits, verify=False, trust_env=False) as client:

            async def ask(
                rng: random.Random, body: Body, impatient: bool
            ) -> Sequence[Answer] | None:
                number = rng.randrange(len(self._urls))
                url = f"{self._urls[number]}{self._path(rng, body)}/learn"
                asked_s = time.monotonic()
                try:
                    timeout_s = 0.01 if impatient else self._patience_s
                    response = await client.post(url, json=body, timeout=timeout_s)
                except httpx.TransportError as error:
                    self.trouble[type(error).__name__] += 1
                    return None
                if response.status_code != 200:
                    assert response.status_code in (429, 503), response.text
                    assert int(response.headers["retry-after"]) >= 1
                    self.trouble[str(response.status_code)] += 1
                    return None
                self._answers.append((asked_s, time.monotonic(), number))
                documents = response.json() if isinstance(body, list) else [response.json()]
                return [Answer(one["position"], one["duplicate"]) for one in documents]

            yield ask


class LocalWorker(Protocol):
    """A worker of this process."""

    async def kill(self) -> None:
        """Stop where it stands."""


W = TypeVar("W", bound=LocalWorker)


class LocalSenders(Senders, Generic[W]):
    """Clients of workers in this process, which may be killed in the middle of a call.

    Parameters
    ----------
    workers
        Any of them is asked.
    learn
        Does what `POST learn` does.
    may_refuse
        Whether a worker may refuse to serve a model, as one of another version does.

    Attributes
    ----------
    refused
        Reasons of such refusals.
    dead
        Workers that were killed.

    """

    def __init__(
        self,
        workers: list[W],
        learn: Callable[[random.Random, W, list[Event]], Awaitable[AppendResult]],
        may_refuse: bool = False,
    ) -> None:
        super().__init__()
        self.workers = workers
        self.dead: list[W] = []
        self.refused: list[str] = []
        self._learn = learn
        self._may_refuse = may_refuse
        self._attempts: defaultdict[W, set[asyncio.Future[AppendResult]]] = defaultdict(set)

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Ask]:
        """Give the way to ask any worker."""
        yield self._ask

    async def _ask(self, rng: random.Random, body: Body, _: bool) -> Sequence[Answer] | None:
        events = body if isinstance(body, list) else [body]
        one = rng.choice(self.workers)
        task = asyncio.ensure_future(self._learn(rng, one, events))
        self._attempts[one].add(task)
        await asyncio.wait([task], timeout=1)
        self._attempts[one].discard(task)
        if not task.done() or task.cancelled():  # a killed worker does not answer
            task.cancel()
            self.trouble["unanswered"] += 1
            return None
        error = task.exception()
        if isinstance(error, SetAside):
            assert self._may_refuse, f"a sound model is set aside: {error.detail}"
            self.refused.append(error.detail)
            return None
        if isinstance(error, (Unavailable, NotFound, ModelGone)):
            self.trouble[type(error).__name__] += 1
            return None
        return [Answer("", outcome is None) for outcome in task.result().outcomes]

    async def replace(self, number: int, new: W) -> None:
        """Kill a worker; another takes its place."""
        old, self.workers[number] = self.workers[number], new
        self.dead.append(old)
        for task in self._attempts.pop(old, ()):
            task.cancel()
        await old.kill()

    async def stop(self) -> None:
        """Kill all workers."""
        for one in [*self.workers, *self.dead]:
            await one.kill()
