"""A running `hinged` command, forked from a process that has imported everything.

It is used as a `subprocess.Popen` with pipes of text is, and starts in a tenth of the time.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

from tests.support.forked import enter, fresh, processes

__all__ = ["ForkedCommand"]


class ForkedCommand:
    """One run of `hinged`.

    With `session` it is in a session of its own. A `quiet` one has no pipes: what it
    prints is dropped, what it logs goes where the tests' own errors go.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: dict[str, str],
        session: bool = False,
        quiet: bool = False,
    ) -> None:
        self._arguments = list(arguments)
        stdout, theirs_out = processes.Pipe(duplex=False)
        stderr, theirs_err = processes.Pipe(duplex=False)
        self._process = processes.Process(
            target=_run,
            args=(
                *(self._arguments, environment, str(Path.cwd()), session),
                *((None, None) if quiet else (theirs_out, theirs_err)),
            ),
        )
        with fresh(), theirs_out, theirs_err:
            self._process.start()
        self.stdout, self.stderr = _text(stdout), _text(stderr)
        if quiet:
            self.stdout.close()
            self.stderr.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit code, once it has ended; minus the signal that ended it."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return its exit code, if it has ended."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        self._process.join(timeout)
        code = self.returncode
        if code is None:
            raise subprocess.TimeoutExpired(self._arguments, timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it lives."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to stop."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it hard."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float = 60) -> tuple[str, str]:
        """Return the rest of what it says on its two pipes, and wait for its end."""
        deadline = time.monotonic() + timeout
        outputs = dict.fromkeys((self.stdout, self.stderr), b"")
        with selectors.DefaultSelector() as open_ones:
            for pipe in outputs:
                if not pipe.closed:
                    open_ones.register(pipe, selectors.EVENT_READ, pipe)
            while open_ones.get_map():
                ready = open_ones.select(max(0, deadline - time.monotonic()))
                if not ready:
                    raise subprocess.TimeoutExpired(self._arguments, timeout)
                for key, _ in ready:
                    part = os.read(key.fd, 65_536)
                    outputs[key.data] += part
                    if not part:
                        open_ones.unregister(key.fileobj)
                        key.data.close()
        self.wait(max(0, deadline - time.monotonic()))
        return outputs[self.stdout].decode(), outputs[self.stderr].decode()


def _text(pipe: Connection) -> IO[str]:
    with pipe:
        return os.fdopen(os.dup(pipe.fileno()), encoding="utf-8")


def _run(
    arguments: Sequence[str],
    environment: dict[str, str],
    cwd: str,
    session: bool,
    out: Connection | None,
    err: Connection | None,
) -> None:
    if session:
        os.setsid()
    if out is None or err is None:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.close(nothing)
    else:
        for number, pipe in ((1, out), (2, err)):
            os.dup2(pipe.fileno(), number)
            pipe.close()
    os.chdir(cwd)
    enter(arguments, environment)
