"""Servers that the tests share, and data sets that are too large to ship."""

from __future__ import annotations

import asyncio
import contextlib
import csv
import fcntl
import gc
import inspect
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest
import redis
from hypothesis import settings

from tests.support.drill_table import pytest_terminal_summary  # noqa: F401 - a hook
from tests.support.engine import Worker, worker
from tests.support.long_timeouts import LONG_TIMEOUTS
from tests.support.machine_clock import Clock, machine_clock
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer, server_binaries
from tests.support.running import running
from tests.support.shared_service import client, model, new_model, service  # noqa: F401
from tests.support.slow_service import slow  # noqa: F401

Event = tuple[dict[str, float], bool]
ON_BOTH = (
    *("store/", "follow/", "engine/delayed_labels/", "engine/upgrade/"),
    *("ingest/inbox/", "ingest/test_redis_stream", "ingest/test_predict_to"),
    "ingest/test_door_counts",
    *("engine/test_chain", "engine/test_guards", "engine/test_once", "engine/test_opening"),
    *("engine/test_redis_faults", "engine/test_shared_connection", "engine/test_snapshots"),
    *("engine/test_standing_still", "engine/test_trim"),
)
"""Tests that run on each kind of server, where a script or an error of it may differ."""

settings.register_profile("patient", settings(), deadline=None)
settings.load_profile("patient")


def _sees_both_servers(item: pytest.Item) -> bool:
    """Return whether a test of the shared server runs on each kind of it, not on Valkey alone.

    The kinds differ in scripts, streams and errors: the layers above see no more of that.
    """
    callspec = getattr(item, "callspec", None)
    if callspec is None or callspec.params.get("shared_server") != "redis":
        return True
    part = item.path.relative_to(Path(__file__).parent).as_posix()
    return part.startswith(ON_BOTH)


def pytest_configure() -> None:
    """Let children be interrupted also where the tests run in the background of a shell."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let each of several processes begin with its share of the tests that hold up the others.

    Those that run alone follow one another then, and none that is slow comes last,
    when the other processes have nothing left to do. Each is given one stretch of the
    tests at first, all stretches being of one length.
    """
    once = [item for item in items if not _sees_both_servers(item)]
    if once:
        config.hook.pytest_deselected(items=once)
        items[:] = [item for item in items if _sees_both_servers(item)]
    for item in items:
        if item.get_closest_marker("alone") or "alone" in getattr(item, "fixturenames", ()):
            item.add_marker("no_cover")  # to measure coverage takes time
    count = getattr(config, "workerinput", {}).get("workercount", 1)
    if count == 1:
        return

    def rank(item: pytest.Item) -> int:
        marks = ("alone", "slow")
        return next((i for i, mark in enumerate(marks) if item.get_closest_marker(mark)), 2)

    first = sorted((item for item in items if rank(item) < 2), key=rank)
    rest = [item for item in items if rank(item) == 2]
    left, ordered = len(items), []
    for number in range(count):
        begin = first[number::count]
        share = max(left // (count - number), len(begin))
        ordered += begin + rest[: share - len(begin)]
        del rest[: share - len(begin)]
        left -= share
    items[:] = ordered + rest


def pytest_collection_finish() -> None:
    """Do not look for garbage again and again among the thousands of tests, which stay."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine; it enters the asynchronous contexts among its arguments."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None

    async def run() -> None:
        async with contextlib.AsyncExitStack() as stack:
            given = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
            for name, value in given.items():
                if isinstance(value, contextlib.AbstractAsyncContextManager):
                    given[name] = await stack.enter_async_context(value)
            await pyfuncitem.obj(**given)

    asyncio.run(run())
    return True


class _Machine:
    """The machine of all test processes: one test has it alone, or many share it.

    Each test passes a gate first, so that a test that waits to be alone
    keeps newcomers out.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextlib.contextmanager
    def used(self, alone: bool) -> Iterator[IO[str]]:
        with (self._folder / "machine").open("w") as machine:
            self._enter(machine, alone)
            yield machine

    @contextlib.contextmanager
    def alone(self, machine: IO[str]) -> Iterator[None]:
        self._enter(machine, True)
        yield
        fcntl.flock(machine, fcntl.LOCK_SH)

    def _enter(self, machine: IO[str], alone: bool) -> None:
        with (self._folder / "gate").open("w") as gate:
            if alone:  # so that two that wait to be alone do not wait for each other
                fcntl.flock(machine, fcntl.LOCK_UN)
            fcntl.flock(gate, fcntl.LOCK_EX)
            fcntl.flock(machine, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)


Alone = Callable[[], contextlib.AbstractContextManager[None]]


@pytest.fixture(autouse=True)
def _machine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Alone]:
    """Let tests marked `alone` have the machine to themselves; all others share it."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield contextlib.nullcontext
        return
    machine = _Machine(tmp_path_factory.getbasetemp().parent)
    with machine.used(request.node.get_closest_marker("alone") is not None) as used:
        yield lambda: machine.alone(used)


@pytest.fixture
def alone(_machine: Alone) -> Alone:
    """Return what gives a test the machine to itself for a while: `with alone(): …`.

    A bound on time that is kept beside other tests is kept; one that is not may be
    the fault of the others, so the test judges again without them.
    """
    return _machine


@pytest.fixture
def clock(tmp_path: Path) -> Iterator[Clock]:
    """Return the clock by which to judge how long something takes."""
    with machine_clock(tmp_path) as clock:
        yield clock


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the service wait no longer than it does in production; such tests judge the waiting."""
    for name in list(LONG_TIMEOUTS):
        monkeypatch.delitem(LONG_TIMEOUTS, name)


