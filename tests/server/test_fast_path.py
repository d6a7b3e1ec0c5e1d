"""The fast path: the same bytes, effects and counts as without it, for any request."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from hinged_service.api.api_keys import Keys, new_key
from hinged_service.app import create_app
from hinged_service.server.fast_path import FastPathProtocol
from hinged_service.settings import Settings
from tests.fuzz.budget import ASKED
from tests.fuzz.framing import Socket, cut
from tests.support.long_timeouts import LONG_TIMEOUTS
from tests.support.redis_server import RedisServer

REQUESTS = ASKED or 20_000
SEED = random.randrange(2**32) if ASKED else 5
_OWN = re.compile(
    rb"\d{13}-\d+\.[0-9a-f]{40}|date: [^\r]+|(?<=x-request-id: )[0-9a-f]{16}"
    rb'|(?<="request_id":")[0-9a-f]{16}'
)
"""Fields that differ from service to service: positions, dates, ids of requests."""
_TIMES = ("snapshot", "position", "created", "last_event", "stale_s")
SPECS: dict[str, Any] = {
    "m": {"learner": {"type": "perceptron"}},
    "late": {
        "learner": {"type": "passive_aggressive"},
        "late_labels": {"wait_s": 600, "max_waiting": 200},
    },
    "classes": {"learner": {"type": "multiclass_perceptron"}},
    "words": {"pipeline": [{"type": "OneHotEncoder"}], "learner": {"type": "arow"}},
}
KEYS = [new_key("all", ["predict", "learn", "admin"], ["*"]), new_key("m", ["learn"], ["m"])]
KEYS.append(new_key("rated", ["predict", "learn"], ["*"], "1000000/hour"))


class Side:
    """A service, and the other ends of connections to it."""

    def __init__(self, url: str, fast: bool, keys: bool) -> None:
        patient = LONG_TIMEOUTS | {"max_staleness_ms": 3_600_000}
        app: Any = create_app(Settings(redis_url=url, fast_path=fast, **patient))
        if keys:
            app.keys = Keys(record for _, record in KEYS)
            app.rates = type(app.rates)(app.keys)
        self.app = app
        self.config = uvicorn.Config(
            self.app, access_log=False, log_level="critical", ws="none", proxy_headers=False
        )
        self.config.load()
        self.taken = self.known = 0

    async def answers(self, pieces: list[bytes]) -> tuple[bytes, bool]:
        """Return what a connection answers to pieces, and whether it closes."""
        socket = Socket()
        made = socket.protocol = Counted(self.config, ServerState(), {}, asyncio.get_running_loop())
        made.server_state.default_headers = [(b"date", b"today")]
        made.connection_made(socket)
        for piece in pieces:
            socket.come(piece)
            await settled(made)
        closing = made.transport.is_closing()
        self.taken += made.taken
        self.known += made.known
        socket.closed = True
        made.connection_lost(ConnectionResetError())
        while self.app.room.requests:  # noqa: ASYNC110 - a look costs less than an event
            await asyncio.sleep(0)
        return _OWN.sub(b"?", socket.answers), closing

    async def model(self, name: str) -> tuple[Any, bytes]:
        """Return a model's document without times of its own, and its weights as they come."""
        document = json.loads(await self._get(f"/v1/models/{name}"))
        labels = document.pop("label_counts") or {}
        kept = {key: value for key, value in document.items() if key not in _TIMES}
        counts = {key: value for key, value in labels.items() if isinstance(value, int)}
        return [kept, counts], await self._get(f"/v1/models/{name}/weights")

    async def _get(self, path: str) -> bytes:
        key = KEYS[0][0]
        head = f"GET {path} HTTP/1.1\r\nHost: t\r\nAuthorization: Bearer {key}\r\n\r\n"
        answer, _ = await self.answers([head.encode()])
        return answer.partition(b"\r\n\r\n")[2]


class Counted(FastPathProtocol):
    """Counts what the fast path answers, and how many of these heads the parser did not read."""

    taken = known = 0

    def _leave(self, status: int | None = None) -> None:
        self.taken += status is not None
        self.known += status is not None and self._unparsed != b""
        super()._leave(status)


