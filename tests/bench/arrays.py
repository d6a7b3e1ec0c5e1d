"""Arrays of 500 learned in one call, as a multiple of decoding them, and where the time goes."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import orjson
from starlette.types import Message

import hinged_service.api.events
from hinged_service.app import create_app
from hinged_service.engine.replica import Replica
from hinged_service.settings import Settings
from hinged_service.store.log import EventLog
from hinged_service.wire.decoding import parse_events
from hinged_service.wire.dedup import mark
from tests.bench.events import FEATURES, POOL, made_events
from tests.bench.http_calls import MODEL, create_model
from tests.bench.load import Caller
from tests.bench.servers import BARE, SERVICE, Server, cpu_s, running
from tests.bench.table import Row
from tests.support.redis_server import RedisServer

SIZE = 500
VARIANTS = 16
TARGETS = {(False, False): 2.2, (False, True): 1.5, (True, False): 7.0, (True, True): 7.0}
"""By whether events have ids, and whether they have 30 names of 20,000."""
PATH = f"{MODEL}/learn"
_numbers = itertools.count()


class Bodies:
    """Arrays of 500 events; with ids, no id comes twice.

    Their 30 features are always the same ones, or 30 out of 20,000: then the
    decoders' caches of names do not help.
    """

    def __init__(self, with_ids: bool, sparse: bool = False) -> None:
        events = made_events(SIZE * VARIANTS, POOL if sparse else FEATURES)
        if with_ids:
            events = [event | {"id": f"########-{n % SIZE}"} for n, event in enumerate(events)]
        self._templates = [
            orjson.dumps(events[start : start + SIZE]) for start in range(0, len(events), SIZE)
        ]

    def next(self) -> bytes:
        """Return a body that was never sent before."""
        number = next(_numbers)
        return self._templates[number % VARIANTS].replace(b"########", b"%08x" % number)


def measure(folder: Path, rounds: int, calls: int) -> list[Row]:
    """Return the rows; every round makes `calls` calls of each kind."""
    with RedisServer(folder / "arrays") as server:
        service = Server(SERVICE, HINGED_REDIS_URL=server.url)
        with running(service):
            create_model(service)
            rows: list[Row] = []
            for with_ids in (False, True):
                rows += _as_multiples(service, server, with_ids, False, rounds, calls)
                rows += _where(server.url, with_ids, calls * rounds // 2)
            for with_ids in (False, True):  # from here on the model knows 20,000 names
                rows += _as_multiples(service, server, with_ids, True, rounds, calls)
    return rows


def _name(with_ids: bool) -> str:
    return f"array learn {'with' if with_ids else 'without'} ids"


def _as_multiples(
    service: Server, redis: RedisServer, with_ids: bool, sparse: bool, rounds: int, calls: int
) -> list[Row]:
    bodies = Bodies(with_ids, sparse)
    alone: list[float] = []
    busy: list[float] = []
    worker: list[float] = []
    store: list[float] = []
    decoding: list[float] = []
    with Caller(service.port, PATH) as caller:
        for _ in range(10):
            caller.post(bodies.next())
    for _ in range(rounds):
        whole, decode = [], []
        worker_s, store_s = service.cpu_s(), cpu_s(redis.pid)
        with Caller(service.port, PATH) as caller:
            for _ in range(calls):
                body = bodies.next()
                decode.append(_decode_s(body))
                whole.append(caller.timed_post(body)[0])
        worker.append((service.cpu_s() - worker_s) / (calls * SIZE) * 1e6)
        store.append((cpu_s(redis.pid) - store_s) / (calls * SIZE) * 1e6)
        alone.append(median(whole) / median(decode))
        decoding.append(median(decode) / SIZE * 1e6)
        busy.append(_seconds_per_call(service, bodies, calls) / median(decode))
    name = _name(with_ids) + (", 30 of 20,000 names" if sparse else ", 30 names")
    target = TARGETS[with_ids, sparse]
    return [
        Row(f"{name}, one caller / orjson.loads", alone, target=target, at_most=True),
        Row(f"{name}, two connections / orjson.loads", busy, target=target, at_most=True),
        Row(f"{name}: orjson.loads", decoding, "µs/event"),
        Row(f"{name}, one caller: processor of the worker", worker, "µs/event"),
        Row(f"{name}, one caller: processor of Redis", store, "µs/event"),
    ]


def _decode_s(body: bytes) -> float:
    started_s = time.perf_counter()
    orjson.loads(body)
    return time.perf_counter() - started_s


def _seconds_per_call(service: Server, bodies: Bodies, calls: int) -> float:
    """Return the time per call while two connections send without a pause."""

    def send(mine: list[bytes]) -> None:
        with Caller(service.port, PATH) as caller:
            for body in mine:
                caller.post(body)

    shares = [[bodies.next() for _ in range(calls)] for _ in range(2)]
    threads = [threading.Thread(target=send, args=(share,)) for share in shares]
    started_s = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.perf_counter() - started_s) / (2 * calls)


# Where the time goes: the app in this process, without HTTP, its steps clocked one by one.


def _where(redis_url: str, with_ids: bool, calls: int) -> list[Row]:
    bodies = Bodies(with_ids)
    spent: dict[str, list[float]] = defaultdict(list)
    with _clocked(spent):
        answer = asyncio.run(_called_in_process(redis_url, bodies, calls, spent))
    steps = {name: median(times[-calls:]) for name, times in spent.items()}
    whole_s = steps.pop("whole")
    if with_ids:
        steps["digests of the contents"] = _digests_s(bodies, calls)
    steps["answer and the rest"] = whole_s - sum(steps.values())
    steps["transport (bare ASGI, no decoding)"] = _transport_s(bodies, answer, calls)
    prefix = f"{_name(with_ids)}: "
    return [Row(prefix + name, [s / SIZE * 1e6], "µs/event") for name, s in steps.items()]


@contextlib.contextmanager
def _clocked(spent: dict[str, list[float]]) -> Iterator[None]:
    hot: Any = hinged_service.api.events
    places: list[tuple[Any, str, str]] = [
        (hot, "parse_events", "decode and validate"),
        (Replica, "fold_entry", "fold"),
        (EventLog, "append", "append: pack, Redis, unpack"),
    ]
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    for owner, name, step in places:
        setattr(owner, name, _timed(getattr(owner, name), spent[step]))
    try:
        yield
    finally:
        for owner, name, original in kept:
            setattr(owner, name, original)


def _timed(function: Callable[..., Any], times: list[float]) -> Callable[..., Any]:
    if asyncio.iscoroutinefunction(function):

        async def timed_async(*args: Any, **kwargs: Any) -> Any:
            started_s = time.perf_counter()
            result = await function(*args, **kwargs)
            times.append(time.perf_counter() - started_s)
            return result

        return timed_async

    def timed(*args: Any, **kwargs: Any) -> Any:
        started_s = time.perf_counter()
        result = function(*args, **kwargs)
        times.append(time.perf_counter() - started_s)
        return result

    return timed


async def _called_in_process(
    redis_url: str, bodies: Bodies, calls: int, spent: dict[str, list[float]]
) -> bytes:
    """Send `calls` bodies to the app itself, after some to warm up; return the last answer."""
    app = create_app(Settings(redis_url=redis_url))
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": PATH,
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }
    async with app.router.lifespan_context(app):
        for _ in range(calls + 5):
            answers: list[Message] = []

            async def receive(body: bytes = bodies.next()) -> Message:
                return {"type": "http.request", "body": body, "more_body": False}

            async def send(message: Message, answers: list[Message] = answers) -> None:
                answers.append(message)

            started_s = time.perf_counter()
            await app(dict(scope), receive, send)
            spent["whole"].append(time.perf_counter() - started_s)
            assert answers[0]["status"] == 200, answers
        answer: bytes = answers[1]["body"]
        return answer


def _digests_s(bodies: Bodies, calls: int) -> float:
    times: list[float] = []
    for _ in range(calls):
        events = parse_events(bodies.next(), SIZE)[0]
        started_s = time.perf_counter()
        for event in events:
            mark(0, event)
        times.append(time.perf_counter() - started_s)
    return median(times)


def _transport_s(bodies: Bodies, answer: bytes, calls: int) -> float:
    """Return the seconds a call takes that only moves the bodies, there and back."""
    bare = Server(BARE, BENCH_DECODE="0", BENCH_ANSWER=answer.decode())
    with running(bare), Caller(bare.port, "/") as caller:
        return median(caller.timed_post(bodies.next())[0] for _ in range(calls))
