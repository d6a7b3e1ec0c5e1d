"""Long work has a model's state to itself: the same results, and no reader in the middle of it."""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from hinged_service.engine import long_work
from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.long_work import in_thread
from hinged_service.engine.state_access import TAKEN_STATE, StateAccess
from hinged_service.errors import ServiceError, Unavailable
from hinged_service.ingest.records import Raw
from hinged_service.ingest.writer import gathered_for
from hinged_service.model.state import ModelState
from hinged_service.wire.decoding import parse_events
from hinged_service.wire.events import MixedQuestion
from tests.support.engine import Worker, spec, worker

CUBES = [{"type": "StandardScaler"}, {"type": "PolynomialExtender", "degree": 3}]
SLOW: dict[str, Any] = {"learner": {"type": "arow"}, "pipeline": CUBES}


def events(count: int, letter: str = "f") -> list[dict[str, Any]]:
    return [
        {"x": {f"{letter}{j}": (i * 7 + j * 3) % 10 / 10 for j in range(18)}, "y": i % 3 == 0}
        for i in range(count)
    ]


async def until_away(live_model: LiveModel) -> None:
    """Wait until long work has the state."""
    for _ in range(10_000):
        if live_model.away:
            return
        await asyncio.sleep(0.001)
    raise AssertionError("the work was done at once")


async def test_a_long_entry_gives_what_its_events_give_one_by_one(one: Worker) -> None:
    await one.create("whole", **SLOW)
    await one.create("single", **SLOW)
    some = events(30)
    live_model = await one.open("whole")
    learning = asyncio.ensure_future(one.learn("whole", *some))
    await until_away(live_model)
    whole = await learning
    single = [outcome for e in some for outcome in (await one.learn("single", e)).outcomes]
    assert list(whole.outcomes) == single
    assert await one.state("whole") == await one.state("single")


async def test_answers_during_an_entry_are_of_before_or_after_it(one: Worker) -> None:
    """Every call waits for the entry; none sees a part of it, and the workers agree after all."""
    await one.create("m", **SLOW)
    await one.learn("m", *events(3))
    live_model = await one.open("m")
    learning = asyncio.ensure_future(one.learn("m", *events(60)))
    await until_away(live_model)
    with pytest.raises(Unavailable):
        _ = live_model.state.events
    question = [MixedQuestion(events(1)[0]["x"])]
    asked: list[Awaitable[Any]] = [
        live_model.at_rest(),
        live_model.predict(question, 100),
        one.learn("m", *events(2, "g")),
        live_model.commands.append({"do": "freeze"}),
        live_model.checkpoints.make("kept"),
        live_model.save(),
        live_model.freshness.read(),
    ]
    found = await asyncio.gather(*asked)
    await learning
    assert found[0].events >= 63
    assert found[4].events in (63, 65)
    async with worker(one.settings.redis_url or "") as two:
        assert await two.state("m") == await one.state("m")
    assert (await live_model.at_rest()).events == 65


async def test_many_small_events_are_no_work_of_the_loop(one: Worker) -> None:
    """Measurements of a few classes do not hold for those that the next events bring."""
    await one.create("m", learner={"type": "auto"})
    for size in (1, 2, 4, 8, 16, 32):
        names = {f"f{j}": 1.0 for j in range(size)}
        await one.learn("m", *({"x": names, "y": f"c{i}"} for i in range(3)))
    live_model = await one.open("m")
    many = [{"x": {}, "y": f"c{i}"} for i in range(60)]
    learning = asyncio.ensure_future(one.learn("m", *many))
    await until_away(live_model)
    await learning
    asking = asyncio.ensure_future(live_model.predict([MixedQuestion({})] * 60, 500))
    await until_away(live_model)
    assert len((await asking).items) == 60


async def test_a_cancelled_caller_leaves_the_state_until_the_thread_is_done() -> None:
    go_on = threading.Event()
    access = StateAccess(ModelState(spec()))

    async def work() -> None:
        async with access.take(changes=False):
            await in_thread(lambda: go_on.wait(10))

    caller = asyncio.ensure_future(work())
    await asyncio.sleep(0.01)
    for _ in range(2):
        caller.cancel()
        await asyncio.sleep(0.01)
    assert access.taken
    assert not caller.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await access.at_rest()
    assert access.state is not TAKEN_STATE


async def test_a_change_that_does_not_end_leaves_no_state_behind() -> None:
    access = StateAccess(ModelState(spec()))
    with pytest.raises(ZeroDivisionError):
        async with access.take(changes=True) as state:
            state.events = 1 // 0
    assert access.spoiled
    with pytest.raises(Unavailable):
        _ = access.state.events


