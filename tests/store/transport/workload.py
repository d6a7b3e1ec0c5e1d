"""Everything that a service does to its Redis, once."""

import json
from typing import Any

import httpx
import redis

from tests.support.engine import event
from tests.support.processes import wait_until

QUICK: dict[str, Any] = {
    "snapshot_every_ms": 20,
    "housekeeping_ms": 20,
    "inbox_poll_ms": 20,
    "retention_bytes": 0,
}
"""Settings under which snapshots, trims and sweeps come while the work is done."""


def work(client: httpx.Client, producer: redis.Redis, name: str, mark: str = "") -> None:
    """Create, learn, label later, keep, restore, name, move, feed, read and delete.

    Parameters
    ----------
    client
        Of a service.
    producer
        May write into the inbox.
    name
        Of the model, and of its stream.
    mark
        Goes into every id, feature and name that an event may have.

    """
    path = f"/v1/models/{name}"
    spec = {"learner": {"type": "averaged_perceptron"}, "late_labels": {"wait_s": 1, "early": True}}
    ask(client, "PUT", path, 201, spec)
    for first in (0, 20):
        ask(client, "POST", f"{path}/learn", 200, [marked(first + n, mark) for n in range(20)])
    ask(client, "POST", f"{path}/learn", 200, marked(3, mark))
    ask(client, "POST", f"{path}/predict", 200, {"x": {f"a{mark}": 1}, "id": f"p{mark}"})
    ask(client, "POST", f"{path}/learn", 200, {"id": f"p{mark}", "y": True})
    ask(client, "POST", f"{path}/predict", 200, {"x": {f"a{mark}": 1}, "id": f"q{mark}"})
    ask(client, "POST", f"{path}/checkpoints", 201, {"name": "kept"})
    ask(client, "POST", f"{path}/learn", 200, [marked(40 + n, mark) for n in range(5)])
    ask(client, "POST", f"{path}/restore", 200, {"checkpoint": "kept"})
    ask(client, "POST", f"{path}/freeze", 200)
    ask(client, "POST", f"{path}/unfreeze", 200)
    ask(client, "PUT", f"/v1/aliases/{name}-live", 201, {"model": name})
    start = {"start": {"model": name}, "stream": name}
    ask(client, "PUT", f"{path}-b", 201, {"learner": spec["learner"]} | start)
    promoted = {"from": name, "to": f"{name}-b", "decision": "one"}
    ask(client, "POST", f"/v1/aliases/{name}-live/promote", 200, promoted)
    document = ask(client, "GET", f"{path}/checkpoints/kept/export", 200)
    ask(client, "POST", f"{path}-c/import", 201, document.json())
    counted = ask(client, "GET", path, 200).json()["events"]
    event_of_inbox = json.dumps({"x": {f"i{mark}": 1.0}, "y": True})
    producer.xadd(f"hinged:{{{name}}}:inbox", {"id": f"in{mark}", "event": event_of_inbox})
    producer.xadd(f"hinged:{{{name}}}:inbox", {"id": f"in2{mark}", "event": f"[{mark}"})
    wait_until(lambda: ask(client, "GET", path, 200).json()["events"] > counted, 30)
    for read in ("", "/weights", "/recent", "/checkpoints"):
        ask(client, "GET", f"{path}{read}", 200)
    for read in ("/v1/models", "/v1/streams", f"/v1/streams/{name}", "/v1/overview", "/readyz"):
        ask(client, "GET", read, 200)


def clear(client: httpx.Client, name: str) -> None:
    ask(client, "DELETE", f"/v1/aliases/{name}-live", 204)
    ask(client, "DELETE", f"/v1/models/{name}/checkpoints/kept", 204)
    for model in (name, f"{name}-b", f"{name}-c"):
        ask(client, "DELETE", f"/v1/models/{model}", 204)


def ask(
    client: httpx.Client, method: str, path: str, status: int, body: Any = None
) -> httpx.Response:
    """Send a request and insist on the status of its answer."""
    answer = client.request(method, path, json=body)
    assert answer.status_code == status, f"{method} {path}: {answer.status_code} {answer.text}"
    return answer


def marked(number: int, mark: str) -> dict[str, Any]:
    """Return an event whose id and features carry a mark."""
    plain = event(number)
    x = {f"{name}{mark}": value for name, value in plain["x"].items()}
    return {"x": x, "y": plain["y"], "id": f"{plain['id']}{mark}"}
