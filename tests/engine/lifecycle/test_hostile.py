"""Damaged or hostile documents and stored entries: refused, nothing run, other models untouched."""

import hashlib
import json
import pickle
from collections.abc import Callable
from typing import Any

import httpx
import pytest
import redis

from hinged_service.store.keys import StreamKeys
from tests.support.checks import check_problem
from tests.support.plain_fold import model_uid
from tests.support.service import Service
from tests.support.shared_service import NewModel

DEEP = "[" * 940 + "]" * 940
Spoil = Callable[[dict[str, Any]], Any]


@pytest.fixture
def meddler(service: Service) -> redis.Redis:
    return redis.Redis.from_url(str(service.settings.redis_url), decode_responses=True)


def _exported(client: httpx.Client, model: str) -> dict[str, Any]:
    client.post(
        f"{model}/learn", json=[{"x": {"a": 1.0}, "y": True}, {"x": {"a": 2.0}, "y": False}]
    )
    assert client.post(f"{model}/checkpoints", json={"name": f"c{model[11:]}"}).status_code == 201
    found: dict[str, Any] = client.get(f"{model}/checkpoints/c{model[11:]}/export").json()
    return found


def _streams(meddler: redis.Redis) -> set[str]:
    """Return the streams that keys belong to; models of others are saved at any time."""
    return {key.split("}")[0] for key in meddler.scan_iter(count=1000)}


def _signed(document: dict[str, Any]) -> bytes:
    """Return a document with the right digest: it is no secret how to make it."""
    document.pop("digest", None)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return json.dumps(document | {"digest": hashlib.sha256(text.encode()).hexdigest()}).encode()


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


