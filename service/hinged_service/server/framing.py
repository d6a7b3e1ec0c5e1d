"""Framing of requests: refusal of headers that leave the end open or ambiguous."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from starlette.types import Scope, Send

from hinged_service.errors import Malformed
from hinged_service.server.coalesced_writes import Joining

__all__ = ["check", "has_body", "is_plain", "is_usual", "take_origin_form"]

_WATCHED: Final = frozenset({b"host", b"upgrade", b"transfer-encoding"})
_HOST: Final = re.compile(rb"(?:\[[0-9A-Za-z.:%~_-]+\]|[\w.~%!$&'()*+,;=-]*)(?::[0-9]*)?", re.ASCII)
_VERSIONS: Final = frozenset({"1.0", "1.1", "2", "3"})
_METHODS: Final = frozenset(
    ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"),
)
_H11: Final = "uvicorn.protocols.http.h11_impl"
_AUTHORITY: Final = re.compile(rb"https?://[^/?#]+", re.IGNORECASE)


def check(scope: Scope, send: Send) -> bool:
    """Check the headers that decide where a request ends; return whether it is the last.

    It is the last if the bytes behind it may be part of it: the connection has to close after
    the answer.

    Raises
    ------
    Malformed
        There is no `Host`, more than one, or an impossible one; or the end of the body is
        ambiguous.

    """
    if is_plain(scope):
        return False
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    return _check_unusual(scope, send, scope["http_version"], hosts)


def is_plain(scope: Scope) -> bool:
    """Return whether a request of HTTP/1.1 has one good `Host` and nothing unusual at its end."""
    watched = [header for header in scope["headers"] if header[0] in _WATCHED]
    if len(watched) != 1 or scope["http_version"] != "1.1":
        return False
    ((name, host),) = watched
    return name == b"host" and _HOST.fullmatch(host) is not None


def _check_unusual(scope: Scope, send: Send, version: str, hosts: list[bytes]) -> bool:
    if len(hosts) > 1:
        raise Malformed("The request has more than one Host header.")
    if not hosts and version == "1.1":
        raise Malformed("The request has no Host header.")
    if any(_HOST.fullmatch(host) is None for host in hosts):
        raise Malformed("The Host header must be a host, with or without a port.")
    if version not in _VERSIONS:
        raise Malformed("The service does not speak this version of HTTP. Use HTTP/1.1.")
    _check_coding(scope["headers"], version)
    if not any(name == b"upgrade" for name, _ in scope["headers"]):
        return False
    cycle = getattr(send, "__self__", None)
    if type(cycle).__module__ == _H11 or isinstance(getattr(cycle, "transport", None), Joining):
        return False  # these read on as if there was none
    if has_body(scope):
        raise Malformed(
            "The server loses the body of a request with an Upgrade header: send it without. "
            "Nothing of it was taken."
        )
    return True


def _check_coding(headers: list[tuple[bytes, bytes]], version: str) -> None:
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    if codings:
        if [coding.strip().lower() for coding in codings] != [b"chunked"]:
            raise Malformed("Send the body plain, or with one Transfer-Encoding: chunked.")
        if any(name == b"content-length" for name, _ in headers):
            raise Malformed("Send either Content-Length or Transfer-Encoding, not both.")
        if version == "1.0":
            raise Malformed("A request of HTTP/1.0 cannot be chunked. Use HTTP/1.1.")


def has_body(scope: Scope) -> bool:
    """Return whether a body is announced, also an empty one."""
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0")
        for name, value in scope["headers"]
    )


def is_usual(scope: Scope) -> bool:
    """Return whether any server reads on after a request with this method and target."""
    return (
        scope["method"] in _METHODS
        and scope["path"].startswith("/")
        and b"#" not in (scope.get("raw_path") or b"")
    )


def take_origin_form(scope: Scope) -> None:
    """Replace a target that is a whole address by its path."""
    raw: bytes = scope.get("raw_path") or b""
    authority = _AUTHORITY.match(raw)
    if authority is not None:
        scope["raw_path"] = raw[authority.end() :] or b"/"
        scope["path"] = unquote(scope["raw_path"].decode("ascii"))
