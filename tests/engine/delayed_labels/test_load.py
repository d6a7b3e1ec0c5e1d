"""Many predictions from two workers, their labels in any order: every count is what was sent."""

import asyncio
import json
import random
from collections import Counter
from typing import Any

import pytest
import redis

from tests.engine.delayed_labels.support import Face, agrees_with_its_log
from tests.support.forked_worker import ForkedWorker
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer
from tests.support.running import client_of
from tests.support.service import post_bytes

CALLERS = 16
TOTAL = 50_000
WAIT_S = 36


async def _posts(
    ports: list[int], jobs: list[tuple[str, list[dict[str, Any]]]]
) -> list[tuple[int, Any]]:
    """Post all bodies over some connections to both workers; return the answers in order."""
    answers: list[tuple[int, Any]] = [(0, None)] * len(jobs)
    left = iter(enumerate(jobs))

    async def caller(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number, (call, bodies) in left:
            content = json.dumps(bodies).encode()
            kind = "content-type: application/json"
            writer.write(post_bytes(f"/v1/models/m/{call}", content, kind))
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
            body = json.loads(await reader.readexactly(length))
            answers[number] = int(head.split()[1]), body
        writer.close()
        await writer.wait_closed()

    await asyncio.gather(*(caller(ports[i % len(ports)]) for i in range(CALLERS)))
    return answers


def _in_parts(call: str, bodies: list[dict[str, Any]], size: int) -> list[Any]:
    return [(call, bodies[i : i + size]) for i in range(0, len(bodies), size)]


@pytest.mark.slow
def test_every_counter_equals_what_was_sent(own_server: RedisServer, own_db: redis.Redis) -> None:
    """Label all predictions but 10 %, 10 % twice, 5 % too late."""
    chance = random.Random(TOTAL)
    workers = [
        ForkedWorker(own_server.url, housekeeping_ms=100, max_staleness_ms=0) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    ports = [worker.port for worker in workers]
    clients = [client_of(worker) for worker in workers]
    try:
        face = Face("m", *clients)
        face.create({"late_labels": {"wait_s": WAIT_S}})
        ids = [f"id{i}" for i in range(TOTAL)]
        x = {name: {"a": chance.gauss(0, 1), f"n{i % 50}": 1.0} for i, name in enumerate(ids)}
        truth = {name: x[name]["a"] > 0.2 for name in ids}
        size = TOTAL // 250
        questions = [{"id": name, "x": x[name]} for name in ids]
        asked = asyncio.run(_posts(ports, _in_parts("predict", questions, size)))
        assert {status for status, _ in asked} == {200}
        served = dict(zip(ids, (one["y"] for _, part in asked for one in part), strict=True))

        order = chance.sample(ids, TOTAL)
        late, never = order[: TOTAL // 20], order[TOTAL // 20 : TOTAL * 3 // 20]
        timely = order[TOTAL * 3 // 20 :]
        sent = timely + timely[: TOTAL // 10]
        chance.shuffle(sent)
        labels = [{"id": name, "y": truth[name]} for name in sent]
        # some by one, the rest in arrays
        jobs = _in_parts("learn", labels[: TOTAL // 20], 1)
        jobs += _in_parts("learn", labels[TOTAL // 20 :], size)
        jobs += [("learn", [{"id": f"unknown{i}", "y": True}]) for i in range(TOTAL // 100)]
        chance.shuffle(jobs)
        answers = asyncio.run(_posts(ports, jobs))
        wrong = timely[-TOTAL // 100 :]
        others = [("learn", [{"id": name, "y": not truth[name]}]) for name in wrong]
        refusals = asyncio.run(_posts(ports, others))
        assert {status for status, _ in refusals} == {409}
        statuses = Counter(status for status, _ in answers)
        assert statuses[404] == TOTAL // 100
        assert statuses.keys() <= {200, 404}
        ones = [one for status, part in answers if status == 200 for one in part]
        duplicates = sum(one["duplicate"] for one in ones)
        outcomes = [one for one in ones if not one["duplicate"]]
        assert (len(outcomes), duplicates) == (len(timely), TOTAL // 10)

        assert face.counts("waiting") == (len(late) + len(never),)
        wait_until(
            lambda: own_db.hget("hinged:{m}:meta", "labels_expired") == str(len(late) + len(never)),
            2 * WAIT_S,
        )
        too_late = [("learn", [{"id": name, "y": truth[name]}]) for name in late]
        gone = asyncio.run(_posts(ports, too_late))
        assert {status for status, _ in gone} == {410}

        names = ("predicted", "waiting", "joined", "expired", "late", "unknown", "defaulted")
        assert face.counts(*names) == (
            *(TOTAL, 0, len(timely), len(late) + len(never), len(late), TOTAL // 100, 0),
        )
        assert face.counts("duplicates", "conflicts") == (TOTAL // 10, len(wrong))
        assert face.counts("labelled", "served", "served_mistakes") == (
            len(timely),
            len(timely),
            sum(served[name] != truth[name] for name in timely),
        )
        assert face.labels()["coverage"] == len(timely) / TOTAL
        for info in face.infos():
            assert info["events"] == len(timely)
            assert info["mistakes"] == sum(one["mistake"] for one in outcomes)
            assert info["updates"] == sum(one["updated"] for one in outcomes)
        agrees_with_its_log(own_db, face)
        state = face.infos()[0]
        workers[0].stop()
        workers[0].start()
        again = face.infos()[0]
        assert again["label_counts"] == state["label_counts"]
        agrees_with_its_log(own_db, face)
    finally:
        for worker in workers:
            worker.kill()
        for client in clients:
            client.close()
