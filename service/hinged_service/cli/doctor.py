"""Findings of `hinged doctor`: settings, Redis, disk and service, and what to change."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Iterator
from typing import Final, NamedTuple

import httpx
import msgspec
from pydantic import ValidationError

from hinged_service.api.api_keys import Keys
from hinged_service.errors import ServiceError, StartupError
from hinged_service.settings import Settings
from hinged_service.store.configured_redis import opened
from hinged_service.store.transport.server_check import Condition
from hinged_service.wire.faults import DECODE_ERRORS
from hinged_service.wire.strict_model import reason_of

__all__ = ["Finding", "findings"]

_OTHERS: Final = {"HINGED_URL", "HINGED_API_KEY", "HINGED_PURE"}
_TIMEOUT_S: Final = 10.0


class Finding(NamedTuple):
    """One thing that was checked.

    Attributes
    ----------
    what
        The thing.
    state
        ok, warning, or fault: to be changed before models are trusted to it.
    text
        How it is, and what to change.

    """

    what: str
    state: str
    text: str


class _Fault(msgspec.Struct):
    """A fault that a service reports."""

    field: str
    reason: str


class _Readiness(msgspec.Struct):
    """The answer of `/readyz`, good or not, as far as it is read here."""

    errors: list[_Fault] = []
    warnings: list[str] = []


def findings(url: str | None) -> list[Finding]:
    """Look at all, and at a running service if a `url` is passed; at least one finding."""
    logging.getLogger("hinged_service").addHandler(logging.NullHandler())  # it reports all itself
    found = list(_of_settings())
    if not any(one.state == "fault" for one in found):
        found += asyncio.run(_of_redis(Settings()))
    if url is not None:
        found.append(_of_service(url))
    return found


def _of_settings() -> Iterator[Finding]:
    settings_names = {f"HINGED_{name.upper()}" for name in Settings.model_fields} | _OTHERS
    for name in sorted(os.environ):
        if name.startswith("HINGED_") and name not in settings_names:
            yield Finding(name, "warning", "This is not a setting of hinged. Check the spelling.")
    try:
        settings = Settings()
        keys = Keys.load(settings.keys_file, settings.keys)
    except ValidationError as error:
        for fault in error.errors():
            field = "HINGED_" + "_".join(map(str, fault["loc"])).upper()
            yield Finding(field, "fault", f"{reason_of(fault)}.")
    except StartupError as error:
        yield Finding("HINGED_KEYS", "fault", str(error))
    else:
        text = "All settings are valid."
        if not keys:
            text += " There are no API keys: let only this machine connect."
        yield Finding("settings", "ok", text)


async def _of_redis(settings: Settings) -> list[Finding]:
    found: list[Finding] = []
    try:
        async with opened(settings, check=False) as connection:
            for one in await connection.conditions():
                found += _of_server(one)
            disk = connection.disk
            if disk is not None and disk.warning:
                found.append(Finding("disk", "fault", disk.warning))
            elif disk is not None:
                room = f"{disk.free_bytes // 2**20} MiB are free at {settings.data_dir}."
                found.append(Finding("disk", "ok", room))
            else:
                found.append(
                    Finding("disk", "ok", "Not checked: hinged cannot see the disk of this Redis.")
                )
            await connection.check_writable()
            found.append(Finding("writes", "ok", "Redis accepts writes."))
    except (StartupError, ServiceError, OSError) as error:
        found.append(Finding("redis", "fault", getattr(error, "detail", str(error))))
    return found


def _of_server(one: Condition) -> Iterator[Finding]:
    for what, state, text, good in (
        ("version", "warning", one.tears, f"{one.name} is supported and has no known defect."),
        ("eviction", "fault", one.fault, "The policy does not evict the log."),
        ("persistence", "fault", one.volatile, "The append-only file is on."),
        ("memory", "warning", one.memory, "Enough memory is free."),
        ("clock", "warning", one.clock, "The clock agrees with this machine."),
    ):
        yield Finding(what, state, text) if text else Finding(what, "ok", good)
    many = (
        f"Connected replicas: {one.replicas}."
        if one.replicas
        else "No replica is connected. Add one if you need failover."
    )
    yield Finding("replicas", "ok", many)


def _of_service(url: str) -> Finding:
    try:
        answer = httpx.get(f"{url.rstrip('/')}/readyz", timeout=_TIMEOUT_S)
        readiness = msgspec.json.decode(answer.content, type=_Readiness)
    except DECODE_ERRORS:
        text = f"Another program answers there, with {answer.status_code}: check the address."
        return Finding(url, "fault", text)
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        return Finding(url, "fault", f"No service answers there: {error}. Start it.")
    if not answer.is_success:
        reasons = [f"{one.field}: {one.reason}" for one in readiness.errors]
        return Finding(
            url, "fault", f"The service is not ready: {'; '.join(reasons) or answer.status_code}."
        )
    if readiness.warnings:
        return Finding(url, "warning", " ".join(readiness.warnings))
    return Finding(url, "ok", "The service is ready.")
