"""`hinged ingest redis-stream` in real processes: every entry once, through kills.

One file: each test runs the same command, on a stream of its own.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.ingest import (
    Event,
    Ingest,
    events,
    kill_often,
    learned,
    letters,
    reasons,
    taken,
    weights,
)
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer

CREATE = ("--stream", "s", "--group", "g", "--model", "m", "--learner", "perceptron")


@pytest.fixture
def queue(tmp_path: Path) -> Iterator[RedisServer]:
    """Another server than that of the models."""
    server = RedisServer(tmp_path / "queue")
    server.start()
    yield server
    server.kill()


def add(server: RedisServer, rows: list[Event], first_id: int = 1) -> None:
    with server.client() as client, client.pipeline(transaction=False) as pipe:
        for number, row in enumerate(rows, first_id):
            pipe.xadd("s", {"event": json.dumps(row)}, id=f"{number}-0")
        pipe.execute()


def reader(models: RedisServer, queue: RedisServer, name: str, *words: str) -> Ingest:
    at = ("--url", queue.url, "--consumer", name, "--claim-after-s", "1")
    return Ingest("redis-stream", *at, *CREATE, *words, redis_url=models.url)


COUNT = 20_000
KILLS = 10


@pytest.mark.slow
def test_killed_often_with_a_second_reader_it_learns_every_entry_once(
    own_server: RedisServer, queue: RedisServer
) -> None:
    rows = events(COUNT)
    add(queue, rows)
    others: list[Ingest] = []

    def meddle(number: int) -> None:
        if number == 1:
            others.append(reader(own_server, queue, "b"))
        if number == KILLS // 2 + 1:
            others.pop().kill()
            for server in (queue, own_server):
                server.stop()
                server.start()

    last = kill_often(
        lambda: reader(own_server, queue, "a", "--drain"),
        lambda: taken(own_server),
        COUNT,
        meddle,
        KILLS,
    )
    wait_until(lambda: taken(own_server) == COUNT, 60)
    for other in others:
        other.kill()
    code, _, stderr = last.end()
    assert code == 0, stderr
    assert weights(own_server) == learned(rows)
    assert reasons(own_server) == {}
    code, summary, _ = reader(own_server, queue, "a", "--drain").end()
    assert (code, summary["records"]) == (0, 0)
    with queue.client() as client:
        group: Any = client.xinfo_groups("s")[0]
        assert (group["pending"], group["last-delivered-id"]) == (0, f"{COUNT}-0")


def test_bad_entries_go_to_the_dead_and_a_signal_ends_it(
    own_server: RedisServer, queue: RedisServer
) -> None:
    rows = events(12)
    add(queue, rows[:6])
    with queue.client() as client:
        client.xadd("s", {"other": "1"}, id="7-0")
        client.xadd("s", {"event": '{"x":'}, id="8-0")
        client.xadd("s", {"event": '{"a":' * 20_000}, id="9-0")
    running = reader(own_server, queue, "a")
    wait_until(lambda: taken(own_server) == 9, 30)
    time.sleep(1.2)  # idle: blocked in a read
    add(queue, rows[6:], first_id=10)
    wait_until(lambda: taken(own_server) == 15, 5)
    running.process.send_signal(signal.SIGTERM)
    code, summary, stderr = running.end()
    assert code == 0, stderr
    assert (summary["learned"], summary["dead"]) == (12, 3)
    assert list(reasons(own_server)) == ["7-0", "8-0", "9-0"]
    assert reasons(own_server)["7-0"] == "event is not a field of the entry"
    assert "nested too deeply" in reasons(own_server)["9-0"]
    assert weights(own_server) == learned(rows)


@pytest.mark.parametrize(("allowed", "code"), [("0", 1), ("1", 0), ("9%", 1), ("10%", 0)])
def test_a_drained_stream_tells_its_losses_by_the_exit_code(
    own_server: RedisServer, queue: RedisServer, allowed: str, code: int
) -> None:
    add(queue, events(9))
    with queue.client() as client:
        client.xadd("s", {"event": '{"x":{"f0":1},"y":"spam"}'}, id="10-0")
    words = ("--drain", "--max-bad", allowed)
    found, summary, stderr = reader(own_server, queue, "a", *words).end()
    assert (found, summary["learned"], summary["bad"]) == (code, 9, 1), stderr
    assert "NOT LEARNED: 1 of 10 records" in stderr
    add(queue, events(1), first_id=11)
    assert reader(own_server, queue, "a", *words).end()[0] == 0  # of what came since


def test_a_group_that_is_gone_is_made_again_where_the_model_stands(
    own_server: RedisServer, queue: RedisServer
) -> None:
    rows = events(100)
    add(queue, rows[:60])
    running = reader(own_server, queue, "a")
    wait_until(lambda: taken(own_server) == 60, 30)
    with queue.client() as client:
        client.xgroup_destroy("s", "g")
        add(queue, rows[60:80], 61)
        wait_until(lambda: taken(own_server) == 80, 10)
        client.flushall()
        add(queue, rows[80:], 81)
        wait_until(lambda: taken(own_server) == 100, 10)
    running.kill()
    assert weights(own_server) == learned(rows)


def test_a_rollback_of_the_models_is_learned_again_and_what_was_trimmed_is_told(
    own_server: RedisServer, queue: RedisServer, tmp_path: Path
) -> None:
    rows = events(40)
    add(queue, rows[:10])
    assert reader(own_server, queue, "a", "--drain").end()[0] == 0
    own_server.copy_data(tmp_path / "copy")
    add(queue, rows[10:30], 11)
    assert reader(own_server, queue, "a", "--drain").end()[0] == 0
    own_server.set_back(tmp_path / "copy")
    assert taken(own_server) == 10
    assert reader(own_server, queue, "a", "--drain").end()[1]["learned"] == 20
    assert weights(own_server) == learned(rows[:30])
    add(queue, rows[30:36], 31)
    with queue.client() as client:
        client.xreadgroup("g", "dead", {"s": ">"}, count=3)  # 31 to 33, then it dies
        client.xtrim("s", maxlen=2, approximate=False)  # 35 and 36 are left; 34 was never read
    code, summary, stderr = reader(own_server, queue, "a", "--drain").end()
    assert code == 1, stderr
    assert (summary["learned"], summary["dead"], summary["gone"]) == (2, 3, 1)
    assert "NOT LEARNED: 4 of 6 records" in stderr
    assert summary["lost"] == 4
    assert "1 entries were trimmed away before they were read" in stderr
    assert list(reasons(own_server)) == ["31-0", "32-0", "33-0"]


def test_an_entry_that_kills_its_readers_is_put_aside(
    own_server: RedisServer, queue: RedisServer
) -> None:
    rows = events(6)
    add(queue, rows)
    with queue.client() as client:
        client.xgroup_create("s", "g", "0")
        client.xreadgroup("g", "a", {"s": ">"}, count=3)
        for _ in range(15):
            client.xclaim("s", "g", "a", 0, ["2-0"])
    assert reader(own_server, queue, "a", "--drain").end()[0] == 1
    assert list(reasons(own_server)) == ["2-0"]
    assert weights(own_server) == learned([rows[0], *rows[2:]])


def test_the_fields_may_be_the_features_and_the_server_may_be_away(
    own_server: RedisServer, queue: RedisServer
) -> None:
    rows = events(20)
    queue.stop()
    running = reader(own_server, queue, "a", "--drain", "--flat", "--label", "y")
    time.sleep(2)
    queue.start()
    with queue.client() as client:
        for number, row in enumerate(rows, 1):
            client.xadd("s", row["x"] | {"y": str(row["y"]).lower()}, id=f"{number}-0")
        client.xadd("s", {"a": "0x1", "y": "true"}, id="21-0")
    code, summary, stderr = running.end()
    if summary["records"] < 21:  # it came to the end of what was there so far
        assert code == 0, stderr
        code, _, stderr = reader(own_server, queue, "a", "--drain", "--flat", "--label", "y").end()
    assert code == 1, stderr
    assert weights(own_server) == learned(rows)
    assert reasons(own_server) == {"21-0": "field a must be a number, not '0x1'"}


def wide(number: int) -> Event:
    """Return an event of 300 kB."""
    return {"x": {f"{n:0200}": number % 5 + 0.5 for n in range(1_440)}, "y": number % 3 == 0}


def logged(server: RedisServer) -> list[tuple[int, int]]:
    """Return the events and bytes of each entry of the model's log."""
    with server.client() as client:
        found: Any = client.xrange("hinged:{m}:log")
    payloads = [fields["events"] for _, fields in found if fields.get("events")]
    return [(len(json.loads(payload)), len(payload)) for payload in payloads]


