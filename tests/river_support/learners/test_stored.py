"""Pipelines, metrics, detectors and River learners through Redis: whole to the bit, or refused.

One file: all tests use the models that a fixture takes seconds to grow.
"""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import pytest
import redis

import hinged
from hinged_service.engine import export
from hinged_service.errors import ServiceError, Unprocessable
from hinged_service.model.inspection import recent_accuracy
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import restore_state, state_scalars
from hinged_service.store.keys import StreamKeys
from hinged_service.wire import codec
from tests.river_support.learners.fleet import folded, learn, logged, state_of
from tests.river_support.learners.side_by_side import MODELS, STREAM, Event, made_events
from tests.support.engine import Worker, spec, worker
from tests.support.plain_fold import model_uid
from tests.support.redis_server import RedisServer

EVENTS = made_events(random.Random(9), 400)
STREAMS = {name: {"stream": STREAM, **parts} for name, parts in MODELS.items()}


async def send(one: Worker, events: Sequence[Event], name: str = "text") -> None:
    """Learn events, ten in a body, through one of the models."""
    for start in range(0, len(events), 10):
        await learn(one, name, events[start : start + 10], mixed=True)


async def fold_of(one: Worker, name: str) -> ModelState:
    """Return a replica's fold at the log's end."""
    return (await one.read(name)).state


async def states(one: Worker) -> dict[str, Any]:
    """Return the states of all models at the log's end."""
    return {name: state_of(await fold_of(one, name)) for name in MODELS}


async def grow(url: str) -> dict[str, Any]:
    """Make all models, teach and command them, save them, and return their states."""
    async with worker(url) as one:
        for name, parts in STREAMS.items():
            await one.create(name, **parts)
        await send(one, EVENTS[:150])
        await (await one.read("scaled")).commands.append({"do": "configure", "set": {"C": 0.5}})
        await (await one.read("tree")).commands.append({"do": "freeze"})
        await send(one, EVENTS[150:])
        for name in MODELS:
            await one.save(name)
        return await states(one)


class Grown(NamedTuple):
    """The states of all models, and everything that Redis held then."""

    states: dict[str, Any]
    stored: dict[bytes, bytes]


@pytest.fixture(scope="module")
def once(server: RedisServer) -> Grown:
    with redis.Redis.from_url(server.url) as client:
        client.flushall()
        found = asyncio.run(grow(server.url))
        keys: Any = client.keys()
        dumps: Any = [client.dump(key) for key in keys]
        return Grown(found, dict(zip(keys, dumps, strict=True)))


@pytest.fixture
def grown(server: RedisServer, once: Grown) -> dict[str, Any]:
    """The states of all models, which are stored just as they were saved."""
    with redis.Redis.from_url(server.url) as client:
        client.flushall()
        for key, value in once.stored.items():
            client.restore(key, 0, value)
    return once.states


def commanded(client: redis.Redis, name: str) -> dict[str, Any]:
    """Return the state of the fold of a whole log, commands included, read by hand."""
    uid = model_uid(client, name)
    fold = ModelState(spec(**STREAMS[name]))
    events = {entry_id: (written, skip) for entry_id, written, skip in logged(client, STREAM)}
    entries: Any = client.xrange(f"hinged:{{{STREAM}}}:log")
    for entry_id, fields in entries:
        if entry_id in events:
            fold = folded_on(fold, entry_id, *events[entry_id])
        elif json.loads(fields.get("command", "{}")).get("model") == uid:
            fold.obey(json.loads(fields["command"]), entry_id)
    return state_of(fold)


def folded_on(
    fold: ModelState, entry_id: str, written: list[Any], skip: frozenset[int]
) -> ModelState:
    """Fold one more entry in."""
    return folded(fold, [(entry_id, written, skip)], mixed=False)


