"""Labels count once through losses, kills and stops."""

import json
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from tests.engine.delayed_labels.support import Face, agrees_with_its_log, faults, witnessed
from tests.support.forked_worker import ForkedWorker
from tests.support.processes import wait_until
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.running import client_of, serving
from tests.support.service import Service

X = {"f": 1.0}
QUICK: dict[str, Any] = {"housekeeping_ms": 50, "max_staleness_ms": 0}


def log_ids(server: RedisServer, stream: str) -> list[str]:
    """Return the ids of all events that count, in their order."""
    with server.client() as client:
        found: Any = client.xrange(f"hinged:{{{stream}}}:log")
    ids = []
    for _, fields in found:
        if "events" in fields:
            skip = set(json.loads(fields["skip"]))
            events = json.loads(fields["events"])
            ids += [event["id"] for i, event in enumerate(events) if i not in skip]
    return ids


def test_lost_replies_of_predictions_and_labels(
    own_server: RedisServer, own_db: redis.Redis, proxy: Proxy
) -> None:
    lossy = Service(proxy.url, **QUICK | {"housekeeping_ms": 10**9})
    with lossy, lossy.client() as client:
        face = Face("m", client)
        face.create({"late_labels": {"early": True}})
        face.predict({"id": "warm", "x": X})
        face.learn({"id": "warm", "y": True})
        for i in range(20):
            proxy.drop_replies = 1
            assert face.predict({"id": f"a{i}", "x": X})[0] == 200
            proxy.drop_replies = 1
            status, learned = face.learn({"id": f"a{i}", "y": i % 2 == 0})
            assert (status, learned["duplicate"]) == (200, False)
            proxy.drop_replies = 1
            assert face.learn({"id": f"e{i}", "y": True})[0] == 200  # early
            proxy.drop_replies = 1
            assert face.predict({"id": f"e{i}", "x": X})[0] == 200
            proxy.drop_replies = 1
            assert faults(face.learn({"id": f"a{i}", "y": i % 2 == 1})) == (409, ["id"])
        assert proxy.dropped >= 80
        proxy.drop_replies = 0
        assert face.counts("predicted", "joined", "waiting", "early") == (41, 41, 0, 0)
        assert face.counts("conflicts", "duplicates", "unknown", "late") == (20, 0, 0, 0)
        assert sorted(log_ids(own_server, "m")) == sorted(
            ["warm", *(f"{kind}{i}" for i in range(20) for kind in "ae")]
        )
        agrees_with_its_log(own_db, face)


def test_lost_replies_of_retirement(
    own_server: RedisServer, own_db: redis.Redis, proxy: Proxy
) -> None:
    with serving(proxy.url, **QUICK) as client:
        face = Face("m", client)
        face.create({"late_labels": {"wait_s": 1, "default_label": True}})
        for i in range(3):
            face.predict(*({"id": f"p{1000 * i + k}", "x": X} for k in range(1000)))

        def some_more_lost() -> bool:
            proxy.drop_replies = 1
            return bool(own_db.hget("hinged:{m}:meta", "labels_defaulted") == "3000")

        wait_until(some_more_lost, 30)
        proxy.drop_replies = 0
        time.sleep(0.5)
        assert proxy.dropped > 3
        assert sorted(log_ids(own_server, "m")) == sorted(f"p{i}" for i in range(3000))
        wait_until(lambda: face.infos()[0]["events"] == 3000)
        assert face.counts("defaulted", "waiting", "expired", "served") == (3000, 0, 0, 3000)
        agrees_with_its_log(own_db, face)