@pytest.mark.parametrize("died", [False, True])
def test_large_entries_come_in_batches_bounded_by_bytes(
    own_server: RedisServer, queue: RedisServer, died: bool
) -> None:
    rows = [*events(700), *[wide(n) for n in range(40)], *events(100)]
    add(queue, rows)
    if died:
        with queue.client() as client:
            client.xgroup_create("s", "g", "0")
            client.xreadgroup("g", "dead", {"s": ">"}, count=730)
        time.sleep(1.1)
    code, summary, stderr = reader(own_server, queue, "a", "--drain").end()
    assert (code, summary["learned"]) == (0, 840), stderr
    sizes = logged(own_server)
    assert sum(events for events, _ in sizes) == 840
    assert max(size for _, size in sizes) <= 2**20 + 1_000
    assert max(events for events, _ in sizes) > 100  # small ones still come many at once


def test_each_of_many_entries_deleted_while_pending_is_told(
    own_server: RedisServer, queue: RedisServer
) -> None:
    rows = events(20)
    with queue.client() as client:
        with client.pipeline(transaction=False) as pipe:
            for number in range(1, 1_301):
                pipe.xadd("s", {"event": "{}"}, id=f"{number}-0")
            pipe.execute()
        client.xgroup_create("s", "g", "0")
        client.xreadgroup("g", "dead", {"s": ">"}, count=1_300)
        client.xtrim("s", maxlen=0, approximate=False)
        add(queue, rows, 1_301)
        client.xreadgroup("g", "dead", {"s": ">"}, count=10)
    time.sleep(1.1)
    code, summary, stderr = reader(own_server, queue, "a", "--drain").end()
    assert code == 1, stderr
    assert (summary["learned"], summary["dead"], summary["lost"]) == (20, 1_300, 1_300)
    assert list(reasons(own_server)) == [f"{number}-0" for number in range(1, 1_301)]
    assert weights(own_server) == learned(rows)