async def settled(made: FastPathProtocol) -> None:
    """Return when no answer is due for what came."""
    for _ in range(10):
        await asyncio.sleep(0)
    while not made.transport.is_closing() and (  # noqa: ASYNC110
        made._owes
        or made.pipeline
        or (made.cycle and not (made.cycle.response_complete or made.cycle.more_body))
    ):
        await asyncio.sleep(0.0001)


@contextlib.asynccontextmanager
async def sides(folder: Path, keys: bool) -> AsyncIterator[tuple[Side, Side]]:
    """Two services, one without the fast path, each on a Redis of its own with the models."""
    async with contextlib.AsyncExitStack() as stack:
        made = []
        for name in ("fast", "ordinary"):
            (folder / name).mkdir(parents=True)
            server = stack.enter_context(RedisServer(folder / name))
            side = Side(server.url, name == "fast", keys)
            await stack.enter_async_context(side.app.router.lifespan_context(side.app))
            for model, spec in SPECS.items():
                answer, _ = await side.answers(
                    [
                        request(
                            "PUT",
                            f"/v1/models/{model}",
                            json.dumps(spec).encode(),
                            (f"Authorization: Bearer {KEYS[0][0]}",),
                        )
                    ]
                )
                assert answer.startswith(b"HTTP/1.1 201"), answer
            made.append(side)
        yield made[0], made[1]


def request(method: str, path: str, body: bytes, more: tuple[str, ...] = ()) -> bytes:
    lines = (f"{method} {path} HTTP/1.1", "Host: t", "Content-Type: application/json", *more)
    return "\r\n".join((*lines, f"Content-Length: {len(body)}", "", "")).encode() + body


_ODD_HEADERS = (
    ("Connection: close",),
    ("connection: keep-alive",),
    ("Expect: 100-continue",),
    ("Upgrade: h2c", "Connection: Upgrade"),
    ("X-Request-Id: mine",),
    ("Content-Encoding: gzip",),
    ("Content-Type: text/plain",),
    ("Host: u",),
    ("Content-Length: 3",),
    ("Authorization: Bearer nothing",),
    ("Transfer-Encoding: chunked",),
    ("traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",),
)
_ODD_BODIES = (
    b"",
    b"{}",
    b"[]",
    b"{",
    b'{"x":{"a":1e999},"y":true}',
    b'{"x":{"a":"b"},"y":true}',
    b'{"x":{"a":null},"y":true}',
    b'{"x":{"a":1},"y":1.5}',
    b'{"x":{"a":1},"y":true,"w":-1}',
    b'{"x":{"a":1,"a":2},"y":true}',
    b' {"x":{"a":1},"y":true}\n',
    b'\xef\xbb\xbf{"x":{"a":1},"y":true}',
    b'{"x":{"a":1},"y":true,"z":0}',
    b'[{"x":{"a":1},"y":true},{"x":{"b":1},"y":false}]',
    b'{"id":"unknown","y":true}',
    b'{"x":{"a":1},"y":true,"id":""}',
    "{}".encode("utf-16"),
    b'{"x":{"a":' + b"1" * 70_000 + b'},"y":true}',
)


def event(chance: random.Random, call: str, model: str) -> bytes:
    """Return a body, mostly a good one."""
    if chance.random() < 0.15:
        return chance.choice(_ODD_BODIES)
    names = chance.sample("abcdefg", chance.randrange(6))
    x: dict[str, Any] = {name: round(chance.gauss(0, 1), chance.choice((1, 6))) for name in names}
    if chance.random() < 0.1:
        x[chance.choice(("word", "é", "\\"))] = chance.choice(("red", True, 0, 1e300, -0.0))
    sent: dict[str, Any] = {"x": x}
    if call == "learn":
        sent["y"] = chance.choice("pqr") if model == "classes" else chance.random() < 0.5
    if chance.random() < 0.2:
        sent["id"] = f"i{chance.randrange(300)}"
        if call == "learn" and chance.random() < 0.5:
            del sent["x"]
    if chance.random() < 0.05:
        sent["w"] = chance.choice((0, 0.5, 2))
    return json.dumps(sent, ensure_ascii=chance.random() < 0.5).encode()


