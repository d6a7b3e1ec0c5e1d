"""Reading a live feed in a thread, as a browser would."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from typing import Any

import httpx

from tests.support.processes import wait_until

Message = tuple[str, dict[str, Any], str | None]


class Watcher:
    """A watcher of a model until the end or until it closes."""

    def __init__(self, url: str, path: str, **query: Any) -> None:
        self.messages: list[Message] = []
        self.done = False
        self._client = httpx.Client(base_url=url, timeout=30, verify=False)
        request = self._client.build_request("GET", f"{path}/live", params=query)
        self.answer = self._client.send(request, stream=True)
        assert self.answer.status_code == 200
        self._socket = self.answer.extensions["network_stream"].get_extra_info("socket")
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The messages of one kind so far."""
        return [data for name, data, _ in self.messages if name == kind]

    def wait_for(self, condition: Callable[[Watcher], object]) -> None:
        wait_until(lambda: bool(condition(self)))

    def close(self) -> None:
        with contextlib.suppress(OSError):  # the other side may have been first
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self.answer.close()
        self._client.close()

    def _read(self) -> None:
        fields: dict[str, str] = {}
        try:
            for line in self.answer.iter_lines():
                if line.startswith(":"):
                    continue
                if line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif fields:
                    self.messages.append(
                        (fields["event"], json.loads(fields["data"]), fields.get("id"))
                    )
                    fields = {}
        except (httpx.HTTPError, httpx.StreamError, RuntimeError, OSError):
            pass
        self.done = True

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
