"""Four worker processes on one Redis: one order of events, one model, each event once."""

import asyncio
import math
import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

import hinged
from tests.support.forked_worker import ForkedWorker
from tests.support.plain_fold import fold_log
from tests.support.redis_server import RedisServer
from tests.support.running import client_of

WORKERS = 4


@pytest.fixture(scope="module")
def fleet(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RedisServer, list[ForkedWorker]]]:
    server = RedisServer(tmp_path_factory.mktemp("fleet"))
    server.start()
    workers = [ForkedWorker(server.url, append_timeout_ms=10_000) for _ in range(WORKERS)]
    try:
        for worker in workers:
            worker.start(wait=False)
        for worker in workers:
            worker.wait_until_alive()
        yield server, workers
    finally:
        for worker in workers:
            worker.kill()
        server.kill()


def create(workers: list[ForkedWorker], name: str, **learner: Any) -> None:
    spec = {"learner": {"type": "perceptron", **learner}}
    answer = httpx.put(f"{workers[0].url}/v1/models/{name}", json=spec, timeout=30, verify=False)
    assert answer.status_code == 201


async def send_all(
    workers: list[ForkedWorker], name: str, bodies: list[Any], connections: int
) -> list[Any]:
    """Post bodies to the workers in turn, over so many connections to each at once."""
    answers: list[Any] = [None] * len(bodies)

    async def send(url: str, indices: range) -> None:
        async with httpx.AsyncClient(timeout=30, verify=False) as client:
            for index in indices:
                answer = await client.post(url, json=bodies[index])
                assert answer.status_code == 200, answer.text
                answers[index] = answer.json()

    callers = WORKERS * connections
    await asyncio.gather(
        *(
            send(f"{workers[c % WORKERS].url}/v1/models/{name}/learn", indices)
            for c in range(callers)
            if (indices := range(c, len(bodies), callers))
        )
    )
    return answers


def test_one_event_sent_50_times_at_once_to_four_workers_counts_once(
    fleet: tuple[RedisServer, list[ForkedWorker]],
) -> None:
    _, workers = fleet
    create(workers, "once", learning_rate=0.1)
    event = {"x": {"a": 1}, "y": True, "id": "e"}
    answers = asyncio.run(send_all(workers, "once", [event] * 50, 13))
    assert [a["duplicate"] for a in answers].count(False) == 1
    (first,) = [a for a in answers if not a["duplicate"]]
    assert (first["mistake"], first["updated"], first["hinge_loss"]) == (True, True, 1.0)
    for worker in workers:
        with client_of(worker) as client:
            at_least = {"at_least": first["position"]}
            info = client.get("/v1/models/once", params=at_least).json()
            assert (info["events"], info["mistakes"], info["hinge_loss"]) == (1, 1, 1.0)
            weights = client.get("/v1/models/once/weights").json()
            assert (weights["weights"], weights["intercept"]) == ({"a": 0.1}, 0.1)


def test_2000_events_through_four_workers_at_once_make_one_model(
    fleet: tuple[RedisServer, list[ForkedWorker]],
) -> None:
    server, workers = fleet
    create(workers, "many", learning_rate=1e-3)
    chance = random.Random(7)
    events = [
        {
            "x": {f"f{chance.randrange(50)}": chance.gauss(0, 1) for _ in range(8)},
            "y": chance.random() < 0.5,
            "id": f"e{n}",
        }
        for n in range(2_000)
    ]
    answers = asyncio.run(send_all(workers, "many", events, 8))
    assert not any(a["duplicate"] for a in answers)
    last = max((a["position"] for a in answers), key=lambda p: _order(p))
    with server.client() as store:
        folded = fold_log(store, "many", hinged.Perceptron(learning_rate=1e-3))
    assert sorted(folded.counted_ids) == sorted(str(e["id"]) for e in events)
    for answer in answers:
        assert folded.reached(answer["position"])
    account = folded.learner.accounting
    assert account.events == 2_000
    assert sum(a["mistake"] for a in answers) == account.mistakes
    assert sum(a["updated"] for a in answers) == account.updates
    assert math.fsum(a["hinge_loss"] for a in answers) == pytest.approx(account.hinge_loss)
    for worker in workers:
        with client_of(worker) as client:
            info = client.get("/v1/models/many", params={"at_least": last}).json()
            assert (info["events"], info["position"]) == (2_000, last)
            assert info["mistakes"] == account.mistakes
            assert info["updates"] == account.updates
            assert info["hinge_loss"] == account.hinge_loss
            weights = client.get("/v1/models/many/weights").json()
            assert weights["weights"] == folded.weights
            assert weights["intercept"] == folded.learner.intercept


def test_a_model_deleted_through_one_worker_is_gone_on_all(
    fleet: tuple[RedisServer, list[ForkedWorker]],
) -> None:
    server, workers = fleet
    create(workers, "gone")
    event = {"x": {"a": 1}, "y": True}
    for worker in workers:
        assert (
            httpx.post(f"{worker.url}/v1/models/gone/learn", json=event, verify=False).status_code
            == 200
        )
    assert httpx.delete(f"{workers[0].url}/v1/models/gone").status_code == 204
    for worker in workers:
        url = f"{worker.url}/v1/models/gone"
        for answer in (
            httpx.post(f"{url}/learn", json=event, verify=False),
            httpx.get(url, verify=False),
        ):
            assert answer.status_code == 404
            assert answer.headers["content-type"] == "application/problem+json"
    create(workers, "gone", learning_rate=0.5)
    for n, worker in enumerate(workers):
        learned = httpx.post(
            f"{worker.url}/v1/models/gone/learn", json={**event, "id": f"{n}"}, verify=False
        )
        assert learned.json()["duplicate"] is False
        weights = httpx.get(f"{worker.url}/v1/models/gone/weights", verify=False).json()
        assert weights["weights"] == {"a": 0.5}
    with server.client() as store:
        assert store.xlen("hinged:{gone}:log") == 1 + WORKERS


def _order(position: str) -> tuple[int, int]:
    ms, _, seq = position.split(".")[0].partition("-")
    return int(ms), int(seq)


def test_one_of_many_creators_makes_the_model_and_the_others_find_it(
    fleet: tuple[RedisServer, list[ForkedWorker]],
) -> None:
    _, workers = fleet

    async def create_all(name: str, rates: list[float]) -> list[int]:
        async def put(n: int, client: httpx.AsyncClient) -> int:
            spec = {"learner": {"type": "perceptron", "learning_rate": rates[n]}}
            url = f"{workers[n % WORKERS].url}/v1/models/{name}"
            return (await client.put(url, json=spec)).status_code

        async with httpx.AsyncClient(timeout=30, verify=False) as client:
            return list(await asyncio.gather(*(put(n, client) for n in range(len(rates)))))

    assert sorted(asyncio.run(create_all("same", [0.5] * 20))) == [200] * 19 + [201]
    rates = [0.5, 0.25] * 2 + [0.125, 0.0625] * 2
    codes = asyncio.run(create_all("differ", rates))
    assert codes.count(201) == 1
    made = rates[codes.index(201)]
    assert [code for code, rate in zip(codes, rates, strict=True) if rate == made].count(409) == 0
    assert all(code == 409 for code, rate in zip(codes, rates, strict=True) if rate != made)
    for worker in workers:
        spec = httpx.get(f"{worker.url}/v1/models/differ", verify=False).json()["spec"]
        assert spec["learner"]["learning_rate"] == made
