"""A program that forks with clients that are in use: `python -m … URL WAY`.

Model `m<k>` scores k + 1 times the value of `a`, plus 1. Each process asks for values of
its own, so an answer to another one's question shows.
"""

import asyncio
import multiprocessing
import os
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from hinged_service.client import (
    AsyncClient,
    Client,
    ClientError,
    LiveModel,
    LiveOutcome,
    RemoteClassifier,
)

PROCESSES, CALLS = 4, 40


def forked(work: Callable[[int], None]) -> None:
    """Do the work in this process and in some that it forks; all must succeed."""
    children = []
    for number in range(1, PROCESSES):
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                work(number)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        children.append(pid)
    work(0)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0] * len(
        children
    )


def score(number: int, call: int) -> tuple[dict[str, float], float]:
    value = float(number * CALLS + call)
    return {"a": value}, value + 1


def client(url: str) -> None:
    with Client(url) as api:
        api.predict("m0", {"a": 1})

        def work(number: int) -> None:
            for call in range(CALLS):
                x, expected = score(number, call)
                assert api.predict("m0", x).score == expected
            many = [score(number, call) for call in range(CALLS)]
            found = api.predict_many("m0", [x for x, _ in many], batch_events=7)
            assert [p.score for p in found] == [expected for _, expected in many]

        forked(work)
        forked(work)  # the children of a process that had them before


def management(url: str) -> None:
    with Client(url) as api:
        api.streams()

        def work(number: int) -> None:
            for _ in range(CALLS):
                assert api.model(f"m{number}").name == f"m{number}"
                assert api.stream(f"m{number}").stream == f"m{number}"
                assert api.weights(f"m{number}").weights == {"a": number + 1.0}
                assert len(api.models()) >= PROCESSES

        forked(work)


def remote(url: str) -> None:
    with RemoteClassifier(url, "m0") as model:
        model.predict_one({"a": 1})

        def work(number: int) -> None:
            for call in range(CALLS):
                x, expected = score(number, call)
                assert model.score_one(x) == expected

        forked(work)


def gathered(url: str) -> None:
    with RemoteClassifier(url, "gathered", batch=10) as model, Client(url) as api:
        for n in range(5):
            model.learn_one({"a": 1.0 + n}, True)
        forked(lambda _: model.flush())
        assert api.model("gathered").events == 5


def pool(url: str) -> None:
    global _api
    _api = Client(url)
    _api.predict("m0", {"a": 1})
    with multiprocessing.get_context("fork").Pool(PROCESSES) as workers:
        values = range(PROCESSES * CALLS)
        assert workers.map(_asked, values, chunksize=1) == [n + 1.0 for n in values]
    assert _asked(7) == 8.0
    _api.close()


def _asked(value: int) -> float:
    return _api.predict("m0", {"a": value}).score


_api: Client


def asyncio_(url: str) -> None:
    api = AsyncClient(url)

    async def ask(number: int) -> None:
        asked = [score(number, call) for call in range(CALLS)]
        found = await asyncio.gather(*(api.predict("m0", x) for x, _ in asked))
        assert [p.score for p in found] == [expected for _, expected in asked]

    async def main() -> None:
        await ask(9)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                thread = threading.Thread(target=asyncio.run, args=(in_child(),))
                thread.start()  # the loop of this one is the parent's
                thread.join()
                code = 0 if done else 1
            finally:
                os._exit(code)
        for _ in range(5):
            await ask(0)
        assert os.waitstatus_to_exitcode((await asyncio.to_thread(os.waitpid, pid, 0))[1]) == 0
        await api.close()

    done: list[bool] = []

    async def in_child() -> None:
        for _ in range(5):
            await ask(1)
        await api.close()
        done.append(True)

    asyncio.run(main())


def live(url: str) -> None:
    with Client(url) as api, Client(url) as teacher:
        events = api.events("live")
        assert isinstance(next(events), LiveModel)
        for n in range(3):
            teacher.learn("live", {"a": 1.0}, True, id=f"live-{n}")

        def work(number: int) -> None:
            if number == 0:
                outcomes = (event for event in events if isinstance(event, LiveOutcome))
                assert [next(outcomes).id for _ in range(3)] == [f"live-{n}" for n in range(3)]
            else:
                assert any(isinstance(event, LiveModel) for event in events)  # connected again

        forked(work)
        events.close()


def transport(url: str) -> None:
    with Client(url, transport=httpx.HTTPTransport()) as api:
        api.predict("m0", {"a": 1})

        def work(number: int) -> None:
            if number == 0:
                assert api.predict("m0", {"a": 3}).score == 4
                return
            with pytest.raises(ClientError, match="fork"):
                api.predict("m0", {"a": 2})
            api.close()

        forked(work)


def closed(url: str) -> None:
    api = Client(url)
    api.predict("m0", {"a": 1})
    api.close()

    def work(_: int) -> None:
        with pytest.raises(RuntimeError, match="closed"):
            api.predict("m0", {"a": 2})

    forked(work)


def threads(url: str) -> None:
    with Client(url) as api:
        stop = threading.Event()
        wrong: list[Any] = []

        def use(number: int) -> None:
            call = 0
            while not stop.is_set():
                x, expected = score(number, call := call + 1)
                found = api.predict("m0", x).score
                if found != expected:
                    wrong.append((found, expected))

        using = [threading.Thread(target=use, args=(10 + n,)) for n in range(4)]
        for thread in using:
            thread.start()

        def work(number: int) -> None:
            for call in range(10):
                x, expected = score(number, call)
                assert api.predict("m0", x).score == expected

        for _ in range(5):
            forked(work)
        stop.set()
        for thread in using:
            thread.join()
        assert not wrong, wrong


WAYS = {
    "client": client,
    "management": management,
    "remote": remote,
    "gathered": gathered,
    "pool": pool,
    "asyncio": asyncio_,
    "live": live,
    "transport": transport,
    "closed": closed,
    "threads": threads,
}

if __name__ == "__main__":
    WAYS[sys.argv[2]](sys.argv[1])
