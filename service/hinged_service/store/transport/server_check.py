"""Checks of a server, before its use and while it is used: it must not lose the log."""

from __future__ import annotations

import math
import time
from typing import Final, NamedTuple

from hinged_service.errors import StartupError
from hinged_service.store.transport.connection_pool import ConnectionPool

__all__ = ["Condition", "inspect"]

_MENDED: Final = {(7, 2): 15, (8, 0): 11, (8, 1): 10, (9, 0): math.inf, (9, 1): 2}
"""First release of each line of Valkey that cuts its append-only file before a torn transaction.

Newer lines have it from their first release. Of 9.0 and of Redis no such release is known; Redis
7.0.15 was seen to bring a torn transaction back at the second start.
"""


_TEARS: Final = (
    "{}, killed while it writes and started twice, may bring back an append that it had dropped "
    "(a transaction torn in its append-only file): use Valkey 7.2.15, 8.0.11, 8.1.10, 9.1.2 "
    "or newer. No release of Redis is known that does not."
)
_FULL: Final = 0.9
_CLOCK_S: Final = 2.0


class Condition(NamedTuple):
    """The state of a server, as far as its data depend on it.

    Each text states what is wrong and what to do, and is empty if nothing is.

    Attributes
    ----------
    name
        Its kind and version.
    fault
        Why it would lose the log.
    volatile
        It has no append-only file.
    tears
        It may bring back a transaction at whose writing it was killed, if it has such a file.
    memory
        Its memory is nearly full, or has no bound and most of the machine's.
    clock
        Its clock is not that of this machine.
    replicas
        Replicas that follow it.

    """

    name: str
    fault: str
    volatile: str
    tears: str
    memory: str
    clock: str
    replicas: int


async def inspect(server: ConnectionPool, of_cluster: bool) -> Condition:
    """Return the condition of a server.

    Raises
    ------
    StartupError
        It is too old, or of another topology than the address; the message states what to set.

    """
    asked_s = time.time()
    info = _parsed(await server.ask("INFO"))
    valkey = "valkey_version" in info
    name = "Valkey" if valkey else "Redis"
    text = info.get("valkey_version") or info["redis_version"]
    version = _numbers(text)
    least = (7, 2) if valkey else (7, 0)
    if version[:2] < least:
        raise StartupError(f"{name} {text} is too old: use Redis 7.0 or Valkey 7.2, or newer.")
    if info.get("redis_mode", info.get("server_mode")) == "sentinel":
        raise StartupError(
            "That is a Sentinel: write the address as redis+sentinel://HOST:PORT,HOST:PORT/SERVICE."
        )
    if info.get("cluster_enabled") == "1" and not of_cluster:
        sizes = _parsed(await server.ask("CLUSTER", "INFO"))
        if int(sizes["cluster_size"]) > 1:
            raise StartupError(
                "That is a node of a cluster: write the address as redis+cluster://HOST:PORT."
            )
    name = f"{name} {text}"
    volatile = info.get("aof_enabled", "0") == "0"
    tears = not valkey or version[2] < _MENDED.get(version[:2], 0)
    return Condition(
        name,
        _fault(name, info),
        f"{name} has no append-only file: events since its last dump are lost when it stops. "
        "Set appendonly yes."
        if volatile
        else "",
        _TEARS.format(name) if tears else "",
        _memory(name, info),
        _clock(name, info, asked_s),
        int(info.get("connected_slaves", "0")),
    )


def _fault(name: str, info: dict[str, str]) -> str:
    policy = info.get("maxmemory_policy", "noeviction")
    if policy.startswith("allkeys"):
        return (
            f"{name} has maxmemory-policy {policy}, which would evict the event log: "
            "set it to noeviction."
        )
    if info.get("role") == "slave" and info.get("slave_read_only") == "0":
        return (
            f"{name} is a replica that takes writes, which it would lose with the next "
            "synchronization: write the address of its primary, or set replica-read-only yes."
        )
    return ""


def _memory(name: str, info: dict[str, str]) -> str:
    used, most, machine = (
        int(info.get(field, "0")) for field in ("used_memory", "maxmemory", "total_system_memory")
    )
    if most and used > _FULL * most:
        return (
            f"{name} uses {used / most:.0%} of its maxmemory: raise it, or delete models and "
            "checkpoints; learning is refused when it is full."
        )
    if machine and not most and used > machine / 2:
        return (
            f"{name} uses {used / machine:.0%} of the machine's memory, and a rewrite of its "
            "append-only file may take as much again: set maxmemory to half of the memory."
        )
    return ""


def _clock(name: str, info: dict[str, str], asked_s: float) -> str:
    server_s = int(info.get("server_time_usec", "0")) / 1e6
    late_s = asked_s - server_s, server_s - time.time()
    if server_s and max(late_s) > _CLOCK_S:
        return (
            f"The clock of {name} is {max(late_s):.0f} s {'behind' if late_s[0] > 0 else 'ahead'}: "
            "times of entries and of late labels come from it. Set both clocks by NTP."
        )
    return ""


def _numbers(version: str) -> tuple[int, int, int]:
    parts = [int(part) if part.isdecimal() else 0 for part in version.split(".")[:3]]
    major, minor, patch, *_ = [*parts, 0, 0, 0]
    return major, minor, patch


def _parsed(text: bytes) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.decode().splitlines())
    return {name: value for name, colon, value in pairs if colon}
