"""Another caller of a worker: the time that its predictions take while something else goes on."""

import http.client
import json
import threading
import time
from typing import Self
from urllib.parse import urlsplit

_BODY = json.dumps({"x": {"a": 1.0}})


_BOUND_MS = 100.0
_CALM_S = 0.5


def bound_ms(url: str, model: str) -> float:
    """Return the bound of another caller's p99: on a busy machine thrice that of a calm while.

    To be asked for before or after what goes on, when nothing does.
    """
    with OtherCaller(url, model) as calm:
        time.sleep(_CALM_S)
    return max(_BOUND_MS, 3 * calm.p99_ms)


class OtherCaller:
    """Ask for a small prediction of a model every few milliseconds, on one connection.

    Within the context it asks; after it, `p99_ms` and `longest_ms` tell how long the answers took,
    and `failed` lists every answer that was not 200.
    """

    def __init__(self, url: str, model: str, every_s: float = 0.005) -> None:
        self._address = urlsplit(url).netloc
        self._path = f"/v1/models/{model}/predict"
        self._every_s = every_s
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._ask)
        self.times_ms: list[float] = []
        self.failed: list[int] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def p99_ms(self) -> float:
        """Time that 99 % of the answers came within."""
        return sorted(self.times_ms)[int(len(self.times_ms) * 0.99)]

    @property
    def longest_ms(self) -> float:
        """Time of the slowest answer."""
        return max(self.times_ms)

    def _ask(self) -> None:
        connection = http.client.HTTPConnection(self._address, timeout=60)
        try:
            while not self._done.wait(self._every_s):
                begun = time.perf_counter()
                connection.request("POST", self._path, _BODY, {"content-type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                self.times_ms.append((time.perf_counter() - begun) * 1000)
                if answer.status != 200:
                    self.failed.append(answer.status)
        finally:
            connection.close()
