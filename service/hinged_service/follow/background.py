"""The thread of a follower: it keeps one model at the end of its log."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import secrets
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Final, NoReturn, TypeVar

from hinged_service.engine.aliases import Aliases
from hinged_service.errors import (
    ModelGone,
    NotFound,
    ServiceError,
    SetAside,
    StartupError,
    Unavailable,
)
from hinged_service.follow.read_only_model import FollowedModel, Tail
from hinged_service.model.index_entry import Alias, IndexEntry
from hinged_service.retry import RETRY_S, backoff
from hinged_service.river_support import custom
from hinged_service.settings import Settings
from hinged_service.store import index
from hinged_service.store.connection import Connection
from hinged_service.tasks import cancel
from hinged_service.wire.decoding import parse_events
from hinged_service.wire.position import Position

__all__ = ["Background"]

T = TypeVar("T")

logger = logging.getLogger(__name__)

_SHARE: Final = 0.8
"""Share of the allowed age after which the log is read again; the rest is for the reading."""
_LEAST_S: Final = 0.001
_AGAIN_S: Final = 0.5, 5.0
"""The first and the longest pause before a model that cannot be followed is looked for again."""


class Background:
    """A thread that opens a model, and opens another one when its name points to that.

    Parameters
    ----------
    settings
        Address of Redis, age allowed, timeouts.
    name
        Of a model or an alias.
    hold
        Whether workers wait with snapshots while one is loaded.

    Attributes
    ----------
    served
        The model that answers: the last one that was read to the end of its log; `None` before
        the first was, and after it was deleted.
    tail
        The way of the served model along its log.
    trouble
        Why the model is not at the end of its log; `None` if it is.

    """

    def __init__(self, settings: Settings, name: str, hold: bool) -> None:
        self._hold = hold
        self._settings = settings
        self._name = name
        self._period_s = settings.max_staleness_ms / 1000 * _SHARE
        self._producer = secrets.token_hex(8)
        self._sequence = itertools.count(1)
        self._model: FollowedModel | None = None  # that is read: to be served, if not yet
        self._is_alias = self._may_append = False
        self.served: FollowedModel | None = None
        self.tail: Tail | None = None
        self.trouble: Exception | None = None
        self._decided = threading.Event()
        self._running = threading.Event()
        self._pauses = backoff(*_AGAIN_S)
        self._task: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name=f"follow-{name}", daemon=True)

    def start(self, timeout_s: float) -> None:
        """Start, and return once the model is at the end of its log.

        Raises
        ------
        ServiceError, StartupError
            It cannot be, or was not in time; then the thread is stopped.

        """
        self._thread.start()
        self._decided.wait(timeout_s)
        if self.tail is None:
            self.stop()
            raise self.trouble or Unavailable(
                f"The model {self._name!r} did not catch up with its log within {timeout_s:g} s."
            )

    def stop(self) -> None:
        """Stop, after the appends under way; the last state stays."""
        if self._thread.ident is None:  # it was never started
            return
        self._running.wait()
        if self._thread.is_alive():
            stopping = cancel(self._task)
            try:
                asyncio.run_coroutine_threadsafe(stopping, self._loop)
            except RuntimeError:  # its loop has just ended
                stopping.close()
        self._thread.join()

    def ask(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Have work done by the thread; return a future of it, for any thread.

        Raises
        ------
        Unavailable
            There is no thread: the follower is closed, or this is a forked process.

        """
        if not self._thread.is_alive() or self._task is None or self._task.done():
            work.close()
            raise Unavailable("The follower is closed, or was opened before a fork. Open another.")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def wait_for(self, position: Position, timeout_s: float) -> None:
        """Return once the model is at `position` or later.

        Raises
        ------
        Conflict
            The log holds another history than the one that led to it.
        Unavailable
            The log did not get there in time.

        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while True:
                    with contextlib.suppress(Unavailable, SetAside, ModelGone):
                        await self.model().freshness.wait_for_position(position)
                        return
                    if self.trouble is None:
                        self._wake.set()
                    await asyncio.sleep(RETRY_S)
        raise Unavailable(
            f"The model was not at that position within {timeout_s:g} s."
        ) from self.trouble

    async def learn(self, body: bytes) -> None:
        """Append one event, as its JSON, and apply it.

        Raises
        ------
        Refused
            The user of the address may only read.
        ServiceError
            As `LiveModel.learn`.

        """
        model = self.model()
        events, payload, _ = parse_events(body, 1, model.accepts_non_numeric)
        if not self._may_append:
            await self._connection.check_writable()
            self._may_append = True
        await model.learn(events, payload)

    def model(self) -> FollowedModel:
        """Return the served model; raise `absent` if there is none."""
        if self.served is None:
            raise self.absent() from self.trouble
        return self.served

    def absent(self) -> ServiceError:
        """Return why there is no model: it was deleted, or not opened yet."""
        if isinstance(self.trouble, (NotFound, ModelGone)):
            return NotFound(f"There is no model {self._name!r} any more.")
        return Unavailable(f"The follower of {self._name!r} is not open: enter it with `with`.")

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        finally:
            self._running.set()
            self._decided.set()

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        try:
            if self._settings.models:
                custom.install(self._settings.models)
            self._connection = Connection(
                self._settings.redis_url or "", self._settings, notes=self._hold
            )
        except StartupError as error:
            self.trouble = error
            return
        self._aliases = Aliases(self._connection, 0.0, 0, 1)
        # A task of its own is what `stop` cancels, again and again: to close is not cut off.
        self._task = self._loop.create_task(self._go_on())
        self._running.set()
        try:
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        finally:
            for model in self._open:
                await model.aclose()
            await self._connection.aclose()

    async def _go_on(self) -> NoReturn:
        while True:
            pause_s = await self._round()
            self._wake.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()

    async def _round(self) -> float:
        """Read the log; return the pause until the next time, in seconds."""
        try:
            next_s = await self._serve(await self._read()) + self._period_s
        except Exception as error:  # noqa: BLE001 - the thread goes on, and logs why it is behind
            await self._note(error)
            away = self._connection.lost and self._model is not None
            next_s = self._loop.time() + (self._period_s if away else next(self._pauses))
        return max(_LEAST_S, next_s - self._loop.time())

    async def _note(self, error: Exception) -> None:
        """Note the failure of a round; log it if the connection does not."""
        self.trouble = error
        if isinstance(error, (NotFound, ModelGone)):
            await self._drop()
        if not (isinstance(error, Unavailable) and self._connection.lost):
            self._connection.observer.changes.enter(
                self,
                logger,
                "model %s cannot be followed: %s",
                self._name,
                str(error) if isinstance(error, ServiceError) else repr(error),
                level=logging.ERROR,
                exc_info=not isinstance(error, ServiceError),
            )
        if type(error) is not Unavailable:  # the next round may know better
            self._decided.set()

    async def _read(self) -> FollowedModel:
        """Bring the model of the name to the end of its log."""
        model = self._model
        if model is None or model.status.ended or not await self._is_meant():
            model = await self._opened()
        try:
            await model.freshness.read()
        except ModelGone:  # another one may have its name
            model = await self._opened()
            await model.freshness.read()
        return model

    async def _is_meant(self) -> bool:
        """Return whether the name still points to the present model; a model's own always does."""
        return not self._is_alias or await self._aliases.again(self._name) is not None

    async def _opened(self) -> FollowedModel:
        """Open the model of the name, unless that is the present one."""
        name, model = self._name, self._model
        entry = await index.find(self._connection, name)
        self._is_alias = isinstance(entry, Alias)
        if isinstance(entry, Alias):
            name = await self._aliases.look_up(name, entry)
            entry = await index.find(self._connection, name)
        if not isinstance(entry, IndexEntry) or entry.deleting or entry.base is None:
            raise NotFound(f"There is no model {name!r}.")
        if model is None or model.status.ended or model.entry.uid != entry.uid:
            opened = await FollowedModel.open(
                self._connection, self._settings, name, entry, self._producer, self._sequence
            )
            self._model = opened
            if model is not None and model is not self.served:
                await model.aclose()
            return opened
        return model

    async def _serve(self, model: FollowedModel) -> float:
        """Let a model answer from now on; return when its log was read."""
        before, tail = self.served, model.tail
        self.served, self.tail, self.trouble = model, tail, None
        if before is not None and before is not model:
            if tail.entry.uid != before.entry.uid:
                logger.warning("%s is now the model %s (%s)", self._name, tail.name, tail.entry.uid)
            await before.aclose()
        self._pauses = backoff(*_AGAIN_S)
        changes = self._connection.observer.changes
        changes.leave(self, logger, "model %s is followed again", self._name)
        self._decided.set()
        return tail.seen.pulse.at_s

    async def _drop(self) -> None:
        """Answer nothing more: the model was deleted."""
        models = self._open
        self._model = self.served = self.tail = None
        for model in models:
            await model.aclose()

    @property
    def _open(self) -> set[FollowedModel]:
        return set(filter(None, (self._model, self.served)))
