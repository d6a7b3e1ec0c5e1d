"""Every call as data: what is sent, and how its answer reads. No I/O."""

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
from hinged_service.client.events import Encoded, plain_label, shown
from hinged_service.client.results import (
    Duplicate,
    Explanation,
    Label,
    Learned,
    ModelInfo,
    ModelListed,
    Outcome,
    Prediction,
    Weights,
)

__all__ = [
    "Call",
    "checked_address",
    "checks_certificates",
    "create_model",
    "delete_model",
    "encoded",
    "explain",
    "headers",
    "learn",
    "learn_many",
    "model",
    "model_path",
    "models",
    "name_part",
    "predict",
    "predict_many",
    "read_nothing",
    "ready",
    "weights",
]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request, and how its answer reads.

    Parameters
    ----------
    method, path
        As in HTTP; the path starts with a slash.
    read
        What makes the result of the body of a good answer. It may raise
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
        Whether a 404 to a repetition says that an earlier attempt did it.
    repeated
        Whether a failure that passes is met with a repetition.

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


_MAX_PART_BYTES: Final = 4_096

_read_outcome = msgspec.json.Decoder(dict[str, Any]).decode
_read_outcomes = msgspec.json.Decoder(list[dict[str, Any]]).decode
_read_prediction = msgspec.json.Decoder(Prediction).decode
_read_predictions = msgspec.json.Decoder(list[Prediction]).decode
_read_listed = msgspec.json.Decoder(ModelListed).decode
_read_list = msgspec.json.Decoder(list[ModelListed]).decode
_read_info = msgspec.json.Decoder(ModelInfo).decode
_read_weights = msgspec.json.Decoder(Weights).decode
_read_explanation = msgspec.json.Decoder(Explanation).decode


def headers(api_key: str | None) -> dict[str, str]:
    """Return the header fields of every request.

    Raises
    ------
    Invalid
        If no key can be like that.

    """
    if api_key is not None and not (api_key.isascii() and api_key.isprintable()):
        fault = Fault("api_key", "must consist of printable ASCII characters")
        raise Invalid("Nothing was sent.", errors=[fault])
    fields = {"Content-Type": "application/json", "Accept": "application/json"}
    return fields if api_key is None else {**fields, "Authorization": f"Bearer {api_key}"}


def checked_address(base_url: str) -> str:
    """Return the address of the service.

    Raises
    ------
    Invalid
        If it is none.

    """
    try:
        httpx.URL(base_url)
    except (httpx.InvalidURL, UnicodeEncodeError) as error:
        fault = Fault("base_url", f"must be an address: {error}")
        raise Invalid("Nothing was sent.", errors=[fault]) from None
    return base_url


def checks_certificates(base_url: str) -> bool:
    """Tell whether a certificate may have to be checked: the service's, or that of a proxy.

    If not, those to trust need not be read, which is most of what making a client takes.
    """
    return not base_url.lower().startswith("http://") or bool(getproxies())


def create_model(name: str, spec: Mapping[str, Any]) -> Call[ModelListed]:
    """Return the call that creates a model; repeated, it changes nothing."""
    return Call("PUT", model_path(name), _read_listed, body=encoded(spec, "spec"))


def models() -> Call[list[ModelListed]]:
    """Return the call that lists all models."""
    return Call("GET", "/v1/models", _read_list)


def model(name: str, at_least: str | None) -> Call[ModelInfo]:
    """Return the call that looks at a model."""
    return Call("GET", model_path(name), _read_info, _query(at_least=at_least))


def delete_model(name: str) -> Call[None]:
    """Return the call that deletes a model."""
    return Call("DELETE", model_path(name), read_nothing, gone_is_done=True)


def weights(name: str, top: int | None, label: Label | None, at_least: str | None) -> Call[Weights]:
    """Return the call for the weights that predict."""
    query = {**_query(top=top, at_least=at_least), **_class(label)}
    return Call("GET", model_path(name, "/weights"), _read_weights, query)


def predict(name: str, question: Encoded, at_least: str | None) -> Call[Prediction]:
    """Return the call that predicts one event."""
    query = _query(at_least=at_least)
    return Call("POST", model_path(name, "/predict"), _read_prediction, query, question.json)


