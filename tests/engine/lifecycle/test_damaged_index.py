"""Damaged index entries: they hold up no other model, and PUT or DELETE mends them."""

import json
from collections.abc import Iterator

import httpx
import pytest
import redis

from hinged_service.store.keys import StreamKeys
from tests.support.checks import check_problem
from tests.support.processes import wait_until
from tests.support.service import Service

DAMAGE = [b"\xff\xfe", b"", b"{", b"7", b'{"uid":7}', b"[" * 5000, b"\x00" * 10]
PERCEPTRON = {"learner": {"type": "perceptron"}}
EVENTS = [{"x": {"a": 1.0}, "y": True}, {"x": {"a": 2.0}, "y": False}]


@pytest.fixture
def service(redis_url: str) -> Iterator[Service]:
    with Service(redis_url, housekeeping_ms=20) as running:
        yield running


@pytest.fixture
def client(service: Service) -> Iterator[httpx.Client]:
    with service.client() as made:
        yield made


@pytest.fixture
def db(redis_url: str) -> redis.Redis:
    return redis.Redis.from_url(redis_url)


@pytest.mark.parametrize("field", [b"junk", b"j\xff\xfe"])
def test_a_damaged_entry_holds_up_no_other_model(
    client: httpx.Client, db: redis.Redis, field: bytes
) -> None:
    db.hset("hinged:models", field, b"\xff\xfe")
    client.put("/v1/models/m", json=PERCEPTRON).raise_for_status()
    inbox = StreamKeys("m").inbox
    for number in range(3):
        db.xadd(inbox, {"id": f"e{number}", "event": json.dumps(EVENTS[0])})
    wait_until(lambda: client.get("/v1/models/m").json()["events"] == 3)
    assert [one["name"] for one in client.get("/v1/models").json()] == ["m"]
    assert client.get("/v1/streams").status_code == 200
    assert client.get("/v1/aliases").status_code == 200
    assert client.get("/metrics").status_code == 200
    # A sweep finishes a deletion that another worker began, beside the damaged entry.
    entry = json.loads(db.hget("hinged:models", "m") or b"")
    db.hset("hinged:models", "m", json.dumps(entry | {"deleting": True}))
    wait_until(lambda: not db.hexists("hinged:models", "m"))
    assert db.hexists("hinged:models", field)


@pytest.mark.parametrize("stored", DAMAGE)
def test_a_damaged_entry_is_named_and_delete_removes_its_model(
    client: httpx.Client, db: redis.Redis, stored: bytes
) -> None:
    client.put("/v1/models/m", json=PERCEPTRON).raise_for_status()
    client.put("/v1/models/other", json=PERCEPTRON).raise_for_status()
    client.post("/v1/models/m/learn", json=EVENTS).raise_for_status()
    db.hset("hinged:models", "n", stored)
    problem = check_problem(client.get("/v1/models/n"), 503)
    assert problem["errors"][0]["field"] == "index"
    assert client.delete("/v1/models/n").status_code == 204
    assert client.get("/v1/models/n").status_code == 404
    db.hset("hinged:models", "m", stored)
    assert client.delete("/v1/models/m").status_code == 204
    assert client.get("/v1/models/m").status_code == 404
    assert [key for key in db.scan_iter("hinged:{m}:*") if db.ttl(key) == -1] == []
    assert client.get("/v1/models/other").status_code == 200


@pytest.mark.parametrize("stored", [b"\xff\xfe", b"{"])
@pytest.mark.parametrize("saved", [False, True])
def test_put_with_its_spec_takes_a_model_over(
    redis_url: str, db: redis.Redis, stored: bytes, saved: bool
) -> None:
    with Service(redis_url) as service, service.client() as client:
        client.put("/v1/models/m", json=PERCEPTRON).raise_for_status()
        client.post("/v1/models/m/learn", json=EVENTS).raise_for_status()
        weights = client.get("/v1/models/m/weights").json()
        if not saved:
            with Service(redis_url) as second, second.client() as other:
                _takes_over(db, stored, other, weights)
            return
    with Service(redis_url) as service, service.client() as client:  # the stop saved it
        _takes_over(db, stored, client, weights)


