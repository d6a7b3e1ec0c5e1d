"""Memory of Redis is full: what frees some is carried out, what needs more is refused."""

from typing import Any

import pytest
import redis

from tests.support.checks import check_problem
from tests.support.redis_server import RedisServer, server_binaries
from tests.support.running import serving

SPEC = {"learner": {"type": "perceptron"}}
EVENT: dict[str, Any] = {"x": {"a": 1}, "y": True}


@pytest.mark.parametrize("kind", list(server_binaries()))
def test_models_aliases_and_checkpoints_can_be_deleted(kind: str, tmp_path: Any) -> None:
    server = RedisServer(tmp_path / "redis", server_binaries()[kind])
    with (
        server,
        serving(server.url, append_timeout_ms=200) as client,
        server.client() as store,
    ):
        for name in ("a", "b", "c"):
            client.put(f"/v1/models/{name}", json=SPEC)
            client.post(f"/v1/models/{name}/learn", json=[EVENT] * 50)
        spec = SPEC | {"stream": "a", "start": {"model": "a"}}
        assert client.put("/v1/models/a2", json=spec).status_code == 201
        for kept in ("one", "two"):
            made = client.post("/v1/models/b/checkpoints", json={"name": kept})
            assert made.is_success, made.text
        assert client.put("/v1/aliases/live", json={"model": "c"}).is_success
        store.config_set("maxmemory", 1)
        store.script_flush()  # the text is sent again, also when memory is full
        check_problem(client.post("/v1/models/a/learn", json=EVENT), 503)
        check_problem(client.put("/v1/models/new", json=SPEC), 503)
        assert client.delete("/v1/models/b/checkpoints/one").status_code == 204
        assert client.delete("/v1/aliases/live").status_code == 204
        for name in ("a2", "a", "b", "c"):
            assert client.delete(f"/v1/models/{name}").status_code == 204, name
        assert client.get("/v1/models").json() == []
        assert list(store.scan_iter("hinged:*")) == []
        store.config_set("maxmemory", 0)
        assert client.put("/v1/models/a", json=SPEC).status_code == 201
        assert client.post("/v1/models/a/learn", json=EVENT).status_code == 200


def test_a_deletion_that_was_begun_goes_on(own_server: RedisServer, own_db: redis.Redis) -> None:
    """The worker died between the mark and the end."""
    with serving(own_server.url) as client:
        client.put("/v1/models/m", json=SPEC)
        entry = str(own_db.hget("hinged:models", "m"))
        own_db.hset("hinged:models", "m", entry.replace('"deleting":false', '"deleting":true'))
        own_db.config_set("maxmemory", 1)
        assert client.delete("/v1/models/m").status_code == 204
        assert list(own_db.scan_iter("hinged:*")) == []
