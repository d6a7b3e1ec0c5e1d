"""Servers that the tests share, and data sets that are too large to ship."""

from __future__ import annotations

import csv
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.drill_table import pytest_terminal_summary  # noqa: F401 - a hook
from tests.support.patience import PATIENT
from tests.support.redis_server import RedisServer, server_binaries

Event = tuple[dict[str, float], bool]


@pytest.fixture(autouse=True)
def _machine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """Let tests marked `alone` have the machine to themselves; all others share it.

    They judge how long something takes. Whoever wants in passes a gate first, so
    that a test that waits to be alone keeps newcomers out.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    folder = tmp_path_factory.getbasetemp().parent
    alone = request.node.get_closest_marker("alone") is not None
    with (folder / "gate").open("w") as gate, (folder / "machine").open("w") as machine:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(machine, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the service wait no longer than it does in production; such tests judge the waiting."""
    for name in list(PATIENT):
        monkeypatch.delitem(PATIENT, name)


def data_file(name: str) -> Path:
    path = Path(os.environ.get("HINGED_DATA", "")) / name
    if "HINGED_DATA" not in os.environ or not path.exists():
        pytest.skip(f"{name} is not there: point HINGED_DATA at the folder that holds it")
    return path


@pytest.fixture(scope="session")
def elec() -> list[Event]:
    """Electricity (Harries 1999): six numbers and whether the price goes up."""
    with data_file("elec.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    label = list(rows[0])[-1]
    positive = {"UP", "1", "True", "true"}
    return [({k: float(v) for k, v in r.items() if k != label}, r[label] in positive) for r in rows]


@pytest.fixture(scope="session")
def sms() -> list[Event]:
    """SMS Spam Collection (Almeida, Hidalgo): the set of words of each message."""
    with data_file("sms_spam.tsv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        (dict.fromkeys(sorted(set(r["SMS"].lower().split())), 1.0), r["Label"] == "spam")
        for r in rows
    ]


@pytest.fixture(scope="session", params=sorted(server_binaries()))
def shared_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    """A server for tests that do not kill it, once per kind of server."""
    directory: Path = tmp_path_factory.mktemp(request.param)
    server = RedisServer(directory, server_binaries()[request.param])
    server.start()
    yield server
    server.kill()


@pytest.fixture
def redis_url(shared_server: RedisServer) -> Iterator[str]:
    """The address of the shared server, which is empty before and after."""
    with shared_server.client() as client:
        client.flushall()
        yield shared_server.url
        client.flushall()


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[RedisServer]:
    """A Valkey of the test's own, to be killed, stopped or set back."""
    server = RedisServer(tmp_path / "redis")
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def letter() -> list[tuple[dict[str, float], str]]:
    """Letter Recognition (Frey, Slate 1991): sixteen whole numbers and one of 26 letters."""
    with data_file("letter.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [({f"x{i}": float(v) for i, v in enumerate(r[1:])}, r[0]) for r in rows]
