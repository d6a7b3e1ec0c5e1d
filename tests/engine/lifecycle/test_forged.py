"""Forged states with a right digest, at the door: refused whole on import, set aside in Redis."""

import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import redis

from hinged_service.model.state_codec import state_scalars
from hinged_service.store.keys import StreamKeys
from hinged_service.wire.codec import decode_state, encode_state
from tests.support.checks import check_problem
from tests.support.engine import worker
from tests.support.plain_fold import model_uid

TREE: dict[str, Any] = {
    "type": "HoeffdingTreeClassifier",
    "grace_period": 5,
    "delta": 0.5,
    "max_depth": 6,
}
LOGISTIC = {"type": "LogisticRegression", "optimizer": {"type": "Adam"}}
SPECS: dict[str, dict[str, Any]] = {
    "perceptron": {"learner": {"type": "perceptron"}},
    "tree": {"learner": TREE},
    "bagging": {"learner": {"type": "BaggingClassifier", "model": TREE, "n_models": 2, "seed": 1}},
    "logistic": {"learner": LOGISTIC},
    "rest": {"learner": {"type": "OneVsRestClassifier", "classifier": LOGISTIC}},
    "counts": {"learner": {"type": "ComplementNB"}},
    "drift": {"learner": {"type": "perceptron"}, "drift": {"detector": {"type": "DDM"}}},
}
Rows = list[list[Any]]
Document = dict[str, Any]
Forging = Callable[[Document], object]


def _events(spec: str, first: int, count: int) -> list[dict[str, Any]]:
    labels: Any = (False, True) if spec in ("perceptron", "logistic", "drift") else ("p", "q", "r")
    return [
        {
            "x": {"a": float(n % len(labels)), "b": n % 7 / 7.0, "c": n * n % 11 / 3.0},
            "y": labels[n % len(labels)],
        }
        for n in range(first, first + count)
    ]


def rows(document: Document) -> Rows:
    found: Rows = document["scalars"]["learner"]["scalars"]["model"]["rows"]
    return found