def test_a_loaded_snapshot_is_the_state_that_was_saved(
    server: RedisServer, grown: dict[str, Any]
) -> None:
    async def run() -> None:
        async with worker(server.url) as cold:
            for name, wanted in grown.items():
                replica = (await cold.registry.open(name)).replica
                assert not replica.needs_full, f"{name} was refused"
                assert state_of(replica.state) == wanted, name

    asyncio.run(run())
    with server.client() as client:
        for name, wanted in grown.items():
            assert commanded(client, name) == wanted, name
    stored_scalars = json.loads(grown["tree"]["scalars"]), json.loads(grown["scaled"]["scalars"])
    assert stored_scalars[0]["frozen"] is True
    assert stored_scalars[1]["configured"] == {"C": 0.5}
    assert json.loads(grown["bayes"]["scalars"])["detections"], "the damages below want some"


Scalars = dict[str, Any]
Change = Callable[[Scalars], object]


def deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def _model(scalars: Scalars) -> Any:
    return scalars["learner"]["scalars"]["model"]


def _put_model(document: Any) -> Change:
    return lambda s: s["learner"]["scalars"].update(model=document)


def _rows(*rows: Any) -> dict[str, Any]:
    return {"schema": 1, "root": [0], "rows": list(rows)}


HOSTILE: dict[str, Any] = {
    "pickle": pickle.dumps({"type": "os.system"}, 0).decode("latin-1"),
    "a type": {"type": "os.system", "args": ["true"]},
    "an unknown row": _rows(["os.system", ["true"]]),
    "a module's path": _rows(["river.linear_model.log_reg.LogisticRegression", {}]),
    "another object": _rows(["stats.mean.Mean", {"n": 0.0, "_mean": 0.0}]),
    "nothing": None,
    "deep": deep(900),
    "deep rows": _rows(["list", deep(900)]),
    "a cycle": _rows(["list", [[0]]]),
    "a huge number": _rows(["list", [10**400]]),
}

