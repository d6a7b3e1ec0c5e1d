"""Check of a server before its use: it must not lose the log."""

from __future__ import annotations

import logging

from hinged_service.errors import StartupError
from hinged_service.store.transport.pool import Pool

__all__ = ["check"]

logger = logging.getLogger(__name__)


async def check(server: Pool, of_cluster: bool) -> None:
    """Refuse a server that would lose the log.

    Raises
    ------
    StartupError
        It is too old, may evict the log, or is of another topology than the address says;
        the message says what to set.

    """
    info = _parsed(await server.ask("INFO"))
    valkey = "valkey_version" in info
    name = "Valkey" if valkey else "Redis"
    version = info.get("valkey_version") or info["redis_version"]
    least = (7, 2) if valkey else (7, 0)
    if tuple(int(part) for part in version.split(".")[:2]) < least:
        raise StartupError(f"{name} {version} is too old: use Redis 7.0 or Valkey 7.2, or newer.")
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
    policy = info.get("maxmemory_policy", "noeviction")
    if policy.startswith("allkeys"):
        raise StartupError(
            f"{name} has maxmemory-policy {policy}, which would evict the event log: "
            "set it to noeviction."
        )
    if info.get("aof_enabled", "0") == "0":
        logger.warning(
            "%s has no append-only file: what it learned since its last dump is lost when it "
            "stops. Set appendonly yes.",
            name,
        )


def _parsed(text: bytes) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.decode().splitlines())
    return {name: value for name, colon, value in pairs if colon}
