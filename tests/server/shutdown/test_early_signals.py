"""`hinged serve` is told to stop while it starts."""

import contextlib
import os
import signal
from typing import Any

import pytest
import uvicorn

from tests.support.forked import enter, fresh, processes
from tests.support.redis_server import RedisServer


def _serve(number: int, environment: dict[str, str]) -> None:
    """Serve; the signal comes where what a handler raises is lost."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # under nohup it is ignored
    run = uvicorn.Server.run

    def signalled(server: uvicorn.Server, **given: Any) -> None:
        with contextlib.suppress(BaseException):
            signal.raise_signal(number)
        run(server, **given)

    uvicorn.Server.run = signalled  # type: ignore[assignment, method-assign]
    enter(["serve", "--port", "0"], environment)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_before_it_serves_is_kept(own_server: RedisServer, number: int) -> None:
    environment = os.environ | {"HINGED_REDIS_URL": own_server.url}
    process = processes.Process(target=_serve, args=(number, environment))
    with fresh():
        process.start()
    process.join(30)
    try:
        assert process.exitcode == 0
    finally:
        process.kill()
