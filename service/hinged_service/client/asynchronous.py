"""The client of the service for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Mapping,
)
from types import TracebackType
from typing import Any, TypeVar

import httpx

from hinged_service.client import calls
from hinged_service.client.batches import BATCH_BYTES, BATCH_EVENTS, Batch, Batcher
from hinged_service.client.calls import Call
from hinged_service.client.connections import Connections
from hinged_service.client.errors import ClientError, Unavailable, Unreachable
from hinged_service.client.events import Event, EventLike, encode_event, encode_question
from hinged_service.client.exchange import Exchange, Retries
from hinged_service.client.live_results import LiveEvent
from hinged_service.client.management import AsyncManagement
from hinged_service.client.results import (
    Explanation,
    Label,
    ModelInfo,
    ModelListed,
    Outcome,
    Prediction,
    Weights,
)
from hinged_service.client.watching import Watch

__all__ = ["AsyncClient"]

T = TypeVar("T")


class AsyncClient(AsyncManagement):
    """A client of the service for asyncio: `Client` with calls that are awaited.

    It may be used on both sides of a fork, in the child by an event loop of its own.

    A call that is cancelled may have counted or not. An event that had an id of
    the caller's can be sent again.

    Parameters
    ----------
    base_url, api_key, timeout_s, retries
        As in `Client`.
    transport
        As in `Client`, but an asynchronous one: `httpx.AsyncHTTPTransport(...)`.

    Examples
    --------
    ::

        async with AsyncClient("http://127.0.0.1:8000") as client:
            async for outcome in client.learn_many("mail", events):
                print(outcome.position)

    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 10.0,
        retries: Retries = Retries(),  # noqa: B008 - immutable
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.base_url = calls.checked_address(base_url)
        self._retries, self._timeout_s = retries, timeout_s
        self._connections = Connections(
            lambda: httpx.AsyncClient(
                base_url=base_url,
                headers=calls.headers(api_key),
                timeout=timeout_s,
                transport=transport,
                verify=calls.checks_certificates(base_url),
            ),
            again=transport is None,
        )

    @property
    def _http(self) -> httpx.AsyncClient:
        return self._connections.pool()

    async def close(self) -> None:
        """Close the connections; no call is possible afterwards."""
        if (http := self._connections.present()) is not None:
            await http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self.base_url!r})"

    async def _run(self, call: Call[T]) -> T:
        exchange = Exchange(call, self._retries)
        while True:
            try:
                answer = await self._http.request(
                    call.method, call.path, params=call.query, content=call.body
                )
                return exchange.read(answer)
            except (httpx.RequestError, ClientError) as failure:
                pause_s = exchange.pause_s(failure)
            await asyncio.sleep(pause_s)

    async def create_model(self, name: str, spec: Mapping[str, Any]) -> ModelListed:
        """Create a model, as `Client.create_model`."""
        return await self._run(calls.create_model(name, spec))

    async def models(self) -> list[ModelListed]:
        """Return all models, in order of name."""
        return await self._run(calls.models())

    async def model(self, name: str, *, at_least: str | None = None) -> ModelInfo:
        """Return a model's spec, position and account, as `Client.model`."""
        return await self._run(calls.model(name, at_least))

    async def delete_model(self, name: str) -> None:
        """Delete a model, as `Client.delete_model`."""
        return await self._run(calls.delete_model(name))

    async def weights(
        self,
        name: str,
        *,
        top: int | None = None,
        label: Label | None = None,
        at_least: str | None = None,
    ) -> Weights:
        """Return the weights that predict, as `Client.weights`."""
        return await self._run(calls.weights(name, top, label, at_least))

    async def ready(self) -> bool:
        """Return whether the service can serve, as `Client.ready`."""
        try:
            return await self._run(calls.ready())
        except (Unavailable, Unreachable):
            return False

    async def predict(
        self,
        name: str,
        x: Mapping[Any, Any],
        id: str | None = None,  # noqa: A002 - the service's name for it
        *,
        at_least: str | None = None,
    ) -> Prediction:
        """Predict one event, as `Client.predict`."""
        return await self._run(calls.predict(name, encode_question(x, id), at_least))

    def predict_many(
        self,
        name: str,
        xs: Iterable[Mapping[Any, Any]] | AsyncIterable[Mapping[Any, Any]],
        *,
        at_least: str | None = None,
        batch_events: int = BATCH_EVENTS,
        batch_bytes: int = BATCH_BYTES,
    ) -> AsyncIterator[Prediction]:
        """Yield the prediction of each event, as `Client.predict_many`."""
        batcher = Batcher(encode_question, batch_events, batch_bytes)
        return self._each(xs, batcher, lambda batch: calls.predict_many(name, batch, at_least))

    async def explain(
        self,
        name: str,
        x: Mapping[Any, Any],
        *,
        label: Label | None = None,
        at_least: str | None = None,
    ) -> Explanation:
        """Return what each feature adds to a score, as `Client.explain`."""
        return await self._run(calls.explain(name, encode_question(x), label, at_least))

    async def learn(
        self,
        name: str,
        x: Mapping[Any, Any],
        y: Label,
        w: float = 1.0,
        id: str | None = None,  # noqa: A002 - the service's name for it
    ) -> Outcome:
        """Learn one event, as `Client.learn`."""
        return await self._run(calls.learn(name, encode_event(Event(x, y, w, id))))

    def learn_many(
        self,
        name: str,
        events: Iterable[EventLike] | AsyncIterable[EventLike],
        *,
        batch_events: int = BATCH_EVENTS,
        batch_bytes: int = BATCH_BYTES,
    ) -> AsyncIterator[Outcome]:
        """Yield the outcome of each event, as `Client.learn_many`; batches go one by one."""
        batcher = Batcher(encode_event, batch_events, batch_bytes)
        return self._each(events, batcher, lambda batch: calls.learn_many(name, batch))

    async def events(self, name: str, *, features: bool = False) -> AsyncGenerator[LiveEvent, None]:
        """Yield what happens to a model from now on, as `Client.events`.

        To stop, close it (`contextlib.aclosing`) or cancel who iterates: that hangs up.
        """
        watch = Watch(name, features, self._retries, self._timeout_s)
        while True:
            try:
                async with self._http.stream(**watch.request) as answer:
                    if not watch.begin(answer):
                        await answer.aread()
                        yield watch.refuse(answer)
                    else:
                        async for chunk in answer.aiter_bytes():
                            for event in watch.read(chunk):
                                yield event
                            if watch.done:
                                break
                if watch.over:
                    return
                pause_s = watch.pause_s(None)
            except (httpx.RequestError, ClientError) as failure:
                pause_s = watch.pause_s(failure)
            await asyncio.sleep(pause_s)

    async def _each(
        self,
        items: Iterable[Any] | AsyncIterable[Any],
        batcher: Batcher,
        call: Callable[[Batch], Call[list[T]]],
    ) -> AsyncIterator[T]:
        async for item in _one_by_one(items):
            if (batch := batcher.add(item)).items:
                for result in await self._run(call(batch)):
                    yield result
        if (batch := batcher.rest()).items:
            for result in await self._run(call(batch)):
                yield result


async def _one_by_one(items: Iterable[Any] | AsyncIterable[Any]) -> AsyncIterator[Any]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