DAMAGES: dict[str, tuple[str, Change]] = {
    "no pipeline": ("text", lambda s: s.update(pipeline=None)),
    "a pipeline too many": ("numeric", lambda s: s.update(pipeline={"version": 1, "stages": []})),
    "an empty pipeline": ("text", lambda s: s.update(pipeline={"version": 1, "stages": []})),
    "a pipeline of another version": ("text", lambda s: s["pipeline"].update(version=2)),
    "a pipeline of text": ("text", lambda s: s.update(pipeline="os.system")),
    "a deep pipeline": ("text", lambda s: s["pipeline"].update(stages=deep(900))),
    "another stage": (
        "scaled",
        lambda s: s["pipeline"].update(stages=list(reversed(s["pipeline"]["stages"]))),
    ),
    "a stage too few": ("scaled", lambda s: s["pipeline"]["stages"].pop()),
    "a scaler of nothing": ("scaled", lambda s: s["pipeline"]["stages"][1].__setitem__(2, [["a"]])),
    "no metrics": ("text", lambda s: s.update(metrics=None)),
    "metrics too many": ("categories", lambda s: s.update(metrics={"version": 1})),
    "metrics of another version": ("text", lambda s: s["metrics"].update(version=99)),
    "metrics of text": ("scaled", lambda s: s.update(metrics="x")),
    "metrics as a list": ("tree", lambda s: s.update(metrics=[])),
    "no drift": ("scaled", lambda s: s.update(drift=None)),
    "drift too much": ("text", lambda s: s.update(drift={"version": 1})),
    "another detector": ("categories", lambda s: s["drift"].update(type="DDM")),
    "a detector of another version": ("bayes", lambda s: s["drift"].update(version=2)),
    "detections of text": ("bayes", lambda s: s.update(detections="1-0")),
    "a detection too many": ("bayes", lambda s: s["detections"].append(["1-0", 0, 1])),
    "a detection too few": ("bayes", lambda s: s["detections"].pop()),
    "a detection of no entry": ("bayes", lambda s: s["detections"][0].__setitem__(0, "\ud800")),
    "a detection below 0": ("bayes", lambda s: s["detections"][0].__setitem__(1, -1)),
    "a detection of three letters": ("bayes", lambda s: s["detections"].__setitem__(0, "abc")),
    "no detections": ("text", lambda s: s.pop("detections")),
    "a count below 0": ("text", lambda s: s["counts"].update(rejected=-1)),
    "a count beyond 64 bits": ("text", lambda s: s["counts"].update(events=10**400)),
    "a true count": ("bayes", lambda s: s["counts"].update(events=True)),
    "a count of 1.0": ("bayes", lambda s: s["counts"].update(mistakes=1.0)),
    "a count missing": ("tree", lambda s: s["counts"].pop("served")),
    "a count too many": ("tree", lambda s: s["counts"].update(more=1)),
    "counts as a list": ("hedge", lambda s: s.update(counts=[])),
    "an unknown parameter": ("scaled", lambda s: s.update(configured={"type": "os.system"})),
    "a parameter of text": ("scaled", lambda s: s.update(configured={"C": "0.5"})),
    "a huge parameter": ("scaled", lambda s: s.update(configured={"C": 10**400})),
    "a parameter of nan": ("scaled", lambda s: s.update(configured={"C": float("nan")})),
    "a deep parameter": ("scaled", lambda s: s.update(configured={"C": deep(900)})),
    "a parameter of River's": ("logistic", lambda s: s.update(configured={"l2": 0.5})),
    "configured as a list": ("scaled", lambda s: s.update(configured=[])),
    "frozen as a number": ("tree", lambda s: s.update(frozen=1)),
    "frozen as text": ("bayes", lambda s: s.update(frozen="true")),
    "not frozen at all": ("several", lambda s: s.pop("frozen")),
    "names twice": ("logistic", lambda s: s["learner"]["scalars"].update(names=["a", "a"])),
    "names of numbers": ("bayes", lambda s: s["learner"]["scalars"].update(names=[1])),
    "another schema": ("tree", lambda s: _model(s).update(schema=2)),
    "a row cut off": ("tree", lambda s: _model(s)["rows"].pop()),
    "rows in another order": ("bayes", lambda s: _model(s)["rows"].reverse()),
    **{
        f"{kind}: {what}": (kind, _put_model(document))
        for kind in ("logistic", "bayes", "tree", "numeric-river")
        for what, document in HOSTILE.items()
    },
    **{
        f"detector: {what}": ("scaled", lambda s, d=document: s["drift"].update(detector=d))  # type: ignore[misc]
        for what, document in HOSTILE.items()
    },
}


def rewrite(client: redis.Redis, name: str, change: Change) -> None:
    """Change a stored state and put its digest right, as a buggy or hostile writer would."""
    state = StreamKeys(STREAM).model(model_uid(client, name)).state
    fields: Any = client.hgetall(state)
    scalars = json.loads(fields["scalars"])
    change(scalars)
    rest = fields | {"scalars": json.dumps(scalars)}
    del rest["digest"]
    client.hset(state, mapping=rest | {"digest": codec._digest(rest)})


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_part_is_refused_and_its_model_made_again_alone(
    server: RedisServer, grown: dict[str, Any], damage: str
) -> None:
    victim, change = DAMAGES[damage]

    async def run(client: redis.Redis) -> None:
        rewrite(client, victim, change)
        async with worker(server.url) as after:
            for name, wanted in grown.items():
                replica = (await after.registry.open(name)).replica
                assert replica.needs_full is (name == victim), name
                assert state_of(await fold_of(after, name)) == wanted, name
            await after.save(victim)
        async with worker(server.url) as later:
            replica = (await later.registry.open(victim)).replica
            assert not replica.needs_full, "it is sound again"
            assert state_of(replica.state) == grown[victim]

    with server.client() as client:
        asyncio.run(run(client))


def _paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    if isinstance(value, (dict, list)):
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            yield from _paths(value[key], (*path, key))


