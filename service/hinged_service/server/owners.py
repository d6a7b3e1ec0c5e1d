"""Owners: which worker of a service learns the events of a stream.

Each event is folded by all workers that serve its model. So workers of one service hand learn
calls to the owner of the stream, chosen among those that live by rendezvous hashing. That is for
speed alone: any worker may append, and the log decides. Workers that disagree about who lives
lose time and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import platform
import secrets
import socket
import stat
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Final

import hinged
from hinged_service.server.peers import Greeting, Link, Serving, Taking
from hinged_service.settings import Settings
from hinged_service.tasks import cancel

__all__ = ["Owners", "owner_of", "worker_name"]

logger = logging.getLogger(__name__)

_FOLDER: Final = "workers"
_LOOK_S: Final = 0.5
"""Pause between two looks for new workers, in seconds."""
_CLOSING_S: Final = 1.0
_MOST_CACHED: Final = 2**16
_NEW: Final = "~"


def worker_name() -> str:
    """Return a name for this process that an operator recognizes: host and process id."""
    return f"{socket.gethostname()}-{os.getpid()}"


def owner_of(stream: str, workers: Iterable[str]) -> str:
    """Return the worker with the highest hash beside the stream (rendezvous hashing).

    If a worker goes or comes, only the streams change owner that it had or gets (Thaler and
    Ravishankar, 1998).
    """
    return max(
        workers, key=lambda name: blake2b(f"{name} {stream}".encode(), digest_size=8).digest()
    )


class Owners:
    """The workers of a service that this one can call, and the streams of each.

    Parameters
    ----------
    directory
        Shared by the workers of the service; `None`: the worker is alone.
    settings
        Those of this worker: only workers with the same are called.
    take
        Takes the calls of the others.

    """

    def __init__(self, directory: Path | None, settings: Settings, take: Taking) -> None:
        self._folder = None if directory is None else directory / _FOLDER
        self._timeout_s = settings.append_timeout_ms / 1000
        same = (hinged.__version__, platform.python_version(), settings.model_dump_json())
        self._file = secrets.token_hex(4)
        self._greeting = Greeting(self._file, blake2b(repr(same).encode()).hexdigest())
        self._take = take
        self._serving: set[Serving] = set()
        self._links: dict[str, Link] = {}
        self._links_by_stream: dict[str, Link | None] = {}
        self._server: asyncio.Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> bool:
        """Listen, and look for the others from now on; return whether that can be done."""
        if self._folder is None:
            return False
        new = self._folder / f"{self._file}{_NEW}"
        try:
            _make_private(self._folder)
            self._server = await asyncio.get_running_loop().create_unix_server(
                lambda: Serving(self._greeting, self._take, self._serving), str(new)
            )
            new.chmod(0o600)
            new.rename(self._folder / self._file)  # it listens now: others may see it
        except OSError as error:
            logger.warning("workers do not hand learn calls to each other: %s", error)
            return False
        await self._look(self._folder)
        self._task = asyncio.create_task(self._look_again(self._folder))
        return True

    def of(self, stream: str) -> Link | None:
        """Return the worker that owns a stream, `None` if it is this one."""
        try:
            return self._links_by_stream[stream]
        except KeyError:
            return self._find(stream)

    def _find(self, stream: str) -> Link | None:
        live = {link.name: link for link in self._links.values() if link.live}
        if len(self._links_by_stream) >= _MOST_CACHED:
            self._links_by_stream.clear()
        found = self._links_by_stream[stream] = live.get(owner_of(stream, (self._file, *live)))
        return found

    async def _look_again(self, folder: Path) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            await self._look(folder)

    async def _look(self, folder: Path) -> None:
        """Connect to the workers that are new."""
        try:
            files = {entry.name for entry in os.scandir(folder)}
        except OSError:  # removed by hand: those that are connected stay so
            return
        self._links = {file: link for file, link in self._links.items() if link.open}
        for file in files - self._links.keys() - {self._file}:
            if not file.endswith(_NEW):
                await self._connect(folder / file)

    async def _connect(self, path: Path) -> None:
        try:
            _, link = await asyncio.get_running_loop().create_unix_connection(
                lambda: Link(self._greeting.group, self._timeout_s, self._links_by_stream.clear),
                str(path),
            )
        except ConnectionRefusedError:  # it died
            _remove(path)
        except OSError:
            return
        else:
            self._links[path.name] = link

    def leave(self) -> None:
        """Let the others send no further calls."""
        if self._server is None or self._folder is None:
            return
        _remove(self._folder / self._file)
        self._server.close()
        for serving in self._serving:
            serving.leave()

    async def aclose(self) -> None:
        """Leave, and close all connections."""
        self.leave()
        await cancel(self._task)
        for end in (*self._links.values(), *self._serving):
            end.close()
        if self._server is not None:
            with contextlib.suppress(TimeoutError):  # a worker that stands still
                async with asyncio.timeout(_CLOSING_S):
                    await self._server.wait_closed()


def _make_private(folder: Path) -> None:
    """Make a directory of this user alone; `PermissionError` if there is one of others."""
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"others may use {folder}")


def _remove(file: Path) -> None:
    with contextlib.suppress(OSError):
        file.unlink()
