"""The live feed of a model as server-sent events."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from hinged_service.api.dependencies import Name, access_of, fresh, problems_for
from hinged_service.insights.live_feed import Feeds, Subscriber
from hinged_service.settings import LimitSettings
from hinged_service.tasks import cancel

__all__ = ["router"]

_LAST_WORDS_S = 5.0
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
_SCHEMA = {
    "type": "string",
    "description": "Events by their type, data is JSON. `model`: name, model, uid, position; first "
    "and whenever an alias is moved. `metrics`, at first and once a second: position, events, "
    "judged, mistakes, updates, hinge_loss, overflows, rejected, drifts, frozen, accuracy, "
    "rolling_accuracy, metrics, events_per_s, stale_s, caught_up. `outcome`: id, y, w, y_pred, "
    "score, mistake, updated, hinge_loss, margin (linear binary learners), position, number within "
    "it, at_ms, and x if asked for. `weights`, "
    "if asked for and when they moved, at most once a second: position and the 20 largest, as "
    "`GET …/weights` has them, of at most 20 classes, then with all_classes, how many there are. "
    "`sample`: shown and left_out, after outcomes "
    "if some were left out. `drift`: entry, number, events, position, at_ms. `command`: do "
    "and its details, position, at_ms. `end`: "
    "reason. The id of an event is its position.",
}


class _Feed(StreamingResponse):
    """The answer of a feed, which ends at once when the subscriber hangs up."""

    def __init__(self, subscriber: Subscriber) -> None:
        super().__init__(subscriber.chunks(), headers=_HEADERS, media_type="text/event-stream")
        self._subscriber = subscriber

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the end, or until the subscriber hangs up or takes nothing any more."""
        sending = asyncio.create_task(self.stream_response(send))
        others = [
            asyncio.create_task(_hung_up(receive)),
            asyncio.create_task(_out_of_patience(self._subscriber)),
        ]
        try:
            await asyncio.wait([sending, *others], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._subscriber.leave()
            await cancel(sending, *others)
            await asyncio.gather(sending, *others, return_exceptions=True)


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _out_of_patience(subscriber: Subscriber) -> None:
    await subscriber.slow.wait()
    await asyncio.sleep(_LAST_WORDS_S)


def router(settings: LimitSettings) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1/models/{model}", tags=["models"])
    answer: dict[int | str, dict[str, Any]] = {
        200: {
            "description": "Events without end.",
            "content": {"text/event-stream": {"schema": _SCHEMA}},
        }
    }

    @routes.get(
        "/live",
        summary="Watch a model",
        response_class=Response,
        responses=answer
        | problems_for(
            {
                429: f"{settings.max_live_feeds} feeds are open on this worker.",
                503: "Redis does not answer, or the worker is stopping.",
            }
        ),
    )
    async def live(
        request: Request,
        model: Name,
        features: Annotated[
            bool, Query(description="Outcomes come with the features of their events.")
        ] = False,
        weights: Annotated[bool, Query(description="Send the largest weights, too.")] = False,
    ) -> Response:
        """Watch the learning of a model on any worker, from now on.

        Of many events some outcomes are shown, the others counted. Events between two
        connections are not sent again. A subscriber that does not read is dropped.
        """
        live_model = await fresh(request, model)
        feeds: Feeds = request.app.state.feeds
        access = access_of(request)
        return _Feed(feeds.watch(live_model, model, features, weights, access))

    return routes
