"""The command line with real processes, real signals and a real terminal.

One file: each test runs `Command`, and nothing that it started may be left.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
import redis
from river.datasets import Phishing

import hinged
from tests.support.forked_command import ForkedCommand
from tests.support.processes import embedded_servers, gone, wait_until, with_variable

HINGED: Final = [sys.executable, "-m", "hinged_service.cli.main"]
MARK: Final = "HINGED_TEST_MARK"
PERCEPTRON: Final = {"learner": {"type": "perceptron"}}
pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="looks at processes through /proc"
)


class Command:
    """One run of `hinged`, in a session of its own; a `whole` one does all that a start takes."""

    def __init__(
        self, environment: dict[str, str], arguments: tuple[str, ...], whole: bool = False
    ) -> None:
        self.environment = environment
        self.process: subprocess.Popen[str] | ForkedCommand
        if whole:
            self.process = subprocess.Popen(
                [*HINGED, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
                start_new_session=True,
            )
        else:
            self.process = ForkedCommand(arguments, environment, session=True)

    def read_until(self, pattern: str) -> str:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found = re.search(pattern, line)
            if found:
                return found[0]
        raise AssertionError(f"no {pattern} in the output: {self.finish()}")

    @contextlib.contextmanager
    def ready(self) -> Iterator[httpx.Client]:
        url = self.read_until(r"http://\S+")
        with httpx.Client(base_url=url, timeout=10, trust_env=False, verify=False) as client:

            def ready() -> bool:
                assert self.process.poll() is None, self.finish()
                try:
                    return client.get("/readyz").is_success
                except httpx.TransportError:
                    return False

            wait_until(ready, 60)
            yield client

    def finish(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=60)
        return self.process.wait(), out, err

    def relatives(self) -> list[int]:
        """All living processes that come from a command of this test."""
        return relatives(self.environment)


def relatives(environment: dict[str, str]) -> list[int]:
    # A Valkey server overwrites its environment, so it is known by its directory.
    folder = Path(environment["TMPDIR"]).parent
    return [*with_variable(MARK, environment[MARK]), *embedded_servers(folder)]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    left_out = ("HINGED_", "DISPLAY", "WAYLAND_DISPLAY")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
    (tmp_path / "tmp").mkdir()
    return kept | {
        "HINGED_DATA_DIR": str(tmp_path / "data"),
        "TMPDIR": str(tmp_path / "tmp"),
        "PYTHONWARNINGS": "error",
        MARK: uuid.uuid4().hex,
    }


@pytest.fixture
def run(environment: dict[str, str]) -> Iterator[Callable[..., Command]]:
    """Start commands; afterwards nothing that they started may be left."""
    commands: list[Command] = []

    def start(*arguments: str, whole: bool = False, **more: str) -> Command:
        commands.append(Command(environment | more, arguments, whole))
        return commands[-1]

    yield start
    for command in commands:
        if command.process.poll() is None:
            command.process.terminate()
            command.process.wait(60)
        for pipe in (command.process.stdout, command.process.stderr):
            if pipe is not None:
                pipe.close()
    try:
        wait_until(lambda: not relatives(environment))
    finally:
        for pid in relatives(environment):
            os.kill(pid, signal.SIGKILL)


def phishing_by_hand() -> dict[str, Any]:
    """Learn these events with a perceptron of ten lines."""
    weights: dict[str, float] = {}
    intercept = loss = 0.0
    mistakes = updates = 0
    for x, y in Phishing():
        sign = 1 if y else -1
        score = sum(weights.get(name, 0.0) * value for name, value in x.items()) + intercept
        mistakes += (score > 0) is not y
        loss += max(0.0, 1 - sign * score)
        if sign * score <= 0:
            updates += 1
            intercept += sign
            for name, value in x.items():
                weights[name] = weights.get(name, 0.0) + sign * value
    return {"mistakes": mistakes, "updates": updates, "hinge_loss": loss, "weights": weights}


def test_the_demo_shows_what_a_perceptron_learns_and_leaves_nothing(
    run: Callable[..., Command], tmp_path: Path
) -> None:
    code, out, err = run("demo", whole=True).finish()
    assert (code, err) == (0, "")
    expected = phishing_by_hand()
    accuracy = 1 - expected["mistakes"] / 1_250
    last = (
        rf"1,250/1,250 +events 1,250 +accuracy {accuracy:.2%} +mistakes {expected['mistakes']} "
        rf"+updates {expected['updates']} +mean hinge loss {expected['hinge_loss'] / 1_250:.3f}"
    )
    assert re.search(last, out)
    for model in ("phishing", "phishing-averaged"):
        assert re.search(rf"{model} +\w*perceptron +1,250 +\d+ +\d\d\.\d\d%", out)
    assert re.search(rf"hinge_loss +{expected['hinge_loss']:g}\n", out)
    for name, weight in expected["weights"].items():
        assert re.search(rf"{name} +{weight:g} +█*", out)
    assert "hinged serve\n" in out
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not (tmp_path / "data").exists()


def test_a_second_demo_counts_nothing_twice_and_both_write_plain_ascii(
    run: Callable[..., Command], tmp_path: Path
) -> None:
    folder = str(tmp_path / "kept")
    plain = {"PYTHONIOENCODING": "ascii"}
    first, second = (run("demo", "--data-dir", folder, **plain).finish() for _ in range(2))
    assert first[1].isascii()
    assert "#####" in first[1]
    assert first[0] == second[0] == 0
    assert "1,250 events were in the log already" in second[1]
    weights = r"(?s)The largest weights.*position +\S+"
    assert re.findall(weights, first[1]) == re.findall(weights, second[1]) != []


def test_a_demo_that_is_kept_serves_until_ctrl_c(run: Callable[..., Command]) -> None:
    demo = run("demo", "--keep")
    docs = demo.read_until(r"http://\S+/docs")
    demo.read_until("Ctrl-C")
    assert "swagger" in httpx.get(docs, trust_env=False, verify=False).text
    demo.process.send_signal(signal.SIGINT)
    assert demo.finish()[0] == 0
    assert demo.relatives() == []
    with pytest.raises(httpx.ConnectError):
        httpx.get(docs, trust_env=False, verify=False)


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGKILL, -9)],
)
def test_a_demo_ended_in_the_middle_takes_its_service_along(
    run: Callable[..., Command], number: signal.Signals, code: int, tmp_path: Path
) -> None:
    demo = run("demo")
    demo.read_until(r"250/1,250")
    demo.process.send_signal(number)
    assert demo.process.wait(60) == code
    if number is signal.SIGKILL:
        wait_until(lambda: demo.relatives() == [])
    else:
        assert demo.relatives() == []
        assert list((tmp_path / "tmp").iterdir()) == []


def test_a_demo_bears_a_redis_that_stands_still_for_a_moment(
    run: Callable[..., Command], environment: dict[str, str]
) -> None:
    demo = run("demo")
    demo.read_until(r"250/1,250")
    (server,) = embedded_servers(Path(environment["TMPDIR"]).parent)
    os.kill(server, signal.SIGSTOP)
    time.sleep(2)  # longer than the service waits for it
    os.kill(server, signal.SIGCONT)
    code, out, _ = demo.finish()
    assert code == 0
    assert "1,250/1,250" in out


def test_a_demo_whose_service_dies_fails_and_says_so(run: Callable[..., Command]) -> None:
    demo = run("demo", "--keep")
    demo.read_until("Ctrl-C")
    services = [
        pid
        for pid in demo.relatives()
        if b"serve" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    ]
    os.kill(services[0], signal.SIGKILL)
    code, _, err = demo.finish()
    assert code == 1
    assert "the service ended unexpectedly" in err
    assert demo.relatives() == []


def test_a_demo_on_a_terminal_draws_a_bar_and_a_table(environment: dict[str, str]) -> None:
    ours, theirs = pty.openpty()
    environment |= {"COLUMNS": "100", "TERM": "xterm-256color"}
    with subprocess.Popen([*HINGED, "demo"], stdout=theirs, stderr=theirs, env=environment) as demo:
        os.close(theirs)
        screen = b""
        with contextlib.suppress(OSError):  # a terminal without a writer reads as an error
            while part := os.read(ours, 65_536):
                screen += part
        os.close(ours)
        assert demo.wait(60) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.decode())
    assert "1250/1250" in text
    assert "mean hinge loss" in text
    assert "━" in text
    assert relatives(environment) == []


@pytest.mark.parametrize(
    ("number", "workers"),
    [(signal.SIGINT, "1"), (signal.SIGTERM, "1"), (signal.SIGTERM, "2"), (signal.SIGHUP, "2")],
)
def test_a_service_stops_cleanly_on_a_signal(
    run: Callable[..., Command], number: signal.Signals, workers: str
) -> None:
    whole = workers == "1" or number is signal.SIGTERM
    service = run("serve", "--port", "0", "--workers", workers, whole=whole)
    with service.ready():
        service.process.send_signal(number)
        code, _, err = service.finish()
    assert code == 0
    assert "Traceback" not in err
    assert service.relatives() == []


def test_a_terminal_signals_the_whole_group_and_nothing_is_lost(
    run: Callable[..., Command],
) -> None:
    service = run("serve", "--port", "0", "--workers", "2")
    event = {"id": "1", "x": {"heat": 2.0}, "y": True}
    with service.ready() as client:
        client.put("/v1/models/m", json=PERCEPTRON).raise_for_status()
        client.post("/v1/models/m/learn", json=event).raise_for_status()
        os.killpg(service.process.pid, signal.SIGINT)
        code, _, err = service.finish()
    assert code == 0
    assert "Traceback" not in err
    assert service.relatives() == []
    service = run("serve", "--port", "0")
    with service.ready() as client:
        assert client.get("/v1/models/m").json()["events"] == 1
        assert client.get("/v1/models/m/weights").json()["weights"] == {"heat": 2.0}


def test_workers_end_with_a_killed_parent(run: Callable[..., Command]) -> None:
    service = run("serve", "--port", "0", "--workers", "2")
    with service.ready():
        service.process.kill()
        service.process.wait()
    wait_until(lambda: service.relatives() == [])


def test_a_killed_worker_is_replaced(run: Callable[..., Command], tmp_path: Path) -> None:
    service = run("serve", "--port", "0", "--workers", "2")
    with service.ready() as client:
        client.put("/v1/models/m", json=PERCEPTRON).raise_for_status()
        before = set(service.relatives())
        servers = embedded_servers(tmp_path / "data")
        workers = before - {service.process.pid, *servers} - resource_trackers(before)
        assert len(workers) == 2
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: all(gone(pid) for pid in workers))
    with httpx.Client(base_url=client.base_url, trust_env=False, timeout=30, verify=False) as other:
        assert other.get("/v1/models/m").json()["events"] == 0
    assert embedded_servers(tmp_path / "data") == servers
    service.process.terminate()
    assert service.finish()[0] == 0


def resource_trackers(pids: set[int]) -> set[int]:
    """The processes that multiprocessing starts for itself."""
    return {p for p in pids if b"resource_tracker" in Path(f"/proc/{p}/cmdline").read_bytes()}


def test_a_killed_embedded_server_comes_back_by_itself(
    run: Callable[..., Command], tmp_path: Path
) -> None:
    service = run("serve", "--port", "0")
    with service.ready() as client:
        client.put("/v1/models/m", json=PERCEPTRON).raise_for_status()
        event = {"id": "1", "x": {"heat": 2.0}, "y": True}
        client.post("/v1/models/m/learn", json=event).raise_for_status()
        # With `everysec` a write waits for a slow sync, and a kill loses it.
        folder = tmp_path / "data" / "appendonlydir"
        wait_until(lambda: any(b"heat" in path.read_bytes() for path in folder.glob("*.incr.aof")))
        (server,) = embedded_servers(tmp_path / "data")
        os.kill(server, signal.SIGKILL)
        wait_until(lambda: gone(server))
        wait_until(lambda: client.get("/readyz").is_success)
        again = client.post("/v1/models/m/learn", json=event)
        if again.status_code == 503:  # it may be away once more when readiness was told
            wait_until(lambda: client.get("/readyz").is_success)
            again = client.post("/v1/models/m/learn", json=event)
        assert again.json().get("duplicate"), again.text
        assert client.get("/v1/models/m").json()["events"] == 1
        service.process.terminate()
        assert service.finish()[0] == 0


def test_two_services_share_a_data_directory(run: Callable[..., Command], tmp_path: Path) -> None:
    first, second = (run("serve", "--port", "0") for _ in range(2))
    with first.ready() as one, second.ready() as other:
        one.put("/v1/models/m", json=PERCEPTRON).raise_for_status()
        event = {"x": {"heat": 2.0}, "y": True}
        other.post("/v1/models/m/learn", json=event).raise_for_status()
        first.process.terminate()
        assert first.finish()[0] == 0
        assert other.get("/v1/models/m").json()["events"] == 1
        assert len(embedded_servers(tmp_path / "data")) == 1
        asked = second.read_until(r"redis-cli -s .*\)\"")  # as a shell does it
        socket_path = subprocess.check_output(
            ["bash", "-c", f"echo {asked[len('redis-cli -s') :]}"]
        )
        with redis.Redis(unix_socket_path=socket_path.decode().strip()) as models:
            assert models.ping()
        second.process.terminate()
        assert second.finish()[0] == 0
    assert embedded_servers(tmp_path / "data") == []


def test_a_given_redis_is_used_and_its_password_is_not_shown(
    run: Callable[..., Command], redis_url: str, tmp_path: Path
) -> None:
    service = run("serve", "--port", "0", "--redis-url", redis_url)
    with service.ready():
        assert service.read_until("the Redis at .*").startswith("the Redis at 127.0.0.1:")
        service.process.terminate()
    assert service.finish()[0] == 0
    assert not (tmp_path / "data").exists()
    secret = run("serve", "--port", "0", HINGED_REDIS_URL="redis://user:secret@127.0.0.1:1/0")
    assert secret.read_until("the Redis at .*").startswith("the Redis at 127.0.0.1:1.")
    secret.process.terminate()
    _, out, err = secret.finish()
    assert "secret" not in out + err
    wrong = run("serve", "--port", "0", HINGED_REDIS_URL="redis://user:hush/hash@127.0.0.1:1/0")
    code, out, err = wrong.finish()
    assert (code, out) == (1, "")
    assert "The Redis URL is wrong" in err
    assert "hush" not in err
    assert "hash" not in err


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "message"),
    [
        (["--redis-url", "http://h"], {}, 1, "The Redis URL is wrong"),
        (["--redis-url", "http://h", "--workers", "2"], {}, 1, "The Redis URL is wrong"),
        (["--redis-url", "redis://h", "--data-dir", "d"], {}, 2, "Leave one of the two out"),
        (["--data-dir", "d"], {"HINGED_REDIS_URL": "redis://h"}, 2, "Leave one of the two out"),
        ([], {"HINGED_MAX_BATCH_EVENTS": "0"}, 2, "HINGED_MAX_BATCH_EVENTS='0'"),
        (["--host", "nowhere.invalid", "--insecure"], {}, 1, "Cannot listen on nowhere.invalid"),
        (["--host", "0.0.0.0"], {}, 1, "There are no API keys"),
        (["--host", "::"], {}, 1, "There are no API keys"),
        (
            ["--workers", "2"],
            {"HINGED_KEYS": "{}"},
            1,
            "HINGED_KEYS with the API keys cannot be used",
        ),
        ([], {"HINGED_KEYS_FILE": "/none"}, 1, "The file /none with the API keys"),
        (["--host", "0.0.0.0"], {"HINGED_KEYS": "[]", "HINGED_REDIS_URL": "x"}, 1, "Redis URL"),
        (["--data-dir", "/proc/version/d"], {}, 1, "cannot use /proc/version/d"),
        ([], {"HINGED_DATA_DIR": ""}, 2, "HINGED_DATA_DIR='': must name a directory"),
        ([], {"HINGED_REDIS_URL": ""}, 1, "The Redis URL is wrong"),
        (["--workers", "0"], {}, 2, "--workers"),
        (["--port", "65536"], {}, 2, "--port"),
    ],
)
def test_a_failed_start_gives_its_reason(
    run: Callable[..., Command],
    arguments: list[str],
    variables: dict[str, str],
    code: int,
    message: str,
) -> None:
    port = [] if "--port" in arguments else ["--port", "0"]
    ended = run("serve", *port, *arguments, COLUMNS="200", **variables).finish()
    assert ended[0] == code
    assert message in ended[2]
    assert "Traceback" not in ended[2]


def test_ingest_names_a_wrong_setting(run: Callable[..., Command]) -> None:
    words = ("file", "-", "--format", "ndjson", "--model", "m")
    code, _, err = run("ingest", *words, HINGED_MAX_BODY_BYTES="0").finish()
    assert code == 2
    assert "HINGED_MAX_BODY_BYTES='0'" in err
    assert "Traceback" not in err


@pytest.mark.parametrize("command", ["serve", "demo"])
def test_a_taken_port_is_named(run: Callable[..., Command], command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, err = run(command, "--port", str(port), COLUMNS="200").finish()
    assert code == 1
    assert f"Cannot listen on 127.0.0.1, port {port}: Address already in use" in err
    assert "Traceback" not in err


def test_help_teaches_and_the_version_is_that_of_the_library(
    run: Callable[..., Command],
) -> None:
    version = run("--version", whole=True).finish()[1]
    assert version.startswith(f"hinged {hinged.__version__} ")
    root = Path(hinged.__file__).parents[2]
    if (root / ".git").exists() and shutil.which("git"):
        commit = subprocess.check_output(["git", "-C", root, "rev-parse", "HEAD"], text=True)
        assert f"git {commit[:12]}" in version
    overview = run("--help", whole=True).finish()[1]
    assert "hinged demo" in overview
    assert "hinged serve" in overview
    details = run("serve", "--help", COLUMNS="120").finish()[1]
    assert "curl -X PUT" in details
    assert "HINGED_REDIS_URL" in details
    assert "HINGED_MODELS" in details
    assert "only code that you trust" in " ".join(details.replace("│", " ").split())