WRONG: list[Any] = [
    None, True, -1, 7, 10**400, -0.5, 1e300, float("nan"), float("inf"), "text", "\ud800", [], {},
    [[]], {"type": "os.system"}, deep(900),
]  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_any_change_of_a_stored_state_is_refused_or_harmless(
    grown: dict[str, Any], name: str
) -> None:
    """Nothing but `InvalidState` comes out, and what is taken over can be asked and saved."""
    made = ModelState(spec(**STREAMS[name]))
    made = folded(made, [("1-0", EVENTS[:120], frozenset())], mixed=False)
    scalars = json.loads(json.dumps(state_scalars(made)))
    vectors = {n: dict(v.view()) for n, v in made.vectors().items()}
    rng = random.Random(name)
    found = [path for path in _paths(scalars) if path]
    x: Any = {"a": 1.0, "b": -2.0}
    taken = 0
    for path in rng.sample(found, min(len(found), 150)):
        for wrong in rng.sample(WRONG, 4):
            changed = copy.deepcopy(scalars)
            place = changed
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = wrong
            other = ModelState(spec(**STREAMS[name]))
            try:
                restore_state(other, changed, vectors)
            except hinged.InvalidState:
                continue
            taken += 1
            json.dumps(state_scalars(other), allow_nan=False).encode()
            answer = other.predict(x)
            json.dumps(msgspec.structs.asdict(answer), allow_nan=False).encode()
            assert 0.0 <= recent_accuracy(other) <= 1.0 or other.mistakes > other.events
    assert taken < len(found)


def test_a_river_state_that_decodes_but_cannot_answer_is_refused() -> None:
    """Rows of allowed types may still not go together; nothing has changed then."""
    made = ModelState(
        spec(learner={"type": "OneVsOneClassifier", "classifier": {"type": "PAClassifier"}})
    )
    log = [("1-0", [{"x": {"a": 1.0 + n}, "y": "xyz"[n % 3]} for n in range(9)], frozenset[int]())]
    made = folded(made, log, mixed=False)
    text = json.dumps(state_scalars(made))
    assert text.count('{"tuple": ["x", "y"]}') == 1
    other = ModelState(
        spec(learner={"type": "OneVsOneClassifier", "classifier": {"type": "PAClassifier"}})
    )
    before = other.predict({"a": 1.0})
    with pytest.raises(hinged.InvalidState):
        restore_state(other, json.loads(text.replace('{"tuple": ["x", "y"]}', '{"tuple": []}')), {})
    assert other.predict({"a": 1.0}) == before
    restore_state(other, json.loads(text), {})
    assert state_of(other) == state_of(made)


LATER = made_events(random.Random(10), 100)
for number, event in enumerate(LATER):
    event["id"] = f"later{number}"


def _but_entries(fold: ModelState) -> dict[str, Any]:
    """Return a state without ids and times of log entries."""
    found = state_of(fold)
    scalars = json.loads(found["scalars"])
    scalars["detections"] = [detection[1:] for detection in scalars["detections"]]
    history = scalars["history"]
    del history["points"]["at_ms"]
    history["marks"] = [mark[1:] for mark in history["marks"]]
    return found | {"scalars": scalars}


def test_models_that_start_from_the_log_or_a_copy_and_imported_ones_go_on_alike(
    redis_url: str, shared_server: RedisServer, server: RedisServer
) -> None:
    async def run(client: redis.Redis) -> None:
        async with worker(redis_url) as one, worker(server.url) as far:
            for name, parts in STREAMS.items():
                await one.create(name, **parts)
            await send(one, EVENTS[:200])
            for name, parts in STREAMS.items():
                await one.create(f"{name}-log", **parts, start="log")
                await one.create(f"{name}-copy", **parts, start={"model": name})
                source = await one.read(name)
                made = await source.checkpoints.make(f"{name}-kept")
                body = b"".join(export.exported(made, await source.checkpoints.read(made)))
                await far.lifecycle.create_imported(f"{name}-far", export.imported(body))
                assert state_of(await fold_of(far, f"{name}-far")) == state_of(source.state)
            await send(one, LATER)
            log = list(logged(client, STREAM))
            async with worker(redis_url) as cold:
                for name, parts in STREAMS.items():
                    plain = state_of(folded(spec(**parts), log, mixed=False))
                    for who in (one, cold):
                        for kind in ("", "-log", "-copy"):
                            assert state_of(await fold_of(who, name + kind)) == plain, name + kind
            for name in MODELS:
                await one.save(f"{name}-log")
                await far.save(f"{name}-far")
                model = await far.read(f"{name}-far")
                if model.state.accepts_non_numeric:
                    await send(far, LATER, f"{name}-far")
                    wanted = _but_entries(await fold_of(one, name))
                    assert _but_entries(await fold_of(far, f"{name}-far")) == wanted, name
                    await far.save(f"{name}-far")
            async with worker(server.url) as cold:
                for name in MODELS:
                    hot = state_of(await fold_of(far, f"{name}-far"))
                    assert state_of(await fold_of(cold, f"{name}-far")) == hot

    with shared_server.client() as client, server.client() as other:
        asyncio.run(run(client))
        other.flushall()


