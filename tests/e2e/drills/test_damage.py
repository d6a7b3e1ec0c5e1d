"""Values in Redis are damaged or lost under load: no other model waits; the API repairs them."""

from __future__ import annotations

import time

import httpx
import pytest

from hinged_service.store.keys import INDEX, StreamKeys
from tests.e2e.drills.drill import Drill
from tests.support.processes import wait_until

pytestmark = pytest.mark.slow

_JUNK = b"\xff\xfe"
_WAITING = 20


def test_damaged_values_stop_no_other_model(drill: Drill) -> None:
    """Damage the index, the records of all producers, and predictions that wait for labels."""
    keys, url = StreamKeys(drill.model), drill.workers[0].url
    with drill.load() as load, drill.redis_client() as client:
        waiting = [{"x": {"a": 1}, "id": f"waits{n}"} for n in range(_WAITING)]
        httpx.post(f"{url}{drill.path}/predict", json=waiting, timeout=30).raise_for_status()
        client.hset(INDEX, "junk", _JUNK)
        for producer in client.hkeys(keys.producers):
            client.hset(keys.producers, producer, _JUNK)
        for slot in keys.pending:
            for waits in client.hkeys(slot):
                client.hset(slot, waits, _JUNK)
        ended_s = time.monotonic()
        load.until_more()
        recover_s = load.recovered(ended_s)
        for worker in drill.workers:
            listed = httpx.get(f"{worker.url}/v1/models", timeout=30)
            assert drill.model in [model["name"] for model in listed.raise_for_status().json()]
        labels = [{"id": one["id"], "y": True} for one in waiting]
        refused = httpx.post(f"{url}{drill.path}/learn", json=labels[0], timeout=30)
        assert (refused.status_code, "damaged" in refused.text) == (409, True)
        assert httpx.delete(f"{url}/v1/models/junk", timeout=30).status_code == 204
        assert client.hget(INDEX, "junk") is None
    done = (
        f"index entry, {_WAITING} waiting predictions and all records of producers made unreadable"
    )
    drill.judge("damaged values", done, load, recover_s)


def test_a_model_that_the_index_lost_is_found_again(drill: Drill) -> None:
    url = f"{drill.workers[0].url}{drill.path}"
    with drill.load() as load, drill.redis_client() as client:
        entry = client.hget(INDEX, drill.model)
        client.hdel(INDEX, drill.model)
        ended_s = time.monotonic()
        load.until_more()
        spec = {"learner": {"type": "perceptron"}}

        def is_made() -> bool:
            return httpx.put(url, json=spec, timeout=30).status_code == 200

        wait_until(is_made)
        assert client.hget(INDEX, drill.model) == entry
        load.until_more()
        recover_s = load.recovered(ended_s)
    drill.judge("index entry lost", "HDEL of the model; PUT finds it again", load, recover_s)