def commands(server: RedisServer) -> int:
    """Return how many commands of clients the server has carried out, but for this one's."""
    with server.client() as client:
        found: Any = client.info("commandstats")
        stderr = ("xreadgroup", "xpending", "xrange", "xinfo|groups", "xinfo|stream", "xclaim")
        return sum(found.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in stderr)


def sent(server: RedisServer) -> int:
    """Return how many bytes the server has sent."""
    with server.client() as client:
        found: Any = client.info("stats")
    return int(found["total_net_output_bytes"])


IDLE_S = 3.0


def test_an_idle_reader_and_one_that_stands_by_ask_little_and_leave_no_consumers(
    own_server: RedisServer, queue: RedisServer
) -> None:
    rows = events(12)
    add(queue, rows[:10])
    idle = reader(own_server, queue, "a")
    wait_until(lambda: taken(own_server) == 10, 30)
    time.sleep(0.5)
    before = commands(queue)
    time.sleep(IDLE_S)
    assert (commands(queue) - before) / IDLE_S < 5
    began_s = time.monotonic()
    idle.process.send_signal(signal.SIGTERM)
    assert idle.end()[0] == 0
    assert time.monotonic() - began_s < 1.5  # it is not blocked in its read
    with queue.client() as client:
        assert client.xinfo_consumers("s", "g") == []
        for number in range(11, 31):
            client.xadd("s", {"event": "o" * 50_000}, id=f"{number}-0")
        client.xreadgroup("g", "holder", {"s": ">"}, count=100)
    words = ("--claim-after-s", "60")
    standing = reader(own_server, queue, "b", *words)
    time.sleep(2.5)  # it starts, and asks less and less often
    before, sent_before = commands(queue), sent(queue)
    time.sleep(IDLE_S)
    assert (commands(queue) - before) / IDLE_S < 5
    assert sent(queue) - sent_before < 50_000  # nothing of what is pending
    standing.process.send_signal(signal.SIGTERM)
    assert standing.end()[0] == 0
    with queue.client() as client:
        found: Any = client.xinfo_consumers("s", "g")
        assert [(one["name"], one["pending"]) for one in found] == [("holder", 20)]


def test_consumers_of_killed_readers_are_removed_once_their_entries_are_taken_over(
    own_server: RedisServer, queue: RedisServer
) -> None:
    rows = events(60)
    add(queue, rows[:20])

    def consumers() -> dict[str, int]:
        with queue.client() as client:
            found: Any = client.xinfo_consumers("s", "g")
        return {one["name"]: one["pending"] for one in found}

    with queue.client() as client:
        client.xgroup_create("s", "g", "0")
        for n in range(5):  # readers that were killed: with entries pending, and without
            client.xreadgroup("g", f"pod-{n}", {"s": ">"}, count=2)
            client.xgroup_createconsumer("s", "g", f"idle-{n}")
    holding = reader(own_server, queue, "a")
    standing = reader(own_server, queue, "b")
    wait_until(lambda: taken(own_server) == 20 and set(consumers()) <= {"a", "b"}, 30)
    holder = next(iter(consumers()))
    (holding if holder == "a" else standing).kill()
    add(queue, rows[20:40], 21)
    left = "b" if holder == "a" else "a"
    wait_until(lambda: taken(own_server) == 40 and consumers() == {left: 0}, 30)
    (standing if holder == "a" else holding).kill()
    time.sleep(1.1)  # idle for as long as makes it a killed one
    add(queue, rows[40:], 41)
    code, _, stderr = reader(own_server, queue, "c", "--drain").end()
    assert code == 0, stderr
    assert consumers() == {}
    assert weights(own_server) == learned(rows)


