"""`hinged serve` as a process, to be told to stop."""

import os
import signal
import socket
import subprocess
import sys
import time

from tests.support.forked_command import ForkedCommand
from tests.support.long_timeouts import LONG_TIMEOUTS
from tests.support.processes import gone, wait_until, with_variable

_HINGED = "import sys; sys.argv[0] = 'hinged'; from hinged_service.cli.main import main; main()"


class Serving:
    """One run of it on a free port; a `whole` one does all that a start takes."""

    def __init__(self, redis_url: str, workers: int, mark: str, whole: bool = False) -> None:
        self._mark = mark
        settings = {f"HINGED_{k.upper()}": str(v) for k, v in LONG_TIMEOUTS.items()}
        arguments = ["serve", "--port", "0", "--workers", str(workers), "--redis-url", redis_url]
        environment = os.environ | settings | {"HINGED_TEST_MARK": mark}
        self.process: subprocess.Popen[str] | ForkedCommand
        if whole:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _HINGED, *arguments],
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        else:
            self.process = ForkedCommand(arguments, environment)
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().split("http://")[1].split(" ")[0]
        self.url = f"http://{self.url}"
        wait_until(self._answers, 60)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def _answers(self) -> bool:
        time.sleep(0.1)
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=30) as made:
                made.sendall(b"GET /healthz HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
                return made.recv(12) == b"HTTP/1.1 200"
        except OSError:
            return False

    def send_signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        self.process.send_signal(number)

    def accepts(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=30).close()
        except ConnectionError:
            return False
        return True

    def end(self) -> tuple[int, str]:
        """Wait until it and all its workers are gone; return its exit code and what it said."""
        _, output = self.process.communicate(timeout=60)
        wait_until(lambda: all(map(gone, with_variable("HINGED_TEST_MARK", self._mark))), 30)
        return self.process.wait(), output

    def kill(self) -> None:
        for pid in with_variable("HINGED_TEST_MARK", self._mark):
            os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.communicate()


def unended_call(port: int, path: str) -> socket.socket:
    """Return a socket with a call on it that has begun and whose body never ends."""
    made = socket.create_connection(("127.0.0.1", port), timeout=30)
    head = f"POST {path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n"
    made.sendall(f"{head}Content-Length: 1000\r\nExpect: 100-continue\r\n\r\n".encode())
    go_on = b"HTTP/1.1 100 Continue\r\n\r\n"  # told as soon as the body is asked for
    assert made.recv(len(go_on), socket.MSG_WAITALL) == go_on
    made.sendall(b'{"x"')
    return made
