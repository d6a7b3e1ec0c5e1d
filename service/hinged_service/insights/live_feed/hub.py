"""The hub of one watched name: it follows the model and feeds the subscribers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.name_access import NameAccess
from hinged_service.engine.registry import ModelRegistry
from hinged_service.engine.replica import AppliedEntry
from hinged_service.engine.top_weights import largest
from hinged_service.errors import ModelGone, NotFound, ServiceError, SetAside, Unavailable
from hinged_service.insights.live_feed.messages import (
    metrics_message,
    model_message,
    weights_message,
)
from hinged_service.insights.live_feed.sampler import Sampler
from hinged_service.insights.live_feed.subscriber import Subscriber
from hinged_service.model.inspection import feature_count, weights_of
from hinged_service.tasks import cancel

__all__ = ["Hub"]

logger = logging.getLogger(__name__)

_TICK_S = 0.2
_TICKS_PER_SECOND = 5
_LOG_EVERY_S = 60.0
_TOP_WEIGHTS = 20
_MANY_FEATURES = 10_000
_WEIGHING_SHARE = 0.02
"""The most of the time, so that a model of a million weights does not slow its worker down."""


class Hub:
    """The subscribers to one name of a model or an alias, and the task that feeds them.

    `on_close` is called with the hub when it has ended.
    """

    def __init__(
        self,
        registry: ModelRegistry,
        name: str,
        live_model: LiveModel,
        on_close: Callable[[Hub], None],
    ) -> None:
        self.name = name
        self._registry = registry
        self._on_close = on_close
        self._subscribers: list[Subscriber] = []
        self._sampler = Sampler()
        self._last = (0, 0)
        self._heard = 0
        self._heard_at_s = asyncio.get_running_loop().time()
        self._weights = b""
        self._weighed = ("", 0.0)
        self._live_model = live_model
        self._over = False
        self._watch(live_model)
        self._task = asyncio.create_task(self._run())

    def join(self, features: bool, weights: bool, access: NameAccess) -> Subscriber:
        """Return a new subscriber; its first message is the present state of the model."""
        access.check(self._live_model.name, f"the model that {self.name!r} points to")
        subscriber = Subscriber(features, weights, access, self._log_slow, self._leave)
        self._subscribers.append(subscriber)
        first = model_message(self.name, self._live_model)
        if not self._live_model.away:  # else they come with the next tick after the long work
            first += metrics_message(self._live_model, None)
        subscriber.put(first + (self._weights if weights else b""))
        return subscriber

    def _leave(self, subscriber: Subscriber) -> None:
        """Forget a subscriber; the last one takes the hub with it."""
        if subscriber in self._subscribers:
            self._subscribers.remove(subscriber)
        if not self._subscribers:
            self._close()
            self._task.cancel()

    def _log_slow(self) -> None:
        self._registry.connection.observer.changes.enter(
            ("feed", self.name),
            logger,
            "a reader of the live feed of %s was too slow",
            self.name,
            every_s=_LOG_EVERY_S,
        )

    def end(self, reason: str) -> None:
        """Send all subscribers the last message."""
        self._close()
        for subscriber in self._subscribers:
            subscriber.end(reason)

    async def stop(self) -> None:
        """End for a shutdown."""
        self.end("shutdown")
        await cancel(self._task)

    def __len__(self) -> int:
        return len(self._subscribers)

    def _close(self) -> None:
        self._over = True  # cancel() is lost if the awaited result arrives in the same iteration
        self._unwatch()
        self._on_close(self)

    def _watch(self, live_model: LiveModel) -> None:
        self._live_model = live_model
        self._last = live_model.position.order
        live_model.watch(self._hear)

    def _unwatch(self) -> None:
        self._live_model.unwatch(self._hear)

    def _hear(self, folded: AppliedEntry) -> None:
        """Take note of an entry; this runs on the way of learning."""
        order = folded.entry.position.order
        if order <= self._last:  # folded again by a rebuild
            return
        self._last = order
        self._heard += len(folded.results)
        self._sampler.add(folded, self._live_model.state)

    async def _run(self) -> None:
        try:
            turn = 0
            while not self._over:
                await asyncio.sleep(_TICK_S)
                turn = (turn + 1) % _TICKS_PER_SECOND
                reason = await self._freshen(look_up=turn == 0)
                self._send(metrics=turn == 0)
                await self._weigh()
                if reason is not None:
                    self.end(reason)
                    return
        except Exception:
            logger.exception("the live feed of %s failed", self.name)
            self.end("failed")

    async def _freshen(self, look_up: bool) -> str | None:
        """Keep the model fresh; return the reason if there is nothing to watch any more."""
        try:
            if look_up or self._live_model.status.ended:
                await self._follow()
            await self._live_model.freshness.refresh_if_stale()
        except (NotFound, ModelGone):
            if self._live_model.name == self.name:
                return "deleted"
            self._registry.forget(self._live_model.name, self._live_model)
        except SetAside as error:
            return f"set aside: {error.detail}"
        except Unavailable:
            pass  # the metrics report how stale they are
        except ServiceError as error:
            return error.detail
        return None

    async def _follow(self) -> None:
        """Go on with the model that the name points to now.

        Raises
        ------
        NotFound
            There is none, or it was deleted and created again.

        """
        found = await self._registry.open(self.name)
        if found is self._live_model or not self._subscribers:
            return
        same = found.entry.uid == self._live_model.entry.uid
        if not same and self._live_model.name == self.name:
            raise NotFound("The model was deleted and created again. Subscribe again.")
        last = self._last
        self._unwatch()
        self._watch(found)
        if same:
            self._last = max(last, self._last)
        else:
            self._send(metrics=False)
            new = model_message(self.name, self._live_model)
            for subscriber in tuple(self._subscribers):
                if subscriber.access.includes(found.name):
                    subscriber.put(new)
                else:
                    subscriber.end("forbidden")

    def _send(self, metrics: bool) -> None:
        plain, full = self._sampler.chunks()
        self._sampler = Sampler()
        if metrics and not self._live_model.away:
            now_s = asyncio.get_running_loop().time()
            counts = metrics_message(self._live_model, self._heard / (now_s - self._heard_at_s))
            self._heard, self._heard_at_s = 0, now_s
            plain, full = plain + counts, full + counts
        for subscriber in tuple(self._subscribers):
            subscriber.put(full if subscriber.features else plain)

    async def _weigh(self) -> None:
        """Send the largest weights if they may have changed and it is time."""
        loop, position = asyncio.get_running_loop(), str(self._live_model.position)
        began_s = loop.time()
        sent, due_s = self._weighed
        wanted = any(subscriber.weights for subscriber in self._subscribers)
        if sent == position or began_s < due_s or not wanted or self._live_model.away:
            return
        fold = self._live_model.state
        weights = weights_of(fold, None)
        if weights is None:
            return
        if feature_count(fold) > _MANY_FEATURES:
            weights = await asyncio.to_thread(largest, weights, _TOP_WEIGHTS)
        else:
            weights = largest(weights, _TOP_WEIGHTS)
        self._weights = weights_message(weights, position)
        now_s = loop.time()
        self._weighed = position, max(began_s + 1.0, now_s + (now_s - began_s) / _WEIGHING_SHARE)
        for subscriber in tuple(self._subscribers):
            if subscriber.weights:
                subscriber.put(self._weights)
