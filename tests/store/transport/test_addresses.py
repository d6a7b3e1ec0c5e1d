"""Addresses of a Redis: what each form means, what is refused, and that no password is told."""

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from hinged_service.errors import StartupError, Unavailable
from hinged_service.store.transport.address import parse
from tests.support.cluster import Cluster
from tests.support.engine import connected
from tests.support.redis_server import RedisServer, free_port, server_binaries
from tests.support.sentinel import SERVICE, SentinelTrio
from tests.support.tls import Certificates, TlsServer, speaks_tls

SECRET = "hush"
THREE = (("a", 1), ("b", 26379), ("::1", 3))


@pytest.mark.parametrize(
    ("url", "places", "login"),
    [
        ("redis://a", (("a", 6379),), {"db": 0}),
        ("redis://a:1/3", (("a", 1),), {"db": 3}),
        ("redis://u:p%40%2F@[::1]:3?db=2", (("::1", 3),), {"db": 2} | {"username": "u"}),
        ("redis://:p%40%2F@a", (("a", 6379),), {"db": 0}),
        ("unix://u:p%40%2F@/run/my%20redis?db=1", (), {"db": 1, "username": "u"}),
        ("redis+sentinel://u:p%40%2F@a:1,b,[::1]:3/s?db=4", THREE, {"db": 4, "username": "u"}),
        ("redis+cluster://a:1,b:26379,[::1]:3", THREE, {"db": 0}),
    ],
)
def test_what_an_address_says(
    url: str, places: tuple[tuple[str, int], ...], login: dict[str, object]
) -> None:
    address = parse(url)
    assert address.places == places
    expected = login | ({"password": "p@/"} if "%2F" in url else {})
    assert address.login == expected
    assert (address.path, address.service) == (
        "/run/my redis" if url.startswith("unix") else "",
        "s" if "sentinel" in url else "",
    )


@pytest.mark.parametrize(
    "url",
    [
        f"http://u:{SECRET}@a",
        f"redis://u:{SECRET}#@a",
        f"redis://u:{SECRET}/@a",
        f"redis://u:?{SECRET}@a",
        f"redis://u:{SECRET}@a:b",
        f"redis://u:{SECRET}@a:65536",
        f"redis://u:{SECRET}@a:1,b:2",
        f"redis://u:{SECRET}@a/zero",
        f"redis://u:{SECRET}@a?retry_on_timeout=true",
        f"redis://u:{SECRET}@a?ssl_ca_certs=/etc/ca.pem",
        f"rediss://u:{SECRET}@a?ssl_cert_reqs=none",
        f"rediss://u:{SECRET}@a?ssl_check_hostname={SECRET}",
        f"redis+sentinel://u:{SECRET}@a:1,b:2",
        f"redis+cluster://u:{SECRET}@a:1,,b:2",
        f"redis+cluster://u:{SECRET}@a:1?db=1",
        "redis://",
        "unix://",
        f"unix://u:{SECRET}@run/redis.sock",
        SECRET,
    ],
)
def test_a_bad_address_is_refused_without_telling_it(url: str) -> None:
    with pytest.raises(StartupError) as refused:
        parse(url)
    assert SECRET not in str(refused.value)


def test_an_address_is_told_without_what_lets_one_in() -> None:
    url = f"redis+sentinel://u:{SECRET}@a:1,[::1]:2/s?sentinel_password={SECRET}"
    address = parse(url)
    assert str(address) == "a:1,[::1]:2 (Sentinels of s)"
    assert SECRET not in repr(address)


def test_the_password_may_be_in_a_file(
    own_server: RedisServer, own_db: redis.Redis, tmp_path: Path
) -> None:
    own_db.acl_setuser("u", enabled=True, passwords=["+p w"], categories=["+@all"], keys=["*"])
    file = tmp_path / "password"
    file.write_text("p w\n")
    url = own_server.url.replace("://", "://u@")
    assert asked(url, redis_password_file=file) == ""
    for text in ("another", ""):
        file.write_text(text)
        assert "password" in asked(url, redis_password_file=file)


def asked(url: str, **changes: object) -> str:
    """Return what is wrong with a Redis, or nothing."""

    async def ask() -> None:
        async with connected(url, **({"redis_timeout_ms": 5_000} | changes)) as connection:
            await connection.check_server()
            await connection.check_writable()

    try:
        asyncio.run(ask())
    except (StartupError, Unavailable) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def test_an_address_of_another_shape_is_told(cluster: Cluster, trio: SentinelTrio) -> None:
    node, sentinel = cluster.nodes[0].port, trio.sentinels[0].port
    one = trio.servers[0].port
    at = "127.0.0.1"
    assert "redis+cluster://" in asked(f"redis://{at}:{node}")
    assert "redis+sentinel://" in asked(f"redis://{at}:{sentinel}")
    assert asked(f"redis+cluster://{at}:{one}").startswith("StartupError: The Redis URL says")
    answer = asked(f"redis+sentinel://{at}:{sentinel}/else")
    assert "No Sentinel names a server of 'else' that is a primary" in answer
    assert "No Sentinel" in asked(f"redis+sentinel://{at}:{one}/{SERVICE}")
    assert "No node" in asked(f"redis+cluster://{at}:{free_port()}")
    assert asked(f"redis+cluster://{at}:{free_port()},{at}:{node}") == ""


