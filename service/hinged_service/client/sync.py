"""The client of the service, blocking."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
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
from hinged_service.client.management import Management
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

__all__ = ["Client"]

T = TypeVar("T")


class Client(Management):
    """A blocking client of the service; it may be shared by threads.

    It may be used on both sides of a fork: a forked process makes connections of its own.

    What fails for a while is sent again until a deadline. That is safe: every
    event has an id, the client makes one where the caller gave none, and an id
    counts once. So an event whose first answer got lost may come back as a
    `Duplicate`, which is a success.

    Parameters
    ----------
    base_url
        The address of the service, as `"http://127.0.0.1:8000"`.
    api_key
        Sent as a bearer token: a key of the service (`hinged key`).
    timeout_s
        Longest that one attempt waits to connect, to send, and for the answer.
    retries
        When to send again.
    transport
        Another way to the service, as `httpx.HTTPTransport(uds="/run/hinged.sock")`. Its
        connections belong to one process: in a forked one every call raises `ClientError`.

    Raises
    ------
    ClientError
        By every call: the subclass tells what happened, the text what to do next.
    Invalid
        If the address or the key cannot be one.

    Examples
    --------
    ::

        with Client("http://127.0.0.1:8000") as client:
            client.create_model("mail", {"learner": {"type": "perceptron"}})
            client.learn("mail", {"free": 1, "money": 1}, True)
            client.predict("mail", {"free": 1}).y

    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 10.0,
        retries: Retries = Retries(),  # noqa: B008 - immutable
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.base_url = calls.checked_address(base_url)
        self._retries, self._timeout_s = retries, timeout_s
        self._again: functools.partial[Client] | None = None
        if transport is None:
            self._again = functools.partial(
                Client, base_url, api_key=api_key, timeout_s=timeout_s, retries=retries
            )
        self._connections = Connections(
            lambda: httpx.Client(
                base_url=base_url,
                headers=calls.headers(api_key),
                timeout=timeout_s,
                transport=transport,
                verify=calls.checks_certificates(base_url),
            ),
            again=transport is None,
        )

    @property
    def _http(self) -> httpx.Client:
        return self._connections.pool()

    def close(self) -> None:
        """Close the connections; no call is possible afterwards."""
        if (http := self._connections.present()) is not None:
            http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self.base_url!r})"

    def __deepcopy__(self, _: dict[int, Any]) -> Client:
        return self  # connections have no value to copy; threads may share them

    def __reduce__(self) -> tuple[Callable[[], Client], tuple[()]]:
        if self._again is None:
            raise TypeError(
                "A client with a transport of its own cannot be pickled: make it over there."
            )
        return self._again, ()

    def _run(self, call: Call[T]) -> T:
        exchange = Exchange(call, self._retries)
        while True:
            try:
                answer = self._http.request(
                    call.method, call.path, params=call.query, content=call.body
                )
                return exchange.read(answer)
            except (httpx.RequestError, ClientError) as failure:
                pause_s = exchange.pause_s(failure)
            time.sleep(pause_s)

    def create_model(self, name: str, spec: Mapping[str, Any]) -> ModelListed:
        """Create a model; the same spec again changes nothing.

        Parameters
        ----------
        name
            Its name: letters, digits, `_`, `.` and `-`.
        spec
            As in the service's documentation, `{"learner": {"type": ...}, ...}`.

        Raises
        ------
        Conflict
            If there is one with another spec.
        Invalid
            Naming what is wrong in the spec.

        """
        return self._run(calls.create_model(name, spec))

    def models(self) -> list[ModelListed]:
        """Return all models, in order of name."""
        return self._run(calls.models())

    def model(self, name: str, *, at_least: str | None = None) -> ModelInfo:
        """Return a model's spec, position and account.

        Parameters
        ----------
        name
            The model.
        at_least
            A position that an earlier answer gave: wait until the model has
            learned as much.

        """
        return self._run(calls.model(name, at_least))

    def delete_model(self, name: str) -> None:
        """Delete a model; the last one on a stream takes the stream with it."""
        return self._run(calls.delete_model(name))

    def weights(
        self,
        name: str,
        *,
        top: int | None = None,
        label: Label | None = None,
        at_least: str | None = None,
    ) -> Weights:
        """Return the weights that predict, largest magnitude first.

        Parameters
        ----------
        name
            The model.
        top
            Only the largest so many of each vector.
        label
            Multiclass: only those of this class.
        at_least
            As in `model`.

        """
        return self._run(calls.weights(name, top, label, at_least))

    def ready(self) -> bool:
        """Return whether the service answers and its Redis takes writes; asks once."""
        try:
            return self._run(calls.ready())
        except (Unavailable, Unreachable):
            return False

    def predict(
        self,
        name: str,
        x: Mapping[Any, Any],
        id: str | None = None,  # noqa: A002 - the service's name for it
        *,
        at_least: str | None = None,
    ) -> Prediction:
        """Predict one event; that changes no model.

        Parameters
        ----------
        name
            The model.
        x
            Feature names and values; `hinged_service.client.events` says what is taken.
        id
            The event's name, for services that wait for its label.
        at_least
            As in `model`.

        """
        return self._run(calls.predict(name, encode_question(x, id), at_least))

    def predict_many(
        self,
        name: str,
        xs: Iterable[Mapping[Any, Any]],
        *,
        at_least: str | None = None,
        batch_events: int = BATCH_EVENTS,
        batch_bytes: int = BATCH_BYTES,
    ) -> Iterator[Prediction]:
        """Yield the prediction of each event, in order; sends as it is iterated.

        Same parameters as `predict` and `learn_many`.
        """
        batcher = Batcher(encode_question, batch_events, batch_bytes)
        return self._each(xs, batcher, lambda batch: calls.predict_many(name, batch, at_least))

    def explain(
        self,
        name: str,
        x: Mapping[Any, Any],
        *,
        label: Label | None = None,
        at_least: str | None = None,
    ) -> Explanation:
        """Return what each feature of an event adds to the model's score.

        Parameters
        ----------
        name
            The model.
        x
            As in `predict`.
        label
            Multiclass: the class whose score is explained; the predicted one if `None`.
        at_least
            As in `model`.

        Raises
        ------
        Conflict
            If the score of its learner is no sum over features.

        """
        return self._run(calls.explain(name, encode_question(x), label, at_least))

    def learn(
        self,
        name: str,
        x: Mapping[Any, Any],
        y: Label,
        w: float = 1.0,
        id: str | None = None,  # noqa: A002 - the service's name for it
    ) -> Outcome:
        """Learn one event, which is predicted and scored before.

        Parameters
        ----------
        name
            The model.
        x
            Feature names and values; `hinged_service.client.events` says what is taken.
        y
            The label.
        w
            Sample weight, at least 0.
        id
            The event's name, under which it counts once however often it is sent;
            the client makes one if it is `None`.

        Raises
        ------
        Invalid
            Naming the field; nothing was taken, unless it is `logged`.
        Unavailable, Unreachable, Busy
            If it went on until the deadline. To send the event again, give the id
            in `event_ids`.

        """
        return self._run(calls.learn(name, encode_event(Event(x, y, w, id))))

    def learn_many(
        self,
        name: str,
        events: Iterable[EventLike],
        *,
        batch_events: int = BATCH_EVENTS,
        batch_bytes: int = BATCH_BYTES,
    ) -> Iterator[Outcome]:
        """Yield the outcome of each event, in order; sends as it is iterated.

        Nothing is learned unless the outcomes are consumed. The events are taken
        from the iterable batch by batch, so they may be more than fit in memory; a
        batch waits until it is full or the events end.

        Parameters
        ----------
        name
            The model.
        events
            `Event`s, tuples `(x, y)`, `(x, y, w)` or `(x, y, w, id)`, or mappings
            of these names. Events with ids of their own can be given again after
            an error, all of them: each counts once.
        batch_events
            Events in one call at most.
        batch_bytes
            Bytes of their JSON at most; a larger event goes alone.

        Raises
        ------
        Invalid
            Naming place and field, as `"[1003].y"`. The batches before have been
            learned; of this one nothing, unless it is `logged`.

        """
        batcher = Batcher(encode_event, batch_events, batch_bytes)
        return self._each(events, batcher, lambda batch: calls.learn_many(name, batch))

    def events(self, name: str, *, features: bool = False) -> Generator[LiveEvent, None, None]:
        """Yield what happens to a model from now on: its live feed.

        It begins with the first `next`, and the first event says where. A connection
        that breaks, is dropped for being slow or ends with its worker is made again,
        after a pause; what happened meanwhile is not told again, and the `LiveModel`
        that follows shows it (`gap`). It ends with a `LiveEnd`, as when the model is
        deleted. To stop earlier, close the generator: that hangs up.

        Nothing is read ahead: one who iterates slowly is dropped by the service, and
        misses events.

        Parameters
        ----------
        name
            The model; or an alias, which is followed to wherever it moves.
        features
            Whether outcomes come with the features of their events.

        Raises
        ------
        NotFound
            There is no such model, at the first connection.
        Busy, Unavailable, Unreachable
            If no connection could be made until the deadline of `retries`.

        Examples
        --------
        ::

            with contextlib.closing(client.events("mail")) as events:
                for event in events:
                    if isinstance(event, LiveOutcome) and event.mistake:
                        print(event.id, event.y)

        """
        watch = Watch(name, features, self._retries, self._timeout_s)
        while True:
            try:
                http = self._http
                with http.stream(**watch.request) as answer:
                    if not watch.begin(answer):
                        answer.read()
                        yield watch.refuse(answer)
                    else:
                        for chunk in answer.iter_bytes():
                            yield from watch.read(chunk)
                            if watch.done or http is not self._http:
                                break
                if watch.over:
                    return
                pause_s = watch.pause_s(None)
            except (httpx.RequestError, ClientError) as failure:
                pause_s = watch.pause_s(failure)
            time.sleep(pause_s)

    def _each(
        self, items: Iterable[Any], batcher: Batcher, call: Callable[[Batch], Call[list[T]]]
    ) -> Iterator[T]:
        for item in items:
            if (batch := batcher.add(item)).items:
                yield from self._run(call(batch))
        if (batch := batcher.rest()).items:
            yield from self._run(call(batch))
