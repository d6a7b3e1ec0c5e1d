"""Worker processes behind proxies on one Redis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.worker import Worker

W = TypeVar("W", bound=Worker)


class ProcessFleet(Generic[W]):
    """Workers, behind one proxy or behind one each, on one Redis.

    Parameters
    ----------
    server
        Started and stopped with the fleet.
    worker
        Makes a worker for an address.
    workers, proxies
        How many.

    """

    def __init__(
        self, server: RedisServer, worker: Callable[[str], W], workers: int, proxies: int = 1
    ) -> None:
        self.server = server
        self.proxies = [Proxy(server.port) for _ in range(proxies)]
        self.workers: Sequence[W] = [worker(self.proxies[n % proxies].url) for n in range(workers)]

    @property
    def urls(self) -> list[str]:
        """Addresses of the workers."""
        return [worker.url for worker in self.workers]

    def start(self) -> None:
        """Start everything and wait until the workers answer."""
        self.server.start()
        for proxy in self.proxies:
            proxy.start()
        for worker in self.workers:
            worker.start(wait=False)
        self.until_alive()

    def until_alive(self) -> None:
        """Wait until the workers answer."""
        for worker in self.workers:
            worker.wait_until_alive()

    def stop(self) -> None:
        """Kill everything."""
        for worker in self.workers:
            worker.kill()
        for proxy in self.proxies:
            proxy.stop()
        self.server.kill()

    def __enter__(self) -> ProcessFleet[W]:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