def test_each_primary_of_a_cluster_is_looked_at(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    for option, bad, good in (
        ("maxmemory-policy", "allkeys-lru", "noeviction"),
        ("appendonly", "no", "yes"),
    ):
        with cluster.nodes[2].client() as client:
            client.config_set(option, bad)
            found = asked(cluster.url)
            client.config_set(option, good)
        if option == "maxmemory-policy":
            assert "would evict" in found
    messages = [record.message for record in caplog.records if "append-only file" in record.message]
    assert ["has no append-only file" in text for text in messages] == [True]
    assert asked(cluster.url) == ""


def test_a_sentinel_that_hangs_is_no_obstacle(trio: SentinelTrio) -> None:
    process = trio.sentinels[0]._process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        assert asked(trio.url) == ""
    finally:
        process.send_signal(signal.SIGCONT)


def test_sentinels_may_want_a_password_of_their_own(trio: SentinelTrio) -> None:
    for sentinel in trio.sentinels:
        sentinel.ask("ACL", "SETUSER", "watcher", "on", f">{SECRET}", "+@all", "allchannels")
    own = f"{trio.url}?sentinel_username=watcher&sentinel_password="
    assert asked(f"{own}{SECRET}") == ""
    found = asked(f"{own}other")
    assert found.startswith("Refused: Redis refuses the user or the password")


@pytest.mark.parametrize("shape", ["one", "sentinel", "cluster"])
def test_a_wrong_password_is_told(trio: SentinelTrio, cluster: Cluster, shape: str) -> None:
    url = {"one": trio.servers[0].url, "sentinel": trio.url, "cluster": cluster.url}[shape]
    found = asked(url.replace("://", f"://hinged:{SECRET}@"))
    assert found.startswith("Refused: Redis refuses the user or the password")
    assert SECRET not in found


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsServer]:
    """A server that wants certificates, and whose own is for another host."""
    binary = server_binaries().get("redis")
    if binary is None or not speaks_tls(binary):
        pytest.skip("HINGED_TEST_REDIS_SERVER names no redis-server with TLS")
    server = TlsServer(tmp_path_factory.mktemp("tls") / "redis", binary, "redis.example")
    server.start()
    yield server
    server.kill()


def test_a_certificate_is_for_a_host(tls: TlsServer) -> None:
    assert "do not agree on TLS" in asked(tls.url)
    assert "match" in asked(tls.url)
    assert asked(f"{tls.url}&ssl_check_hostname=false") == ""


def test_a_certificate_is_of_a_known_authority(tls: TlsServer, tmp_path: Path) -> None:
    other = Certificates(tmp_path, "127.0.0.1")
    url = f"rediss://127.0.0.1:{tls.port}?{other.query}&ssl_check_hostname=false"
    assert "do not agree on TLS" in asked(url)
    assert asked(f"rediss://127.0.0.1:{tls.port}?ssl_check_hostname=false").startswith(
        "Unavailable: Redis and the service do not agree on TLS"
    )
    assert asked(f"redis://127.0.0.1:{tls.port}") != ""


@pytest.mark.parametrize("option", ["ssl_ca_certs", "ssl_certfile"])
def test_files_for_tls_are_there_when_it_starts(tmp_path: Path, option: str) -> None:
    assert asked(f"rediss://127.0.0.1?{option}={tmp_path}/none.pem").startswith("StartupError")


def test_a_tls_cluster_and_tls_sentinels_are_spoken_to(tls: TlsServer) -> None:
    """Both shapes speak TLS to the first server that they know."""
    query = f"{tls.certificates.query}&ssl_check_hostname=false"
    cluster = f"rediss+cluster://127.0.0.1:{tls.port}?{query}"
    assert asked(cluster).startswith("StartupError: The Redis URL says redis+cluster://")
    sentinel = f"rediss+sentinel://127.0.0.1:{tls.port}/s?{query}"
    assert "No Sentinel names a server of 's' that is a primary" in asked(sentinel)
    for shape in (cluster, sentinel):
        unlike = shape.replace("&ssl_check_hostname=false", "")
        assert "do not agree on TLS" in asked(unlike)


def test_a_connection_can_be_closed_at_any_time(trio: SentinelTrio, cluster: Cluster) -> None:
    async def course(url: str) -> None:
        async with connected(url) as connection:
            task = asyncio.create_task(connection.check_server())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    for url in (trio.url, cluster.url):
        asyncio.run(course(url))


def test_cancelled_calls_leave_no_answer_for_others(cluster: Cluster, trio: SentinelTrio) -> None:
    keys = [f"hinged:{{c{n}}}:meta" for n in range(4)]

    async def course(url: str) -> None:
        async with connected(url, redis_connections=2) as connection:
            for turn in range(100):
                calls = [asyncio.create_task(connection.hget(key, "f")) for key in keys]
                for _ in range(turn % 7):
                    await asyncio.sleep(0)
                for call in calls[::2]:
                    call.cancel()
                found = await asyncio.gather(*calls, return_exceptions=True)
                for answer, key in zip(found, keys, strict=True):
                    assert answer == key or isinstance(answer, asyncio.CancelledError)
            for key in keys:
                assert await connection.hget(key, "f") == key

    for url, nodes in ((cluster.url, cluster.nodes), (trio.url, trio.servers[:1])):
        for key in keys:
            holder = cluster.primary_of(key) if nodes is cluster.nodes else nodes[0]
            with holder.client() as client:
                client.hset(key, "f", key)
        asyncio.run(course(url))