def test_a_restored_model_is_the_fold_of_its_checkpoint_and_what_came_after(
    redis_url: str, shared_server: RedisServer
) -> None:
    async def run(client: redis.Redis) -> None:
        async with worker(redis_url) as one, worker(redis_url) as two:
            for name, parts in STREAMS.items():
                await one.create(name, **parts)
            await send(one, EVENTS[:150])
            kept = {name: await (await two.read(name)).checkpoints.make(name) for name in MODELS}
            places = {n: (c.position or "").partition(".")[0] for n, c in kept.items()}
            await send(two, EVENTS[150:300])
            restored = {}
            for name, checkpoint in kept.items():
                restored[name] = (await (await one.read(name)).commands.restore(checkpoint)).id
            await send(one, EVENTS[300:])
            log = list(logged(client, STREAM))
            async with worker(redis_url) as cold:
                for name, parts in STREAMS.items():
                    last, again = (_order(p[name]) for p in (places, restored))
                    before = [e for e in log if _order(e[0]) <= last]
                    after = [e for e in log if again <= _order(e[0])]
                    fold = folded(spec(**parts), before, mixed=False)
                    fold.note({"do": "restore"}, restored[name])
                    plain = state_of(folded(fold, after, mixed=False))
                    for who in (one, two, cold):
                        assert state_of(await fold_of(who, name)) == plain, name

    with shared_server.client() as client:
        asyncio.run(run(client))


def _order(entry_id: str) -> tuple[int, ...]:
    return tuple(map(int, entry_id.split("-")))


def test_no_state_gets_into_a_model_of_another_pipeline(
    redis_url: str, shared_server: RedisServer
) -> None:
    async def run(client: redis.Redis) -> None:
        async with worker(redis_url) as one:
            for name, parts in STREAMS.items():
                await one.create(name, **parts)
            await send(one, EVENTS[:60])
            text = await one.read("text")
            kept = await text.checkpoints.make("kept")
            scaled = await fold_of(one, "scaled")
            before, rejected = state_of(scaled), scaled.rejected
            commands = (await one.read("scaled")).commands
            await commands.restore(kept)  # what the route refuses beforehand
            scaled = await fold_of(one, "scaled")
            assert scaled.rejected == rejected + 1
            scaled.rejected = rejected
            assert state_of(scaled) == before
            scaled.rejected += 1
            other = STREAMS["text"] | {"pipeline": MODELS["categories"]["pipeline"]}
            with pytest.raises(ServiceError) as refused:
                await one.create("copy", **other, start={"model": "text"})
            assert refused.value.status in (409, 422)
            document = json.loads(
                b"".join(export.exported(kept, await text.checkpoints.read(kept)))
            )
            for parts in (
                MODELS["scaled"],
                MODELS["categories"],
                {**MODELS["text"], "metrics": []},
            ):
                forged = document | {"spec": ModelSpec.model_dump(spec(**parts), mode="json")}
                del forged["digest"]
                forged["digest"] = export._digest(forged)
                with pytest.raises(Unprocessable):
                    export.imported(json.dumps(forged).encode())

    with shared_server.client() as client:
        asyncio.run(run(client))