def test_due_while_redis_was_away_and_after_a_restart_in_mid_retirement(
    own_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server comes back with another order of its hashes, in the midst of one slot."""
    with (
        Service(own_server.url, **QUICK) as one,
        Service(own_server.url, **QUICK) as two,
        one.client() as first,
        two.client() as second,
    ):
        face = Face("m", first, second)
        face.create({"late_labels": {"wait_s": 2, "default_label": True}})
        face.predict(*({"id": f"p{i}", "x": {"f": i / 7}} for i in range(4000)))
        own_server.stop()
        time.sleep(3)
        monkeypatch.setattr("hinged_service.store.pending_predictions._MOST_TURNS", 1)
        for _ in range(4):
            own_server.start()
            time.sleep(0.15)
            own_server.stop()
        own_server.start()
        with own_server.client() as redis:
            wait_until(lambda: redis.hget("hinged:{m}:meta", "labels_defaulted") == "4000", 30)
            wait_until(lambda: redis.hget("hinged:{m}:meta", "retiring") is None)
        assert sorted(log_ids(own_server, "m")) == sorted(f"p{i}" for i in range(4000))
        assert face.counts("predicted", "waiting", "expired", "joined") == (4000, 0, 0, 0)
        wait_until(lambda: [info["events"] for info in face.infos()] == [4000, 4000])
        with own_server.client() as redis:
            agrees_with_its_log(redis, face)


def test_a_prediction_kept_while_old_ones_are_retired_waits_its_time(
    own_server: RedisServer,
) -> None:
    idle = QUICK | {"housekeeping_ms": 10**9}
    with serving(own_server.url, **idle) as client:
        face = Face("m", client)
        face.create({"late_labels": {"wait_s": 3, "default_label": False}})
        face.predict({"id": "old", "x": X})
        time.sleep(7)
        face.predict({"id": "new", "x": X})
        with serving(own_server.url, **QUICK) as other:
            both = Face("m", client, other)
            other.get("/v1/models/m")
            wait_until(lambda: both.counts("defaulted") == (1,))
            time.sleep(0.5)
            assert both.counts("waiting", "defaulted") == (1, 1)
            status, learned = both.learn({"id": "new", "y": True})
            assert (status, learned["duplicate"]) == (200, False)


def test_after_an_outage_a_label_is_too_late(own_server: RedisServer) -> None:
    with serving(own_server.url, **QUICK) as client:
        face = Face("m", client)
        face.create({"late_labels": {"wait_s": 3}})
        face.predict({"id": "a", "x": X}, {"id": "b", "x": X})
        face.learn({"id": "b", "y": True})
        own_server.stop()
        time.sleep(8)
        info = client.get("/v1/models/m")
        assert info.status_code == 200, "what is known is told without Redis"
        own_server.start()
        wait_until(lambda: client.get("/readyz").status_code == 200)
        wait_until(lambda: face.counts("expired") == (1,))
        assert face.learn({"id": "a", "y": True})[0] == 410
        assert face.learn({"id": "b", "y": True})[1]["duplicate"] is True
        assert face.learn({"id": "c", "y": True})[0] == 404
        assert face.counts("expired", "joined", "waiting") == (1, 1, 0)


def test_a_clock_set_back_holds_nothing_for_ever(
    own_server: RedisServer, own_db: redis.Redis
) -> None:
    """Set a clock back by a year: the ring began in a time that is the future now."""
    with serving(own_server.url, **QUICK) as client:
        face = Face("m", client)
        face.create({"late_labels": {"wait_s": 1}})
        face.predict({"id": "a", "x": X})
        own_db.hincrby("hinged:{m}:meta", "slot_start", 365 * 86_400_000)
        wait_until(lambda: face.counts("expired", "waiting") == (1, 0))


def test_a_worker_is_killed_and_the_account_goes_on(
    own_server: RedisServer, own_db: redis.Redis
) -> None:
    workers = [ForkedWorker(own_server.url, snapshot_every_ms=100, **QUICK) for _ in range(2)]
    clients = [client_of(worker) for worker in workers]
    for worker in workers:
        worker.start()
    try:
        face = Face("m", clients[0])
        face.create({"late_labels": {}})
        answered: list[str] = []

        def label_all() -> None:
            for i in range(400):
                try:
                    if face.predict({"id": f"p{i}", "x": {"f": i % 5}})[0] == 200:
                        answered.append(f"p{i}")
                        face.learn({"id": f"p{i}", "y": i % 3 == 0})
                except httpx.HTTPError:
                    return

        thread = threading.Thread(target=label_all)
        thread.start()
        wait_until(lambda: len(answered) > 100)
        workers[0].kill()
        thread.join(30)
        rest = Face("m", clients[1])
        for name in answered:
            status, _ = rest.learn({"id": name, "y": int(name[1:]) % 3 == 0})
            assert status == 200, name
        ids = log_ids(own_server, "m")
        assert sorted(ids) == sorted(answered)
        predicted, waiting, joined = rest.counts("predicted", "waiting", "joined")
        assert joined == len(answered)
        assert predicted == joined + waiting
        assert waiting <= 1  # the one whose answer got lost
        workers[0].start()
        both = Face(
            "m", httpx.Client(base_url=workers[0].url, timeout=30, verify=False), clients[1]
        )
        agrees_with_its_log(own_db, both)
        both.clients[0].close()
        workers[1].stop()
        workers[1].start()
        again = Face("m", httpx.Client(base_url=workers[1].url, timeout=30, verify=False))
        agrees_with_its_log(own_db, again)
        again.clients[0].close()
    finally:
        for worker in workers:
            worker.kill()
        for client in clients:
            client.close()


def test_metrics_and_drift_see_late_labels(
    own_server: RedisServer, own_db: redis.Redis, tmp_path: Path
) -> None:
    spec = {"metrics": ["accuracy"], "drift": {"detector": {"type": "ADWIN"}}, "late_labels": {}}
    with serving(own_server.url, **QUICK) as client:
        late, whole = Face("late", client), Face("whole", client)
        for face in (late, whole):
            face.create(spec)
        rows = [({"f": float(i % 7), "g": -1.0}, (i % 7 > 3) == (i < 600)) for i in range(1200)]
        for start in range(0, 1200, 100):
            part = range(start, start + 100)
            late.predict(*({"id": f"{i}", "x": rows[i][0]} for i in part))
            late.learn(*({"id": f"{i}", "y": rows[i][1]} for i in part))
            whole.learn(*({"id": f"{i}", "x": rows[i][0], "y": rows[i][1]} for i in part))
        one, two = late.infos()[0], whole.infos()[0]
        assert one["drifts"] == two["drifts"] > 0
        for name in ("metrics", "events", "mistakes", "updates", "hinge_loss", "radius"):
            assert one[name] == two[name]
        weights, account, _ = witnessed(own_db, "late")
        assert one["label_counts"]["served_mistakes"] == account.served_mistakes
        assert weights
