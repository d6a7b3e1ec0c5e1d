"""The live feed of a model, over one connection after another. No I/O."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import httpx
import msgspec

from hinged_service.client.calls import Call, model_path, read_nothing
from hinged_service.client.errors import BadAnswer, ClientError, NotFound
from hinged_service.client.exchange import Exchange, Retries
from hinged_service.client.sse import Message, Parser
from hinged_service.wire.faults import DECODE_ERRORS
from hinged_service.wire.live_feed import (
    LiveCommand,
    LiveDrift,
    LiveEnd,
    LiveEvent,
    LiveMetrics,
    LiveModel,
    LiveOutcome,
    LiveSample,
)

__all__ = ["Watch"]

_SILENCE_S: Final = 30.0
_PASSING: Final = ("shutdown", "slow", "failed")
_MEDIA_TYPE: Final = "text/event-stream"
_KINDS: Final[dict[str, type[LiveEvent]]] = {
    "model": LiveModel,
    "metrics": LiveMetrics,
    "outcome": LiveOutcome,
    "sample": LiveSample,
    "drift": LiveDrift,
    "end": LiveEnd,
}


class Watch:
    """Reader of the live feed of a model, which decides on reconnections; it starts now.

    Parameters
    ----------
    name
        The model or alias.
    features
        Whether outcomes come with the features of their events.
    retries
        Limits of the attempts to connect, and the pauses between them.
    timeout_s
        As of the client; silence may last longer, as the feed may have nothing to send.

    Attributes
    ----------
    request
        The request for it, as `httpx.Client.stream` takes it.
    over
        Whether the feed has ended.

    """

    def __init__(self, name: str, features: bool, retries: Retries, timeout_s: float) -> None:
        query = {"features": "true"} if features else {}
        self._call = Call("GET", model_path(name, "/live"), read_nothing, query)
        self._retries = retries
        self._exchange = Exchange(self._call, retries)
        self._parser = Parser()
        self._begun_s = 0.0
        self._model: LiveModel | None = None
        self._position: str | None = None
        self._again = self._lost = False
        self.over = False
        self.request: dict[str, Any] = {
            "method": self._call.method,
            "url": self._call.path,
            "params": query,
            "headers": {"Accept": _MEDIA_TYPE, "Accept-Encoding": "identity"},
            "timeout": httpx.Timeout(timeout_s, read=max(timeout_s, _SILENCE_S)),
        }

    def begin(self, answer: httpx.Response) -> bool:
        """Begin with an answer; return `False` if it is an error, to be read and refused.

        Raises `BadAnswer` if it is no live feed.
        """
        if not answer.is_success:
            return False
        if answer.headers.get("content-type", "").partition(";")[0].strip() != _MEDIA_TYPE:
            raise BadAnswer(f"{answer.url} answered no {_MEDIA_TYPE}.", status=answer.status_code)
        self._parser, self._lost = Parser(), False
        self._begun_s = time.monotonic()
        return True

    def refuse(self, answer: httpx.Response) -> LiveEnd:
        """Return the end that an error stands for: the model was deleted meanwhile.

        Raises `ClientError` if it stands for none.
        """
        try:
            self._exchange.read(answer)
        except NotFound:
            if self._model is None:
                raise
        self.over = True
        return LiveEnd("deleted")

    def read(self, chunk: bytes) -> Iterator[LiveEvent]:
        """Yield the events in the next bytes, until `done`.

        Raises `BadAnswer` if they are none of a live feed.
        """
        for message in self._parser.feed(chunk):
            event = _event(message)
            if isinstance(event, LiveModel):
                event = self._meet(event)
            elif isinstance(event, LiveEnd):
                if event.reason in _PASSING:
                    self._lost = True
                    return
                self.over = True
            elif event is not None and not isinstance(event, LiveSample):
                self._position = event.position
            if event is not None:
                yield event
            if self.over:
                return

    @property
    def done(self) -> bool:
        """True if nothing more comes over this connection."""
        return self._lost or self.over

    def pause_s(self, failure: ClientError | httpx.RequestError | None) -> float:
        """Return the pause before the next connection; raise `ClientError` if there is none.

        If the connection just ended, there is no `failure`.
        """
        began_s, self._begun_s = self._begun_s, 0.0
        self._again = self._model is not None
        if began_s:
            now_s = time.monotonic()
            lived = now_s - began_s > self._retries.longest_pause_s
            self._exchange.renew(forget_failures=lived)
        return self._exchange.pause_s(failure or httpx.RemoteProtocolError("the live feed ended"))

    def _meet(self, event: LiveModel) -> LiveModel | LiveEnd:
        before, self._model = self._model, event
        if self._again and before is not None:
            self._again = False
            renewed = before.model == before.name == event.model and before.uid != event.uid
            if renewed:
                self.over = True
                return LiveEnd("deleted")
            event = msgspec.structs.replace(event, after=self._position)
        self._position = event.position
        return event


def _event(message: Message) -> LiveEvent | None:
    """Return the event of a message; `None` if it is of a later version's kind."""
    try:
        if message.event == "command":
            found = msgspec.json.decode(message.data, type=dict[str, Any])
            named = {name: found.pop(name, None) for name in ("do", "position", "at_ms")}
            return msgspec.convert({**named, "details": found}, LiveCommand)
        kind = _KINDS.get(message.event)
        return None if kind is None else msgspec.json.decode(message.data, type=kind)
    except DECODE_ERRORS as error:
        detail = f"This client cannot read a message of the live feed: {error}."
        raise BadAnswer(detail) from error
