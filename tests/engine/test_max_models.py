"""Bounds of models and aliases, which also hold for several callers at once."""

import concurrent.futures
from collections.abc import Iterator

import httpx
import pytest

from tests.support.checks import check_problem
from tests.support.redis_server import RedisServer
from tests.support.service import Service

SPEC = {"learner": {"type": "perceptron"}}
MOST = 6


@pytest.fixture
def two(own_server: RedisServer) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    with (
        Service(own_server.url, max_models=MOST) as one,
        Service(own_server.url, max_models=MOST) as other,
        one.client() as client,
        other.client() as elsewhere,
    ):
        yield client, elsewhere


def refused(answer: httpx.Response) -> None:
    check_problem(answer, 409)
    detail = answer.json()["detail"]
    assert str(MOST) in detail
    assert "Delete" in detail
    assert "HINGED_MAX_MODELS" in detail


def test_models_made_at_once_by_two_workers_end_at_the_limit(
    two: tuple[httpx.Client, httpx.Client],
) -> None:
    def make(n: int) -> httpx.Response:
        return two[n % 2].put(f"/v1/models/m{n}", json=SPEC)

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(make, range(3 * MOST)))
    made = [n for n, answer in enumerate(answers) if answer.status_code == 201]
    assert len(made) == MOST
    for answer in answers:
        if answer.status_code != 201:
            refused(answer)
    assert {m["name"] for m in two[1].get("/v1/models").json()} == {f"m{n}" for n in made}
    for n in made:
        assert two[0].put(f"/v1/models/m{n}", json=SPEC).status_code == 200
        learned = two[1].post(f"/v1/models/m{n}/learn", json={"x": {"a": 1}, "y": True})
        assert learned.status_code == 200


def test_every_new_name_counts_and_a_deletion_makes_room(
    two: tuple[httpx.Client, httpx.Client],
) -> None:
    client, elsewhere = two
    for n in range(MOST - 1):
        assert client.put(f"/v1/models/m{n}", json=SPEC).status_code == 201
    kept = client.post("/v1/models/m0/checkpoints", json={"name": "now"})
    assert kept.status_code == 201, kept.text
    document = client.get("/v1/models/m0/checkpoints/now/export").content
    alias = client.put("/v1/aliases/live", json={"model": "m0"})
    assert alias.status_code in (200, 201), alias.text
    refused(elsewhere.put("/v1/models/one-more", json=SPEC))
    refused(elsewhere.put("/v1/models/same-stream", json={**SPEC, "stream": "m0"}))
    refused(elsewhere.put("/v1/aliases/other", json={"model": "m0"}))
    refused(elsewhere.post("/v1/models/copy/import", content=document))
    refused(elsewhere.post("/v1/models/m0/replay", json={"name": "again"}))
    assert client.put("/v1/aliases/live", json={"model": "m0"}).status_code == 200
    assert client.delete("/v1/models/m1").status_code == 204
    assert elsewhere.post("/v1/models/copy/import", content=document).status_code == 201
    refused(elsewhere.put("/v1/models/one-more", json=SPEC))


def test_a_lower_limit_takes_nothing_away(own_server: RedisServer) -> None:
    with Service(own_server.url) as service, service.client() as client:
        for n in range(MOST + 2):
            assert client.put(f"/v1/models/m{n}", json=SPEC).status_code == 201
    with Service(own_server.url, max_models=MOST) as service, service.client() as client:
        assert len(client.get("/v1/models").json()) == MOST + 2
        assert client.put("/v1/models/m0", json=SPEC).status_code == 200
        refused(client.put("/v1/models/one-more", json=SPEC))