def of(document: Document, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Return the rows of a class, with their numbers."""
    for number, (kind, *parts) in enumerate(rows(document)):
        if kind.endswith(name):
            yield number, parts[0]


def first(document: Document, name: str) -> tuple[int, dict[str, Any]]:
    return next(of(document, name))


def children(document: Document) -> tuple[int, list[list[int]]]:
    """Return the number of a branch, and the references to its children."""
    number, branch = first(document, "NumericBinaryBranch")
    found: list[list[int]] = rows(document)[branch["children"][0]][1]
    return number, found


def _circle(document: Document) -> None:
    number, found = children(document)
    found[0] = [number]


def _twice(document: Document) -> None:
    _, found = children(document)
    found[0] = found[1]


def _values(document: Document, row: dict[str, Any], name: str) -> list[Any]:
    found: list[Any] = rows(document)[row[name][0]][-1]
    return found


FORGED: dict[str, tuple[str, Forging]] = {
    "a branch that is its own child": ("tree", _circle),
    "a branch with one child twice": ("tree", _twice),
    "a bagged branch that is its own child": ("bagging", _circle),
    "a million splits": (
        "tree",
        lambda d: [row.update(n_splits=10**6) for _, row in of(d, "GaussianSplitter")],
    ),
    "a million splits in one leaf": (
        "tree",
        lambda d: list(of(d, "GaussianSplitter"))[-1][1].update(n_splits=10**6),
    ),
    "a million splits in a bag": (
        "bagging",
        lambda d: list(of(d, "GaussianSplitter"))[-1][1].update(n_splits=10**6),
    ),
    "leaves of another number": (
        "tree",
        lambda d: first(d, "HoeffdingTreeClassifier")[1].update(_n_active_leaves=10**6),
    ),
    "a deep leaf": ("tree", lambda d: first(d, "LeafNaiveBayesAdaptive")[1].update(depth=99)),
    "a spread below zero": ("tree", lambda d: first(d, "stats.var.Var")[1].update(_S=-1.0)),
    "a step back": ("logistic", lambda d: first(d, "Adam")[1].update(n_iterations=-3)),
    "moments of other names": (
        "logistic",
        lambda d: rows(d)[first(d, "Adam")[1]["v"][0]][2].__setitem__(0, "z"),
    ),
    "a weight beyond all": (
        "logistic",
        lambda d: first(d, "LogisticRegression")[1].update(intercept=1e300),
    ),
    "an endless weight": (
        "logistic",
        lambda d: first(d, "LogisticRegression")[1].update(intercept={"float": "inf"}),
    ),
    "a member of another rate": (
        "rest",
        lambda d: list(of(d, "LogisticRegression"))[-1][1].update(intercept_lr=0.5),
    ),
    "a count of text": (
        "counts",
        lambda d: _values(d, first(d, "ComplementNB")[1], "class_totals").__setitem__(0, "a"),
    ),
    "a share below zero": (
        "drift",
        lambda d: next(
            row for kind, row in d["scalars"]["drift"]["detector"]["rows"] if "Mean" in kind
        ).update(_mean=-0.5, n=100.0),
    ),
}


def _named(*path: Any) -> Forging:
    """Return what appends the last part to the list at the others."""

    def forge(document: Document) -> None:
        found: Any = document
        for part in path[:-1]:
            found = found[part]
        found.append(path[-1])

    return forge


NAMES = ["\x00json:[1]", "\x00json:1", "\x00json:null", '\x00json:["a",["b"]]']
BY_IMPORT: dict[str, tuple[str, Forging]] = {
    **FORGED,
    "a count beyond counting": (
        "perceptron",
        lambda d: d["scalars"]["counts"].update(served=2**62),
    ),
    **{
        f"a weight named {name[6:]}": (
            "perceptron",
            _named("vectors", "weights", [name, 1.0]),
        )
        for name in NAMES
    },
    **{
        f"a feature named {name[6:]}": (
            "logistic",
            _named("scalars", "learner", "scalars", "names", name),
        )
        for name in NAMES
    },
}


@pytest.fixture(scope="module")
def documents(client: httpx.Client) -> dict[str, str]:
    found = {}
    for name, spec in SPECS.items():
        path = f"/v1/models/forge-{name}"
        assert client.put(path, json=spec).status_code == 201
        assert client.post(f"{path}/learn", json=_events(name, 0, 60)).is_success
        assert client.post(f"{path}/checkpoints", json={"name": "c"}).status_code == 201
        found[name] = client.get(f"{path}/checkpoints/c/export").text
    return found


def sealed(document: Document) -> bytes:
    document.pop("digest", None)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return json.dumps(document | {"digest": hashlib.sha256(text.encode()).hexdigest()}).encode()


@pytest.mark.parametrize("forged", BY_IMPORT)
def test_a_forged_document_is_refused(
    client: httpx.Client, documents: dict[str, str], forged: str
) -> None:
    kind, forge = BY_IMPORT[forged]
    document = json.loads(documents[kind])
    forge(document)
    assert document != json.loads(documents[kind])
    answer = client.post("/v1/models/forged/import", content=sealed(document))
    check_problem(answer, 422)
    assert answer.json()["errors"]
    assert client.get("/v1/models/forged").status_code == 404


@pytest.mark.parametrize("kind", SPECS)
def test_a_sealed_document_goes_on_as_the_model_does(
    client: httpx.Client, documents: dict[str, str], kind: str
) -> None:
    """The trial of an import leaves no trace."""
    path, more = f"/v1/models/sealed-{kind}", _events(kind, 60, 30)
    answer = client.post(f"{path}/import", content=sealed(json.loads(documents[kind])))
    assert answer.status_code == 201
    both = [client.post(f"{p}/learn", json=more).json() for p in (path, f"/v1/models/forge-{kind}")]
    outcomes = [[{**one, "position": ""} for one in answers] for answers in both]
    assert outcomes[0] == outcomes[1]
    client.delete(path)
    client.delete(f"/v1/models/forge-{kind}")


@pytest.mark.parametrize("forged", FORGED)
async def test_a_forged_snapshot_is_made_again_from_the_log(
    redis_url: str, db: redis.Redis, forged: str
) -> None:
    kind, forge = FORGED[forged]
    async with worker(redis_url) as one:
        await one.create("m", **SPECS[kind])
        await one.learn("m", *_events(kind, 0, 60))
        before = state_scalars((await one.read("m")).state)
        await one.save("m")
    key = StreamKeys("m").model(model_uid(db, "m")).state
    text: Any = db.hgetall(key)
    stored = decode_state(text)
    forge({"scalars": stored.scalars})
    changed: Any = encode_state(stored.position, stored.scalars, stored.sizes, stored.marks)
    assert changed != text
    db.hset(key, mapping=changed)
    async with worker(redis_url) as two:
        assert state_scalars((await two.read("m")).state) == before