def one(chance: random.Random) -> bytes:
    """Return a request, mostly a plain one."""
    call = chance.choice(("predict", "learn"))
    model = chance.choice((*SPECS, "m", "m", "late")) if chance.random() < 0.98 else "nothing"
    path = f"/v1/models/{model}/{call}"
    if chance.random() < 0.05:
        path += chance.choice(("?", "?proba=none", "?at_least=x", "/", "?x=1"))
    more: tuple[str, ...] = ()
    if chance.random() < 0.9:
        more = (f"Authorization: Bearer {chance.choice((KEYS[0], *KEYS))[0]}",)
    if chance.random() < 0.1:
        more += chance.choice(_ODD_HEADERS)
    made = request("POST", path, event(chance, call, model), more)
    if chance.random() < 0.03:
        made = made.replace(b" HTTP/1.1", chance.choice((b" HTTP/1.0", b" HTTP/1.2", b"")), 1)
    if chance.random() < 0.02:
        at = chance.randrange(len(made))
        made = made[:at] + bytes([chance.randrange(256)]) + made[at + 1 :]
    if chance.random() < 0.03:
        made = chance.choice((b"\r\n", b"\n", b"\r\n\r\n")) + made
    if chance.random() < 0.02:
        made = made.replace(b"\r\n", b"\n", chance.choice((1, 9)))
    return made


def pieces(chance: random.Random) -> tuple[list[bytes], int]:
    """Return what comes on a connection, and how many requests that is."""
    requests = [one(chance) for _ in range(chance.choice((1, 4, 8, 16)))]
    kind = chance.random()
    if kind < 0.7:
        found = requests
    elif kind < 0.85:
        found = [part for each in requests for part in (cut(chance, each) or [each])]
    else:
        found = cut(chance, b"".join(requests))
    if chance.random() < 0.1:
        found = found[: max(1, len(found) - 1)]
    return found, len(requests)


async def compare(folder: Path, keys: bool, count: int) -> tuple[int, int]:
    """Send the same to both services.

    Return how many requests took the fast path, and of how many of them the head was known.
    """
    chance, sent = random.Random(SEED + keys), 0
    async with sides(folder, keys) as (fast, ordinary):
        while sent < count:
            come, number = pieces(chance)
            expected = await ordinary.answers(come)
            assert await fast.answers(come) == expected, come
            sent += number
        assert ordinary.taken == 0
        for model in SPECS:
            found = [await side.model(model) for side in (fast, ordinary)]
            assert found[0] == found[1]
        counts = [
            {key: side.app.observer._values[at] for key, at in side.app.observer._requests.items()}
            for side in (fast, ordinary)
        ]
        assert counts[0] == counts[1]
        assert {side.app.room.bytes for side in (fast, ordinary)} == {0}
        return fast.taken, fast.known


def test_the_same_bytes_effects_and_counts(tmp_path: Path) -> None:
    taken, known = asyncio.run(compare(tmp_path / "open", False, REQUESTS // 2))
    assert taken > REQUESTS / 8
    assert known > taken / 4
    taken, known = asyncio.run(compare(tmp_path / "keys", True, REQUESTS // 2))
    assert taken > REQUESTS / 16
    assert known > taken / 4


def test_a_target_or_head_that_is_refused_is_refused_alike(tmp_path: Path) -> None:
    body = b'{"x":{"a":1}}'
    key = f"Authorization: Bearer {KEYS[0][0]}"
    many = tuple(f"x-{n}: 1" for n in range(250))
    odd = [
        *(request("POST", f"/v1/models/{name}/predict", body, (key,)) for name in ("m#n", "m?n")),
        request("POST", "/v1/models/m/predict", body, (key,)).replace(b"/m/", b"/m\xff/"),
        request("POST", "/v1/models/m/predict", body, (key, *many)),
        request("POST", "/v1/models/m/predict", body, (key, *many[:100])),
    ]
    # A body that looks like the end of a head, and a head that is known but for what is before it.
    good = request("POST", "/v1/models/m/predict", body, (key,))
    odd += [b"\r\n\r\n" + good, good, b"\r\n\r\n" + good[:-4] + b"\r\n\r\n", good + b"\r\n"]

    async def compare_odd() -> None:
        async with sides(tmp_path, True) as (fast, ordinary):
            for each in odd:
                expected = await ordinary.answers([each])
                assert expected[0].startswith(b"HTTP/1.1 ")
                assert await fast.answers([each]) == expected

    asyncio.run(compare_odd())
