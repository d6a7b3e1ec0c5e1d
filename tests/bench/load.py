"""Load: `wrk` where there is one, else raw sockets; and a lone caller that takes times."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["Caller", "Load", "generator", "loaded", "mixed_requests_per_s", "requests_per_s"]

_HERE = Path(__file__).parent


class Load(NamedTuple):
    """Outcome of a load: answers in all and per second, half and 99 of 100 came within."""

    answers: int
    per_s: float
    p50_ms: float
    p99_ms: float


def generator() -> str:
    """Return the name of the load generator."""
    return "wrk" if shutil.which("wrk") else "own (raw asyncio sockets)"


def requests_per_s(
    port: int, path: str, bodies: Sequence[bytes], connections: int, seconds: int
) -> float:
    """Post the bodies in turn to one path, as `mixed_requests_per_s` does."""
    return mixed_requests_per_s(port, [(path, body) for body in bodies], connections, seconds)


def mixed_requests_per_s(
    port: int, posts: Sequence[tuple[str, bytes]], connections: int, seconds: int
) -> float:
    """Return the answers per second, else as `loaded`."""
    return loaded(port, posts, connections, seconds).per_s


def loaded(port: int, posts: Sequence[tuple[str, bytes]], connections: int, seconds: int) -> Load:
    """Post bodies to their paths in turn, over so many connections; return what that came to.

    Raises
    ------
    RuntimeError
        If a request failed or was answered otherwise than 2xx.

    """
    wrk = shutil.which("wrk")
    if wrk is None:
        requests = [_request(path, body) for path, body in posts]
        return asyncio.run(_own_load(port, requests, connections, seconds))
    with tempfile.NamedTemporaryFile() as file:
        file.writelines(path.encode() + b"\t" + body + b"\n" for path, body in posts)
        file.flush()
        done = subprocess.run(
            [
                *(wrk, "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "5s", "--latency"),
                *("-s", str(_HERE / "load.lua"), f"http://127.0.0.1:{port}", "--", file.name),
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    if "Non-2xx" in done or "Socket errors" in done:
        raise RuntimeError(f"requests like {posts[0][0]} failed:\n{done}")
    count = re.search(r"(\d+) requests in", done)
    rate = re.search(r"Requests/sec:\s+([\d.]+)", done)
    times = dict(re.findall(r"(50|99)%\s+([\d.]+[mu]?s)", done))
    if count is None or rate is None or len(times) != 2:
        raise RuntimeError(f"wrk said:\n{done}")
    return Load(int(count[1]), float(rate[1]), _ms(times["50"]), _ms(times["99"]))


def _ms(text: str) -> float:
    """Return a time as wrk writes it in milliseconds."""
    for unit, factor in (("us", 1e-3), ("ms", 1.0), ("s", 1e3)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * factor
    raise RuntimeError(f"wrk's time {text} has no unit")


async def _own_load(port: int, requests: Sequence[bytes], connections: int, seconds: int) -> Load:
    loop = asyncio.get_running_loop()
    end_s = loop.time() + seconds
    stride = max(1, len(requests) // connections)  # so that each one comes once if there are enough
    times_s: list[float] = []

    async def client(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        count = 0
        while (sent_s := loop.time()) < end_s:
            writer.write(requests[(number * stride + count) % len(requests)])
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(_length(head))
            times_s.append(loop.time() - sent_s)
            count += 1
        writer.close()
        await writer.wait_closed()

    started_s = loop.time()
    await asyncio.gather(*(client(number) for number in range(connections)))
    took_s = loop.time() - started_s
    times_s.sort()
    middle, late = (times_s[int(len(times_s) * share)] * 1e3 for share in (0.5, 0.99))
    return Load(len(times_s), len(times_s) / took_s, middle, late)


class Caller:
    """One connection that posts to one path, one request after the other."""

    def __init__(self, port: int, path: str) -> None:
        self._path = path
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def post(self, body: bytes) -> bytes:
        """Return the answer's body; raise `RuntimeError` unless it is 2xx."""
        return self.timed_post(body)[1]

    def timed_post(self, body: bytes, method: str = "POST") -> tuple[float, bytes]:
        """Return the seconds from the first byte sent to the last one received, and the answer."""
        request = _request(self._path, body, method)
        started_s = time.perf_counter()
        self._socket.sendall(request)
        received = b""
        while (end := received.find(b"\r\n\r\n")) < 0:
            received += self._read()
        length = _length(received[: end + 4])
        parts, missing = [received[end + 4 :]], length - (len(received) - end - 4)
        while missing > 0:
            parts.append(self._read())
            missing -= len(parts[-1])
        return time.perf_counter() - started_s, b"".join(parts)

    def put(self, body: bytes) -> bytes:
        """Put, as `post`."""
        return self.timed_post(body, "PUT")[1]

    def _read(self) -> bytes:
        data = self._socket.recv(2**18)
        if not data:
            raise RuntimeError("the server closed the connection")
        return data


def _request(path: str, body: bytes, method: str = "POST") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def _length(head: bytes) -> int:
    if not head.startswith(b"HTTP/1.1 2"):
        raise RuntimeError(head.decode())
    found = re.search(rb"(?i)content-length: *(\d+)", head)
    if found is None:
        raise RuntimeError(head.decode())
    return int(found[1])
