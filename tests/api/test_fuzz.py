"""Damaged bodies by the thousand: no failure of ours; what is taken reads the same everywhere."""

import json
import random
from collections.abc import Iterator

import httpx
import pytest
import redis

import hinged
from tests.support.plain_fold import fold_log
from tests.support.service import Service

SEEDS = [
    b'{"x":{"a":1,"b":-2.5},"y":true,"id":"e1"}',
    b'[{"x":{"a":1e3},"y":false,"w":0.5},{"x":{},"y":true,"id":"e2"}]',
    '{ "x" : { "é\\n\\u00e9" : 0.1 , "\\ud83d\\ude00": 1E-7 } , "y" : 1 }'.encode(),
    b'[{"x":{"c":0},"y":0,"id":null},{"x":{"c":-0},"y":1}, {"x":{"c":-0.0},"y":1}]',
]
PIECES = [
    *(b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\x00", b"\xff", b"\xed\xa0\x80", b" "),
    *(b"1", b"-", b"0", b".", b"e", b"E+", b"1e400", b"NaN", b"Infinity", b"null", b"true"),
    *(b'"y":true', b'"x":{}', b'"w":2', b'"id":"e1"', b'"id":7', b"\\u0000", b"\\ud800", b"//"),
    *(b"9007199254740993", b"123456789012345678901234567890", b"0.30000000000000004", b"\xc3\xa9"),
    *(b"1e22", b"1e23", b"8.5e-320", b"2.2250738585072011e-308", b"9" * 400, b"1.", b".5", b"00"),
]


def damaged(chance: random.Random, count: int) -> Iterator[bytes]:
    for _ in range(count):
        body = bytearray(chance.choice(SEEDS))
        for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
            at = chance.randrange(len(body) + 1)
            kind = chance.randrange(4)
            if kind == 0:
                del body[at : at + chance.choice([1, 1, 2, 5])]
            elif kind == 1:
                body[at:at] = chance.choice(PIECES)
            elif kind == 2:
                body[at : at + chance.choice([1, 2, 4])] = chance.choice(PIECES)
            else:
                other = chance.choice(SEEDS)
                start = chance.randrange(len(other))
                body[at:at] = other[start : start + chance.randrange(1, 20)]
        yield bytes(body)


@pytest.mark.parametrize("seed", [1, 2])
def test_damaged_bodies_are_refused_or_learned_as_any_json_reader_reads_them(
    service: Service, client: httpx.Client, model: str, seed: int
) -> None:
    name = model.rsplit("/", 1)[1]
    seen: dict[int, int] = {}
    for body in damaged(random.Random(seed), 1_500):
        answer = client.post(f"{model}/learn", content=body)
        seen[answer.status_code] = seen.get(answer.status_code, 0) + 1
        assert answer.status_code in (200, 400, 409, 422), (body, answer.text)
        if answer.status_code != 200:
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["status"] == answer.status_code
            continue
        read = json.loads(body.decode())
        assert isinstance(answer.json(), list) is isinstance(read, list)
    assert min(seen.get(code, 0) for code in (200, 400, 422)) >= 30, seen
    served = client.get(f"{model}/weights").json()
    info = client.get(model).json()
    url = service.settings.redis_url
    assert url is not None
    with redis.Redis.from_url(url, decode_responses=True) as store:
        folded = fold_log(
            store, name, hinged.Perceptron(), lambda y: bool(y) if y in (0, 1) else None
        )
    assert served["weights"] == folded.weights
    assert served["intercept"] == folded.learner.intercept
    assert info["events"] == folded.learner.accounting.events
    assert info["hinge_loss"] == folded.learner.accounting.hinge_loss
    assert info["rejected"] == folded.rejected == 0