async def test_patience_ends_before_long_work_does() -> None:
    access = StateAccess(ModelState(spec()))
    async with access.take(changes=False):
        with pytest.raises(Unavailable):
            await access.at_rest(0.01)
    await access.at_rest(0.01)


@pytest.mark.parametrize("count", [1, 30])
async def test_answers_of_the_thread_are_those_of_the_loop(one: Worker, count: int) -> None:
    await one.create("m", **SLOW)
    await one.learn("m", *events(20))
    live_model = await one.open("m")
    asked = [MixedQuestion(e["x"]) for e in events(count)]
    quick = await live_model.predict(asked, 0)
    slow = await live_model.predict(asked, 2**20)
    assert (slow.items, slow.position, slow.faults) == (quick.items, quick.position, [])


class _Measured(ThreadPoolExecutor):
    """A thread that notes the processor time of each piece of work."""

    def __init__(self) -> None:
        super().__init__(1)
        self.took_s: list[float] = []

    def submit(self, work: Any, /, *given: Any, **named: Any) -> Future[Any]:
        def measured() -> Any:
            began_s = time.thread_time()
            try:
                return work(*given, **named)
            finally:
                self.took_s.append(time.thread_time() - began_s)

        return super().submit(measured)


async def test_a_batch_of_a_source_goes_through_the_thread_in_parts_for_all_models_of_its_stream(
    one: Worker, two: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading it, learning it, and the catch-up of a challenger on another worker."""
    await one.create("m", **SLOW)
    await one.create("challenger", **SLOW, stream="m")
    writer = await one.open("m")
    records = [Raw(str(n), json.dumps(event).encode()) for n, event in enumerate(events(30))]
    with _Measured() as thread, monkeypatch.context() as patched:
        patched.setattr(long_work._worker, "thread", thread)
        for number, model in enumerate((writer, await two.open("challenger"))):
            thread.took_s.clear()
            if number == 0:
                batch = await gathered_for(writer, records)
                assert len(thread.took_s) > 2
                await writer.learn_each(
                    batch.events, batch.payload, batch.span("kafka", "kafka:t", "", "30")
                )
            await model.freshness.read()
            assert len(thread.took_s) > 3
            assert max(thread.took_s) < 5 * long_work._PART_S
    assert await two.state("challenger") == await one.state("challenger") == await one.state("m")


async def test_faults_found_in_parts_are_those_found_at_once(
    one: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_work, "_PORTION_S", 0.0)
    await one.create("m", max_bytes=4_096)
    live_model = await one.open("m")
    asked: list[dict[str, Any]] = [{"x": {f"n{i}": 1.0}, "y": i % 5 or "no"} for i in range(40)]
    asked = [event | {"y": True} if event["y"] != "no" else event for event in asked]
    parsed, _, _ = parse_events(json.dumps(asked).encode(), 40)
    at_once = live_model.state.faults(parsed)
    assert {fault.field for _, fault in at_once} == {"x", "y"}
    assert await live_model.faults(parsed, 2**30) == at_once


Trouble = Callable[[Worker], Awaitable[object]]


async def _delete(one: Worker) -> None:
    await one.lifecycle.delete("m")


async def _reset(one: Worker) -> None:
    await (await one.open("m")).commands.append({"do": "reset"})


async def _restore(one: Worker) -> None:
    live_model = await one.open("m")
    await live_model.commands.restore(await live_model.checkpoints.find("kept"))


async def _stop(one: Worker) -> None:
    await one.registry.aclose()


@pytest.mark.parametrize("trouble", [_delete, _reset, _restore, _stop])
@pytest.mark.parametrize("hang_up", [False, True], ids=["waits", "hangs up"])
async def test_no_event_is_lost_or_doubled_by_what_comes_in_between(
    one: Worker, trouble: Trouble, hang_up: bool
) -> None:
    await one.create("m", **SLOW)
    await one.learn("m", *events(3))
    live_model = await one.open("m")
    await live_model.checkpoints.make("kept")
    learning = asyncio.ensure_future(one.learn("m", *events(60)))
    await until_away(live_model)
    if hang_up:
        learning.cancel()
    await trouble(one)
    with contextlib.suppress(asyncio.CancelledError, ServiceError):
        await learning
    async with worker(one.settings.redis_url or "") as two:
        if trouble is _delete:
            with pytest.raises(ServiceError):
                await two.state("m")
            return
        found = await two.state("m")
        assert found["events"] == (3 if trouble is _restore else 63)
        if trouble is not _stop:
            assert await one.state("m") == found
