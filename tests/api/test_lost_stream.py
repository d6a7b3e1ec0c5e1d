"""Redis lost the log or the meta of a stream: reported, and never begun again silently."""

from collections.abc import Callable

import httpx
import pytest
import redis

from tests.api.test_error_replies import EVENT, QUICK, SPEC
from tests.support.checks import check_problem
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.running import serving

MODEL = "/v1/models/m"
LONG_TIMEOUTS = QUICK | {"append_timeout_ms": 2_000}


def refusal(call: Callable[[], httpx.Response]) -> str:
    """Return why a call is refused, once Redis has answered in time on a busy machine."""
    while True:
        detail: str = check_problem(call(), 503)["detail"]
        if not detail.startswith("Redis does not answer"):
            return detail


@pytest.mark.parametrize("part", ["log", "meta"])
@pytest.mark.parametrize("loaded", [True, False])
def test_a_lost_part_of_a_stream(
    own_server: RedisServer,
    own_db: redis.Redis,
    caplog: pytest.LogCaptureFixture,
    part: str,
    loaded: bool,
) -> None:
    key = f"hinged:{{m}}:{part}"
    with serving(own_server.url, **LONG_TIMEOUTS) as client:
        client.put(MODEL, json=SPEC)
        client.put("/v1/models/n", json=SPEC)
        client.post(f"{MODEL}/learn", json=EVENT)
        if loaded:
            own_db.delete(key)
            answer = client.post(f"{MODEL}/predict", json={"x": {"a": 1}})
            assert answer.status_code == 200
            assert answer.json()["score"] == 2.0, "from memory"
            late = {"id": "p", "x": {"a": 1}}
            if part == "meta":
                detail = refusal(lambda: client.post(f"{MODEL}/predict", json=late))
                assert "Redis lost the meta" in detail
            else:
                client.post(f"{MODEL}/predict", json=late)
            detail = refusal(lambda: client.post(f"{MODEL}/learn", json=EVENT))
            assert f"Redis lost the {part}" in detail
            assert f"Redis lost the {part}" in refusal(lambda: client.post(f"{MODEL}/reset"))
    if not loaded:
        own_db.delete(key)
    with serving(own_server.url, **LONG_TIMEOUTS) as client:
        detail = refusal(lambda: client.post(f"{MODEL}/learn", json=EVENT))
        assert f"Redis lost the {part}" in detail
        beside = SPEC | {"stream": "m"}
        refused = client.put("/v1/models/beside", json=beside)
        assert refused.status_code in (409, 503), "no other model begins the stream again"
        assert client.post("/v1/models/n/learn", json=EVENT).status_code == 200
        assert client.get("/readyz").status_code == 200
        assert not own_db.exists(key)
        assert f"lost the {part} of the stream that has hinged:{{m}}:meta" in caplog.text
        client.delete("/v1/models/beside")
        assert client.delete(MODEL).status_code == 204
        assert list(own_db.scan_iter("hinged:{m}:*")) == []
        assert client.put(MODEL, json=SPEC).status_code == 201
        wait_until(lambda: client.post(f"{MODEL}/learn", json=EVENT).status_code == 200)
