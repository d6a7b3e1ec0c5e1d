"""An API key with a rate: what is over it is refused, and nothing of it is taken."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hinged_service.api.api_keys import Keys, Scope, new_key
from hinged_service.errors import StartupError
from tests.cli.conftest import run_hinged
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.service import Service

SPEC = {"learner": {"type": "perceptron"}}
ALL: tuple[Scope, ...] = ("predict", "learn", "admin")
LEARN = "/v1/models/m/learn"


@pytest.fixture
def clients(own_server: RedisServer) -> Iterator[dict[str, httpx.Client]]:
    """Clients with a key each: five calls a day, two a second, as many as they like."""
    tokens, records = {}, []
    for name, rate in (("daily", "5/day"), ("quick", "2/second"), ("free", None)):
        tokens[name], record = new_key(name, ALL, ["*"], rate)
        records.append(record.model_dump(mode="json"))
    keys: dict[str, Any] = {"keys": json.dumps(records)}
    with Service(own_server.url, **keys) as service:
        made = {name: service.client() for name in tokens}
        for name, client in made.items():
            client.headers["authorization"] = f"Bearer {tokens[name]}"
        assert made["free"].put("/v1/models/m", json=SPEC).status_code == 201
        yield made
        for client in made.values():
            client.close()


def event(n: int) -> dict[str, Any]:
    return {"x": {"a": n}, "y": True, "id": f"e{n}"}


def test_so_many_calls_are_taken_and_the_next_is_429(clients: dict[str, httpx.Client]) -> None:
    codes = []
    for n in range(8):
        answer = clients["daily"].post(LEARN, json=event(n))
        codes.append(answer.status_code)
        if answer.status_code == 429:
            assert answer.headers["content-type"] == "application/problem+json"
            assert 1 <= int(answer.headers["retry-after"]) <= 86_400
            assert "5/day" in answer.json()["detail"]
    assert codes == [200] * 5 + [429] * 3
    assert clients["daily"].post("/v1/models/m/predict", json={"x": {}}).status_code == 429
    assert clients["daily"].get("/v1/models").status_code == 429
    # Other keys are not limited, nor is health; refused events were not learned.
    assert clients["daily"].get("/readyz").status_code == 200
    assert clients["free"].get("/v1/models/m").json()["events"] == 5
    again = [clients["free"].post(LEARN, json=event(n)).json()["duplicate"] for n in range(8)]
    assert again == [True] * 5 + [False] * 3


def test_a_caller_that_waits_as_told_is_let_in_again(clients: dict[str, httpx.Client]) -> None:
    taken = 0

    def learned_three_more() -> bool:
        nonlocal taken
        answer = clients["quick"].post(LEARN, json=event(taken))
        assert answer.status_code in (200, 429), answer.text
        taken += answer.status_code == 200
        return taken >= 5

    wait_until(learned_three_more, 30)
    assert clients["free"].get("/v1/models/m").json()["events"] == 5


def test_a_wrong_key_uses_nothing_up(clients: dict[str, httpx.Client]) -> None:
    for _ in range(10):
        answer = clients["daily"].post(
            LEARN, json=event(0), headers={"authorization": "Bearer hinged_daily_wrong"}
        )
        assert answer.status_code == 401
    assert clients["daily"].post(LEARN, json=event(0)).status_code == 200


@pytest.mark.parametrize("rate", ["0/second", "-1/second", "many", "5", "5/fortnight", "1.5/day"])
def test_a_text_that_is_not_a_rate_stops_the_start(rate: str) -> None:
    _, record = new_key("a", ALL, ["*"])
    with pytest.raises(StartupError, match="not a list of keys"):
        Keys.load(None, json.dumps([{**record.model_dump(mode="json"), "rate": rate}]))


def test_the_command_line_makes_keys_with_a_rate(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    done = run_hinged("key", "web", "--rate", "100/second", "--file", str(file))
    assert done.code == 0, done
    keys = Keys.load(file, None)
    assert keys is not None
    assert [key.rate for key in keys] == ["100/second"]
    refused = run_hinged("key", "other", "--rate", "quick", "--file", str(file))
    assert refused.code == 2
    assert "'quick' is not a rate" in refused.err