SPOILS: dict[str, Spoil] = {
    "vectors are no object": lambda d: d.update(vectors=[]),
    "a vector is a number": lambda d: d.update(vectors={"weights": 3}),
    "a name is a number": lambda d: d.update(vectors={"weights": [[7, 1.0]]}),
    "a huge weight": lambda d: d.update(vectors={"weights": [["a", 10**400]]}),
    "a weight of nan": lambda d: d.update(vectors={"weights": [["a", "nan"]]}),
    "half a character": lambda d: d.update(vectors={"weights": [["\ud800", 1.0]]}),
    "no weights": lambda d: d.update(vectors={}),
    "an unknown type": lambda d: d["scalars"]["learner"].update(type="os.system"),
    "scalars are text": lambda d: d.update(scalars="cos\nsystem\n"),
    "a pipeline": lambda d: d["scalars"].update(pipeline={"type": "os.system"}),
    "deep configured": lambda d: d["scalars"].update(
        configured={"learning_rate": json.loads("[" * 400 + "]" * 400)}
    ),
    "an unknown learner": lambda d: d["spec"].update(learner={"type": "os.system"}),
    "another version": lambda d: d.update(version=99),
    "another format": lambda d: d.update(format="pickle"),
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_a_hostile_document_is_refused(
    client: httpx.Client, model: str, meddler: redis.Redis, spoil: str
) -> None:
    document = _exported(client, model)
    SPOILS[spoil](document)
    index, streams = meddler.hgetall("hinged:models"), _streams(meddler)
    answer = client.post("/v1/models/imported/import", content=_signed(document))
    check_problem(answer, 422)
    assert answer.json()["errors"]
    assert meddler.hgetall("hinged:models") == index
    assert _streams(meddler) == streams


@pytest.mark.parametrize(
    "body",
    [
        pickle.dumps({"type": "os.system"}),
        DEEP.encode(),
        b'{"format":"hinged-model","version":' + DEEP.encode() + b"}",
        b'{"format":"hinged-model","version":1,"fold":1,"river":"0.26","spec":'
        + DEEP.encode()
        + b"}",
        b'{"format":"hinged-model","version":' + b"9" * 5000 + b"}",
        b"[]",
        b"",
    ],
    ids=["pickle", "deep", "deep version", "deep spec", "huge", "list", "empty"],
)
def test_a_body_that_is_not_a_document_is_refused(client: httpx.Client, body: bytes) -> None:
    answer = client.post("/v1/models/imported/import", content=body)
    assert answer.status_code in (400, 422), answer.text
    assert client.get("/v1/models/imported").status_code == 404


HALVES: dict[str, Spoil] = {
    "a class": lambda d: d["scalars"]["learner"]["classes"].__setitem__(0, "\ud800"),
    "a class of a metric": lambda d: d["scalars"]["metrics"]["counts"]["confusion"].update(
        classes=["A", "B\udfff"]
    ),
    "the reason of a metric": lambda d: d["scalars"]["metrics"].update(
        errors={"confusion": "\ud800"}
    ),
    "a feature": lambda d: d["vectors"]["weights/0"].append(["b\ud800", 1.0]),
    "the state of a pipeline": lambda d: d["scalars"].update(
        pipeline=json.loads(json.dumps(d["scalars"]["pipeline"]).replace('"a"', '"\\ud800"'))
    ),
    "a parameter": lambda d: d["scalars"]["configured"].update({"\udc80": 1}),
    "a label of the spec": lambda d: d["spec"].update(labels=["A", "\ud800"]),
    "a stream": lambda d: d["spec"].update(stream="\ud800"),
    "a step of the spec": lambda d: d["spec"]["pipeline"].append(
        {"type": "Discard", "keys": ["\ud800"]}
    ),
    "the id of an event": lambda d: d["spec"].update(exclude={"ids": ["\ud800"]}),
    "the name of the model": lambda d: d.update(model="\ud800"),
    "a field": lambda d: d.update({"\ud800": 1}),
}


@pytest.mark.parametrize("spoil", HALVES)
def test_halves_of_characters_are_refused_wherever_they_are(
    client: httpx.Client, new_model: NewModel, spoil: str
) -> None:
    learner = {"type": "multiclass_perceptron"}
    model = new_model(
        learner=learner, metrics=["confusion_matrix"], pipeline=[{"type": "StandardScaler"}]
    )
    events = [{"x": {"a": n}, "y": y} for n, y in enumerate("ABBA")]
    client.post(f"{model}/learn", json=events).raise_for_status()
    name = model.rpartition("/")[2]
    made = client.post(f"{model}/checkpoints", json={"name": f"c{name}"})
    document = client.get(f"{model}/checkpoints/{made.json()['uid']}/export").json()
    target = f"/v1/models/{name}-imported/import"
    HALVES[spoil](document)
    for body in (
        _signed(document),
        json.dumps(json.loads(_signed(document)), ensure_ascii=False).encode(
            errors="surrogatepass"
        ),
    ):
        answer = client.post(target, content=body)
        assert answer.status_code == 422, answer.text
        assert "half a character" in answer.text
    assert client.get(f"/v1/models/{name}-imported").status_code == 404


def test_a_changed_document_is_refused_by_its_digest(client: httpx.Client, model: str) -> None:
    document = _exported(client, model)
    document["scalars"]["counts"]["events"] += 1
    answer = client.post("/v1/models/imported/import", json=document)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "digest"


def test_damaged_entries_in_redis_are_problems_of_their_own_stream(
    client: httpx.Client, new_model: NewModel, meddler: redis.Redis
) -> None:
    model, other = new_model(), new_model()
    name = model.rpartition("/")[2]
    document = _exported(client, model)
    assert document
    alias = f"a{name}"
    assert client.put(f"/v1/aliases/{alias}", json={"model": name}).status_code == 201
    keys = StreamKeys(name)
    for value in ("{", "7", '{"uid":7}', DEEP, pickle.dumps("x", 0).decode("latin-1"), "\x00"):
        meddler.hset(keys.aliases, alias, value)
        meddler.hset(keys.checkpoints, "bad", value)
        for answer in (
            client.get(f"{model}/checkpoints"),
            client.get(f"{model}/checkpoints/bad/export"),
            client.post(f"{model}/restore", json={"checkpoint": "bad"}),
            client.delete(f"{model}/checkpoints/bad"),
            client.post(f"/v1/aliases/{alias}/promote", json={"from": name, "to": name}),
            client.put(f"/v1/aliases/{alias}", json={"model": name}),
            client.get(f"/v1/models/{alias}"),
            client.get("/v1/aliases"),
            client.get(f"/v1/streams/{name}"),
        ):
            assert answer.status_code != 500, (value[:20], answer.request.url, answer.text)
        meddler.hset("hinged:models", "bad", value)
        assert client.get("/v1/models").status_code == 200
        assert client.get("/v1/models/bad").status_code == 503
        meddler.hdel("hinged:models", "bad")
    meddler.hdel(keys.checkpoints, "bad")
    meddler.hdel(keys.aliases, alias)
    client.delete(f"/v1/aliases/{alias}")
    assert client.post(f"{other}/learn", json={"x": {"a": 1.0}, "y": True}).status_code == 200
    assert client.post(f"{model}/learn", json={"x": {"a": 1.0}, "y": True}).status_code == 200


def test_damaged_commands_are_counted_and_change_nothing(
    client: httpx.Client, model: str, meddler: redis.Redis
) -> None:
    name = model.rpartition("/")[2]
    _exported(client, model)
    weights, keys = client.get(f"{model}/weights").json(), StreamKeys(name)
    uid = model_uid(meddler, name)
    commands: list[Any] = [
        {"do": "os.system"},
        {"do": "configure", "set": {"learning_rate": json.loads("[" * 400 + "]" * 400)}},
        {"do": "configure", "set": {"learning_rate": -1}},
        {"do": "restore", "checkpoint": "no such"},
        {"do": "restore", "checkpoint": ["no"]},
    ]
    for command in commands:
        end: Any = meddler.hmget(keys.meta, "last", "count", "bytes")
        last, count, size = end
        text = json.dumps({"model": uid, **command})
        before: Any = meddler.hget(keys.meta, "chain")
        chain = _sha1(f"{before}{last}x:1{_sha1(text)}[]")
        fields: Any = {"command": text, "from": "x:1"}
        fields |= {"chain": chain, "bytes": size, "count": count}
        entry: Any = meddler.xadd(keys.log, fields)
        meddler.hset(keys.meta, mapping={"last": entry, "chain": chain})
        assert last
        assert client.get(model, params={"at_least": f"{entry}.{chain}"}).status_code == 200
    assert client.get(model).json()["rejected"] == len(commands)
    after = client.get(f"{model}/weights").json()
    assert {**after, "position": ""} == {**weights, "position": ""}


def test_a_document_of_an_earlier_version_without_judged_events_is_read(
    client: httpx.Client, model: str
) -> None:
    document = _exported(client, model)
    del document["scalars"]["counts"]["judged"]
    document["fold"] = 1
    name = f"{model}-of-old"
    client.post(f"{name}/import", content=_signed(document)).raise_for_status()
    info = client.get(name).json()
    # true at score 0 is a mistake; then w = b = 1, and false at score 3 is another one
    assert (info["events"], info["judged"], info["mistakes"], info["accuracy"]) == (2, 2, 2, 0.0)
    document["fold"] = 99
    assert client.post(f"{name}-er/import", content=_signed(document)).status_code == 422
