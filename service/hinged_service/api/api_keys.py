"""API keys: rights of callers to models."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from hinged_service.engine.name_access import NameAccess, matches
from hinged_service.errors import Forbidden, StartupError, Unauthorized
from hinged_service.wire.encodings import without_marks
from hinged_service.wire.strict_model import StrictModel

__all__ = ["Key", "Keys", "Right", "needed", "new_key"]

_PREFIX = "hinged"
_SECRET_BYTES = 32
_OPEN = frozenset({"", "page", "healthz", "readyz", "docs", "redoc", "openapi.json"})
_FOR_ALL = frozenset({"/v1/models", "/v1/overview"})
"""Calls about all models; each key sees its own."""
_NAMING = frozenset({"models", "aliases"})
_READING = frozenset({"predict", "explain"})

Scope = Literal["predict", "learn", "admin"]


class Key(StrictModel):
    """The record of an API key: a salted hash, never the key."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9\-]{1,64}$")]
    salt: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    scopes: tuple[Scope, ...] = Field(min_length=1)
    models: tuple[str, ...] = Field(
        ("*",), min_length=1, description="Names of models, with * and ? as in file names."
    )

    rate: str | None = Field(
        None,
        pattern=r"^[1-9][0-9]{0,8}/(second|minute|hour|day)$",
        description="How often it may call a worker.",
    )

    def may_use(self, name: str) -> bool:
        """Return whether the key is for the model, alias or stream of this name."""
        return matches(name, self.models)

    @property
    def access(self) -> NameAccess:
        """The names that the key is for."""
        return NameAccess(self.models, f"The API key {self.name!r}")

    @property
    def for_all(self) -> bool:
        """True if the key is for every model."""
        return "*" in self.models


class Right(NamedTuple):
    """The scope that a call needs and the model or alias in its path, `None` if there is none."""

    scope: Scope
    model: str | None


_KEYS = TypeAdapter(tuple[Key, ...])


class Keys:
    """The keys that the service knows; `StartupError` if two have one name."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys: dict[str, Key] = {}
        for key in keys:
            if key.name in self._keys:
                raise StartupError(f"Two API keys have the name {key.name!r}. Rename one.")
            self._keys[key.name] = key

    @classmethod
    def load(cls, file: Path | None, text: str | None) -> Keys | None:
        """Return the keys of a file and of a setting; `None` if there is neither.

        Raises `StartupError`, which names the place, if they cannot be read.
        """
        if file is None and text is None:
            return None
        found: list[Key] = []
        for what, source in ((f"The file {file}", file), ("HINGED_KEYS", text)):
            if source is None:
                continue
            try:
                raw = source.read_bytes() if isinstance(source, Path) else os.fsencode(source)
                found += _KEYS.validate_json(without_marks(raw))
            except (OSError, ValidationError) as error:
                reason = error if isinstance(error, OSError) else "it is not a list of keys"
                raise StartupError(
                    f"{what} with the API keys cannot be used: {reason}. `hinged key` makes one."
                ) from None
        return cls(found)

    def __iter__(self) -> Iterator[Key]:
        """Return the records of all keys."""
        return iter(self._keys.values())

    def identify(self, authorization: bytes | None) -> Key:
        """Return the key of a request; raise `Unauthorized` if there is none, or a wrong one."""
        kind, _, text = (authorization or b"").decode("latin-1").partition(" ")
        if kind.lower() != "bearer" or not text:
            raise Unauthorized("Send an API key: authorization: Bearer …")
        _, _, rest = text.strip().partition("_")
        name, _, secret = rest.partition("_")
        key = self._keys.get(name)
        record = key if key is not None else _NO_KEY
        if not hmac.compare_digest(_hash(record.salt, secret), record.hash) or key is None:
            raise Unauthorized("The API key is not known.")
        return key

    def authorize(self, authorization: bytes | None, method: str, path: str) -> Key | None:
        """Return the key of a request, `None` if it needs none.

        Raises `Unauthorized` or `Forbidden` if it may not be made.
        """
        right = needed(method, path)
        if right is None:
            return None
        key = self.identify(authorization)
        if right.scope not in key.scopes:
            raise Forbidden(f"The API key {key.name!r} has no scope {right.scope!r}.")
        if right.model is not None and not key.may_use(right.model):
            raise Forbidden(f"The API key {key.name!r} is not for {right.model!r}.")
        if right.model is None and not key.for_all and path not in _FOR_ALL:
            raise Forbidden(f"The API key {key.name!r} is for some models only.")
        return key


def needed(method: str, path: str) -> Right | None:
    """Return the right that a call needs, `None` if none."""
    parts = path.strip("/").split("/")
    if parts[0] in _OPEN or parts[:2] in (["v2"], ["v2", "health"]):
        return None
    name = parts[2] if len(parts) > 2 and parts[1] in _NAMING else None
    last = parts[-1] if len(parts) > 3 else ""
    if method in ("GET", "HEAD") or parts[0] == "v2" or (method == "POST" and last in _READING):
        return Right("predict", name)
    if method == "POST" and last == "learn":
        return Right("learn", name)
    return Right("admin", name)


def new_key(
    name: str, scopes: Iterable[Scope], models: Iterable[str], rate: str | None = None
) -> tuple[str, Key]:
    """Return a new key, to be displayed once, and the record to keep of it."""
    secret = secrets.token_urlsafe(_SECRET_BYTES).replace("_", "-")
    salt = secrets.token_hex(16)
    record = {
        "name": name,
        "salt": salt,
        "hash": _hash(salt, secret),
        "scopes": list(scopes),
        "models": list(models),
        "rate": rate,
    }
    return f"{_PREFIX}_{name}_{secret}", Key.model_validate_json(json.dumps(record))


def _hash(salt: str, secret: str) -> str:
    """Return the salted hash; secrets are 256 random bits, so a fast hash cannot be searched."""
    return hashlib.sha256(f"{salt}:{secret}".encode("latin-1", "replace")).hexdigest()


_NO_KEY = Key(name="none", salt="0" * 32, hash="0" * 64, scopes=("predict",))
