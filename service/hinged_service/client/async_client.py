"""The client of the service for asyncio.

Every call stands in this one class (hence its length), from which `.ci/unasync.py` makes the
blocking `Client`.
"""

from __future__ import annotations

import asyncio
import functools
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar

import httpx

from hinged_service.client import calls
from hinged_service.client.batches import (
    BATCH_BYTES,
    BATCH_EVENTS,
    AnyIterable,
    Batch,
    Batcher,
    each,
)
from hinged_service.client.calls import Call, reader
from hinged_service.client.connections import Connections
from hinged_service.client.errors import ClientError, Unavailable, Unreachable
from hinged_service.client.events import (
    Event,
    EventLike,
    encode_event,
    encode_label,
    encode_question,
)
from hinged_service.client.exchange import Exchange, Retries
from hinged_service.client.live_feed import Watch
from hinged_service.client.progress import WatchedAnswer, pieces
from hinged_service.wire.live_feed import LiveEvent
from hinged_service.wire.progress import OnProgress
from hinged_service.wire.reports import ModelGlances, ModelHistory
from hinged_service.wire.responses import (
    AliasInfo,
    Checkpoint,
    CommandResult,
    Early,
    Explanation,
    Label,
    ModelInfo,
    ModelListed,
    Outcome,
    Prediction,
    Promoted,
    Repaired,
    StreamInfo,
    StreamListed,
    Upgraded,
    Weights,
)

__all__ = ["AsyncClient"]

T = TypeVar("T")


