"""Damage of a log as it is told and repaired over HTTP."""

import json
from typing import Any

import httpx
import pytest
import redis

from hinged_service.client import AsyncClient, Client, Conflict, NotFound, Retries
from hinged_service.store.keys import StreamKeys
from tests.cli.conftest import run_hinged
from tests.support.checks import check_problem
from tests.support.plain_fold import model_uid
from tests.support.service import Service

PERCEPTRON = {"learner": {"type": "perceptron"}}
EVENT = {"x": {"a": 1.0}, "y": True}


def _learn(client: httpx.Client, times: int = 1) -> None:
    for _ in range(times):
        client.post("/v1/models/m/learn", json=EVENT).raise_for_status()


def test_a_foreign_entry_is_told_and_removed(redis_url: str, db: redis.Redis) -> None:
    keys = StreamKeys("m")
    fresh: dict[str, Any] = {"max_staleness_ms": 0}
    with (
        Service(redis_url, **fresh) as first,
        Service(redis_url, **fresh) as second,
        first.client() as one,
        second.client() as two,
    ):
        one.put("/v1/models/m", json=PERCEPTRON).raise_for_status()
        _learn(one)
        assert two.get("/v1/models/m").json()["damaged"] == []
        entry = db.xadd(keys.log, {"events": json.dumps([EVENT]), "skip": "[]"})
        _learn(one)
        info = two.get("/v1/models/m").json()
        assert (info["events"], [part["where"] for part in info["damaged"]]) == (2, [entry])
        assert one.get("/v1/models/m").json()["damaged"] == info["damaged"]
        assert "\nhinged_foreign_entries_total 1.0\n" in two.get("/metrics").text
        recent = one.get("/v1/models/m/recent")
        assert (recent.status_code, len(recent.json())) == (200, 2)
        for client, removed in ((one, [entry]), (two, [])):
            done = client.post("/v1/models/m/repair")
            assert done.json() == {"removed": removed, "passed_over": [], "records": []}
            assert client.get("/v1/models/m").json()["damaged"] == []
        check_problem(one.post("/v1/models/none/repair"), 404)


def test_lost_content_is_told_and_passed_over(redis_url: str, db: redis.Redis) -> None:
    keys = StreamKeys("m")
    with Service(redis_url) as first, first.client() as one:
        one.put("/v1/models/m", json=PERCEPTRON).raise_for_status()
        with Service(redis_url) as second, second.client() as two:
            _learn(two, 3)
            log: Any = db.xrange(keys.log)
            saved: Any = db.hgetall(keys.followers)
            db.delete(keys.log)
            for number, (entry_id, fields) in enumerate(log):
                spoiled = {"events": json.dumps([EVENT | {"y": False}])} if number == 2 else {}
                db.xadd(keys.log, fields | spoiled, id=entry_id)
            lost = log[2][0]
            problem = check_problem(one.post("/v1/models/m/learn", json=EVENT), 503)
            assert lost in problem["errors"][0]["reason"]
            assert problem["errors"] == check_problem(one.get("/v1/models/m"), 503)["errors"]
            assert db.hgetall(keys.followers) == saved
            assert "\nhinged_models_set_aside 1.0\n" in one.get("/metrics").text
            done = one.post("/v1/models/m/repair").json()
            assert done == {"removed": [], "passed_over": [lost], "records": []}
            _learn(one)
            for client in (one, two):
                info = client.get("/v1/models/m", params={"at_least": _end(db)}).json()
                assert info["events"] == 3  # of four, one is lost
                assert [part["where"] for part in info["damaged"]] == [lost]


def _end(db: redis.Redis) -> str:
    return ".".join(str(part) for part in db.hmget(StreamKeys("m").meta, "last", "chain"))


async def test_the_client_and_the_command_line_go_on_from_a_checkpoint(
    redis_url: str, db: redis.Redis
) -> None:
    names = ["m", "n", "o"]
    with Service(redis_url, retention_bytes=0) as first, first.client() as one:
        for name in names:
            one.put(f"/v1/models/{name}", json=PERCEPTRON).raise_for_status()
            one.post(f"/v1/models/{name}/learn", json=EVENT).raise_for_status()
            one.post(f"/v1/models/{name}/checkpoints", json={"name": "kept"}).raise_for_status()
        with Client(first.url) as api, pytest.raises(Conflict, match="/restore"):
            api.repair("m", "kept")  # it can be served
        for name in names:
            one.post(f"/v1/models/{name}/learn", json=EVENT | {"y": False}).raise_for_status()
    for name in names:
        db.delete(StreamKeys(name).model(model_uid(db, name)).state)
    with Service(redis_url) as second, second.client() as one:
        with Client(second.url, retries=Retries(deadline_s=0)) as api:
            info = one.post("/v1/models/m/predict", json={"x": {}})
            assert "/v1/models/m/repair?checkpoint=" in check_problem(info, 503)["detail"]
            with pytest.raises(NotFound):
                api.repair("m", "none")
            done = api.repair("m", "kept")
            assert (done.removed, done.passed_over) == ((), ())
        async with AsyncClient(second.url) as also:
            assert await also.repair("n", checkpoint="kept") == done
        repaired = run_hinged("repair", "o", "--checkpoint", "kept", HINGED_URL=second.url)
        assert repaired.out == "The model o continues from the checkpoint kept.\n", repaired
        for name in names:
            info = one.get(f"/v1/models/{name}").json()
            assert (info["events"], info["mistakes"]) == (1, 1)
            one.post(f"/v1/models/{name}/learn", json=EVENT).raise_for_status()
            assert one.get(f"/v1/models/{name}").json()["events"] == 2