def data_file(name: str) -> Path:
    path = Path(os.environ.get("HINGED_DATA", "")) / name
    if "HINGED_DATA" not in os.environ or not path.exists():
        pytest.skip(f"{name} is not there: point HINGED_DATA at the folder that holds it")
    return path


@pytest.fixture(scope="session")
def elec() -> list[Event]:
    """Electricity (Harries 1999): six numbers and whether the price goes up."""
    with data_file("elec.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    label = list(rows[0])[-1]
    positive = {"UP", "1", "True", "true"}
    return [({k: float(v) for k, v in r.items() if k != label}, r[label] in positive) for r in rows]


@pytest.fixture(scope="session")
def sms() -> list[Event]:
    """SMS Spam Collection (Almeida, Hidalgo): the set of words of each message."""
    with data_file("sms_spam.tsv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        (dict.fromkeys(sorted(set(r["SMS"].lower().split())), 1.0), r["Label"] == "spam")
        for r in rows
    ]


@pytest.fixture(scope="session", params=sorted(server_binaries()))
def shared_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    """A server for tests that do not kill it, once per kind of server."""
    directory: Path = tmp_path_factory.mktemp(request.param)
    with RedisServer(directory, server_binaries()[request.param]) as server:
        yield server


@pytest.fixture
def redis_url(shared_server: RedisServer) -> Iterator[str]:
    """The address of the shared server, which is empty before and after."""
    with shared_server.client() as connection:
        connection.flushall()
        yield shared_server.url
        connection.flushall()


@pytest.fixture
def db(shared_server: RedisServer) -> Iterator[redis.Redis]:
    """A plain client of the shared server, for looking and meddling."""
    with shared_server.client() as connection:
        yield connection


@pytest.fixture
def one(redis_url: str) -> contextlib.AbstractAsyncContextManager[Worker]:
    """A worker on the shared server, for a test that is a coroutine."""
    return worker(redis_url)


@pytest.fixture
def two(redis_url: str) -> contextlib.AbstractAsyncContextManager[Worker]:
    """Another one."""
    return worker(redis_url)


@pytest.fixture(scope="module")
def module_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Valkey that the tests of a module share."""
    with running(RedisServer(tmp_path_factory.mktemp("redis"))) as server:
        yield server


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Valkey of the test's own, to be killed, stopped or set back."""
    with RedisServer(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def own_db(own_server: RedisServer) -> Iterator[redis.Redis]:
    """A plain client of the test's own server, for tests that let it run."""
    with own_server.client() as connection:
        yield connection


@pytest.fixture
def own_proxy(own_server: RedisServer) -> Iterator[Proxy]:
    """A proxy before the test's own server."""
    with running(Proxy(own_server.port)) as one:
        yield one


@pytest.fixture
def proxy(own_proxy: Proxy) -> Proxy:
    """The same; tests of the engine have theirs before the shared server."""
    return own_proxy


@pytest.fixture(scope="session")
def letter() -> list[tuple[dict[str, float], str]]:
    """Letter Recognition (Frey, Slate 1991): sixteen whole numbers and one of 26 letters."""
    with data_file("letter.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [({f"x{i}": float(v) for i, v in enumerate(r[1:])}, r[0]) for r in rows]
