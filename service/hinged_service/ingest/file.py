"""Files as a source: named by their content, their offset is the number of the next record."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from hinged_service.ingest.files import FileError, FileOptions, Source, open_sources
from hinged_service.ingest.files.options import LabelValue
from hinged_service.ingest.files.record import Block
from hinged_service.ingest.progress import Reporter
from hinged_service.ingest.records import Fault, Lot, Raw
from hinged_service.ingest.target import Failed
from hinged_service.ingest.writer import Feeder, Gathered, meanwhile
from hinged_service.model.state import ModelState

__all__ = ["bring_files"]


async def bring_files(
    paths: Sequence[str], options: FileOptions, restart: bool, feeder: Feeder, reporter: Reporter
) -> dict[str, Any]:
    """Feed files, one after the other, each from where it was left.

    With `restart` each is brought from its beginning, as a new source.

    Raises
    ------
    Failed
        A file cannot be read, or not further; what came before is learned.
    Stopped
        The user wants an end.
    """
    feeder.door = "file"
    state: ModelState | None = None  # comes after the files: one that is refused makes no model

    def takes(y: LabelValue) -> bool:
        return state is not None and state.answers.target(y) is not None

    try:
        with feeder.stop.blocking():
            sources = open_sources(paths, replace(options, takes=takes))
    except FileError as error:
        raise Failed(str(error)) from None
    await feeder.ready()
    state = await feeder.state()
    sizes = [source.size_bytes for source in sources]
    reporter.total_bytes = None if None in sizes else sum(size or 0 for size in sizes)
    before = 0
    for source in sources:
        reporter.write_line(f"{source.name}: {source.describe()}")
        try:
            await _bring(source, restart, feeder, reporter, before)
        except FileError as error:
            raise Failed(f"{error} All records before that are learned.") from None
        finally:
            reporter.noted["skipped"] = sum(source.skipped for source in sources)
            reporter.noted["continued"] = sum(source.continued for source in sources)
        before += source.size_bytes or 0
    return {}


async def _bring(
    source: Source, restart: bool, feeder: Feeder, reporter: Reporter, before: int
) -> None:
    tally = feeder.tally
    records, dead = tally.records, tally.dead
    name, offset = await _place(source, restart, feeder)
    if offset:
        reporter.write_line(f"{source.name}: continues after its first {int(offset):,} records.")
    end = await _bring_from(name, offset, source, feeder, reporter, before)
    others = int(end or 0) - (tally.records - records)
    if others > 0:
        tally.earlier += others
        tally.earlier_dead += max(0, await feeder.letters(name) - (tally.dead - dead))


async def _bring_from(
    name: str, offset: str, source: Source, feeder: Feeder, reporter: Reporter, before: int
) -> str:
    """Feed a file from an offset on; return the offset of its end."""
    while True:
        reading = source.blocks(int(offset or 0))
        taken = await _take(reading, source, feeder)
        while (block := taken.block) is not None:
            end = str(block.number + len(block.texts))
            sent = feeder.feed(taken.ready, name, offset, end)
            if source.resumable:
                now, following = await meanwhile(sent, partial(_take, reading, source, feeder))
            else:  # it may not come for long, and nothing else is done until then
                now, following = await sent, None
            if now != end:
                offset = now
                break
            offset = end
            reporter.show(before + block.bytes_read)
            feeder.stop.check()
            taken = following or await _take(reading, source, feeder)
        else:
            if taken.fault is not None:
                raise taken.fault
            return offset
        reporter.write_line(f"{source.name}: another run brought it up to record {offset or 0}.")


async def _place(source: Source, restart: bool, feeder: Feeder) -> tuple[str, str]:
    """Return the source name of a file, and its stored offset."""
    if not source.resumable:
        return f"pipe:{secrets.token_hex(8)}", ""
    identity = f"file:{source.identity()}"
    times, name, offset = 1, identity, await feeder.offset(identity)
    while offset:
        further = f"{identity}#{times + 1}"
        at = await feeder.offset(further)
        if not at:
            return (further, "") if restart else (name, offset)
        times, name, offset = times + 1, further, at
    return name, ""


class _Taken(NamedTuple):
    """The next records, also as read for the model; or the error that ends the file early."""

    block: Block | None
    ready: Gathered | Sequence[Raw] = ()
    fault: FileError | None = None


async def _take(reading: Iterator[Block], source: Source, feeder: Feeder) -> _Taken:
    try:
        with nullcontext() if source.resumable else feeder.stop.blocking():
            block = next(reading, None)
    except FileError as error:
        return _Taken(None, fault=error)
    return _Taken(block, await feeder.gathered(_lot(block)) if block is not None else ())


def _lot(block: Block) -> Lot | Sequence[Raw]:
    """Return a block as columns if all of it are events, or may be."""
    if any(block.errors):
        return _each(block)
    events = None if block.events[0] is None else block.events
    places = range(block.number, block.number + len(block.texts))
    return Lot(places, block.texts, events, partial(_each, block))  # type: ignore[arg-type]


def _each(block: Block) -> Sequence[Raw]:
    raws = []
    for number, line, event, error, _, text in block.records():
        body = text or event or Fault("", error or "is no event")
        place = f"row {number + 1}:" if line is None else f"line {line}:"
        raws.append(Raw(str(number), body, line=place))
    return raws