def _takes_over(db: redis.Redis, stored: bytes, client: httpx.Client, weights: object) -> None:
    db.hset("hinged:models", "m", stored)
    assert client.get("/v1/models/m").status_code == 503
    assert client.put("/v1/models/m", json=PERCEPTRON).status_code == 200
    assert client.get("/v1/models/m/weights").json() == weights
    assert client.post("/v1/models/m/learn", json=EVENTS).status_code == 200
    assert client.get("/v1/models/m").json()["events"] == 4


def test_put_with_another_spec_changes_nothing(redis_url: str, db: redis.Redis) -> None:
    with Service(redis_url) as service, service.client() as client:
        client.put("/v1/models/m", json=PERCEPTRON).raise_for_status()
        client.post("/v1/models/m/learn", json=EVENTS).raise_for_status()
    with Service(redis_url) as service, service.client() as client:
        db.hset("hinged:models", "m", b"\xff")
        arow = {"learner": {"type": "arow"}}
        check_problem(client.put("/v1/models/m", json=arow), 409)
        assert db.hget("hinged:models", "m") == b"\xff"
        # An entry of a newer version of the service is not overwritten by PUT.
        newer = json.dumps({"uid": "u", "stream": "m", "spec": {"new": 1}}).encode()
        db.hset("hinged:models", "m", newer)
        check_problem(client.put("/v1/models/m", json=PERCEPTRON), 503)
        assert db.hget("hinged:models", "m") == newer


@pytest.mark.parametrize("part", ["meta", "aliases", "checkpoints"])
def test_a_damaged_field_of_a_stream_is_no_trouble_of_its_models(
    client: httpx.Client, db: redis.Redis, part: str
) -> None:
    client.put("/v1/models/m", json=PERCEPTRON).raise_for_status()
    for field, value in ((b"junk\xff", b"1"), (b"j\xfe", b"\xff")):
        db.hset(getattr(StreamKeys("m"), part), field, value)
    client.post("/v1/models/m/learn", json=EVENTS).raise_for_status()
    for path in ("/v1/models/m", "/v1/streams/m", "/v1/models/m/recent", "/metrics"):
        assert client.get(path).status_code == 200, path
    assert client.get("/v1/models/m").json()["events"] == 2
    client.post("/v1/models/m/repair").raise_for_status()
    client.put("/v1/aliases/live", json={"model": "m"}).raise_for_status()
    client.delete("/v1/aliases/live").raise_for_status()
    assert client.delete("/v1/models/m").status_code == 204
    assert db.keys("hinged:{m}:*") == []


@pytest.mark.parametrize("stored", [*DAMAGE, None])
def test_a_repair_puts_a_damaged_entry_back_as_the_stream_notes_it(
    client: httpx.Client, db: redis.Redis, stored: bytes | None
) -> None:
    client.put("/v1/models/m", json={**PERCEPTRON, "stream": "s"}).raise_for_status()
    client.put("/v1/models/other", json={**PERCEPTRON, "stream": "s"}).raise_for_status()
    client.post("/v1/models/m/learn", json=EVENTS).raise_for_status()
    before, entry = client.get("/v1/models/m").json(), db.hget("hinged:models", "m")
    if stored is None:  # what is left of it tells which model it was
        stored = json.dumps(json.loads(entry or b"") | {"spec": 7}).encode()
    db.hset("hinged:models", "m", stored)
    assert client.post("/v1/models/m/repair").json() == {
        "removed": [],
        "passed_over": [],
        "records": [],
    }
    assert db.hget("hinged:models", "m") == entry
    info = client.get("/v1/models/m").json()
    assert [info[part] for part in ("base", "events")] == [before["base"], 2]
    db.hset("hinged:models", "junk", b"{")
    check_problem(client.post("/v1/models/junk/repair"), 503)