class AsyncClient:
    """An asynchronous client of the service.

    It may be used on both sides of a fork: a forked process makes connections of its own.
    The blocking client may be shared by threads; the asynchronous one belongs to one event
    loop, in a forked process to one of its own, and a call that is cancelled may have
    counted or not.

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
        Longest that one attempt waits to connect, to send, and for the answer. Calls whose work
        grows with the model (checkpoint, export, import, ...) wait ten minutes for the answer.
    retries
        When to send again.
    transport
        Another way to the service, as `httpx.AsyncHTTPTransport(uds="/run/hinged.sock")`. Its
        connections belong to one process: in a forked one every call raises `ClientError`.

    Raises
    ------
    ClientError
        By every call: the subclass is what happened, the text what to do next.
    Invalid
        If the address or the key cannot be one.

    Examples
    --------
    ::

        async with AsyncClient("http://127.0.0.1:8000") as client:
            await client.create_model("mail", {"learner": {"type": "perceptron"}})
            await client.learn("mail", {"free": 1, "money": 1}, True)
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
        self._again: functools.partial[AsyncClient] | None = None
        if transport is None:
            self._again = functools.partial(
                AsyncClient, base_url, api_key=api_key, timeout_s=timeout_s, retries=retries
            )
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

    def __deepcopy__(self, _: dict[int, Any]) -> AsyncClient:
        return self  # connections have no value to copy

    def __reduce__(self) -> tuple[Callable[[], AsyncClient], tuple[()]]:
        if self._again is None:
            raise TypeError(
                "A client with a transport of its own cannot be pickled: make one in each process."
            )
        return self._again, ()

    async def send(self, call: Call[T]) -> T:
        """Make one call, in as many attempts as it takes."""
        exchange = Exchange(call, self._retries)
        while True:
            try:
                if call.on_progress is not None:
                    return exchange.read(await self._watched(call, call.on_progress))
                answer = await self._connections.pool().request(
                    *(call.method, call.path),
                    params=call.query,
                    content=call.body,
                    timeout=call.timeout(self._timeout_s),
                )
                return exchange.read(answer)
            except (httpx.RequestError, ClientError) as failure:
                pause_s = exchange.pause_s(failure)
            await asyncio.sleep(pause_s)

    async def _watched(self, call: Call[T], on_progress: OnProgress) -> httpx.Response:
        """Return the answer to an attempt, and report its progress."""
        async with self._connections.pool().stream(
            *(call.method, call.path),
            params=call.query,
            content=None if call.body is None else self._pieces(call.body, on_progress),
            headers=call.watched_headers(),
            timeout=call.timeout(self._timeout_s),
        ) as answer:
            watched = WatchedAnswer(answer, on_progress)
            async for chunk in answer.aiter_bytes():
                watched.add(chunk)
        return watched.whole(answer.request)

    async def _pieces(self, body: bytes, on_progress: OnProgress) -> AsyncIterator[bytes]:
        for piece in pieces(body, on_progress):
            yield piece

    async def create_model(
        self, name: str, spec: Mapping[str, Any], *, progress: OnProgress | None = None
    ) -> ModelListed:
        """Create a model; the same spec again changes nothing.

        Parameters
        ----------
        spec
            As in the service's documentation, `{"learner": {"type": ...}, ...}`.
        progress
            As in `import_model`: a model may start from another one.

        Raises
        ------
        Conflict
            If there is one with another spec.
        Invalid
            Naming the fault in the spec.

        """
        body = calls.encoded(spec, "spec")
        path, long = calls.model_path(name), b'"start"' in body
        return await self.send(
            Call("PUT", path, reader(ModelListed), body=body, long=long, on_progress=progress)
        )

    async def models(self) -> list[ModelListed]:
        """Return all models, in order of name."""
        return await self.send(Call("GET", "/v1/models", reader(list[ModelListed])))

    async def model(
        self, name: str, *, at_least: str | None = None, progress: OnProgress | None = None
    ) -> ModelInfo:
        """Return a model's spec, position and account.

        Parameters
        ----------
        at_least
            A position of an earlier answer: wait until the model has learned as much.
        progress
            As in `import_model`: a model that is not in memory is loaded.

        """
        query, path = calls.query(at_least=at_least), calls.model_path(name)
        return await self.send(Call("GET", path, reader(ModelInfo), query, on_progress=progress))

    async def overview(self, *, match: str = "", count: int = 50) -> ModelGlances:
        """Return the state of models, at most a second old; for displays that refresh.

        Parameters
        ----------
        match
            Only models whose names contain this.
        count
            How many at most, in order of name; 1 to 100.

        """
        query = calls.query(match=match, count=count)
        return await self.send(Call("GET", "/v1/overview", reader(ModelGlances), query))

    async def delete_model(self, name: str) -> None:
        """Delete a model; the last one on a stream takes the stream with it."""
        return await self.send(calls.delete(calls.model_path(name)))

    async def weights(
        self,
        name: str,
        *,
        top: int | None = None,
        label: Label | None = None,
        skip: int | None = None,
        at_least: str | None = None,
    ) -> Weights:
        """Return the weights that predict, largest magnitude first.

        Parameters
        ----------
        top
            Number of the largest weights of each vector; all if `None`.
        label
            Multiclass: only those of this class.
        skip
            Number of the largest weights of each vector that are left out, for page after page.
        at_least
            As in `model`.

        Raises
        ------
        TooLarge
            If they are too many for one answer: ask page by page.

        """
        query = calls.query(label, top=top, skip=skip, at_least=at_least)
        path = calls.model_path(name, "/weights")
        return await self.send(Call("GET", path, reader(Weights), query))

    async def history(self, name: str, *, at_least: str | None = None) -> ModelHistory:
        """Return the history of a model since its first event, in at most 500 points.

        Parameters
        ----------
        at_least
            As in `model`.

        """
        query = calls.query(at_least=at_least)
        path = calls.model_path(name, "/history")
        return await self.send(Call("GET", path, reader(ModelHistory), query))

    async def ready(self) -> bool:
        """Return whether the service answers and its Redis takes writes; asks once."""
        try:
            return await self.send(Call("GET", "/readyz", lambda _: True, repeated=False))
        except (Unavailable, Unreachable):
            return False

    async def predict(
        self,
        name: str,
        x: Mapping[Any, Any],
        id: str | None = None,  # noqa: A002 - the service's name for it
        *,
        at_least: str | None = None,
        proba: str | None = None,
    ) -> Prediction:
        """Predict one event; that changes no model.

        Parameters
        ----------
        x
            Feature names and values; `hinged_service.client.events` lists what is taken.
        id
            The event's name: the service keeps the features until `learn_label` gets its label.
        at_least
            As in `model`.
        proba
            The probabilities to return: `"all"`, `"none"`, or `"top:5"` for those of the five
            likeliest classes, likeliest first; of more than ten classes the ten likeliest if
            `None`.

        """
        return await self.send(calls.predict(name, encode_question(x, id), at_least, proba))

    def predict_many(
        self,
        name: str,
        xs: AnyIterable[Mapping[Any, Any]],
        *,
        at_least: str | None = None,
        proba: str | None = None,
        batch_events: int = BATCH_EVENTS,
        batch_bytes: int = BATCH_BYTES,
    ) -> AsyncIterator[Prediction]:
        """Yield the prediction of each event, in order; sends as it is iterated.

        Same parameters as `predict` and `learn_many`.

        Raises
        ------
        TooLarge
            If the answer to a batch would be too large, as with all probabilities of a thousand
            classes: give a smaller `batch_events`.

        """
        batcher = Batcher(encode_question, batch_events, batch_bytes)
        return self._each(
            xs, batcher, lambda batch: calls.predict_many(name, batch, at_least, proba)
        )

    async def explain(
        self,
        name: str,
        x: Mapping[Any, Any],
        *,
        label: Label | None = None,
        at_least: str | None = None,
    ) -> Explanation:
        """Return the part of each feature of an event in the model's score.

        Parameters
        ----------
        x, at_least
            As in `predict`.
        label
            Multiclass: the class whose score is explained; the predicted one if `None`.

        Raises
        ------
        Conflict
            If the score of its learner is not a sum over features.

        """
        query, body = calls.query(label, at_least=at_least), encode_question(x).json
        path = calls.model_path(name, "/explain")
        return await self.send(Call("POST", path, reader(Explanation), query, body))

    async def learn(
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
        x
            Feature names and values; `hinged_service.client.events` lists what is taken.
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
        return await self.send(calls.learn(name, encode_event(Event(x, y, w, id))))

    async def learn_label(
        self,
        name: str,
        id: str,  # noqa: A002 - as in `predict`
        y: Label,
        w: float = 1.0,
    ) -> Outcome | Early:
        """Learn an earlier prediction of `predict` with its label, which comes without features.

        Parameters
        ----------
        id
            The name under which the prediction was made.
        w
            Sample weight, at least 0.

        Returns
        -------
        The outcome; `Early` if the label came first, where the spec allows that.

        Raises
        ------
        NotFound, Expired
            If there is no such prediction, or it waited too long.
        Conflict
            If it has got another label.
        Invalid, Unavailable, Unreachable, Busy
            As for `learn`.

        """
        return await self.send(calls.learn_label(name, encode_label(id, y, w)))

    def learn_many(
        self,
        name: str,
        events: AnyIterable[EventLike],
        *,
        batch_events: int = BATCH_EVENTS,
        batch_bytes: int = BATCH_BYTES,
    ) -> AsyncIterator[Outcome]:
        """Yield the outcome of each event, in order; sends as it is iterated.

        Nothing is learned unless the outcomes are consumed. The events are taken
        from the iterable batch by batch, so they may be more than fit in memory; a
        batch waits until it is full or the events end. Batches go one by one.

        Parameters
        ----------
        events
            `Event`s, tuples `(x, y)`, `(x, y, w)` or `(x, y, w, id)`, or mappings
            of these names. Events with ids of their own can be sent again after
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

    async def events(self, name: str, *, features: bool = False) -> AsyncGenerator[LiveEvent, None]:
        """Yield the live feed of a model from now on.

        It begins with the first `anext`, and the first event gives the position. A connection
        that breaks, is dropped for being slow or ends with its worker is made again, after a
        pause; events in between are not sent again, and the `LiveModel` that follows shows it
        (`gap`). It ends with a `LiveEnd`, as when the model is deleted. To stop earlier, close
        the generator (`contextlib.aclosing`) or cancel the task that iterates: that hangs up.

        Nothing is read ahead: a slow reader is dropped by the service, and misses events.

        Parameters
        ----------
        name
            The model; or an alias, which is followed to the models that it points to.
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

            async with contextlib.aclosing(client.events("mail")) as events:
                async for event in events:
                    if isinstance(event, LiveOutcome) and event.mistake:
                        print(event.id, event.y)

        """
        watch = Watch(name, features, self._retries, self._timeout_s)
        while True:
            try:
                http = self._connections.pool()
                async with http.stream(**watch.request) as answer:
                    if not watch.begin(answer):
                        await answer.aread()
                        yield watch.refuse(answer)
                    else:
                        async for chunk in answer.aiter_bytes():
                            for event in watch.read(chunk):
                                yield event
                            # In a forked process the pool is another one.
                            if watch.done or http is not self._connections.pool():
                                break
                if watch.over:
                    return
                pause_s = watch.pause_s(None)
            except (httpx.RequestError, ClientError) as failure:
                pause_s = watch.pause_s(failure)
            await asyncio.sleep(pause_s)

    async def configure(self, name: str, parameters: Mapping[str, Any]) -> str:
        """Change parameters of the learner from now on; what was learned stays.

        Parameters
        ----------
        parameters
            Of `learning_rate`, `C`, `r`, `margin` and `share` those that the learner has.

        Returns
        -------
        The command's place in the log: events after it are learned so.

        Raises
        ------
        Invalid
            If the learner has no such parameter, or it may not be that.

        """
        return await self._command(name, "configure", {"set": parameters})

    async def freeze(self, name: str) -> str:
        """Stop learning, only predict; return the command's place in the log."""
        return await self._command(name, "freeze")

    async def unfreeze(self, name: str) -> str:
        """Learn again; return the command's place in the log."""
        return await self._command(name, "unfreeze")

    async def reset(self, name: str) -> str:
        """Forget what was learned; return the command's place in the log.

        It is sent once only: carried out again after a lost answer, it would forget
        what was learned in between.
        """
        return await self._command(name, "reset", repeated=False)

    async def restore(
        self, name: str, checkpoint: str, *, progress: OnProgress | None = None
    ) -> str:
        """Go back to a checkpoint, by name or uid; return the command's place in the log.

        Like `reset` it is sent once only.

        Parameters
        ----------
        progress
            As in `import_model`.

        """
        body = {"checkpoint": checkpoint}
        return await self._command(
            name, "restore", body, repeated=False, long=True, on_progress=progress
        )

    async def upgrade(self, name: str, *, progress: OnProgress | None = None) -> Upgraded:
        """Let the version of the service that answers go on with a model.

        Versions whose arithmetic may differ do not fold the same model: workers of the version
        before answer 503 for it from then on. If that version cannot, it raises `Conflict`.

        Parameters
        ----------
        progress
            As in `import_model`.

        """
        path = calls.model_path(name, "/upgrade")
        return await self.send(
            Call("POST", path, reader(Upgraded), long=True, on_progress=progress)
        )

    async def repair(
        self, name: str, checkpoint: str | None = None, *, progress: OnProgress | None = None
    ) -> Repaired:
        """Remove entries of a model's log that are no part of it, and pass over damaged ones.

        Parameters
        ----------
        checkpoint
            Name or uid of a checkpoint from which a model goes on whose snapshot is lost, and whose
            log does not reach back; the events after that are not learned again.
        progress
            As in `import_model`: the weights of the checkpoint are read and written.

        Raises
        ------
        Conflict
            If the log does not reach back to the model's snapshot, or with a checkpoint the model
            can be served: restore the checkpoint then.
        NotFound
            If there is no such model or checkpoint.

        """
        path = calls.model_path(name, "/repair")
        query = calls.query(checkpoint=checkpoint)
        return await self.send(
            Call("POST", path, reader(Repaired), query, long=True, on_progress=progress)
        )

    async def make_checkpoint(
        self, name: str, checkpoint: str | None = None, *, progress: OnProgress | None = None
    ) -> Checkpoint:
        """Keep the model's present state, permanently; sent once only.

        A name must be unique on the stream, else it raises `Conflict`; a uid it has anyway.

        Parameters
        ----------
        progress
            As in `import_model`.

        """
        body = calls.encoded({} if checkpoint is None else {"name": checkpoint}, "checkpoint")
        path = calls.model_path(name, "/checkpoints")
        return await self.send(
            Call(
                *("POST", path, reader(Checkpoint)),
                body=body,
                repeated=False,
                long=True,
                on_progress=progress,
            )
        )

    async def checkpoints(self, name: str) -> list[Checkpoint]:
        """Return the checkpoints of a model's stream, oldest first."""
        path = calls.model_path(name, "/checkpoints")
        return await self.send(Call("GET", path, reader(list[Checkpoint])))

    async def delete_checkpoint(self, name: str, checkpoint: str) -> None:
        """Delete a checkpoint by its name or uid; `Conflict` if a model still needs it."""
        return await self.send(calls.delete(calls.checkpoint_path(name, checkpoint)))

    async def export_checkpoint(
        self, name: str, checkpoint: str, *, progress: OnProgress | None = None
    ) -> bytes:
        """Return a checkpoint, named as in `restore`, as one JSON document for `import_model`.

        Parameters
        ----------
        progress
            As in `import_model`.

        """
        path = calls.checkpoint_path(name, checkpoint)
        return await self.send(
            Call("GET", f"{path}/export", bytes, long=True, on_progress=progress)
        )

    async def import_model(
        self, name: str, document: bytes, *, progress: OnProgress | None = None
    ) -> ModelListed:
        """Make a model of an exported document; sent once only.

        Parameters
        ----------
        progress
            Called with each `Progress` while the call takes long; an error that it raises ends the
            call. The service then gives up what it has not finished.

        Raises
        ------
        Conflict
            If there is a model of that name.
        Invalid
            If it is no such document, of another version, or damaged.

        """
        path = calls.model_path(name, "/import")
        return await self.send(
            Call(
                *("POST", path, reader(ModelListed)),
                body=document,
                repeated=False,
                long=True,
                on_progress=progress,
            )
        )

    async def replay(
        self,
        name: str,
        new: str,
        *,
        checkpoint: str | None = None,
        exclude: Mapping[str, Any] | None = None,
        learner: Mapping[str, Any] | None = None,
        progress: OnProgress | None = None,
    ) -> ModelListed:
        """Make a new model that learns the stream's past again; sent once only.

        It catches up in the background: `model(new).progress` is how far it is.

        Parameters
        ----------
        new
            The new model's name.
        checkpoint
            The start; the oldest event that the stream still has if `None`.
        exclude
            Events to leave out: `{"ids": [...], "entries": [...], "times": [...]}`.
        learner
            The spec of another learner, if wanted.
        progress
            As in `import_model`, until the model is made.

        """
        fields = {"name": new, "checkpoint": checkpoint, "exclude": exclude, "learner": learner}
        body = calls.encoded({k: v for k, v in fields.items() if v is not None}, "replay")
        path = calls.model_path(name, "/replay")
        return await self.send(
            Call(
                *("POST", path, reader(ModelListed)),
                body=body,
                repeated=False,
                long=True,
                on_progress=progress,
            )
        )

    async def streams(self) -> list[StreamListed]:
        """Return all streams with their models and aliases."""
        return await self.send(Call("GET", "/v1/streams", reader(list[StreamListed])))

    async def stream(self, name: str) -> StreamInfo:
        """Compare the models of a stream, which all learn from every event of it."""
        path = f"/v1/streams/{calls.name_part(name, 'stream')}"
        return await self.send(Call("GET", path, reader(StreamInfo)))

    async def aliases(self) -> list[AliasInfo]:
        """Return all aliases with the models that they point to."""
        return await self.send(Call("GET", "/v1/aliases", reader(list[AliasInfo])))

    async def set_alias(self, alias: str, model: str) -> AliasInfo:
        """Make an alias: it can be used in place of the name of a model.

        If the name is taken, or the alias points to another model, it raises `Conflict`.
        """
        body = calls.encoded({"model": model}, "model")
        return await self.send(Call("PUT", calls.alias_path(alias), reader(AliasInfo), body=body))

    async def promote(
        self, alias: str, from_: str, to: str, decision: str | None = None
    ) -> Promoted:
        """Point an alias to another model, if it still points to `from_`.

        Parameters
        ----------
        from_, to
            The model that it points to now, and the new one.
        decision
            Name of the decision, which is carried out once, however often it is sent; the
            client makes one if it is `None`.

        """
        moved = {"from": from_, "to": to, "decision": decision or uuid.uuid4().hex}
        path, body = calls.alias_path(alias, "/promote"), calls.encoded(moved, "promotion")
        return await self.send(Call("POST", path, reader(Promoted), body=body))

    async def delete_alias(self, alias: str) -> None:
        """Forget an alias; the model that it points to stays."""
        return await self.send(calls.delete(calls.alias_path(alias)))

    async def _command(
        self,
        name: str,
        what: str,
        body: Mapping[str, Any] | None = None,
        *,
        repeated: bool = True,
        long: bool = False,
        on_progress: OnProgress | None = None,
    ) -> str:
        path = calls.model_path(name, f"/{what}")
        content = None if body is None else calls.encoded(body, what)
        read = reader(CommandResult)
        call = Call(
            "POST", path, read, body=content, repeated=repeated, long=long, on_progress=on_progress
        )
        return (await self.send(call)).position

    async def _each(
        self,
        items: AnyIterable[Any],
        batcher: Batcher,
        call: Callable[[Batch], Call[list[T]]],
    ) -> AsyncIterator[T]:
        async for item in each(items):
            if (batch := batcher.add(item)).items:
                for result in await self.send(call(batch)):
                    yield result
        if (batch := batcher.rest()).items:
            for result in await self.send(call(batch)):
                yield result
