"""How a million models spread over the shards of a Redis Cluster and over workers, simulated.

Shards and workers are chosen by the names of models as they would be: a shard by the slot of the
stream's hash tag, a worker by a consistent hash with many points each, as balancers have them.
Traffic is the same for every model, or as in most shops: the k-th busiest gets a share
proportional to 1/k. The busiest shard and worker, as multiples of the mean, say how much
more than the mean there must be of each. What an event costs is measured elsewhere (`scale`).
"""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tests.bench.table import Row

SLOTS = 16_384
SHARDS = (16, 64, 256)
WORKERS = (64, 256)
POINTS = 160

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


def measure(rounds: int, models: int) -> list[Row]:
    """Return the rows; in each round the models have other names."""
    falling = 1 / np.arange(1, models + 1)
    falling /= falling.sum()
    traffic = {"all alike": np.full(models, 1 / models), "the k-th 1/k": falling}
    names = [[f"model-{number}-{n}" for n in range(models)] for number in range(rounds)]
    rows = [Row(f"{models:,} models, the k-th 1/k: the busiest", [100 * falling[0]], "% of all")]
    choices: list[tuple[str, Sequence[int], Callable[[Sequence[str], int], Places]]] = [
        ("shards", SHARDS, shards_of),
        ("workers", WORKERS, workers_of),
    ]
    for what, counts, chosen in choices:
        for count in counts:
            placed = [chosen(some, count) for some in names]
            for title, weights in traffic.items():
                busiest = [_busiest(places, weights, count) for places in placed]
                rows.append(Row(f"{count} {what}, {title}: busiest / mean", busiest))
    return rows


def shards_of(names: Sequence[str], count: int) -> Places:
    """Return the shard of each stream: Redis's CRC16 gives the slot, slots are dealt out evenly."""
    slots = np.fromiter((binascii.crc_hqx(name.encode(), 0) % SLOTS for name in names), np.int64)
    return slots * count // SLOTS


def workers_of(names: Sequence[str], count: int) -> Places:
    """Return the worker of each model: the first point of the ring at or behind its hash."""
    ring = sorted((_hash(f"worker-{n}/{p}"), n) for n in range(count) for p in range(POINTS))
    points = np.array([point for point, _ in ring], np.uint64)
    owners = np.array([owner for _, owner in ring], np.int64)
    hashes = np.fromiter((_hash(name) for name in names), np.uint64)
    return owners[np.searchsorted(points, hashes) % len(owners)]


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())


def _busiest(places: Places, weights: Numbers, count: int) -> float:
    """Return the share of the busiest place as a multiple of the mean one."""
    return float(np.bincount(places, weights, count).max() * count)
