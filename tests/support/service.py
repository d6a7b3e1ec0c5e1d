"""The service in a thread of this process on a loopback port, and requests no client would send."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from hinged_service.app import create_app
from hinged_service.server.fast_path import FastPathProtocol
from hinged_service.settings import Settings
from tests.support.long_timeouts import LONG_TIMEOUTS
from tests.support.redis_server import free_port

PROTOCOL: Any = "auto" if os.environ.get("HINGED_TEST_FAST_PATH") == "0" else FastPathProtocol
"""uvicorn's own, or that of `hinged serve`."""


class Service:
    """The app under a real uvicorn, as `hinged serve` runs it; patient but for `settings`.

    `wrap` may add to the app, or return another one around it.
    """

    def __init__(
        self,
        redis_url: str | None,
        wrap: Callable[[FastAPI], FastAPI] = lambda app: app,
        **settings: Any,
    ) -> None:
        self.port = free_port()
        self.settings = Settings(redis_url=redis_url, **(LONG_TIMEOUTS | settings))
        self.app = wrap(create_app(self.settings))
        config = uvicorn.Config(
            self.app,
            host="127.0.0.1",
            port=self.port,
            log_level="error",
            access_log=False,
            http=PROTOCOL,
            proxy_headers=False,
            timeout_keep_alive=600,  # else it may close a connection that a client is just using
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    @property
    def url(self) -> str:
        """The address of the service."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it listens."""
        self._thread.start()
        deadline = time.monotonic() + 30
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise RuntimeError("the service did not start")
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop it in order."""
        self._server.should_exit = True
        self._thread.join(30)

    def client(self) -> httpx.Client:
        """Return a client of the service."""
        return httpx.Client(base_url=self.url, timeout=30, verify=False)

    def __enter__(self) -> Service:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@dataclass(frozen=True)
class RawAnswer:
    """An answer as it came: status, header fields in lower case, body."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the decoded body."""
        return json.loads(self.body)


def send_raw(port: int, data: bytes) -> RawAnswer:
    """Send bytes and read one answer that has a content-length."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(data)
        return read_answer(connection)


def read_answer(connection: socket.socket) -> RawAnswer:
    """Read one answer that has a content-length."""
    got = b""
    while b"\r\n\r\n" not in got:
        got += _more(connection)
    head, _, body = got.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += _more(connection)
    return RawAnswer(int(first.split()[1]), headers, body)


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionError("the service closed the connection without an answer")
    return data


def post_bytes(path: str, body: bytes, *headers: str) -> bytes:
    """Return a POST request as it goes over the wire."""
    lines = [f"POST {path} HTTP/1.1", "Host: test", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body