def predict_many(name: str, batch: Batch, at_least: str | None) -> Call[list[Prediction]]:
    """Return the call that predicts an array of events."""
    return Call(
        "POST",
        model_path(name, "/predict"),
        lambda body: _as_many(_read_predictions(body), batch),
        _query(at_least=at_least),
        _array(batch),
        first=batch.first,
    )


def explain(
    name: str, question: Encoded, label: Label | None, at_least: str | None
) -> Call[Explanation]:
    """Return the call that explains a prediction."""
    query = {**_query(at_least=at_least), **_class(label)}
    return Call("POST", model_path(name, "/explain"), _read_explanation, query, question.json)


def learn(name: str, event: Encoded) -> Call[Outcome]:
    """Return the call that learns one event."""
    path, ids = model_path(name, "/learn"), _ids([event])
    return Call(
        "POST", path, lambda body: _outcome(_read_outcome(body)), body=event.json, event_ids=ids
    )


def learn_many(name: str, batch: Batch) -> Call[list[Outcome]]:
    """Return the call that learns an array of events, all or none of them."""
    return Call(
        "POST",
        model_path(name, "/learn"),
        lambda body: _as_many([_outcome(answer) for answer in _read_outcomes(body)], batch),
        body=_array(batch),
        event_ids=_ids(batch.items),
        first=batch.first,
    )


def ready() -> Call[bool]:
    """Return the call that asks whether the service can serve; it is not repeated."""
    return Call("GET", "/readyz", lambda _: True, repeated=False)


def encoded(document: Mapping[str, Any], what: str) -> bytes:
    """Return a document as JSON.

    Raises
    ------
    Invalid
        Saying that `what` is no JSON.

    """
    try:
        return msgspec.json.encode(document)
    except (TypeError, UnicodeEncodeError) as error:
        raise Invalid("Nothing was sent.", errors=[Fault(what, f"is no JSON: {error}")]) from None


def model_path(name: str, below: str = "") -> str:
    """Return the path of a model, or of something below it."""
    return f"/v1/models/{name_part(name, 'model')}{below}"


def name_part(name: str, what: str) -> str:
    """Return a name as one part of a path.

    Raises
    ------
    Invalid
        If it would be none.

    """
    if name in ("", ".", ".."):
        raise Invalid("Nothing was sent.", errors=[Fault("name", f"must name a {what}")])
    return quote(_in_an_address(name, "name"), safe="")


def read_nothing(_: bytes) -> None:
    """Read an answer that says nothing."""
    return


def _query(**values: object) -> dict[str, str]:
    return {
        name: _in_an_address(str(value), name)
        for name, value in values.items()
        if value is not None
    }


def _in_an_address(text: str, field: str) -> str:
    """Return text that goes into the address of a call.

    Raises
    ------
    Invalid
        If it cannot, naming the field.

    """
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        reason = f"must be valid Unicode, not {shown(text)}"
    else:
        if length <= _MAX_PART_BYTES:
            return text
        reason = f"must have at most {_MAX_PART_BYTES:,} bytes"
    raise Invalid("Nothing was sent.", errors=[Fault(field, reason)])


def _class(label: Label | None) -> dict[str, str]:
    if label is None:
        return {}
    plain = plain_label(label, "label")
    text = plain if isinstance(plain, str) else msgspec.json.encode(plain).decode()
    return {"class": _in_an_address(text, "label")}


def _array(batch: Batch) -> bytes:
    return b"[%b]" % b",".join(item.json for item in batch.items)


def _ids(items: list[Encoded]) -> tuple[str, ...]:
    return tuple(item.id for item in items if item.id is not None)


def _as_many(answers: list[T], batch: Batch) -> list[T]:
    if len(answers) != len(batch.items):
        raise BadAnswer(f"{len(batch.items)} events were sent, {len(answers)} were answered.")
    return answers


def _outcome(answer: dict[str, Any]) -> Outcome:
    kind: type[Outcome] = Duplicate if answer.get("duplicate") else Learned
    return msgspec.convert(answer, kind)
