"""Entries of an inbox are learned once, or told why not."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
import redis
from redis.exceptions import NoPermissionError, ResponseError

from tests.ingest.inbox.conftest import BAD, INBOX, Inbox, draw, make
from tests.support.ingest import events, learned, up_to_date
from tests.support.processes import wait_until
from tests.support.service import Service


def test_two_workers_learn_what_a_plain_client_writes(inbox: Inbox) -> None:
    rows, random = events(2_000), draw(1)
    wanted: dict[str, str] = {}

    def produce() -> None:
        with inbox.server.client() as client:
            for number in range(len(rows)):
                again = [random.randrange(number + 1)] if random.random() < 0.05 else []
                for name in (number, *again):
                    client.xadd(INBOX, {"id": f"e{name}", "event": json.dumps(rows[name])})
                if random.random() < 0.02:
                    fields, reason = BAD[random.randrange(len(BAD))]
                    wanted[str(client.xadd(INBOX, fields))] = reason

    url = inbox.server.url
    with Service(url, max_staleness_ms=0) as one, Service(url, max_staleness_ms=0) as two:
        make(one)
        producer = threading.Thread(target=produce)
        producer.start()
        producer.join()
        inbox.wait_until_empty()
        with one.client() as client, two.client() as other:
            client.put("/v1/models/array", json={"learner": {"type": "perceptron"}})
            client.post("/v1/models/array/learn", json=rows).raise_for_status()
            array = client.get("/v1/models/array/weights?top=100").json()
            for worker in (client, other):
                through = worker.get("/v1/models/m/weights?top=100").json()
                assert through["weights"] == array["weights"]
                assert worker.get("/v1/models/m").json()["events"] == len(rows)
    assert inbox.weights() == learned(rows)
    found = inbox.reasons()
    assert found.keys() == wanted.keys()
    assert all(wanted[at] in reason for at, reason in found.items()), found
    with inbox.server.client() as client:
        assert client.hget("hinged:{m}:meta", "dead") == str(len(wanted))


def test_each_fault_is_told_and_what_comes_before_the_model_waits(inbox: Inbox) -> None:
    rows = events(3)
    inbox.add(rows[:1])
    wanted = {inbox.write(fields): reason for fields, reason in BAD}
    long = inbox.write({"event": '{"x":{"a":1},"y":true' + " " * 2**23 + "}"})
    inbox.add(rows[1:], 1)
    inbox.write({"id": "e0", "event": json.dumps(rows[0] | {"id": "e0"})})
    with Service(inbox.server.url) as service:
        make(service)
        inbox.wait_until_empty()
    found = inbox.reasons()
    assert "bytes; at most" in found.pop(long)
    assert all(wanted.pop(at) in reason for at, reason in found.items()), found
    assert not wanted
    assert inbox.weights() == learned(rows)


def test_an_event_of_any_model_of_the_stream_is_taken(inbox: Inbox) -> None:
    with Service(inbox.server.url) as service, service.client() as client:
        make(service, stream="m")
        mixed = {"learner": {"type": "perceptron"}, "pipeline": [{"type": "OneHotEncoder"}]}
        answer = client.put("/v1/models/words", json=mixed | {"stream": "m"})
        assert answer.status_code == 201, answer.text
        inbox.write({"event": '{"x":{"a":1},"y":true}'})
        inbox.write({"event": '{"x":{"a":"text"},"y":true}'})
        bad = inbox.write({"event": '{"x":{"a":[]},"y":true}'})
        inbox.wait_until_empty()
        whole = up_to_date(inbox.server.url, "m")
        assert client.get("/v1/models/m", params=whole).json()["events"] == 1
        assert client.get("/v1/models/words", params=whole).json()["events"] == 2
        assert list(inbox.reasons()) == [bad]


def test_ids_at_the_end_of_all_ids_begin_a_new_inbox(inbox: Inbox) -> None:
    rows = events(6)
    last = f"{2**64 - 1}-{2**64 - 1}"
    with Service(inbox.server.url) as service:
        make(service)
        inbox.add(rows[:2])
        inbox.add(rows[2:3], 2, "99999999999999-5")
        inbox.add(rows[3:4], 3, last)
        with inbox.server.client() as client:
            wait_until(lambda: not client.exists(INBOX), 20)
            assert inbox.offset() in ("0-0/1", "0-0/2")
            inbox.add(rows[4:5], 4)
            inbox.wait_until_empty()
            client.xadd(INBOX, {"event": "1"}, id=last, maxlen=0, approximate=False)
            with pytest.raises(ResponseError):
                inbox.add(rows[5:], 5)
            wait_until(lambda: not client.exists(INBOX), 20)
        inbox.add(rows[5:], 5)
        inbox.wait_until_empty()
    assert inbox.weights() == learned(rows)


def test_a_deleted_inbox_may_count_from_one(inbox: Inbox) -> None:
    rows = events(4)
    with Service(inbox.server.url) as service:
        make(service)
        inbox.add(rows[:2])
        inbox.wait_until_empty()
        with inbox.server.client() as client:
            client.delete(INBOX)
        for number in (2, 3):
            inbox.add(rows[number : number + 1], number, f"{number}-0")
            inbox.wait_until_empty()
        assert inbox.offset() == "3-0/1"
    assert inbox.weights() == learned(rows)


def test_a_key_of_another_type_harms_no_other_stream(inbox: Inbox) -> None:
    with Service(inbox.server.url) as service, service.client() as client:
        make(service)
        client.put("/v1/models/other", json={"learner": {"type": "perceptron"}})
        with inbox.server.client() as meddler:
            meddler.set("hinged:{other}:inbox", "no stream")
        inbox.add(events(5))
        inbox.wait_until_empty()
        assert client.get("/v1/models/other").json()["events"] == 0
    assert inbox.weights() == learned(events(5))


def test_a_model_set_aside_keeps_its_inbox_and_the_last_one_takes_it_along(inbox: Inbox) -> None:
    with Service(inbox.server.url) as service, service.client() as client:
        make(service)
        inbox.add(events(5))
        inbox.wait_until_empty()
    with inbox.server.client() as meddler:
        state = next(iter(meddler.scan_iter("hinged:{m}:model:*:state")))
        meddler.hset(state, "digest", "wrong")
        meddler.xtrim("hinged:{m}:log", maxlen=0, approximate=False)
    with Service(inbox.server.url) as service, service.client() as client:
        assert client.post("/v1/models/m/predict", json={"x": {"a": 1}}).status_code == 503
        inbox.add(events(5), 5)
        with inbox.server.client() as watcher:
            threading.Event().wait(1.5)
            assert watcher.xlen(INBOX) == 5
            assert client.delete("/v1/models/m").status_code == 204
            assert not watcher.exists(INBOX, "hinged:{m}:offsets", "hinged:{m}:dead")


def test_a_producer_can_write_into_inboxes_and_nothing_else(inbox: Inbox) -> None:
    users = (Path(__file__).parents[3] / "deploy" / "users.acl").read_text()
    rule = next(line for line in users.splitlines() if line.startswith("user producer "))
    words = rule.removeprefix("user ").split()
    rows = events(3)
    with Service(inbox.server.url) as service, inbox.server.client() as admin:
        make(service)
        admin.execute_command("ACL", "SETUSER", *words)
        producer = redis.Redis(
            port=inbox.server.port, username="producer", password="PASSWORD", decode_responses=True
        )
        with producer:
            for row in rows:
                producer.xadd(INBOX, {"event": json.dumps(row)})
            inbox.wait_until_empty()
            keys = [str(key) for key in admin.keys("*") if key != INBOX]
            assert "hinged:{m}:log" in keys
            for key in keys:
                with pytest.raises(NoPermissionError):
                    producer.xadd(key, {"events": "[]"}, id=f"{2**64 - 1}-1")
            for command in (
                ("XRANGE", INBOX, "-", "+"),
                ("XTRIM", INBOX, "MAXLEN", "0"),
                ("DEL", INBOX),
                ("KEYS", "*"),
                ("EVAL", "return 1", "0"),
                ("HSET", "hinged:models", "m", "{}"),
                ("FLUSHALL",),
            ):
                with pytest.raises(NoPermissionError):
                    producer.execute_command(*command)  # type: ignore[no-untyped-call]
    assert inbox.weights() == learned(rows)


def test_refused_entries_are_counted_by_reason_in_the_metrics(inbox: Inbox) -> None:
    rows = events(2)
    with Service(inbox.server.url, metrics_models=10) as service:
        make(service)
        inbox.add([*rows, *rows[1:]])  # the last one has an id of its own
        inbox.add(rows[:1])
        for fields, _ in BAD:
            inbox.write(fields)
        inbox.wait_until_empty()
        with service.client() as client:
            text = client.get("/metrics").text
            doors = client.get("/v1/models/m").json()["doors"]
    counts = {
        line.partition('reason="')[2].partition('"')[0]: float(line.rpartition(" ")[2])
        for line in text.splitlines()
        if line.startswith("hinged_rejected_total{")
    }
    assert counts == {"fold": 0, "invalid": 7, "unknown": 1, "conflict": 1}
    assert 'hinged_duplicates_total{door="inbox",model="m"} 1.0' in text
    assert 'hinged_duplicates_total{model="m"} 0.0' in text
    assert doors == {"inbox": {"conflict": 1, "duplicates": 1, "invalid": 7, "unknown": 1}}
