"""Processes of `hinged serve`: a worker, or a supervisor and its workers, and their signals."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import threading
import time
from types import FrameType
from typing import Any, Final

import uvicorn
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

__all__ = ["end_with_supervisor", "run", "stop_with_stdin"]

_LONGEST_STOP_S: Final = 25.0
_LOOK_S: Final = 0.05


def run(config: uvicorn.Config, listener: socket.socket) -> bool:
    """Serve until a signal ends it; return `False` if the application could not start."""
    if config.workers > 1:
        supervisor = _Supervisor(config, sockets=[listener])
        supervisor.run()
        return all(process.exitcode != STARTUP_FAILURE for process in supervisor.processes)
    server = _Server(config)
    # A signal may come before uvicorn listens for it; after a stop uvicorn raises it again. A
    # handler must not raise: while asyncio starts, the exception may be lost.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.handle_exit)
    _on_hangup(lambda _, frame: server.handle_exit(signal.SIGTERM, frame))
    try:
        server.run(sockets=[listener])
    except SystemExit:  # the application cannot be loaded, or an operator's code ends it
        return False
    return server.started or server.stopping


def end_with_supervisor() -> None:
    """End this worker when its supervisor ends, if it has one."""
    supervisor = multiprocessing.parent_process()
    if supervisor is None:
        return
    _on_hangup(signal.SIG_IGN)  # a closed terminal reaches the supervisor, which sees to us

    def follow() -> None:
        supervisor.join()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, daemon=True).start()


def stop_with_stdin() -> None:
    """End this process when its standard input closes."""

    def follow() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=follow, daemon=True).start()


class _Supervisor(Multiprocess):
    """The parent of several workers; a closed terminal ends it instead of restarting them."""

    def handle_hup(self) -> None:
        self.handle_term()

    def keep_subprocess_alive(self) -> None:
        # While this process also holds the workers' end of their pipes open, it does not notice
        # the death of a worker whose answer it waits for.
        for process in self.processes:
            process.child_conn.close()
        super().keep_subprocess_alive()

    def join_all(self) -> None:
        """Wait for the workers; a second signal hurries them, a deadline kills them."""
        for listener in self.sockets:
            listener.close()  # as the workers do, or new connections would wait without an answer
        deadline_s = time.monotonic() + _LONGEST_STOP_S
        self.signal_queue.clear()
        while any(process.process.is_alive() for process in self.processes):
            if self.signal_queue:
                self.signal_queue.clear()
                self._send(signal.SIGINT)
            if time.monotonic() > deadline_s:
                self._send(signal.SIGKILL)
            for process in self.processes:
                process.process.join(_LOOK_S)

    def _send(self, number: signal.Signals) -> None:
        for process in self.processes:
            if process.process.is_alive() and process.pid is not None:
                os.kill(process.pid, number)


class _Server(uvicorn.Server):
    """A server that any second signal hurries, not only Ctrl-C.

    Attributes
    ----------
    stopping
        `True` after a signal to stop.

    """

    stopping = False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.stopping
        self.stopping = True
        super().handle_exit(sig, frame)


def _on_hangup(handler: Any) -> None:
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, handler)
