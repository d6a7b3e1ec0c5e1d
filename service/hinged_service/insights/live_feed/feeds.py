"""The live feeds of a worker: one hub for each watched name."""

from __future__ import annotations

import asyncio

from hinged_service.engine.live_model import LiveModel
from hinged_service.engine.name_access import EVERYTHING, NameAccess
from hinged_service.engine.registry import ModelRegistry
from hinged_service.errors import Busy, Unavailable
from hinged_service.insights.live_feed.hub import Hub
from hinged_service.insights.live_feed.subscriber import Subscriber
from hinged_service.settings import LimitSettings

__all__ = ["Feeds"]


class Feeds:
    """The live feeds of a worker."""

    def __init__(self, registry: ModelRegistry, settings: LimitSettings) -> None:
        self._registry = registry
        self._most = settings.max_live_feeds
        self._hubs: dict[str, Hub] = {}
        self._stopping = False

    def end(self) -> None:
        """End all feeds, and take no further subscriber."""
        self._stopping = True
        for hub in tuple(self._hubs.values()):
            hub.end("shutdown")

    async def aclose(self) -> None:
        """End all feeds."""
        self._stopping = True
        await asyncio.gather(*(hub.stop() for hub in tuple(self._hubs.values())))

    def watch(
        self,
        live_model: LiveModel,
        name: str,
        features: bool,
        weights: bool = False,
        access: NameAccess = EVERYTHING,
    ) -> Subscriber:
        """Return a new subscriber to a model or alias, which must leave in the end.

        Parameters
        ----------
        live_model
            The model as it is open here.
        name
            Its name or an alias of it, as it was asked for.
        features
            Whether outcomes come with the features of their events.
        weights
            Whether the largest weights are sent.
        access
            The models that the subscriber may see: of an alias that is moved to another one it
            sees no more.

        Raises
        ------
        Busy
            There are too many subscribers.
        Forbidden
            The feed has not yet followed the alias to a model that the subscriber may see.
        Unavailable
            The worker is stopping.

        """
        if self._stopping:
            raise Unavailable("The worker is stopping; ask another one.", retry_after_s=1)
        if self.open_count >= self._most:
            raise Busy(
                f"{self._most} live feeds are open on this worker, as many as max_live_feeds "
                "allows. Try again.",
                retry_after_s=10,
            )
        hub = self._hubs.get(name)
        if hub is None:
            hub = self._hubs[name] = Hub(self._registry, name, live_model, self._forget)
        return hub.join(features, weights, access)

    @property
    def open_count(self) -> int:
        """The number of subscribers."""
        return sum(len(hub) for hub in self._hubs.values())

    def _forget(self, hub: Hub) -> None:
        """Drop a hub that has ended."""
        if self._hubs.get(hub.name) is hub:
            del self._hubs[hub.name]
