"""A Redis that would lose the log, or is no Redis, is refused at the start in plain words."""

import asyncio
import contextlib
import logging
import os
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from hinged_service.errors import StartupError, Unavailable
from hinged_service.settings import Settings
from hinged_service.store.connection import Connection
from tests.support.redis_server import RedisServer, free_port
from tests.support.running import serving


def check(url: str) -> None:
    async def connect() -> None:
        connection = Connection(url, Settings(redis_url=url))
        try:
            await connection.check_server()
        finally:
            await connection.aclose()

    asyncio.run(connect())


@pytest.fixture
def bare_server(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path / "redis")
    yield server
    server.kill()


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
def test_a_redis_that_evicts_any_key_is_refused(
    own_server: RedisServer, own_db: redis.Redis, policy: str
) -> None:
    own_db.config_set("maxmemory-policy", policy)
    with pytest.raises(StartupError, match=f"{policy}.*event log.*set it to noeviction"):
        check(own_server.url)


@pytest.mark.parametrize("policy", ["noeviction", "volatile-lru", "volatile-ttl"])
def test_a_redis_that_evicts_nothing_of_ours_is_taken(
    own_server: RedisServer, own_db: redis.Redis, policy: str
) -> None:
    own_db.config_set("maxmemory-policy", policy)
    check(own_server.url)


def test_the_process_ends_and_says_why(bare_server: RedisServer) -> None:
    bare_server.start("--maxmemory-policy", "allkeys-lru")
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "uvicorn", "--factory", "hinged_service.app:create_app"),
            *("--host", "127.0.0.1", "--port", str(free_port())),
        ],
        env=os.environ | {"HINGED_REDIS_URL": bare_server.url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode != 0
    assert "allkeys-lru" in ended.stderr
    assert "set it to noeviction" in ended.stderr


class _Old(socketserver.StreamRequestHandler):
    """Answers as a Redis of another version would; no such server can be had here."""

    info = b""

    def handle(self) -> None:
        while count := self.rfile.readline():
            words = []
            for _ in range(int(count[1:])):
                length = int(self.rfile.readline()[1:])
                words.append(self.rfile.read(length + 2)[:-2].upper())
            answer = b"$%d\r\n%b\r\n" % (len(self.info), self.info)
            self.wfile.write(answer if words[0] == b"INFO" else b"+OK\r\n")


@contextlib.contextmanager
def pretending(info: str) -> Iterator[str]:
    """Give the address of a server that says so of itself."""
    handler = type("Handler", (_Old,), {"info": f"# Server\r\n{info}\r\n".encode()})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"redis://127.0.0.1:{server.server_address[1]}/0"
        server.shutdown()


@pytest.mark.parametrize(
    ("info", "refusal"),
    [
        ("redis_version:6.2.14", "Redis 6.2.14 is too old"),
        ("redis_version:5.0.0", "Redis 5.0.0 is too old"),
        ("redis_version:7.2.4\r\nvalkey_version:7.1.9", "Valkey 7.1.9 is too old"),
        ("redis_version:7.0.0\r\nmaxmemory_policy:noeviction\r\naof_enabled:1", None),
        ("redis_version:7.2.4\r\nvalkey_version:7.2.0\r\naof_enabled:1", None),
        ("redis_version:10.0.0\r\naof_enabled:1", None),
    ],
)
def test_an_old_version_is_refused_by_its_name(info: str, refusal: str | None) -> None:
    with pretending(info) as url:
        if refusal is None:
            check(url)
        else:
            with pytest.raises(StartupError, match=f"{refusal}: use Redis 7.0 or Valkey 7.2"):
                check(url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:6379", "127.0.0.1:6379", "redis//x", ""])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(StartupError, match="Redis URL is wrong"):
        Connection(url, Settings())


def test_a_redis_without_an_append_only_file_is_warned_of(
    bare_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    bare_server.start("--appendonly", "no")
    with caplog.at_level(logging.WARNING):
        check(bare_server.url)
    assert "Set appendonly yes" in caplog.text


def test_a_redis_that_wants_a_password_is_named_as_such(
    bare_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    bare_server.start()
    with bare_server.client() as store:
        store.config_set("requirepass", "secret")
        for url in (bare_server.url, bare_server.url.replace("//", "//:wrong@")):
            with pytest.raises(Unavailable, match="refuses the user or the password"):
                check(url)
        store.acl_setuser("poor", enabled=True, passwords=["+x"], commands=["+ping"])
        with pytest.raises(Unavailable, match=r"refuses the user .*(no permissions|NOPERM)"):
            check(bare_server.url.replace("//", "//poor:x@"))
        check(bare_server.url.replace("//", "//:secret@"))
    with caplog.at_level(logging.WARNING), serving(bare_server.url) as client:
        answer = client.get("/readyz")
        assert answer.status_code == 503
        assert "secret" not in answer.text
    assert "password" in caplog.text
