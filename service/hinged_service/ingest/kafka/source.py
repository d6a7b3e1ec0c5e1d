"""Kafka topics as a source: each partition by its offset at the model, never by the group's.

The group only deals out the partitions. A partition is named by cluster, topic id and number,
so a topic created again under its old name is another source. Where one stands is in Redis, moved
by the script that appends; on assignment and on every refusal reading begins there. A member
that lost its partitions and does not know it (a zombie) is refused and looks again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from hinged_service.ingest.kafka.client import Away, KafkaLog, Part, Record
from hinged_service.ingest.kafka.options import KafkaOptions
from hinged_service.ingest.kafka.values import Binary, Shape
from hinged_service.ingest.outage import Outage
from hinged_service.ingest.progress import Reporter
from hinged_service.ingest.signals import Stopped
from hinged_service.ingest.target import BAD_USAGE, Failed
from hinged_service.ingest.writer import Feeder
from hinged_service.tasks import cancel

__all__ = ["bring_kafka"]

_BATCH = 500
_BATCH_BYTES = 2**19
_IDLE_AFTER_S = 0.5
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 2.0
_COMMIT_EVERY_S = 1.0
_LOOK_EVERY_S = 5.0
_MOST_LISTED = 8

T = TypeVar("T")


async def bring_kafka(
    options: KafkaOptions, shape: Shape, feeder: Feeder, reporter: Reporter
) -> dict[str, Any]:
    """Feed topics, without an end or until they are drained.

    Raises
    ------
    Failed
        Kafka refuses, is away for too long, a topic is not there, or records are gone that were
        not learned. At the end, if it never took the group's offsets.
    Stopped
        The user wants an end.
    """
    feeder.door = "kafka"
    log = KafkaLog(options, reporter.write_line)
    reader = _Reader(log, options, shape, feeder, reporter)
    try:
        await reader.join()
        while not (options.drain and reader.drained):
            await reader.turn()
            feeder.stop.check()
            reporter.show()
    except Stopped:
        await _close(log)
        raise
    except BaseException:
        await asyncio.to_thread(log.close)
        raise
    await _close(log)
    return {}


async def _close(log: KafkaLog) -> None:
    await asyncio.to_thread(log.close)
    if log.commit_refused is not None:
        raise Failed(
            "All records that were read are learned, but Kafka refused to keep the group's "
            f"offsets: {log.commit_refused}. Allow the user to read the group."
        )


class _Place(NamedTuple):
    """The place of a partition: at the model, and of its next record."""

    source: str
    stored: str
    at: int


class _Changed(Exception):
    """The partitions were assigned again, or an offset has changed: read the offsets again."""


class _Reader:
    def __init__(
        self,
        log: KafkaLog,
        options: KafkaOptions,
        shape: Shape,
        feeder: Feeder,
        reporter: Reporter,
    ) -> None:
        self._log = log
        self._options = options
        self._shape = shape
        self._feeder = feeder
        self._write_line = reporter.write_line
        self._cluster = ""
        self._ids: dict[str, str] = {}
        self._places: dict[Part, _Place] = {}
        self._ended: set[Part] = set()
        self._generation = 0
        self._reported_generation = 0
        self._commit_s = 0.0
        self._look_s = 0.0
        self._reads = False
        self._noted = reporter.noted
        self._noted |= {"tombstones": 0, "seeks": 0, "lost": 0}

    @property
    def drained(self) -> bool:
        """True if all partitions of this member are read to their end."""
        return (
            self._log.assigned is not None
            and self._generation == self._log.generation
            and self._ended >= self._log.assigned
        )

    async def join(self) -> None:
        """Find the cluster and its topics, and become a member of the group."""
        self._cluster = await self._patiently(self._log.cluster)
        self._ids = await self._patiently(self._log.topic_ids)
        missing = sorted(set(self._options.topics) - set(self._ids))
        if missing:
            raise Failed(f"Kafka has no topic {', '.join(missing)}.", BAD_USAGE)
        await self._feeder.ready()
        await asyncio.to_thread(self._log.join)

    async def turn(self) -> None:
        """Take the records, or find the offsets to begin at if the partitions changed."""
        try:
            if self._generation != self._log.generation:
                await self._place()
            found = await asyncio.to_thread(self._log.read)
            self._check()
            if found.gaps:
                await self._feeder.stop.wait(_FIRST_PAUSE_S)
                raise _Changed  # noqa: TRY301 - one way to begin again
            if found.records or time.monotonic() >= self._look_s:
                await self._look()
            for part, records in found.records.items():
                await self._bring(part, records)
            self._ended |= found.ended
            await self._commit()
        except _Changed:
            self._generation = -1

    def _check(self) -> None:
        if self._generation != self._log.generation:
            raise _Changed

    async def _place(self) -> None:
        """Read the stored offset of each partition, and read records from there."""
        parts = self._log.assigned or ()
        self._generation = self._log.generation
        self._places.clear()
        self._ended.clear()
        if not parts:
            return
        self._ids = await self._serving(self._patiently(self._log.topic_ids))
        for part in sorted(parts):
            self._places[part] = await self._serving(self._place_of(part))
        offsets = {part: place.at for part, place in self._places.items()}
        for part, at in offsets.items():  # a reader that was killed may have committed less
            self._log.passed(part, at)
        await asyncio.to_thread(self._log.read_from, offsets)
        if self._reported_generation != self._generation:
            self._reported_generation = self._generation
            listed = [f"{part} from {at}" for part, at in list(offsets.items())[:_MOST_LISTED]]
            more = f" and {len(offsets) - _MOST_LISTED} more" if len(offsets) > _MOST_LISTED else ""
            self._write_line(f"Reading {', '.join(listed)}{more}.")

    async def _place_of(self, part: Part) -> _Place:
        source = await self._source(part)
        stored = await self._feeder.offset(source)
        if not stored:
            first = str(await self._begin(part))
            stored = await self._feeder.feed([], source, "", first)
        at = int(stored)
        low, high = await self._patiently(lambda: self._log.span(part))
        if low <= at <= high:
            return _Place(source, stored, at)
        return _Place(source, stored, self._over_gap(part, at, low, high))

    async def _source(self, part: Part) -> str:
        by_name = f"kafka:{self._cluster}:topic {part.topic}:{part.number}"
        topic_id = self._ids.get(part.topic)
        if topic_id is None:
            await self._feeder.stop.wait(_LONGEST_PAUSE_S)
            raise _Changed  # it was deleted; the group will report it
        if not topic_id:
            return by_name
        if await self._feeder.offset(by_name):
            raise Failed(
                f"How far {part} is learned was kept under the topic's name, as the brokers gave "
                "no topic ids; now they do. It is uncertain whether it is the same topic."
            )
        return f"kafka:{self._cluster}:{topic_id}:{part.number}"

    async def _begin(self, part: Part) -> int:
        """Return where a partition begins if nothing of it was taken yet."""
        begin = self._options.begin
        low, high = await self._patiently(lambda: self._log.span(part))
        if isinstance(begin, int):
            at = await self._patiently(lambda: self._log.at(part, begin))
            return high if at is None else at
        return low if begin == "beginning" else high

    def _over_gap(self, part: Part, at: int, low: int, high: int) -> int:
        """Return where to go on when the log does not hold the offset; or fail."""
        if at < low:
            what = f"the records {at} to {low - 1} of {part} are gone and were not learned"
            to, lost = low, low - at
        else:
            what = f"{part} ends at {high}, but was learned up to {at}: Kafka lost records"
            to, lost = high, 0
        if not self._options.over_gaps:
            raise Failed(f"A gap: {what}. Use --on-gap continue to continue from {to}.")
        self._write_line(f"A gap: {what}. Continuing from {to}.")
        self._noted["lost"] += lost
        return to

    async def _bring(self, part: Part, records: Sequence[Record]) -> None:
        place = self._places[part]
        self._ended.discard(part)
        for batch in _batches(records):
            raws = [
                self._shape.raw(f"{part}/{record.offset}", record.key, record.value)
                for record in batch
                if record.value is not None
            ]
            if not self._reads and raws:
                binary = [raw.body for raw in raws if isinstance(raw.body, Binary)]
                if len(binary) == len(raws):
                    raise Failed(f"{part} cannot be read: a record {binary[0]}.")
                self._reads = True
            end = str(batch[-1].offset + 1)
            now = await self._serving(
                self._feeder.feed(raws, place.source, place.stored, end), finish=True
            )
            if now != end:
                self._noted["seeks"] += 1
                self._write_line(
                    f"{part} stands at {now or 'its beginning'} by now: going on there."
                )
                raise _Changed
            place = self._places[part] = _Place(place.source, end, int(end))
            self._noted["tombstones"] += len(batch) - len(raws)
            self._log.passed(part, int(end))
            self._feeder.stop.check()
            self._check()

    async def _look(self) -> None:
        """Check that the topics are still the same: records read before belong to them."""
        ids = await self._serving(self._patiently(self._log.topic_ids))
        self._look_s = time.monotonic() + _LOOK_EVERY_S
        if ids != self._ids:
            raise _Changed

    async def _commit(self) -> None:
        """Commit how far it is to the group, now and then."""
        now_s = time.monotonic()
        if now_s >= self._commit_s:
            self._commit_s = now_s + _COMMIT_EVERY_S
            await asyncio.to_thread(self._log.commit)

    async def _serving(self, work: Awaitable[T], finish: bool = False) -> T:
        """Wait for work that waits for Redis or Kafka; if it takes long, stay in the group.

        Fetching pauses meanwhile. If the partitions change, only work to finish is waited for.
        """
        task = asyncio.ensure_future(work)
        paused = False
        try:
            while not (await asyncio.wait([task], timeout=_IDLE_AFTER_S))[0]:
                paused = True
                await asyncio.to_thread(self._log.idle)
                if not finish:
                    self._check()
            return await task
        finally:
            if paused:
                await asyncio.to_thread(self._log.go_on)
            await cancel(task)

    async def _patiently(self, step: Callable[[], T]) -> T:
        outage = Outage(f"Kafka at {self._options.bootstrap}", self._feeder.wait_s)

        def failed(error: Exception, _: bool) -> None:
            self._log.trouble(str(error))
            outage.failed(str(error))

        return await self._feeder.stop.retry(
            lambda: asyncio.to_thread(step), Away, failed, self._log.well
        )


def _batches(records: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """Cut records into batches, bounded in number and bytes."""
    first, size = 0, 0
    for index, record in enumerate(records):
        size += len(record.value or b"")
        if size > _BATCH_BYTES or index + 1 - first == _BATCH:
            yield records[first : index + 1]
            first, size = index + 1, 0
    if first < len(records):
        yield records[first:]