def test_a_damaged_checkpoint_is_named_and_deleted_and_hides_no_other(
    client: httpx.Client, db: redis.Redis
) -> None:
    client.put("/v1/models/m", json=PERCEPTRON).raise_for_status()
    client.post("/v1/models/m/learn", json=EVENTS).raise_for_status()
    bad, good = (
        client.post("/v1/models/m/checkpoints", json={"name": name}).json()["uid"]
        for name in ("bad", "good")
    )
    db.hset(StreamKeys("m").checkpoints, bad, b"\xff{")
    for path in ("checkpoints", "checkpoints/good/export", "bound"):
        assert client.get(f"/v1/models/m/{path}").status_code == 200, path
    assert [one["uid"] for one in client.get("/v1/models/m/checkpoints").json()] == [good]
    assert [one["where"] for one in client.get("/v1/models/m").json()["damaged"]] == [
        f"checkpoint {bad}"
    ]
    check_problem(client.get("/v1/models/m/checkpoints/bad/export"), 503)
    assert client.delete(f"/v1/models/m/checkpoints/{bad}").status_code == 204
    assert client.get("/v1/models/m").json()["damaged"] == []
    assert set(db.hkeys(StreamKeys("m").checkpoints)) == {good.encode(), b"name:good"}
    assert db.keys(f"hinged:{{m}}:checkpoint:{bad}:*") == []


def test_a_model_is_deleted_although_the_checkpoint_it_began_with_is_damaged(
    client: httpx.Client, db: redis.Redis
) -> None:
    client.put("/v1/models/m", json=PERCEPTRON).raise_for_status()
    client.post("/v1/models/m/learn", json=EVENTS).raise_for_status()
    client.put("/v1/models/n", json={**PERCEPTRON, "start": {"model": "m"}}).raise_for_status()
    [uid] = db.hkeys(StreamKeys("m").checkpoints)
    db.hset(StreamKeys("m").checkpoints, uid, b"\xff")
    assert client.delete("/v1/models/n").status_code == 204
    assert db.hkeys(StreamKeys("m").checkpoints) == []


@pytest.mark.parametrize("offset", [b"\xff\xfe", b"junk", b"1-"])
def test_a_damaged_offset_of_an_inbox_is_named_and_repaired(
    client: httpx.Client, db: redis.Redis, offset: bytes
) -> None:
    keys = StreamKeys("m")
    client.put("/v1/models/m", json=PERCEPTRON).raise_for_status()
    client.put("/v1/models/other", json=PERCEPTRON).raise_for_status()
    db.hset(keys.offsets, "inbox", offset)
    for stream in (keys, StreamKeys("other")):
        db.xadd(stream.inbox, {"id": "e", "event": json.dumps(EVENTS[0])})
    wait_until(lambda: client.get("/v1/models/other").json()["events"] == 1)
    wait_until(lambda: client.get("/v1/models/m").json()["damaged"] != [])
    info = client.get("/v1/models/m").json()
    assert (info["events"], [d["where"] for d in info["damaged"]]) == (0, ["offset of inbox"])
    assert client.post("/v1/models/m/repair").json()["records"] == ["offset of inbox"]
    wait_until(lambda: client.get("/v1/models/m").json()["events"] == 1)
    assert client.get("/v1/models/m").json()["damaged"] == []


def test_a_damaged_offset_of_a_source_is_named_and_repaired(
    client: httpx.Client, db: redis.Redis
) -> None:
    keys = StreamKeys("m")
    client.put("/v1/models/m", json=PERCEPTRON).raise_for_status()

    def send() -> httpx.Response:
        lines = "".join(f"{json.dumps(event)}\n" for event in EVENTS)
        headers = {"content-type": "application/x-ndjson"}
        return client.post("/v1/models/m/learn?source=s", content=lines, headers=headers)

    assert send().status_code == 200
    db.hset(keys.offsets, "ndjson:s", b"\xff")
    assert "'ndjson:s'" in send().text
    info = client.get("/v1/models/m").json()
    assert (info["events"], [d["where"] for d in info["damaged"]]) == (
        len(EVENTS),
        ["offset of ndjson:s"],
    )
    assert client.post("/v1/models/m/repair").json()["records"] == ["offset of ndjson:s"]
    assert send().status_code == 200
    info = client.get("/v1/models/m").json()
    assert (info["events"], info["damaged"]) == (2 * len(EVENTS), [])
