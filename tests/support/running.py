"""Servers, proxies and workers as contexts: started, and stopped in any case."""

import contextlib
from collections.abc import Iterator
from typing import Any, TypeVar

import httpx

from tests.support.forked_worker import ForkedWorker
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.service import Service
from tests.support.worker import Worker

Started = TypeVar("Started", RedisServer, Proxy, Worker, ForkedWorker)


@contextlib.contextmanager
def running(one: Started, *options: str) -> Iterator[Started]:
    """Start it and kill it in the end, if the test has not."""
    if isinstance(one, RedisServer):
        one.start(*options)
    else:
        one.start()
    try:
        yield one
    finally:
        if isinstance(one, Proxy):
            one.stop()
        else:
            one.kill()


@contextlib.contextmanager
def serving(redis_url: str, **settings: Any) -> Iterator[httpx.Client]:
    """Serve in this process and give a client."""
    with Service(redis_url, **settings) as service, service.client() as client:
        yield client


def client_of(worker: Service | Worker) -> httpx.Client:
    """Return a client of a worker."""
    return httpx.Client(base_url=worker.url, timeout=60, verify=False)
