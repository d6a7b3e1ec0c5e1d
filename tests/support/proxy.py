"""A TCP proxy before Redis that forwards commands and loses, delays or cuts the answers."""

from __future__ import annotations

import asyncio
import contextlib
import threading

from tests.support.redis_server import free_port


class Proxy:
    """Runs in a thread of its own; the switches may be set at any time.

    drop_replies: forward this many answers' first bytes to nowhere and cut the connection.
    delay_s: wait before each piece of an answer.
    refuse: cut every connection at once and take no new one.
    hold: let nothing through either way, nor cut anything; what waits goes on afterwards.
    hold_replies: the same for answers only.
    hold_after: hold as soon as so many bytes of commands have passed; 0 for never.
    error: answer every command with this error reply, and send none on; empty for not at all.
    target_port: where new connections go.
    """

    def __init__(self, target_port: int) -> None:
        self.port = free_port()
        self.target_port = target_port
        self.drop_replies = 0
        self.delay_s = 0.0
        self.refuse = False
        self.hold = False
        self.hold_replies = False
        self.hold_after = 0
        self.error = ""
        self.dropped = 0
        self._passed = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start listening."""
        self._thread.start()
        self._started.wait(10)

    def stop(self) -> None:
        """Stop and cut everything; once is enough."""
        if not self._thread.is_alive():
            return
        self.hold = self.hold_replies = False
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def cut(self) -> None:
        """Cut all present connections."""
        self._loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", self.port)
        )
        self._started.set()
        self._loop.run_forever()
        server.close()
        self._cut()
        tasks = asyncio.all_tasks(self._loop)
        if tasks:  # cut, they end by themselves; a cancelled stream handler would be reported
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=5))
        self._loop.run_until_complete(asyncio.sleep(0.01))  # what was cut gets closed
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuse:
            writer.transport.abort()
            return
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, up_writer}
        self._writers |= both
        forward = asyncio.ensure_future(self._pump(reader, up_writer, writer))
        back = asyncio.ensure_future(self._pump_back(up_reader, writer))
        await asyncio.wait([forward, back], return_when=asyncio.FIRST_COMPLETED)
        for task in (forward, back):
            task.cancel()
        await asyncio.gather(forward, back, return_exceptions=True)
        for one in both:
            one.transport.abort()
        self._writers -= both

    async def _pump(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        back: asyncio.StreamWriter,
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                while self.hold:  # noqa: ASYNC110 - it is set from another thread
                    await asyncio.sleep(0.002)
                if self.error:
                    commands = (b"\r\n" + data).count(b"\r\n*")
                    back.write(f"-{self.error}\r\n".encode() * commands)
                    continue
                self._passed += len(data)
                if 0 < self.hold_after <= self._passed:
                    self.hold_after, self.hold = 0, True
                writer.write(data)
                await writer.drain()

    async def _pump_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                while self.hold or self.hold_replies:  # noqa: ASYNC110 - as above
                    await asyncio.sleep(0.002)
                if self.refuse:
                    return
                if self.drop_replies > 0:
                    self.drop_replies -= 1
                    self.dropped += 1
                    return
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                writer.write(data)
                await writer.drain()
