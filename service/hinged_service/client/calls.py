"""Calls as data: the request, and how its answer reads. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote
from urllib.request import getproxies

import httpx
import msgspec

from hinged_service.client.batches import Batch
from hinged_service.client.errors import BadAnswer, Fault, Invalid
from hinged_service.client.events import Encoded, abbreviated, plain_label
from hinged_service.wire.progress import PROGRESS_TYPE, OnProgress
from hinged_service.wire.responses import Duplicate, Early, Label, Learned, Outcome, Prediction

__all__ = [
    "LONG_S",
    "Call",
    "alias_path",
    "checked_address",
    "checkpoint_path",
    "checks_certificates",
    "delete",
    "encoded",
    "headers",
    "learn",
    "learn_label",
    "learn_many",
    "model_path",
    "name_part",
    "predict",
    "predict_many",
    "query",
    "read_nothing",
    "reader",
]

T = TypeVar("T")

LONG_S: Final = 600.0
"""Longest wait for the answer to a call whose work grows with the model."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request, and how its answer reads.

    Parameters
    ----------
    method, path
        As in HTTP; the path starts with a slash.
    read
        Makes the result of the body of a good answer. It may raise
        `msgspec.MsgspecError` or `BadAnswer`.
    query
        Parameters of the query.
    body
        JSON, or nothing.
    event_ids
        Ids of the events in the body.
    first
        The place in the caller's stream of the first event of an array.
    gone_is_done
        Whether a 404 to a repetition means that an earlier attempt did it.
    repeated
        Whether the call is repeated after a temporary failure.
    long
        Whether its work grows with the model: then the answer may take `LONG_S`.
    on_progress
        Takes note of progress; `None` if none is wanted.

    """

    method: str
    path: str
    read: Callable[[bytes], T]
    query: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    event_ids: tuple[str, ...] = ()
    first: int = 0
    gone_is_done: bool = False
    repeated: bool = True
    long: bool = False
    on_progress: OnProgress | None = None

    def watched_headers(self) -> dict[str, str]:
        """Return the header fields of a request whose progress is wanted."""
        fields = {"Accept": f"{PROGRESS_TYPE}, application/json"}
        return fields if self.body is None else {**fields, "Content-Length": str(len(self.body))}

    def timeout(self, timeout_s: float) -> httpx.Timeout:
        """Return how long an attempt may take, where others take `timeout_s` at most."""
        return httpx.Timeout(timeout_s, read=max(timeout_s, LONG_S) if self.long else timeout_s)


_MAX_PART_BYTES: Final = 4_096


def reader(kind: type[T]) -> Callable[[bytes], T]:
    """Return the decoder of an answer of some type."""
    return msgspec.json.Decoder(kind).decode


_read_prediction = reader(Prediction)
_read_predictions = reader(list[Prediction])
_read_outcome = reader(dict[str, Any])
_read_outcomes = reader(list[dict[str, Any]])


def headers(api_key: str | None) -> dict[str, str]:
    """Return the header fields of every request; raise `Invalid` if no key can be like that."""
    if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
        fault = Fault("api_key", "must consist of printable ASCII characters")
        raise Invalid("Nothing was sent.", errors=[fault])
    fields = {"Content-Type": "application/json", "Accept": "application/json"}
    return fields if api_key is None else {**fields, "Authorization": f"Bearer {api_key}"}


def checked_address(base_url: str) -> str:
    """Return the address of the service; raise `Invalid` if it is none."""
    try:
        httpx.URL(base_url)
    except (httpx.InvalidURL, UnicodeEncodeError) as error:
        fault = Fault("base_url", f"must be an address: {error}")
        raise Invalid("Nothing was sent.", errors=[fault]) from None
    return base_url


def checks_certificates(base_url: str) -> bool:
    """Return whether a certificate may have to be checked: the service's, or that of a proxy.

    If not, the trusted ones are not read: most of the time of making a client.
    """
    return not base_url.lower().startswith("http://") or bool(getproxies())


def predict(
    name: str, question: Encoded, at_least: str | None, proba: str | None = None
) -> Call[Prediction]:
    """Return the call that predicts one event."""
    path, wanted = model_path(name, "/predict"), query(at_least=at_least, proba=proba)
    return Call("POST", path, _read_prediction, wanted, question.json)


def predict_many(
    name: str, batch: Batch, at_least: str | None, proba: str | None
) -> Call[list[Prediction]]:
    """Return the call that predicts an array of events."""
    wanted = query(at_least=at_least, proba=proba)
    return _many(model_path(name, "/predict"), _read_predictions, batch, wanted)


def learn(name: str, event: Encoded) -> Call[Outcome]:
    """Return the call that learns one event."""
    return _one(name, event, _outcome)


def learn_label(name: str, label: Encoded) -> Call[Outcome | Early]:
    """Return the call that learns an earlier prediction with its label."""
    return _one(name, label, _label_outcome)


def learn_many(name: str, batch: Batch) -> Call[list[Outcome]]:
    """Return the call that learns an array of events, all or none of them."""
    return _many(model_path(name, "/learn"), _learned, batch, {})


def delete(path: str) -> Call[None]:
    """Return the call that deletes something; a repetition may find it gone."""
    return Call("DELETE", path, read_nothing, gone_is_done=True)


def encoded(document: Mapping[str, Any], what: str) -> bytes:
    """Return a document as JSON; raise `Invalid`, which names `what`, if that is impossible."""
    try:
        return msgspec.json.encode(document)
    except (TypeError, UnicodeEncodeError) as error:
        raise Invalid("Nothing was sent.", errors=[Fault(what, f"is not JSON: {error}")]) from None


def model_path(name: str, below: str = "") -> str:
    """Return the path of a model, or of something below it."""
    return f"/v1/models/{name_part(name, 'model')}{below}"


def checkpoint_path(name: str, checkpoint: str) -> str:
    """Return the path of a checkpoint."""
    return model_path(name, f"/checkpoints/{name_part(checkpoint, 'checkpoint')}")


def alias_path(alias: str, below: str = "") -> str:
    """Return the path of an alias, or of something below it."""
    return f"/v1/aliases/{name_part(alias, 'alias')}{below}"


def name_part(name: str, what: str) -> str:
    """Return a name as one part of a path; raise `Invalid` if it cannot be one."""
    if name in ("", ".", ".."):
        raise Invalid("Nothing was sent.", errors=[Fault("name", f"must name a {what}")])
    return quote(_in_an_address(name, "name"), safe="")


def read_nothing(_: bytes) -> None:
    """Read an empty answer."""
    return


def query(label: Label | None = None, **values: object) -> dict[str, str]:
    """Return the parameters of a query that are not `None`; a label is `class`."""
    texts = {
        name: _in_an_address(str(value), name)
        for name, value in values.items()
        if value is not None
    }
    if label is not None:
        plain = plain_label(label, "label")
        text = plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()
        texts["class"] = _in_an_address(text, "label")
    return texts


def _in_an_address(text: str, field: str) -> str:
    """Return text that goes into the address of a call; raise `Invalid` if it cannot."""
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        reason = f"must be valid Unicode, not {abbreviated(text)}"
    else:
        if length <= _MAX_PART_BYTES:
            return text
        reason = f"must have at most {_MAX_PART_BYTES:,} bytes"
    raise Invalid("Nothing was sent.", errors=[Fault(field, reason)])


def _ids(items: list[Encoded]) -> tuple[str, ...]:
    return tuple(item.id for item in items if item.id is not None)


def _many(
    path: str, read: Callable[[bytes], list[T]], batch: Batch, wanted: dict[str, str]
) -> Call[list[T]]:
    """Return the call with an array of events; each must get an answer."""

    def read_all(body: bytes) -> list[T]:
        answers = read(body)
        if len(answers) != len(batch.items):
            raise BadAnswer(f"{len(batch.items)} events were sent, {len(answers)} were answered.")
        return answers

    body = b"[%b]" % b",".join(item.json for item in batch.items)
    return Call("POST", path, read_all, wanted, body, _ids(batch.items), batch.first)


def _learned(body: bytes) -> list[Outcome]:
    return [_outcome(answer) for answer in _read_outcomes(body)]


def _one(name: str, event: Encoded, outcome: Callable[[dict[str, Any]], T]) -> Call[T]:
    return Call(
        "POST",
        model_path(name, "/learn"),
        lambda body: outcome(_read_outcome(body)),
        body=event.json,
        event_ids=_ids([event]),
    )


def _label_outcome(answer: dict[str, Any]) -> Outcome | Early:
    return msgspec.convert(answer, Early) if answer.get("early") else _outcome(answer)


def _outcome(answer: dict[str, Any]) -> Outcome:
    kind: type[Outcome] = Duplicate if answer.get("duplicate") else Learned
    return msgspec.convert(answer, kind)
