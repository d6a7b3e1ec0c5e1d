"""Requests of every route with parts changed at random, and the clients that send them."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from starlette.routing import Route

from hinged_service.app import create_app
from hinged_service.settings import Settings
from tests.fuzz.damage import PIECES
from tests.fuzz.forging import ODD, changed
from tests.fuzz.kinds import KINDS, event_of, exported, spec_of

__all__ = ["Clients", "Request"]

KEPT = ("perceptron", "multiclass_arow", "hedge", "metrics of classes", "union", "TFIDF", "ADWIN")
NAMES = [f"m{number}" for number in range(len(KEPT))]
TO_WAIT_FOR = ("catching up", "not reached that position", "rebuil", "being made", "is loading")
"""Parts of 503 answers that a service gives while its Redis is there."""

_ROUTES = sorted(
    (method, route.path)
    for route in create_app(Settings()).routes
    if isinstance(route, Route)
    for method in route.methods or ()
)
_OFTEN = [
    *(("POST", f"/v1/models/{{model}}/{verb}") for verb in ("learn", "predict", "explain")),
    *(("PUT", "/v1/models/{model}"), ("POST", "/v1/models/{model}/import")),
]
"""Routes that most can be sent to."""
_QUERIES: dict[str, list[Any]] = {
    "at_least": ["0-1.ab", "{position}"],
    "proba": ["all", "none", "top:2", "top:100000"],
    "results": ["summary", "all"],
    "top": [1, 10**6],
    "skip": [0, 10**18],
    "count": [1, 1000],
    "class": ["p", "0"],
    "match": ["m", "*"],
    "source": ["s", "t"],
    "features": ["true"],
    "weights": ["true"],
    "checkpoint": ["c"],
}
_BODIES: dict[str, list[Any]] = {
    "configure": [{"learning_rate": 0.5}, {"C": 2.0}],
    "restore": [{"checkpoint": "c"}],
    "checkpoints": [{"name": "c"}, {"name": "d"}],
    "replay": [{"name": "other", "exclude": {"ids": ["e1"]}}],
    "promote": [{"from": "m0", "to": "m1", "decision": "d1"}],
    "{alias}": [{"model": "m0"}, {"model": "m1"}],
    "infer": [{"inputs": [{"name": "a", "shape": [2], "datatype": "FP64", "data": [1, 0.5]}]}],
}
_TYPES = [
    *["application/json"] * 8,
    *("application/x-ndjson", "application/jsonl", "text/plain", "application/xml", "", "é"),
    *("application/json; charset=utf-16", "application/x-www-form-urlencoded"),
]
_HEADERS = [
    *(("content-encoding", "gzip"), ("accept", "text/plain"), ("x-request-id", "x" * 2000)),
    *(("authorization", "Bearer x"), ("expect", "100-continue"), ("range", "bytes=0-1")),
    *(("x-request-id", "\xff\x01"), ("traceparent", "00-x"), ("if-match", "*"), ("te", "x")),
]
_TIMEOUT_S = 60


@dataclass(frozen=True)
class Request:
    """A request as `http.client` takes it."""

    method: str
    target: str
    body: bytes
    headers: Mapping[str, str]


def hostile(source: random.Random, position: str) -> Request:
    """Return a request of some route, changed in its address, its body or its headers."""
    method, path = source.choice(_ROUTES if source.random() < 0.6 else _OFTEN)
    if method == "DELETE" and source.random() < 0.8:
        method = "GET"
    body = _body(source, path)
    segments = [_segment(source, segment, position) for segment in path.split("/")]
    if source.random() < 0.03:
        segments.insert(source.randrange(len(segments)), source.choice(["", "..", "v1", "%00"]))
    target = "/".join(segments) or "/"
    if source.random() < 0.3:
        pairs = []
        for name in source.sample(sorted(_QUERIES), source.choice([1, 1, 2])):
            value = source.choice([*_QUERIES[name], source.choice(ODD)])
            pairs.append((name, position if value == "{position}" else str(value)[:2000]))
        target += "?" + urlencode(pairs, errors="surrogatepass")
    if source.random() < 0.05:
        method = source.choice(["GET", "PUT", "POST", "DELETE", "HEAD", "PATCH", "OPTIONS", "LIST"])
    headers = {"content-type": source.choice(_TYPES)}
    if source.random() < 0.1:
        headers.update([source.choice(_HEADERS)])
    return Request(method, target, body, headers)


def _segment(source: random.Random, segment: str, position: str) -> str:
    if not segment.startswith("{"):
        return segment
    odd = str(source.choice(ODD))[:500]
    match segment:
        case "{model}":
            found = source.choice([*NAMES * 3, "new", "live", odd])
        case "{checkpoint}":
            found = source.choice(["c", "d", odd])
        case "{alias}":
            found = source.choice(["live", "m0", odd])
        case "{version}":
            found = source.choice([position, odd])
        case _:
            found = source.choice([*NAMES, odd])
    return quote(found, safe="", errors="surrogatepass")


def _body(source: random.Random, path: str) -> bytes:
    last = path.rsplit("/", 1)[1]
    kind = source.choice(KEPT)
    if last in _BODIES:
        document = source.choice(_BODIES[last])
    elif last == "{model}":
        document = {**KINDS[kind], "stream": source.choice(["new", "m0"])}
    elif last == "import":
        document = json.loads(exported(source.choice(list(KINDS))))
    else:
        event = event_of(spec_of(kind), source.randrange(1000))
        document = {"x": event.x, "y": event.y, "id": f"e{source.randrange(10**6)}"}
        if source.random() < 0.5:
            document = [document] * source.choice([1, 2, 50])
    if source.random() < 0.8:
        document = changed({"": document}, source).get("", document)
    body = bytearray(json.dumps(document).encode())
    if source.random() < 0.3:
        for _ in range(source.choice([1, 2, 4])):
            at = source.randrange(len(body) + 1)
            body[at : at + source.choice([0, 1, 2, 5])] = source.choice(PIECES)
    return bytes(body)


@dataclass
class Clients:
    """Some clients of a service, each on a connection of its own.

    Attributes
    ----------
    statuses
        Counts of the answers by status.
    failures
        Answers of 5xx, and what gave no answer at all.
    longest
        The slowest answers, with their seconds.

    """

    url: str
    seed: str
    statuses: Counter[int] = field(default_factory=Counter)
    waited: Counter[str] = field(default_factory=Counter)
    failures: list[tuple[str, Request]] = field(default_factory=list)
    longest: list[tuple[float, str, Request]] = field(default_factory=list)

    def send(self, position: str, first: int, count: int, clients: int = 3) -> None:
        """Send the requests of so many numbers; some ask for a position."""
        shares = [range(first + n, first + count, clients) for n in range(clients)]
        threads = [threading.Thread(target=self._send, args=(position, one)) for one in shares]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.longest = sorted(self.longest, key=lambda one: -one[0])[:5]

    def mend(self) -> str:
        """Make what requests may have deleted, delete what they made; return a position."""
        connection = self._connection()

        def ask(method: str, path: str, document: Any = None) -> Any:
            body = None if document is None else json.dumps(document).encode()
            connection.request(method, path, body, {"content-type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            return json.loads(text) if text and answer.status < 300 else None

        for alias in ask("GET", "/v1/aliases"):
            ask("DELETE", f"/v1/aliases/{quote(alias['alias'], safe='')}")
        for model in ask("GET", "/v1/models"):
            ask("DELETE", f"/v1/models/{quote(model['name'], safe='')}")
        for name, kind in zip(NAMES, KEPT, strict=True):
            ask("PUT", f"/v1/models/{name}", KINDS[kind])
            events = [event_of(spec_of(kind), n) for n in range(20)]
            sent = [{"x": event.x, "y": event.y} for event in events]
            learned = ask("POST", f"/v1/models/{name}/learn", sent)
            ask("POST", f"/v1/models/{name}/checkpoints", {"name": "c"})
        connection.close()
        return str(learned[-1]["position"])

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=_TIMEOUT_S)

    def _send(self, position: str, numbers: range) -> None:
        connection = self._connection()
        for number in numbers:
            request = hostile(random.Random(f"{self.seed} {number}"), position)
            begun = time.perf_counter()
            try:
                connection.request(
                    request.method, request.target, request.body, dict(request.headers)
                )
                answer = connection.getresponse()
                if answer.headers.get_content_type() == "text/event-stream":
                    connection.close()  # it has no end
                    text = b""
                else:
                    text = answer.read()
            except (OSError, http.client.HTTPException) as error:
                self.failures.append((repr(error), request))
                connection.close()
                continue
            self.longest.append((time.perf_counter() - begun, f"{answer.status}", request))
            self.statuses[answer.status] += 1
            if answer.status >= 500:
                reply = text.decode(errors="replace")
                waits = request.method == "HEAD" or any(part in reply for part in TO_WAIT_FOR)
                if answer.status == 503 and waits:
                    self.waited[reply[:80]] += 1
                else:
                    self.failures.append((f"{answer.status} {reply}", request))
        connection.close()
