"""A topic brought to its end within the test's own process."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hinged_service.ingest.kafka.options import KafkaOptions
from hinged_service.ingest.kafka.source import bring_kafka
from hinged_service.ingest.kafka.values import Shape
from hinged_service.ingest.progress import Reporter
from hinged_service.ingest.signals import Stop
from hinged_service.ingest.writer import Feeder, Tally
from tests.ingest.kafka.broker import Broker
from tests.support.engine import spec, worker

_groups = itertools.count()
FAST = {"session.timeout.ms": "3000", "heartbeat.interval.ms": "500"}


@dataclass
class Brought:
    """The outcome of a run."""

    tally: Tally
    noted: dict[str, int]
    lines: list[str]


def bring(
    broker: Broker,
    redis_url: str,
    shape: Shape | None = None,
    topics: Sequence[str] = ("t",),
    meanwhile: Callable[[Tally, Stop], Awaitable[None]] | None = None,
    group: str | None = None,
    model: dict[str, Any] | None = None,
    **options: Any,
) -> Brought:
    """Bring topics into the model `m` to their end; or until `meanwhile` ends, if that is given."""

    async def run() -> Brought:
        stop, tally, lines = Stop(), Tally(), list[str]()
        reporter = Reporter(tally)
        reporter.write_line = lines.append  # type: ignore[method-assign, assignment]
        more: dict[str, Any] = {"drain": meanwhile is None, "client": FAST} | options
        wanted = KafkaOptions(broker.bootstrap, tuple(topics), group or f"g{next(_groups)}", **more)
        async with worker(redis_url) as one:
            feeder = Feeder(one.registry, one.lifecycle, "m", stop, lines.append, tally)
            await feeder.prepare(spec(**(model or {})))
            bringing = bring_kafka(wanted, shape or Shape(), feeder, reporter)
            if meanwhile is None:
                await bringing
            else:
                task = asyncio.ensure_future(bringing)
                await meanwhile(tally, stop)
                assert not task.done(), task.exception()
                task.cancel()
                await asyncio.wait([task])
            await one.save("m")
        return Brought(tally, reporter.noted, lines)

    return asyncio.run(asyncio.wait_for(run(), 60))


async def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    while not holds():  # noqa: ASYNC110 - what is waited for is in other processes
        await asyncio.sleep(0.01)
