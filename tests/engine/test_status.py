"""The status of a live model: the allowed changes, and what a model goes through."""

import asyncio
import itertools

import pytest

from hinged_service.engine.status import TRANSITIONS, ModelStatus, Status
from tests.support.engine import Worker, event, until
from tests.support.redis_server import RedisServer

PATHS = {
    Status.LOADING: [],
    Status.CATCHING_UP: [Status.CATCHING_UP],
    Status.LIVE: [Status.CATCHING_UP, Status.LIVE],
    Status.STALE: [Status.CATCHING_UP, Status.LIVE, Status.STALE],
    Status.SET_ASIDE: [Status.SET_ASIDE],
    Status.GONE: [Status.GONE],
}


def status_at(end: Status) -> ModelStatus:
    status = ModelStatus()
    for step in PATHS[end]:
        status.change(step)
    return status


@pytest.mark.parametrize(("before", "after"), list(itertools.product(Status, Status)))
def test_only_the_changes_of_the_table_are_allowed(before: Status, after: Status) -> None:
    status = status_at(before)
    if after is before or after in TRANSITIONS[before]:
        status.change(after)
        assert status.now is after
        assert status.caught_up == (after in (Status.LIVE, Status.STALE))
        assert status.ended == (after in (Status.SET_ASIDE, Status.GONE))
        return
    with pytest.raises(ValueError, match=f"{before.value} cannot become {after.value}"):
        status.change(after)
    assert status.now is before


def test_the_ends_are_final_and_reached_from_everywhere() -> None:
    ends = {Status.SET_ASIDE, Status.GONE}
    assert all(not TRANSITIONS[end] for end in ends)
    assert all(ends <= TRANSITIONS[status] for status in Status if status not in ends)


def test_a_model_is_live_then_stale_then_live_then_gone(own_server: RedisServer) -> None:
    async def run() -> list[Status]:
        seen = []
        worker = Worker(own_server.url)
        try:
            await worker.create("m")
            await worker.learn("m", event(1))
            model = await worker.open("m")
            seen.append(model.status.now)
            own_server.stop()
            await model.freshness.refresh_if_stale()
            await until(lambda: model.status.now is not Status.LIVE)
            seen.append(model.status.now)
            own_server.start()
            await worker.learn("m", event(2))
            seen.append(model.status.now)
            await worker.lifecycle.delete("m")
            with pytest.raises(Exception, match="deleted"):
                await model.freshness.read()
            seen.append(model.status.now)
        finally:
            await worker.stop()
        return seen

    assert asyncio.run(run()) == [Status.LIVE, Status.STALE, Status.LIVE, Status.GONE]
