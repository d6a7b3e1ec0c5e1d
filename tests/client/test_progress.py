"""Progress of long calls, as both clients tell it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import httpx
import pytest

from hinged_service.client import AsyncClient, BadAnswer, Client, Conflict, Progress
from hinged_service.client.progress import WatchedAnswer
from tests.support.slow_service import WEIGHTS, SlowService

names = itertools.count()


@pytest.fixture
def api(slow: SlowService) -> Iterator[Client]:
    with Client(slow.service.url) as made:
        yield made


def steps(reports: list[Progress]) -> list[str]:
    """Return the steps in order, after a look at their numbers."""
    for one, other in itertools.pairwise(reports):
        assert one.step != other.step or (one.total == other.total and one.done <= other.done)
    assert all(0 <= one.done <= one.total for one in reports)
    assert all(one.total == WEIGHTS for one in reports if one.step in ("read", "write"))
    return list(dict.fromkeys(one.step for one in reports))


def test_the_blocking_client_tells_each_step(api: Client) -> None:
    reports: list[Progress] = []
    made = api.make_checkpoint("m", progress=reports.append)
    assert steps(reports) == ["write"]
    reports.clear()
    document = api.export_checkpoint("m", made.uid, progress=reports.append)
    assert steps(reports) == ["read", "receive"]
    assert document == api.export_checkpoint("m", made.uid)
    reports.clear()
    new = f"blocking-{next(names)}"
    assert api.import_model(new, document, progress=reports.append).name == new
    assert [step for step in steps(reports) if step != "check"] == ["send", "write"]
    sent = [one.done for one in reports if one.step == "send"]
    assert (sent[0], sent[-1]) == (0, len(document))
    reports.clear()
    api.restore("m", made.uid, progress=reports.append)
    assert steps(reports) == ["read"]


async def test_the_asynchronous_client_tells_each_step(slow: SlowService) -> None:
    reports: list[Progress] = []
    async with AsyncClient(slow.service.url) as client:
        made = await client.make_checkpoint("m", progress=reports.append)
        document = await client.export_checkpoint("m", made.uid, progress=reports.append)
        assert document == await client.export_checkpoint("m", made.uid)
        assert steps(reports) == ["write", "read", "receive"]
        reports.clear()
        new = f"asynchronous-{next(names)}"
        assert (await client.import_model(new, document, progress=reports.append)).name == new
        assert [step for step in steps(reports) if step != "check"] == ["send", "write"]
        reports.clear()
        await client.restore("m", made.uid, progress=reports.append)
        assert steps(reports) == ["read"]


def test_an_error_after_progress_is_raised_as_any_other(api: Client) -> None:
    api.make_checkpoint("m", "taken")
    reports: list[Progress] = []
    with pytest.raises(Conflict, match="Choose another name") as caught:
        api.make_checkpoint("m", "taken", progress=reports.append)
    assert caught.value.status == 409
    assert reports


def test_an_error_of_the_callback_ends_the_call_and_the_work(api: Client) -> None:
    class Enough(Exception):
        pass

    def stop(_: Progress) -> None:
        raise Enough

    with pytest.raises(Enough):
        api.make_checkpoint("m", "left", progress=stop)
    assert api.make_checkpoint("m", "left").name == "left"  # kept later than the other would be


def answer_of(*chunks: bytes) -> tuple[httpx.Response, list[Progress]]:
    """Return the answer of a stream that comes in these chunks, and what it told."""
    reports: list[Progress] = []
    request = httpx.Request("GET", "http://there/")
    head = httpx.Response(200, headers={"content-type": "application/x-ndjson"}, request=request)
    watched = WatchedAnswer(head, reports.append)
    for chunk in chunks:
        watched.add(chunk)
    return watched.whole(request), reports


STREAM = (
    b'{"step":"read","done":1,"total":2}\n{"step":"a new one","done":0,"total":0,"more":1}\n'
    b'{"status":503,"headers":{"retry-after":"7"}}\n{"a":\n1}\n'
)


@pytest.mark.parametrize("size", [1, 7, len(STREAM)])
def test_chunks_may_end_anywhere(size: int) -> None:
    chunks = [STREAM[start : start + size] for start in range(0, len(STREAM), size)]
    answer, reports = answer_of(*chunks)
    assert reports == [Progress("read", 1, 2), Progress("a new one", 0, 0)]
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")
    assert answer.content == b'{"a":\n1}\n'


@pytest.mark.parametrize(
    ("stream", "why"),
    [
        (b'{"step":"read","done":1,"total":2}\n', "but no answer"),
        (b'{"status":200,"headers":{}}', "but no answer"),
        (b"", "but no answer"),
        (b"<html>\n", "cannot read"),
        (b'{"step":"read"}\n', "cannot read"),
        (b'{"status":"fine","headers":{}}\n', "cannot read"),
    ],
)
def test_a_stream_that_is_none_is_refused(stream: bytes, why: str) -> None:
    with pytest.raises(BadAnswer, match=why):
        answer_of(stream)
