"""Answers get lost, Redis goes away, queues are full: an event counts once all the same."""

import email.utils
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from hinged_service.client import (
    Busy,
    Client,
    ClientError,
    Conflict,
    Duplicate,
    Invalid,
    Malformed,
    NotAllowed,
    NotFound,
    Retries,
    TooLarge,
    Unavailable,
    Unreachable,
)
from tests.client.conftest import Recorder
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer, free_port
from tests.support.service import Service

PERCEPTRON = {"learner": {"type": "perceptron"}}
ONCE = Retries(deadline_s=0)
QUICK = Retries(deadline_s=5, first_pause_s=0.001, longest_pause_s=0.001)


def lossy_client(lossy: Proxy, **options: Any) -> Client:
    return Client(f"http://127.0.0.1:{lossy.port}", **options)


def test_an_event_whose_answer_was_lost_is_learned_exactly_once(
    lossy: Proxy, api: Client, name: str, recorder: Recorder
) -> None:
    with lossy_client(lossy, transport=recorder) as client:
        lossy.drop_replies = 2
        outcome = client.learn(name, {"a": 1.0}, True)
    assert lossy.dropped == 2
    assert isinstance(outcome, Duplicate)
    assert api.model(name, at_least=outcome.position).events == 1
    sent = [json.loads(request.content) for request in recorder.requests[:3]]
    assert sent[0]["id"]
    assert sent[0] == sent[1] == sent[2]


def test_a_batch_whose_answer_was_lost_is_learned_exactly_once(
    lossy: Proxy, api: Client, name: str
) -> None:
    events = [({"a": float(i)}, i % 2 == 0) for i in range(50)]
    with lossy_client(lossy) as client:
        learning = client.learn_many(name, iter(events), batch_events=10)
        outcomes = [next(learning)]
        lossy.drop_replies = 1
        outcomes += learning
    assert [o.duplicate for o in outcomes] == [False] * 10 + [True] * 10 + [False] * 30
    info = api.model(name, at_least=outcomes[-1].position)
    assert info.events == 50


def test_an_answer_that_never_comes_is_not_waited_for_forever(
    lossy: Proxy, api: Client, name: str
) -> None:
    lossy.delay_s = 0.6
    with lossy_client(lossy, timeout_s=0.2, retries=Retries(deadline_s=0.3)) as client:
        began = time.monotonic()
        with pytest.raises(Unreachable) as lost:
            client.learn(name, {"a": 1.0}, True)
        assert 0.2 <= time.monotonic() - began < 5
    assert "under the same id" in str(lost.value)
    lossy.delay_s = 0.0
    (event_id,) = lost.value.event_ids
    again = api.learn(name, {"a": 1.0}, True, id=event_id)
    assert api.model(name, at_least=again.position).events == 1


def test_the_answer_to_work_that_grows_with_the_model_is_waited_for(
    lossy: Proxy, api: Client, name: str
) -> None:
    api.learn(name, {"a": 1.0}, True)
    lossy.delay_s = 0.4
    with lossy_client(lossy, timeout_s=0.2, retries=Retries(deadline_s=0.3)) as client:
        made = client.make_checkpoint(name, "c")
        document = client.export_checkpoint(name, made.uid)
        assert client.import_model(f"{name}-far", document).name == f"{name}-far"
        start = {"model": name, "checkpoint": "c"}
        client.create_model(f"{name}-copy", {**PERCEPTRON, "start": start})
        client.restore(name, "c")
    for other in ("far", "copy"):
        api.delete_model(f"{name}-{other}")


def test_a_deletion_whose_answer_was_lost_is_done(lossy: Proxy, api: Client, name: str) -> None:
    with lossy_client(lossy) as client:
        lossy.drop_replies = 1
        client.delete_model(name)
        with pytest.raises(NotFound):
            client.delete_model(name)
    assert lossy.dropped == 1
    with pytest.raises(NotFound):
        api.model(name)


def test_a_creation_whose_answer_was_lost_is_done(lossy: Proxy, api: Client) -> None:
    with lossy_client(lossy) as client:
        lossy.drop_replies = 1
        assert client.create_model("created-once", PERCEPTRON).name == "created-once"
    assert lossy.dropped == 1
    api.delete_model("created-once")


def test_learning_waits_for_redis_to_come_back(own_server: RedisServer) -> None:
    own_server.fsync = "always"
    own_server.stop()
    own_server.start()
    recorder = Recorder()
    with (
        Service(own_server.url) as service,
        Client(service.url, transport=recorder) as client,
        Client(service.url, retries=ONCE) as hasty,
    ):
        client.create_model("m", PERCEPTRON)
        own_server.kill()
        with pytest.raises(Unavailable) as away:
            hasty.learn("m", {"a": 1.0}, True, id="hasty")
        assert away.value.status == 503
        assert away.value.retry_after_s is not None
        assert away.value.retry_after_s >= 1
        assert hasty.ready() is False
        back = threading.Timer(1.5, own_server.start)
        back.start()
        learned = client.learn("m", {"a": 1.0}, True)
        back.join()
        times = len([r for r in recorder.requests if r.url.path.endswith("/learn")])
        assert 2 <= times <= 10
        again = client.learn("m", {"a": 1.0}, True, id="hasty")
        assert client.model("m", at_least=again.position).events == 2
        assert learned.position != again.position


