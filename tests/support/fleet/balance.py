"""Outcome of a drill: events sent, acknowledged and learned, and whether all agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import redis

import hinged
from tests.support.aof import read_past
from tests.support.fleet.load import Load
from tests.support.fleet.served import bits, served, wait_for_snapshot
from tests.support.plain_fold import Folded, Stored, fold_log, model_uid
from tests.support.worker import Worker


@dataclass(frozen=True)
class Balance:
    """One drill's events.

    Attributes
    ----------
    sent, acknowledged, learned
        Numbers of different event ids.
    lost
        Acknowledged, and not in the log.
    doubled
        In the log more than once, or acknowledged as new at several of its positions.
    folded
        What the log comes to, by `hinged` alone.

    """

    sent: int
    acknowledged: int
    learned: int
    lost: frozenset[str]
    doubled: frozenset[str]
    folded: Folded


def weigh(
    client: redis.Redis, stream: str, model: str, load: Load, workers: Sequence[Worker]
) -> Balance:
    """Read the log by hand, make sure that it, every worker and the snapshot agree, and count.

    Parameters
    ----------
    client
        Of the server that has the log now.
    stream, model
        Their names.
    load
        It is over.
    workers
        All of them; each is asked for its state at the log's end.

    """
    folded = fold_log(client, stream, hinged.Perceptron())
    counted = Counter(folded.counted_ids)
    assert counted.keys() <= load.sent.keys()
    assert folded.accounts["events"] == counted.total()
    agree(client, stream, model, folded, workers)
    twice = {name for name, times in counted.items() if times > 1}
    twice |= {n for n, at in load.counted.items() if sum(map(folded.reached, at)) > 1}
    return Balance(
        len(load.sent),
        len(load.acknowledged),
        len(counted),
        frozenset(load.acknowledged.keys() - counted.keys()),
        frozenset(twice),
        folded,
    )


def tail_of(directory: Path, stream: str, folded: Folded) -> set[str]:
    """Return the ids of the events that a dead server's log has beyond what is left of it.

    Parameters
    ----------
    directory
        The dead server's.
    stream
        Its name.
    folded
        The log that is left.

    """
    past = read_past(directory, f"hinged:{{{stream}}}:log")
    places = [f"{entry_id}.{fields['chain']}" for entry_id, fields in past.entries]
    common = next(place for place in reversed(places) if folded.reached(place))
    return set(past.fold(common).counted_ids)


def agree(
    client: redis.Redis, stream: str, model: str, folded: Folded, workers: Sequence[Worker]
) -> Stored:
    """Return the snapshot at the log's end; fail unless it and every worker equal the plain fold.

    Equal to the last bit.
    """
    end = f"{folded.position}.{folded.chain}"
    expected = {name: value for name, value in folded.accounts.items() if name != "clock"}
    for worker in workers:
        weights, accounts = served(worker, f"/v1/models/{model}", end)
        same = bits(weights) == bits(folded.weights) and bits(accounts) == bits(expected)
        assert same, f"the worker at {worker.url} has another model than the log"
    stored = wait_for_snapshot(client, stream, model_uid(client, model), folded.position)
    assert stored.follower == f"{stored.position} {stored.chain}" == end.replace(".", " ")
    same = bits(stored.weights) == bits(folded.weights)
    assert same, "the snapshot has other weights than the log"
    assert bits(stored.accounts) == bits(folded.accounts)
    return stored
