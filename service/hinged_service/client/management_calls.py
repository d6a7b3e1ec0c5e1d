"""The calls about commands, checkpoints, streams and aliases, as data. No I/O."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import msgspec

from hinged_service.client.calls import Call, encoded, model_path, name_part, read_nothing
from hinged_service.client.management_results import (
    AliasInfo,
    Checkpoint,
    Promoted,
    StreamInfo,
    StreamListed,
    Upgraded,
)
from hinged_service.client.results import ModelListed

__all__ = [
    "aliases",
    "checkpoint",
    "checkpoints",
    "command",
    "delete_alias",
    "delete_checkpoint",
    "export_checkpoint",
    "import_model",
    "promote",
    "replay",
    "set_alias",
    "stream",
    "streams",
    "upgrade",
]


class _Obeyed(msgspec.Struct):
    position: str


_read_obeyed = msgspec.json.Decoder(_Obeyed).decode
_read_checkpoint = msgspec.json.Decoder(Checkpoint).decode
_read_checkpoints = msgspec.json.Decoder(list[Checkpoint]).decode
_read_listed = msgspec.json.Decoder(ModelListed).decode
_read_streams = msgspec.json.Decoder(list[StreamListed]).decode
_read_stream = msgspec.json.Decoder(StreamInfo).decode
_read_alias = msgspec.json.Decoder(AliasInfo).decode
_read_aliases = msgspec.json.Decoder(list[AliasInfo]).decode
_read_promoted = msgspec.json.Decoder(Promoted).decode
_read_upgraded = msgspec.json.Decoder(Upgraded).decode


def command(
    name: str, what: str, body: Mapping[str, Any] | None = None, *, repeated: bool
) -> Call[str]:
    """Return the call for a command; its result is the command's position.

    Parameters
    ----------
    name
        The model.
    what
        `"freeze"`, `"unfreeze"`, `"reset"`, `"configure"` or `"restore"`.
    body
        What it takes, if anything.
    repeated
        Whether it does no more when it is carried out twice.

    """
    return Call(
        "POST",
        model_path(name, f"/{what}"),
        lambda answer: _read_obeyed(answer).position,
        body=None if body is None else encoded(body, what),
        repeated=repeated,
    )


def upgrade(name: str) -> Call[Upgraded]:
    """Return the call that hands a model over to the answering version; again, it does nothing."""
    return Call("POST", model_path(name, "/upgrade"), _read_upgraded)


def checkpoint(name: str, as_: str | None) -> Call[Checkpoint]:
    """Return the call that makes a checkpoint; each makes another, so it is not repeated."""
    body = encoded({} if as_ is None else {"name": as_}, "checkpoint")
    path = model_path(name, "/checkpoints")
    return Call("POST", path, _read_checkpoint, body=body, repeated=False)


def checkpoints(name: str) -> Call[list[Checkpoint]]:
    """Return the call that lists the checkpoints of a model's stream."""
    return Call("GET", model_path(name, "/checkpoints"), _read_checkpoints)


def delete_checkpoint(name: str, checkpoint: str) -> Call[None]:
    """Return the call that deletes a checkpoint."""
    path = model_path(name, f"/checkpoints/{name_part(checkpoint, 'checkpoint')}")
    return Call("DELETE", path, read_nothing, gone_is_done=True)


def export_checkpoint(name: str, checkpoint: str) -> Call[bytes]:
    """Return the call for a checkpoint as a document."""
    part = name_part(checkpoint, "checkpoint")
    return Call("GET", model_path(name, f"/checkpoints/{part}/export"), bytes)


def import_model(name: str, document: bytes) -> Call[ModelListed]:
    """Return the call that makes a model of a document; the name is free once, so once."""
    path = model_path(name, "/import")
    return Call("POST", path, _read_listed, body=document, repeated=False)


def replay(
    name: str,
    new: str,
    checkpoint: str | None,
    exclude: Mapping[str, Any] | None,
    learner: Mapping[str, Any] | None,
) -> Call[ModelListed]:
    """Return the call that rebuilds a model; the name is free once, so it is not repeated."""
    given = {"name": new, "checkpoint": checkpoint, "exclude": exclude, "learner": learner}
    body = encoded({key: value for key, value in given.items() if value is not None}, "replay")
    return Call("POST", model_path(name, "/replay"), _read_listed, body=body, repeated=False)


def streams() -> Call[list[StreamListed]]:
    """Return the call that lists all streams."""
    return Call("GET", "/v1/streams", _read_streams)


def stream(name: str) -> Call[StreamInfo]:
    """Return the call that compares the models of a stream."""
    return Call("GET", f"/v1/streams/{name_part(name, 'stream')}", _read_stream)


def aliases() -> Call[list[AliasInfo]]:
    """Return the call that lists all aliases."""
    return Call("GET", "/v1/aliases", _read_aliases)


def set_alias(alias: str, model: str) -> Call[AliasInfo]:
    """Return the call that makes an alias; repeated, it changes nothing."""
    path = f"/v1/aliases/{name_part(alias, 'alias')}"
    return Call("PUT", path, _read_alias, body=encoded({"model": model}, "model"))


def promote(alias: str, from_: str, to: str, decision: str | None) -> Call[Promoted]:
    """Return the call that moves an alias; its decision has a name, so it counts once."""
    body = {"from": from_, "to": to, "decision": decision or uuid.uuid4().hex}
    path = f"/v1/aliases/{name_part(alias, 'alias')}/promote"
    return Call("POST", path, _read_promoted, body=encoded(body, "promotion"))


def delete_alias(alias: str) -> Call[None]:
    """Return the call that forgets an alias."""
    path = f"/v1/aliases/{name_part(alias, 'alias')}"
    return Call("DELETE", path, read_nothing, gone_is_done=True)
