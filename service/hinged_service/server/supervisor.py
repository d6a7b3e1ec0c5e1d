"""Run the workers of a service: one in this process, or several under a supervisor."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

__all__ = ["allow_many_connections", "bind", "on_hangup", "run"]

_LONGEST_STOP_S: Final = 25.0
_LOOK_S: Final = 0.05
_OPEN_FILES: Final = 65_536


def run(config: uvicorn.Config, listener: socket.socket) -> bool:
    """Serve until a signal; return whether the service had started or was told to stop."""
    if config.workers > 1:
        supervisor = _Supervisor(config, sockets=[listener])
        supervisor.run()
        return all(process.exitcode != STARTUP_FAILURE for process in supervisor.processes)
    server = _Server(config)
    # A signal may come before uvicorn listens for it; what it has stopped for it raises again.
    # To raise from a handler is no way out: where asyncio starts, that may get lost.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    on_hangup(lambda _, frame: server.handle_exit(signal.SIGTERM, frame))
    try:
        server.run(sockets=[listener])
    except SystemExit:  # the application cannot be loaded, or an operator's code ends it
        return False
    return server.started or server.told


def on_hangup(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    """Handle the end of the terminal, unless it is ignored already (nohup)."""
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, handler)


def allow_many_connections() -> None:
    """Let this process open more files than the 1,024 that many systems begin with."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if most == resource.RLIM_INFINITY else min(_OPEN_FILES, most)
    if now != resource.RLIM_INFINITY and now < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def bind(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address; port 0 takes a free one. Raises `OSError`."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except BaseException:
        listener.close()
        raise
    return listener


class _Supervisor(Multiprocess):
    """The parent of several workers; a closed terminal ends it instead of restarting them."""

    def handle_hup(self) -> None:
        self.handle_term()

    def keep_subprocess_alive(self) -> None:
        # While this process, too, has the workers' end of their pipes open, it does not see that
        # one has died whose answer it is waiting for.
        for process in self.processes:
            process.child_conn.close()
        super().keep_subprocess_alive()

    def join_all(self) -> None:
        """Wait for the workers; a second signal hurries them, and none may take for ever."""
        for listener in self.sockets:
            listener.close()  # as the workers do: else new connections would wait for nobody
        deadline_s = time.monotonic() + _LONGEST_STOP_S
        self.signal_queue.clear()
        while any(process.process.is_alive() for process in self.processes):
            if self.signal_queue:
                self.signal_queue.clear()
                for process in self.processes:
                    _signal(process, signal.SIGINT)
            if time.monotonic() > deadline_s:
                for process in self.processes:
                    _signal(process, signal.SIGKILL)
            for process in self.processes:
                process.process.join(_LOOK_S)


def _signal(process: Process, number: signal.Signals) -> None:
    if process.process.is_alive() and process.pid is not None:
        os.kill(process.pid, number)


class _Server(uvicorn.Server):
    """A server that any second signal hurries, not only Ctrl-C.

    Attributes
    ----------
    told
        Whether a signal told it to stop.

    """

    told = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.told
        self.told = True
        super().handle_exit(sig, frame)
