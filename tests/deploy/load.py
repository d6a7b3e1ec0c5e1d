"""Load after which every metric of a service has something to tell."""

from __future__ import annotations

import json

import httpx

from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

MODEL = "/v1/models/spam"


def everything_happens(client: httpx.Client, redis: RedisServer, run: str = "") -> None:
    """Have a model learn, predict, refuse, repeat, wait for labels and lose its Redis.

    `run` makes the ids new.
    """
    spec = {"learner": {"type": "perceptron"}, "late_labels": {"wait_s": 60}}
    assert client.put(MODEL, json=spec).status_code in {200, 201}
    _calls(client, redis, f"{run}before")
    redis.stop()
    assert client.get("/readyz").status_code == 503
    redis.start()
    wait_until(lambda: client.get("/readyz").status_code == 200)
    _calls(client, redis, f"{run}after")


def _calls(client: httpx.Client, redis: RedisServer, run: str) -> None:
    for number in range(20):
        event = {"x": {"a": 1.0, "b": float(number)}, "y": number % 2 == 0}
        learned = client.post(f"{MODEL}/learn", json=event | {"id": f"{run}-{number}"})
        assert learned.status_code == 200
    assert client.post(f"{MODEL}/learn", json=event | {"id": f"{run}-19"}).json()["duplicate"]
    assert client.post(f"{MODEL}/learn", json={"x": {"a": "text"}, "y": True}).status_code == 422
    with redis.client() as producer:
        for words in ({}, {"id": f"{run}-19", "event": json.dumps(event)}):
            producer.xadd("hinged:{spam}:inbox", {"else": "1"} | words)
        wait_until(lambda: not producer.xlen("hinged:{spam}:inbox"))
    asked = {"x": {"a": 1.0, "b": 2.0}, "id": f"{run}-asked"}
    assert client.post(f"{MODEL}/predict", json=asked).status_code == 200
    labelled = client.post(f"{MODEL}/learn", json={"id": f"{run}-asked", "y": True})
    assert labelled.status_code == 200
