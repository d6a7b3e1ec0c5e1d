"""The disk of an embedded Valkey is full, and then the service or Valkey is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import redis

from tests.e2e.drills.drill import Drill
from tests.e2e.drills.serving import Serving
from tests.support.processes import embedded_servers, gone, wait_until

pytestmark = pytest.mark.slow

_RESERVE = 2**20
_UNSAVED = 8


class Volume:
    """A small file system of its own."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = path / "data"
        self._filler = path / "filler"

    def fill(self, spare: int = 0) -> None:
        """Take every free byte but for `spare`."""
        with self._filler.open("wb", buffering=0) as filler:
            for size in (2**20, 4096, 1):
                while _took(filler.fileno(), size):
                    pass
            filler.truncate(filler.tell() - spare)

    def make_room(self) -> None:
        """Give them back."""
        self._filler.unlink(missing_ok=True)


def _took(fd: int, size: int) -> bool:
    try:
        return os.write(fd, bytes(size)) > 0
    except OSError:
        return False


@pytest.fixture
def volume(tmp_path: Path) -> Iterator[Volume]:
    path = tmp_path / "volume"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", path], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no file system may be mounted here: {mounted.stderr.strip()}")
    yield Volume(path)
    for pid in embedded_servers(path):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: embedded_servers(path) == [])
    subprocess.run(["umount", "--lazy", path], check=True)


class Embedded(Serving):
    """`hinged serve` with an embedded Valkey."""

    def __init__(self, data_dir: Path, workers: int = 1) -> None:
        super().__init__("", workers, disk_reserve_bytes=_RESERVE)
        del self._environment["HINGED_REDIS_URL"]
        self._environment["HINGED_DATA_DIR"] = str(data_dir)
        self._data_dir = data_dir

    @property
    def valkey(self) -> int:
        """The process of the server."""
        (pid,) = embedded_servers(self._data_dir)
        return pid

    def client(self) -> redis.Redis:
        """Return a client of the server."""
        path = (self._data_dir / "valkey.socket").read_text()
        return redis.Redis(unix_socket_path=path, decode_responses=True)


@pytest.fixture
def service(volume: Volume) -> Iterator[Embedded]:
    serving = Embedded(volume.data)
    serving.start()
    yield serving
    serving.kill()


@pytest.fixture
def drill(service: Embedded, record_property: Callable[[str, object], None]) -> Drill:
    return Drill([service], service.client, record_property)


def test_a_stop_in_order_on_a_full_disk(volume: Volume, service: Embedded, drill: Drill) -> None:
    assert httpx.get(f"{service.url}/readyz").json()["warnings"] == [
        (
            f"The disk of {volume.data} is nearly full: less than 536,870,912 bytes are free. "
            "Make room, or learning will be refused."
        )
    ]
    assert _metric(service, "hinged_disk_writable") == 1
    with drill.load() as load:
        for _ in range(2):
            volume.fill()
            load.until_refused(10)
            _expect_predictions_only(service, drill)
            assert service.stop() == 0
            assert embedded_servers(volume.data) == []
            service.start()
            load.until_refused(10)
            _expect_predictions_only(service, drill)
            volume.make_room()
            recover_s = load.recovered(time.monotonic())
            load.until_more()
    assert load.trouble["503"]
    done = "learning answers 503; SIGTERM, started while full, then there is room; twice"
    drill.judge("embedded: disk full, stopped", done, load, recover_s)


def test_valkey_killed_on_a_full_disk(volume: Volume, service: Embedded, drill: Drill) -> None:
    with drill.load() as load:
        volume.fill()
        load.until_refused(10)
        killed = service.valkey
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: embedded_servers(volume.data) not in ([], [killed]))
        load.until_refused(10)
        os.kill(service.valkey, signal.SIGKILL)
        assert service.stop() == 0
        volume.make_room()
        service.start()
        recover_s = load.recovered(time.monotonic())
        load.until_more()
    done = "learning answers 503; kill -9 of Valkey, twice, and SIGTERM; then there is room"
    drill.judge("embedded: disk full, Valkey killed", done, load, recover_s)


def test_unwritten_events_are_kept(volume: Volume, service: Embedded, drill: Drill) -> None:
    with drill.load() as load:
        _rewrite(service)  # so that a write that ends too early leaves a hole
        valkey = service.valkey
        wide = {"id": "wide", "x": {f"w{i}-{'x' * 200}": 1 for i in range(9_000)}, "y": True}
        load.sent["wide"], load.first_s["wide"] = wide, time.monotonic()

        def learn_wide() -> bool:
            answer = httpx.post(f"{service.url}{drill.path}/learn", json=wide, timeout=10)
            if answer.status_code == 200:
                load.acknowledged["wide"] = answer.json()["position"]
            return answer.status_code == 200

        while True:
            volume.fill(spare=_RESERVE // 2)  # for the events of the others until it comes
            acknowledged = learn_wide()
            if acknowledged or _holds_unwritten(service, 5):
                break
            volume.make_room()  # they filled the disk before it
            load.until_more()
        wait_until(lambda: _holds_unwritten(service))
        assert service.stop() == _UNSAVED
        assert not gone(valkey)
        volume.make_room()
        service.start()
        assert service.valkey == valkey
        if not acknowledged:
            wait_until(learn_wide)
        recover_s = load.recovered(time.monotonic())
        load.until_more()
        os.kill(valkey, signal.SIGKILL)  # its file can be read
        load.until_more()
    done = (
        "an event larger than the reserve, its write fails; SIGTERM: exit code 8, Valkey is left "
        "running; then there is room, started again, kill -9 of Valkey"
    )
    drill.judge("embedded: write failed, stopped", done, load, recover_s)


def _metric(service: Embedded, name: str) -> float:
    for line in httpx.get(f"{service.url}/metrics").text.splitlines():
        if line.startswith(f"{name} "):
            return float(line.split()[1])
    raise AssertionError(f"there is no {name}")


def _holds_unwritten(service: Embedded, within_s: float = 0) -> bool:
    """Return whether Valkey has something that is not written, now or within some seconds."""
    deadline_s = time.monotonic() + within_s
    while _metric(service, "hinged_disk_unwritten_bytes") == 0:
        if time.monotonic() >= deadline_s:
            return False
        time.sleep(0.05)
    return True


def _expect_predictions_only(service: Embedded, drill: Drill) -> None:
    path = f"{service.url}{drill.path}"
    wait_until(lambda: httpx.post(f"{path}/predict", json={"x": {"a": 1}}).status_code == 200)
    # Before that a busy machine may be too slow to answer.
    wait_until(lambda: "is full: learning is refused" in _why_not_ready(service))
    event = {"x": {"a": 1}, "y": True, "id": "refused"}
    wait_until(lambda: _detail(httpx.post(f"{path}/learn", json=event)) == _why_not_ready(service))
    assert _metric(service, "hinged_disk_writable") == 0


def _why_not_ready(service: Embedded) -> str:
    ready = httpx.get(f"{service.url}/readyz", timeout=10)
    assert ready.status_code == 503
    return " ".join(fault["reason"] for fault in ready.json()["errors"])


def _detail(answer: httpx.Response) -> str:
    assert answer.status_code == 503
    return str(answer.json()["detail"])


def _rewrite(service: Embedded) -> None:
    with service.client() as client:
        before = client.info("persistence")["aof_base_size"]
        client.bgrewriteaof()
        wait_until(lambda: client.info("persistence")["aof_base_size"] != before)
        wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"])
