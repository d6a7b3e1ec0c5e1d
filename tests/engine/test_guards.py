"""The tests of the storage engine can fail: without any one guard, the test of it does."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from hinged_service.errors import SetAside, Unavailable
from tests.api import test_paging
from tests.engine import (
    test_delete,
    test_loading,
    test_once,
    test_positions,
    test_snapshots,
    test_trim,
)
from tests.store import test_append_script
from tests.support.fleet.chaos import Chaos
from tests.support.guards import GUARDS, take_out
from tests.support.redis_server import RedisServer

Ran = Coroutine[Any, Any, None] | None
Shared = Callable[[str, RedisServer], Ran]
Own = Callable[[RedisServer, Path], Ran]

Error = type[AssertionError] | type[SetAside] | type[Unavailable]

ON_SHARED_SERVER: list[tuple[str, Error, Shared]] = [
    *(
        (
            "the chain is compared",
            error,
            functools.partial(
                test_positions.test_a_past_of_the_same_entry_ids_is_told_by_its_chain,
                through=through,
            ),
        )
        for through, error in (
            ("learn", SetAside),
            ("read", SetAside),
            ("snapshot", AssertionError),
        )
    ),
    (
        "the chain is compared",
        SetAside,
        test_positions.test_entries_after_a_rollback_that_land_on_the_same_ids,
    ),
    (
        "the position must be in the log",
        SetAside,
        test_positions.test_a_replica_behind_the_start_of_the_log_loads_the_snapshot,
    ),
    (
        "a snapshot is newer than the stored one",
        AssertionError,
        test_snapshots.test_late_snapshots_change_nothing,
    ),
    (
        "a snapshot is of a follower",
        Unavailable,
        test_delete.test_no_worker_writes_a_deleted_model_back,
    ),
    (
        "a batch is of a follower",
        Unavailable,
        test_delete.test_no_worker_writes_a_deleted_model_back,
    ),
    (
        "ids that were seen do not count",
        AssertionError,
        lambda url, _: test_once.test_fifty_copies_at_once_over_four_workers_count_once(url),
    ),
    (
        "ids of the generation before are looked up",
        AssertionError,
        test_once.test_a_generation_of_ids_is_forgotten_only_after_as_many_again,
    ),
    (
        "ids within a batch are compared",
        AssertionError,
        lambda url, _: (
            test_append_script.test_duplicates_count_once_within_an_array_and_across_the_callers_of_a_batch(
                url
            )
        ),
    ),
    (
        "a refused caller's ids stay free",
        AssertionError,
        lambda url, _: (
            test_append_script.test_one_callers_refused_array_neither_sinks_its_mates_nor_uses_up_their_ids(
                url
            )
        ),
    ),
    (
        "the same batch gets its first answer",
        AssertionError,
        test_append_script.test_a_resent_batch_gets_its_first_answer_and_writes_nothing,
    ),
    (
        "the same batch gets its first answer",
        AssertionError,
        test_once.test_lost_replies_double_nothing_and_tell_the_outcome_all_the_same,
    ),
    (
        "a late batch is refused",
        AssertionError,
        test_append_script.test_an_abandoned_batch_that_arrives_late_is_refused_and_learns_nothing,
    ),
    (
        "a trim waits for all followers",
        AssertionError,
        test_trim.test_a_trim_never_passes_the_slowest_live_follower,
    ),
    (
        "a trim waits for all followers",
        AssertionError,
        test_trim.test_a_follower_registered_while_the_log_is_trimmed_finds_its_start,
    ),
    (
        "a hold is respected",
        AssertionError,
        test_loading.test_a_snapshot_that_is_held_stays_as_it_is,
    ),
    (
        "a hold is not renewed",
        AssertionError,
        test_loading.test_a_hold_is_shared_bounded_and_cannot_keep_snapshots_away,
    ),
    (
        "the reply is bounded",
        AssertionError,
        lambda url, _: test_paging.test_pages_are_bounded_also_after_many_small_entries(url),
    ),
]

ON_OWN_SERVER: list[tuple[str, Error, Own]] = [
    (
        "the chain is compared",
        SetAside,
        test_positions.test_a_failover_that_keeps_the_first_entry_of_three,
    ),
    *(
        (
            "a snapshot's base is not beyond the stored one",
            AssertionError,
            functools.partial(
                test_snapshots.test_after_a_rollback_of_the_snapshot_alone_it_is_written_in_full,
                confirmed_by=by,
            ),
        )
        for by in ("own save", "another worker's save")
    ),
]


def _fails(scenario: Callable[[], Ran], error: Error) -> None:
    with pytest.raises(error):
        _run(scenario)


def _run(scenario: Callable[[], Ran]) -> None:
    ran = scenario()
    if ran is not None:
        asyncio.run(ran)


@pytest.mark.parametrize(
    ("guard", "error", "scenario"),
    ON_SHARED_SERVER,
    ids=lambda value: value if type(value) is str else "",
)
def test_without_it_a_test_fails(
    redis_url: str,
    shared_server: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
    guard: str,
    error: Error,
    scenario: Shared,
) -> None:
    take_out(guard, monkeypatch)
    _fails(lambda: scenario(redis_url, shared_server), error)


@pytest.mark.parametrize(
    ("guard", "error", "scenario"),
    ON_OWN_SERVER,
    ids=lambda value: value if type(value) is str else "",
)
def test_without_it_a_test_with_a_rollback_fails(
    own_server: RedisServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    guard: str,
    error: Error,
    scenario: Own,
) -> None:
    take_out(guard, monkeypatch)
    _fails(lambda: scenario(own_server, tmp_path), error)


def test_without_counting_a_lost_chunk_is_noticed(
    redis_url: str, shared_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_out("a full snapshot is counted", monkeypatch)
    with pytest.raises(AssertionError), pytest.MonkeyPatch.context() as inner:
        asyncio.run(
            test_snapshots.test_a_full_snapshot_that_lost_a_chunk_is_refused(
                redis_url, shared_server, inner
            )
        )


def test_every_guard_is_taken_out_by_some_test() -> None:
    tried = {guard for guard, *_ in [*ON_SHARED_SERVER, *ON_OWN_SERVER]}
    assert tried | {"a full snapshot is counted"} == set(GUARDS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("guard", "troubles"),
    [
        ("the chain is compared", {"copy data": 3, "set back": 3, "save one": 1}),
        (
            "a snapshot's base is not beyond the stored one",
            {"set back in a pause": 1, "save one": 3, "kill": 1},
        ),
        ("ids that were seen do not count", {"drop": 1}),
        ("the same batch gets its first answer", {"drop": 1}),
    ],
)
def test_without_it_trouble_at_random_is_noticed(
    own_server: RedisServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    guard: str,
    troubles: dict[str, int],
) -> None:
    """The troubles are those that the guard is against, so that it does not take long."""
    take_out(guard, monkeypatch)
    own_server.kill()
    own_server.fsync = "always"
    own_server.start()
    chaos = Chaos(own_server, tmp_path / "copy", 1, troubles)
    with pytest.raises(AssertionError):  # a model that is set aside fails so, too
        asyncio.run(chaos.run(60, rounds=30))
    print(dict(chaos.happened))
