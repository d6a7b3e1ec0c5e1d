"""A million models and events a second on 64 shards and 256 workers: what breaks first.

Unit costs are measured here, with one worker and one Redis; the rest is arithmetic. Of each
resource the busiest shard or worker counts, and the rows say how much of it is taken, the fullest
first: what is above 100 % breaks. Names are spread as they would be:

Shards and workers are chosen by the names of models as they would be: a shard by the slot of the
stream's hash tag, a worker by a consistent hash with many points each, as balancers have them.
Traffic is the same for every model, or as in most shops: the k-th busiest gets a share
proportional to 1/k. The busiest shard and worker, as multiples of the mean, say how much
more than the mean there must be of each.
"""

from __future__ import annotations

import binascii
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.bench.table import Row
from tests.bench.unit_costs import Costs, measured

SLOTS = 16_384
SHARDS = (16, 64, 256)
WORKERS = (64, 256)
POINTS = 160

EVENTS_PER_S = 1_000_000
OF_SHARDS, OF_WORKERS = 64, 256
CORE_SHARE = 0.6
"""Load of a core beyond which calls wait for each other."""
NETWORK_BYTES_PER_S = 10e9 / 8
SHARD_BYTES, WORKER_BYTES = 64e9, 8e9
READS_OF_INDEX_PER_S = 1.0
LOG_BYTES = 64_000
"""Log kept of each model: a million models do not keep the 64 MiB that one has by default."""

Numbers = NDArray[np.float64]
Places = NDArray[np.int64]


def measure(
    folder: Path, rounds: int, models: int, measured_models: int, seconds: int
) -> list[Row]:
    """Return the rows: unit costs, what they come to, and how the names spread."""
    costs = measured(folder, measured_models, seconds)
    spread = _spread(rounds, models)
    of = {row.name: float(np.median(row.values)) for row in spread}
    shards = of[f"{OF_SHARDS} shards, all alike: busiest / mean"]
    workers = of[f"{OF_WORKERS} workers, all alike: busiest / mean"]
    return [*_unit_rows(costs), *_taken(costs, models, shards, workers), *spread]


def _unit_rows(costs: Costs) -> list[Row]:
    """Return the costs as they were measured."""
    rows: list[Row] = []
    for name, cost in (
        ("a prediction", costs.predict),
        ("an event alone", costs.learn),
        ("an event in an array of 100", costs.array_event),
        ("a model opened, above that", costs.opened),
        ("an index entry read again", costs.entry),
    ):
        rows.append(Row(f"{name}: processor of the worker", [cost.worker_us], "µs"))
        rows.append(Row(f"{name}: processor of Redis", [cost.redis_us], "µs"))
        rows.append(Row(f"{name}: to and from Redis", [cost.net_bytes], "bytes"))
    rows.append(Row("an event alone: scripts", [costs.learn.scripts], "scripts"))
    rows.append(Row("an event alone: in the log", [costs.logged_bytes], "bytes"))
    rows.append(Row("a model in a worker", [costs.model_bytes / 1e3], "kB"))
    rows.append(Row("a new model in Redis", [costs.stored_model_bytes / 1e3], "kB"))
    return rows


def _taken(costs: Costs, models: int, shards: float, workers: float) -> list[Row]:
    """Return how much of each resource is taken where most is, in percent, the fullest first."""
    taken: dict[str, float] = {}
    for name, cost in (
        ("events alone", costs.learn),
        ("events in arrays of 100", costs.array_event),
        ("predictions", costs.predict),
        ("predictions of models not in memory", costs.opened),
    ):
        on_worker, on_shard = EVENTS_PER_S / OF_WORKERS * workers, EVENTS_PER_S / OF_SHARDS * shards
        taken[f"{name}: processor of a worker"] = on_worker * cost.worker_us / 1e6 / CORE_SHARE
        taken[f"{name}: processor of a shard"] = on_shard * cost.redis_us / 1e6 / CORE_SHARE
        taken[f"{name}: network of a shard"] = on_shard * cost.net_bytes / NETWORK_BYTES_PER_S
    entries = models * READS_OF_INDEX_PER_S
    taken["index: processor of each worker"] = entries * costs.entry.worker_us / 1e6 / CORE_SHARE
    on_one = entries * OF_WORKERS
    taken["index: processor of the shard with it"] = (
        on_one * costs.entry.redis_us / 1e6 / CORE_SHARE
    )
    taken["index: network of the shard with it"] = (
        on_one * costs.entry.net_bytes / NETWORK_BYTES_PER_S
    )
    kept = costs.stored_model_bytes + LOG_BYTES
    taken["models: memory of a shard"] = models / OF_SHARDS * shards * kept / SHARD_BYTES
    kept = models / OF_WORKERS * workers * costs.model_bytes
    taken["models: memory of a worker, each in one"] = kept / WORKER_BYTES
    fullest = sorted(taken.items(), key=lambda item: -item[1])
    return [Row(f"taken by {name}", [100 * share], "%") for name, share in fullest]


def _spread(rounds: int, models: int) -> list[Row]:
    """Return how evenly names spread; in each round the models have other names."""
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
