"""The course of watching a model, however many connections it takes. No I/O."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final

import httpx
import msgspec

from hinged_service.client.calls import Call, model_path, read_nothing
from hinged_service.client.errors import BadAnswer, ClientError, NotFound
from hinged_service.client.exchange import Exchange, Retries
from hinged_service.client.live_results import (
    LiveCommand,
    LiveDrift,
    LiveEnd,
    LiveEvent,
    LiveMetrics,
    LiveModel,
    LiveOutcome,
    LiveSample,
)
from hinged_service.client.sse import Message, Parser

__all__ = ["Watch"]

_SILENCE_S: Final = 30.0
_PASSING: Final = ("shutdown", "slow", "failed")
_MEDIA_TYPE: Final = "text/event-stream"
_TOLD: Final[dict[str, type[LiveEvent]]] = {
    "model": LiveModel,
    "metrics": LiveMetrics,
    "outcome": LiveOutcome,
    "sample": LiveSample,
    "drift": LiveDrift,
    "end": LiveEnd,
}


class Watch:
    """Reads the live feed of a model and decides on reconnections; it starts now.

    Parameters
    ----------
    name
        The model or alias.
    features
        Whether outcomes come with the features of their events.
    retries
        How long to try to connect, and how long to wait between attempts.
    timeout_s
        As of the client; silence is borne for longer, as the feed may have nothing to tell.

    Attributes
    ----------
    request
        How to ask for it, as `httpx.Client.stream` takes it.
    over
        Whether all was told.

    """

    def __init__(self, name: str, features: bool, retries: Retries, timeout_s: float) -> None:
        query = {"features": "true"} if features else {}
        self._call = Call("GET", model_path(name, "/live"), read_nothing, query)
        self._retries = retries
        self._exchange = Exchange(self._call, retries)
        self._parser = Parser()
        self._begun_s = 0.0
        self._known: LiveModel | None = None
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
        """Begin with an answer; `False` if it is an error, to be read and refused.

        Raises
        ------
        BadAnswer
            If it is no live feed.

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

        Raises
        ------
        ClientError
            If it stands for none.

        """
        try:
            self._exchange.read(answer)
        except NotFound:
            if self._known is None:
                raise
        self.over = True
        return LiveEnd("deleted")

    def read(self, chunk: bytes) -> Iterator[LiveEvent]:
        """Yield what the next bytes tell, until `done`.

        Raises
        ------
        BadAnswer
            If it is none of what a live feed tells.

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
        """Whether nothing more comes over this connection."""
        return self._lost or self.over

    def pause_s(self, failure: ClientError | httpx.RequestError | None) -> float:
        """Return how long to wait before the next connection.

        Parameters
        ----------
        failure
            What happened; `None` if the connection ended.

        Raises
        ------
        ClientError
            If there is to be none.

        """
        began_s, self._begun_s = self._begun_s, 0.0
        self._again = self._known is not None
        if began_s:
            now_s = time.monotonic()
            lived = now_s - began_s > self._retries.longest_pause_s
            self._exchange.renew(forget_failures=lived)
        return self._exchange.pause_s(failure or httpx.RemoteProtocolError("the live feed ended"))

    def _meet(self, event: LiveModel) -> LiveModel | LiveEnd:
        known, self._known = self._known, event
        if self._again and known is not None:
            self._again = False
            anew = known.model == known.name == event.model and known.uid != event.uid
            if anew:
                self.over = True
                return LiveEnd("deleted")
            event = msgspec.structs.replace(event, after=self._position)
        self._position = event.position
        return event


def _event(message: Message) -> LiveEvent | None:
    """Return what a message says; `None` if it is of a later version's kind."""
    try:
        if message.event == "command":
            told = msgspec.json.decode(message.data, type=dict[str, Any])
            named = {name: told.pop(name, None) for name in ("do", "position", "at_ms")}
            return msgspec.convert({**named, "details": told}, LiveCommand)
        kind = _TOLD.get(message.event)
        return None if kind is None else msgspec.json.decode(message.data, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        detail = f"The live feed tells what this client cannot read: {error}."
        raise BadAnswer(detail) from error
