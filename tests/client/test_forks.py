"""A client that is shared: by forked processes, threads and tasks. No answer is another one's."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hinged_service.client import AsyncClient, Client, RemoteClassifier
from tests.client.forking import PROCESSES, WAYS
from tests.support.redis_server import RedisServer
from tests.support.service import Service

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def url(module_server: RedisServer) -> Iterator[str]:
    with Service(module_server.url) as service:
        with Client(service.url) as api:
            for number in range(PROCESSES):
                learner = {"type": "perceptron", "learning_rate": 1}
                api.create_model(f"m{number}", {"learner": learner})
                api.learn(f"m{number}", {"a": number + 1}, True)
            for name in ("live", "gathered"):
                api.create_model(name, {"learner": {"type": "perceptron"}})
        yield service.url


@pytest.mark.parametrize("way", WAYS)
def test_a_forked_process_gets_no_foreign_answer(url: str, way: str) -> None:
    python = [sys.executable, "-W", "ignore::DeprecationWarning"]  # of forks beside threads
    command = [*python, "-m", "tests.client.forking", url, way]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_threads_share_a_client(url: str) -> None:
    with Client(url) as api, RemoteClassifier(url, "m0") as remote:

        def ask(value: int) -> bool:
            two = list(api.predict_many("m0", [{"a": value}, {"a": -value}]))
            found = [api.predict("m0", {"a": value}), *two]
            assert api.model(f"m{value % PROCESSES}").name == f"m{value % PROCESSES}"
            assert remote.score_one({"a": value}) == value + 1
            return [p.score for p in found] == [value + 1, value + 1, 1 - value]

        with ThreadPoolExecutor(16) as threads:
            assert all(threads.map(ask, range(300)))


async def test_tasks_share_a_client_even_if_some_are_cancelled(url: str) -> None:
    async with AsyncClient(url) as api:

        async def ask(value: int) -> float:
            return (await api.predict("m0", {"a": value})).score

        for turn in range(5):
            tasks = [asyncio.create_task(ask(value)) for value in range(100)]
            await asyncio.sleep(0.002 * turn)
            for task in tasks[::3]:
                task.cancel()
            found = await asyncio.gather(*tasks, return_exceptions=True)
            for value, answer in enumerate(found):
                assert answer == value + 1 or (
                    value % 3 == 0 and isinstance(answer, asyncio.CancelledError)
                )
        info = await asyncio.gather(*(api.model(f"m{n}") for n in range(PROCESSES)))
        assert [model.name for model in info] == [f"m{n}" for n in range(PROCESSES)]
