"""A foreign Redis stream as a source: its offset is the id of the last entry taken.

The offset alone decides what is learned; the group follows it, for tools that
look at lag and pending entries. Entries count in the order of their ids, so one reader at a
time holds the stream: the one whose entries are pending. Others stand by, and claim what it
leaves when it has not moved for a while. Should two ever feed at once, one is taken.

The file is long: one reader and all states of its group.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any, Literal

from hinged_service.errors import ServiceError, SetAside, Unavailable
from hinged_service.ingest.outage import Outage
from hinged_service.ingest.progress import Reporter
from hinged_service.ingest.records import Fault, Raw
from hinged_service.ingest.redis_stream_client import Entry, ForeignStream, NoGroup, Pending
from hinged_service.ingest.stream_entries import Reading
from hinged_service.ingest.target import Failed
from hinged_service.ingest.writer import Feeder, Gathered, ended, meanwhile, sent_off
from hinged_service.wire.position import EntryId

__all__ = ["Begin", "Rules", "bring_stream"]

Begin = Literal["group", "start", "now"] | None

_BATCH = 500
_BATCH_BYTES = 2**20
_FIRST_BATCH = 16
_BLOCK_MS = 2_000
_STAND_BY_S = 0.02
_LONGEST_STAND_BY_S = 1.0
_CHECK_EVERY_S = 2.0
_LONGEST_PAUSE_S = 2.0
_ONE_BY_ONE = 4
_SLOW_SHARE = 6
"""Feeding is slow beyond this part of `claim_s`: three batches read and not fed take half of it."""
_POISON = 12


@dataclass(frozen=True)
class Rules:
    """The way to read a stream.

    Parameters
    ----------
    source
        Its name at the model: the same for all its readers.
    reading
        How entries become events.
    begin
        Where to begin if nothing was ever taken: where the group stands (its oldest pending
        entry; the stream's start if there is no group), at the stream's start, or now. `None`:
        where the group stands, if the stream holds nothing before that.
    claim_s
        How long another reader may not have moved before its entries are claimed, in seconds.
    drain
        Whether to end at the stream's end.
    """

    source: str
    reading: Reading
    begin: Begin = None
    claim_s: float = 5.0
    drain: bool = False


async def bring_stream(
    stream: ForeignStream, rules: Rules, feeder: Feeder, reporter: Reporter
) -> dict[str, Any]:
    """Feed a stream until its end, or without an end.

    Raises
    ------
    Failed
        It is not clear where to begin, or the source was away for too long.
    Stopped
        The user wants an end.
    ServiceError
        The model is gone or cannot be used.
    """
    feeder.door = "redis-stream"
    outage = Outage(f"The Redis of the source at {stream.address}", feeder.wait_s)
    reader = _Reader(stream, rules, feeder, reporter)
    pause_s = 0.0
    try:
        await feeder.ready()
        while True:
            try:
                if pause_s or not reader.ready:
                    await reader.resume()
                if await reader.turn():
                    await reader.forget_idle()
                    return {"lost": reader.lost}
                if pause_s:
                    reporter.write_line("The Redis of the source answers again.")
                outage.answered()
                pause_s = 0.0
            except NoGroup:
                reporter.write_line("The group is missing: making it.")
                pause_s = await _create(reader, pause_s)
            except (SetAside, Unavailable) as error:
                reader.portions.none_came()
                outage.failed(error.detail)
                pause_s = _pause(reporter, error, pause_s)
            feeder.stop.check()
            if pause_s:
                await feeder.stop.wait(pause_s)
            reporter.show()
    finally:
        with contextlib.suppress(NoGroup, Unavailable):  # a name in the group is no harm
            await stream.leave()
        await stream.aclose()


class _Portions:
    """The share of a stream that is taken at once: bounded in number and bytes.

    A server bounds a reply by the number of its entries only. `count` is how many to ask for, by
    the size of those that came last; it doubles at most from one reply to the next.
    """

    def __init__(self) -> None:
        self.count = min(_FIRST_BATCH, _BATCH)

    def first(self, entries: list[Entry]) -> list[Entry]:
        """Return as many of the first entries as make a batch, one at least; learn their size."""
        if not entries:
            return entries
        taken = total = 0
        for _, fields in entries:
            total += sum(map(len, fields)) + sum(map(len, fields.values()))
            if total <= _BATCH_BYTES or not taken:
                taken += 1
        fit = _BATCH_BYTES * len(entries) // max(total, 1)
        self.count = max(1, min(2 * self.count, fit, _BATCH))
        return entries[:taken]

    def none_came(self) -> None:
        """Ask for little, since a reply did not come in time."""
        self.count = 1


async def _create(reader: _Reader, pause_s: float) -> float:
    try:
        await reader.create_group()
    except (NoGroup, Unavailable) as error:
        return _pause(reader.reporter, error, pause_s)
    return pause_s


def _pause(reporter: Reporter, error: Exception, pause_s: float) -> float:
    if not pause_s:
        detail = error.detail if isinstance(error, ServiceError) else "The group is missing."
        reporter.write_line(f"Waiting: {detail}")
    return min(2 * pause_s or 0.1, _LONGEST_PAUSE_S)


class _Reader:
    def __init__(
        self, stream: ForeignStream, rules: Rules, feeder: Feeder, reporter: Reporter
    ) -> None:
        self.reporter = reporter
        self.ready = False
        self.portions = _Portions()
        self.lost = 0
        self._unread = 0
        self._stream = stream
        self._rules = rules
        self._feeder = feeder
        self._offset = ""
        self._base: str | None = None
        self._check_s = 0.0
        self._warned = False
        self._reading: asyncio.Task[list[Entry]]
        self._rest: list[Entry] = []
        self._stood_by_s = 0.0
        self._read_after = ""
        self._slow = False

    @property
    def _after(self) -> str:
        return self._offset or self._base or "0-0"

    async def create_group(self) -> None:
        """Make the group, at the offset or at the beginning of the reading."""
        after = self._after
        if not self._offset and self._base is None and self._rules.begin == "now":
            after = "$"
        await self._stream.create_group(after)

    async def resume(self) -> None:
        """Read the offsets of source and group; acknowledge entries taken already."""
        self._offset = await self._feeder.offset(self._rules.source)
        last = (await self._stream.state()).last
        if not self._offset and self._base is None:
            if self._rules.begin == "start":
                self._base = "0-0"
            else:
                first = await self._stream.pending("0-0", "+", 1)
                base = _before(first[0].id) if first else last
                await self._pass_over(base)
                self._base = base
        while self._offset:
            left = await self._stream.pending("0-0", self._offset, _BATCH)
            if not left:
                break
            await self._stream.done([one.id for one in left])
        self.ready = True

    async def _pass_over(self, base: str) -> None:
        """Report entries up to where reading begins, which the model never took."""
        if not await self._stream.between("0-0", base, 1):
            return
        if self._rules.begin is None:
            raise Failed(
                "The model has taken nothing of this stream, but its group is at "
                f"{base}, and the stream holds entries up to there: the models' Redis was set "
                "back, or others have read them. Give --from start to learn them, or --from group "
                "to leave them out."
            )
        self.reporter.write_line(f"Beginning after {base}: entries up to there are not learned.")

    async def turn(self) -> bool:
        """Feed one batch, or wait; return whether the stream is at its end and that is all."""
        stream, after = self._stream, self._after
        pending = await stream.pending(after, "+", _BATCH)
        if pending:
            await self._go_over(pending)
            return False
        await self._check()
        block_ms = 1 if self._rules.drain else _BLOCK_MS
        entries = await self._feeder.stop.unless(stream.new(self.portions.count, block_ms))
        begin = EntryId.of(after)
        before = [
            entry_id for entry_id, _ in takewhile(lambda e: EntryId.of(e[0]) <= begin, entries)
        ]
        if before:  # learned before the group delivered them
            await stream.done(before)
            entries = entries[len(before) :]
            if not entries:
                return False
        if not entries:  # what was delivered once, but that the log lost in a failover
            entries = await stream.between(after, "+", self.portions.count)
            if not entries:
                await self._catch_up()
                return self._rules.drain and self._after == after
        elif await stream.between(after, f"({entries[0][0]}", 1):
            self._stood_by_s = 0.0  # others wait for what this reader holds
            return False  # another reader holds what comes before
        await self._flow(entries)
        return False

    async def _flow(self, entries: list[Entry]) -> None:
        """Feed new entries; read on meanwhile, for as long as this reader holds the stream.

        While a batch is fed the next one is made ready, and the one after it is under way: not
        if feeding takes long enough for others to claim what waits here.
        """
        done: list[str] = []
        entries = self._first_of(entries)
        self._read_on(done, entries)
        try:
            await sent_off()
            ready = await self._ready(entries)
            while True:
                end, began_s = entries[-1][0], time.monotonic()
                sent = self._feeder.feed(ready, self._rules.source, self._offset, end)
                now, (following, ready_after) = await meanwhile(
                    sent, partial(self._next, done, entries)
                )
                if now != end:
                    await asyncio.wait([self._reading])  # what comes is pending at the next turn
                    await self.resume()
                    return
                self._slow = time.monotonic() - began_s > self._rules.claim_s / _SLOW_SHARE
                self._offset = end
                done += [entry_id for entry_id, _ in entries]
                if ready_after is None:
                    break
                entries, ready = following, ready_after
                self.reporter.show()
                await self._check()
            await self._stream.done(done)
        finally:
            await ended(self._reading)
            self._rest = []  # pending: the next turn begins with it

    def _first_of(self, entries: list[Entry]) -> list[Entry]:
        """Return the entries of the next batch; keep the rest for the one after."""
        first = self.portions.first(entries)
        self._rest = entries[len(first) :]
        return first

    def _read_on(self, done: list[str], entries: list[Entry]) -> None:
        """Begin to read the next entries, and to acknowledge the finished ones."""
        self._read_after = entries[-1][0]
        self._reading = asyncio.create_task(self._following(done, self._read_after))

    async def _next(self, done: list[str], fed: list[Entry]) -> tuple[list[Entry], Gathered | None]:
        """Return the entries after those being fed, also as read for the model."""
        if self._read_after != fed[-1][0]:
            self._read_on(done, fed)
        entries = await self._reading
        if not entries:
            return [], None
        if not self._slow:
            self._read_on(done, entries)
            await sent_off()
        return entries, await self._ready(entries)

    async def _following(self, done: list[str], end: str) -> list[Entry]:
        """Return the entries after one; an unavailable source is handled by the next turn."""
        if self._feeder.stop.signal is not None:
            return []
        if self._rest:
            return self._first_of(self._rest)
        acknowledged, count = len(done), self.portions.count
        try:
            entries = await self._stream.following(done[:acknowledged], end, count)
        except (NoGroup, Unavailable):
            return []
        del done[:acknowledged]
        return self._first_of(entries)

    async def _ready(self, entries: list[Entry]) -> Gathered:
        state = await self._feeder.state()
        return await self._feeder.gathered(self._rules.reading.all(entries, state))

    async def _go_over(self, pending: list[Pending]) -> None:
        """Feed from the first pending entry on, up to an entry of another reader."""
        stream, rules = self._stream, self._rules
        held = next(
            (
                one.id
                for one in pending
                if one.consumer != stream.consumer and one.idle_ms < rules.claim_s * 1000
            ),
            None,
        )
        count = self.portions.count
        # What another reader holds is never fetched: it may be large, and is asked for often.
        found = await stream.between(self._after, "+" if held is None else f"({held}", count)
        entries = self.portions.first(found)
        cut = len(entries) < len(found) or len(found) == count
        ends = [EntryId.of(entries[-1][0])] if cut else []
        if len(pending) == _BATCH:  # beyond them others may be pending whose entries are gone
            ends.append(EntryId.of(pending[-1].id))
        mine = [one for one in pending if held is None or EntryId.of(one.id) < EntryId.of(held)]
        if ends:
            mine = [one for one in mine if EntryId.of(one.id) <= min(ends)]
            entries = [e for e in entries if EntryId.of(e[0]) <= min(ends)]
        suspect = next((one for one in mine if one.deliveries >= _ONE_BY_ONE), None)
        if suspect is not None:
            at = EntryId.of(suspect.id)
            before = [e for e in entries if EntryId.of(e[0]) < at]
            entries = before or [e for e in entries if EntryId.of(e[0]) == at]
            mine = [one for one in mine if EntryId.of(one.id) < at] if before else [suspect]
        if not entries and not mine:
            self._stood_by_s = min(2 * self._stood_by_s or _STAND_BY_S, _LONGEST_STAND_BY_S)
            await self._feeder.stop.wait(self._stood_by_s)
            await self._catch_up()
            return
        self._stood_by_s = 0.0
        bad: dict[str, Fault] = {}
        if mine:
            await stream.claim([one.id for one in mine])
            there = {entry_id for entry_id, _ in entries}
            gone = Fault("", "was trimmed away before it was learned")
            bad = {one.id: gone for one in mine if one.id not in there}
            self.lost += len(bad)
        if suspect is not None and len(mine) == 1 and mine[0].deliveries >= _POISON:
            why = f"was delivered {suspect.deliveries} times but never acknowledged"
            bad, entries = {suspect.id: Fault("", why)}, []
        await self._feed(entries, bad)

    async def _feed(self, entries: list[Entry], bad: dict[str, Fault] | None = None) -> None:
        state = await self._feeder.state()
        records = [self._rules.reading.raw(entry_id, f, state) for entry_id, f in entries]
        if bad:
            records += [Raw(entry_id, fault) for entry_id, fault in bad.items()]
            records.sort(key=lambda raw: EntryId.of(raw.offset))
        end = records[-1].offset
        now = await self._feeder.feed(records, self._rules.source, self._offset, end)
        if now == end:
            self._offset = end
            await self._stream.done([raw.offset for raw in records])
        else:
            await self.resume()

    async def _catch_up(self) -> None:
        """Take over the offset that others may have moved; begin again if it is gone."""
        offset = await self._feeder.offset(self._rules.source)
        if self._offset and not offset:  # the models' Redis was set back
            await self.resume()
        else:
            self._offset = offset

    async def forget_idle(self) -> None:
        """Remove consumers that killed readers left, once their pending entries are taken."""
        with contextlib.suppress(NoGroup, Unavailable):  # the user may lack the right: no harm
            await self._stream.forget_idle(self._rules.claim_s)

    async def _check(self) -> None:
        """Report entries trimmed away before they were read, and of a stream created again."""
        now_s = time.monotonic()
        if now_s < self._check_s:
            return
        self._check_s = now_s + _CHECK_EVERY_S
        _, lag, length, last, consumers = await self._stream.state()
        if consumers > 1:
            await self.forget_idle()
        if lag is not None and lag - length > self._unread:
            self.lost += lag - length - self._unread
            self._feeder.tally.gone += lag - length - self._unread
            self._unread = lag - length
            self.reporter.write_line(
                f"{self._unread} entries were trimmed away before they were read."
            )
        if EntryId.of(last) < EntryId.of(self._after) and not self._warned:
            self._warned = True
            self.reporter.write_line(
                f"The stream ends at {last}, before {self._after}, up to which it was learned: it "
                "was created again. Entries up to there are not learned again; for them give it "
                "another --source."
            )


def _before(entry_id: str) -> str:
    ms, number = EntryId.of(entry_id)
    return f"{ms}-{number - 1}" if number else f"{ms - 1}-{2**64 - 1}"