@pytest.mark.parametrize("running", [False, True])
def test_models_set_back_before_the_first_entry_are_told_not_passed_over(
    own_server: RedisServer, queue: RedisServer, tmp_path: Path, running: bool
) -> None:
    rows = events(100)
    assert reader(own_server, queue, "a", "--drain").end()[0] == 0  # the model is there
    own_server.copy_data(tmp_path / "copy")
    add(queue, rows)
    assert reader(own_server, queue, "a", "--drain").end()[0] == 0
    if running:  # it begins from an offset, which is gone later
        other = reader(own_server, queue, "a")
        time.sleep(2)
        own_server.set_back(tmp_path / "copy")
        add(queue, events(1), first_id=101)
    else:
        own_server.set_back(tmp_path / "copy")
        other = reader(own_server, queue, "a", "--drain")
    code, summary, stderr = other.end()
    assert (code, summary["records"]) == (1, 0), stderr
    assert "the stream holds entries up to there" in stderr
    assert "--from start" in stderr
    code, summary, stderr = reader(own_server, queue, "a", "--drain", "--from", "start").end()
    assert (code, summary["learned"]) == (0, 100 + running), stderr
    assert weights(own_server) == learned([*rows, *events(1)[:running]])


def test_an_offset_that_goes_while_a_reader_waits_is_told(
    own_server: RedisServer, queue: RedisServer
) -> None:
    """As when the models' Redis is set back while the reader asks nothing of it."""
    rows = events(101)
    add(queue, rows[:100])
    assert reader(own_server, queue, "a", "--drain", "--from", "start").end()[0] == 0
    waiting = reader(own_server, queue, "a")
    add(queue, rows[100:], first_id=101)
    wait_until(lambda: taken(own_server) == 101)
    with own_server.client() as client:
        assert client.delete("hinged:{m}:offsets")
    code, summary, stderr = waiting.end()
    assert (code, summary["learned"]) == (1, 1), stderr
    assert "--from start" in stderr
    assert weights(own_server) == learned(rows)


def test_a_group_of_others_may_be_gone_on_from_which_is_told(
    own_server: RedisServer, queue: RedisServer
) -> None:
    rows = events(10)
    add(queue, rows)
    with queue.client() as client:
        client.xgroup_create("s", "g", "6-0")
    code, summary, stderr = reader(own_server, queue, "a", "--drain", "--from", "group").end()
    assert (code, summary["learned"]) == (0, 4), stderr
    assert "Beginning after 6-0" in stderr
    assert weights(own_server) == learned(rows[6:])


def test_a_drain_waits_for_servers_that_are_away_only_so_long(
    own_server: RedisServer, queue: RedisServer
) -> None:
    add(queue, events(5))
    assert reader(own_server, queue, "a", "--drain").end()[0] == 0
    queue.stop()
    code, _, stderr = reader(own_server, queue, "a", "--drain", "--wait-s", "1").end(30)
    assert code == 1, stderr
    assert f"The Redis of the source at {queue.url} gave no answer for 1 seconds" in stderr
    queue.start()
    own_server.stop()
    code, _, stderr = reader(own_server, queue, "a", "--drain", "--wait-s", "1").end(30)
    assert code == 1, stderr
    assert f"The Redis of the models at {own_server.url} gave no answer for 1 seconds" in stderr


def test_a_record_whose_id_names_another_event_is_kept_to_be_mended(
    own_server: RedisServer, queue: RedisServer
) -> None:
    first = '{"x":{"a":1},"y":true,"id":"e"}'
    other = '{ "x":{"é☃":1.50}, "y":false, "id":"e"}'
    long = '{"x":{"t":1,"' + "☃" * 250 + '":2' + " " * 9_000 + '},"y":false,"id":"e"}'
    with queue.client() as client:
        for number, text in enumerate([first, '{"x":{"b":2},"y":true}', other, "{", long], 1):
            client.xadd("s", {"event": text}, id=f"{number}-0")
        client.xadd("s", {"event": '{"x":{"c":3},"y":true}', "id": "e"}, id="6-0")
    code, summary, stderr = reader(own_server, queue, "a", "--drain").end()
    assert (code, summary["learned"], summary["dead"]) == (1, 2, 4), stderr
    found = {letter["offset"]: letter for letter in letters(own_server)}
    why = {at: letter["reason"] for at, letter in found.items()}
    assert [at for at, reason in why.items() if reason == "id names another event already"] == [
        "3-0", "5-0", "6-0"
    ]  # fmt: skip
    assert found["3-0"]["record"] == other
    assert found["4-0"]["record"] == "{"
    assert found["5-0"]["record"] == long.encode()[:8_192].decode()
    assert json.loads(found["6-0"]["record"]) == {"x": {"c": 3}, "y": True, "id": "e"}