class Scripted(httpx.BaseTransport):
    """Answers with one status after the other, and notes when it was asked."""

    def __init__(self, *answers: int | httpx.Response | Exception) -> None:
        self.answers: Iterator[int | httpx.Response | Exception] = iter(answers)
        self.times: list[float] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.times.append(time.monotonic())
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer, json=[]) if isinstance(answer, int) else answer


def told_to_wait(status: int, value: str) -> httpx.Response:
    return httpx.Response(status, headers={"retry-after": value}, json={"detail": "wait"})


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_temporary_failure_is_sent_again(status: int) -> None:
    script = Scripted(status, status, 200)
    with Client("http://s", transport=script, retries=QUICK) as client:
        assert client.models() == []
    assert len(script.times) == 3


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Malformed),
        (401, NotAllowed),
        (403, NotAllowed),
        (404, NotFound),
        (409, Conflict),
        (413, TooLarge),
        (418, ClientError),
        (422, Invalid),
        (500, ClientError),
    ],
)
def test_nothing_else_is_sent_again(status: int, kind: type[ClientError]) -> None:
    script = Scripted(status, 200)
    with (
        Client("http://s", transport=script, retries=QUICK) as client,
        pytest.raises(ClientError) as refused,
    ):
        client.models()
    assert type(refused.value) is kind
    assert refused.value.status == status
    assert len(script.times) == 1


@pytest.mark.parametrize(
    "failure",
    [
        httpx.ConnectError("refused"),
        httpx.ConnectTimeout("slow"),
        httpx.ReadTimeout("slow"),
        httpx.ReadError("reset"),
        httpx.WriteError("reset"),
        httpx.PoolTimeout("busy"),
        httpx.RemoteProtocolError("cut"),
    ],
)
def test_lost_connections_are_met_with_another(failure: Exception) -> None:
    script = Scripted(failure, failure, 200)
    with Client("http://s", transport=script, retries=QUICK) as client:
        assert client.models() == []


def test_an_address_that_cannot_be_is_not_tried_twice() -> None:
    with Client("gopher://s", retries=Retries(deadline_s=60)) as client, pytest.raises(Unreachable):
        client.models()


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    "value", [lambda: "1", lambda: email.utils.formatdate(time.time() + 2, usegmt=True)]
)
def test_the_wait_is_as_long_as_the_service_asks_for(status: int, value: Callable[[], str]) -> None:
    script = Scripted(told_to_wait(status, value()), 200)
    with Client("http://s", transport=script, retries=QUICK) as client:
        client.models()
    assert 0.9 <= script.times[1] - script.times[0] < 4


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    script = Scripted(told_to_wait(429, "60"), 200)
    began = time.monotonic()
    with (
        Client("http://s", transport=script, retries=Retries(deadline_s=30)) as client,
        pytest.raises(Busy) as refused,
    ):
        client.models()
    assert time.monotonic() - began < 5
    assert refused.value.retry_after_s == 60
    assert refused.value.detail == "wait"


@pytest.mark.parametrize("value", ["soon", "-3", "Mon, 99 Foo"])
def test_a_wait_that_is_none_is_ignored(value: str) -> None:
    script = Scripted(told_to_wait(503, value), 200)
    with Client("http://s", transport=script, retries=QUICK) as client:
        assert client.models() == []


def test_pauses_double_up_to_a_cap_and_end_at_the_deadline() -> None:
    script = Scripted(*[503] * 1000)
    retries = Retries(deadline_s=0.6, first_pause_s=0.02, longest_pause_s=0.08)
    with (
        Client("http://s", transport=script, retries=retries) as client,
        pytest.raises(Unavailable),
    ):
        client.models()
    pauses = [b - a for a, b in zip(script.times, script.times[1:], strict=False)]
    assert pauses[0] >= 0.01
    assert all(pause >= 0.04 for pause in pauses[2:])
    assert 4 <= len(pauses) <= 15
    assert script.times[-1] - script.times[0] <= 0.65


def test_ready_asks_once() -> None:
    script = Scripted(503, 200)
    with Client("http://s", transport=script) as client:
        assert client.ready() is False
    assert len(script.times) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"deadline_s": -1.0},
        {"deadline_s": float("nan")},
        {"first_pause_s": 0.0},
        {"first_pause_s": 3.0, "longest_pause_s": 2.0},
        {"longest_pause_s": float("inf")},
    ],
)
def test_retries_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        Retries(**wrong)


def test_no_server_at_the_address() -> None:
    with (
        Client(f"http://127.0.0.1:{free_port()}", retries=ONCE) as client,
        pytest.raises(Unreachable) as lost,
    ):
        client.models()
    assert lost.value.status is None
    assert "/v1/models" in str(lost.value)
