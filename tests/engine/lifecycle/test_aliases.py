"""Aliases: a model's name wherever one is wanted, moved once per decision, cheap to look up."""

import asyncio
import contextlib
from collections import Counter
from typing import Any

import httpx
import pytest
import redis

from hinged_service.errors import Conflict, NotFound, Unavailable
from hinged_service.store import aliases
from tests.support.engine import Worker, event, worker
from tests.support.proxy import Proxy
from tests.support.shared_service import NewModel


def _name(path: str) -> str:
    return path.rpartition("/")[2]


async def test_many_workers_carry_a_decision_out_once(redis_url: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(worker(redis_url)) for _ in range(5)]
        await workers[0].create("m1")
        await workers[0].create("m2", stream="m1")
        await workers[0].registry.aliases.set("a", "m1")
        of, to = "m1", "m2"
        for n in range(20):
            calls = [
                w.registry.aliases.promote("a", of, to, f"d{n}") for w in workers for _ in range(3)
            ]
            made = Counter(p.kind for p in await asyncio.gather(*calls))
            assert made == {"ok": 1, "made": 14}, n
            for one in workers:
                assert (await one.open("a")).name == to
            of, to = to, of
        again = await workers[1].registry.aliases.promote("a", of, to, "d3")
        assert again.kind == "made"
        assert (await workers[2].open("a")).name == of


async def test_a_decision_that_comes_too_late_is_ignored_for_good(one: Worker, two: Worker) -> None:
    await one.create("m1")
    await one.create("m2", stream="m1")
    await one.create("m3", stream="m1")
    await one.registry.aliases.set("a", "m1")
    promote, late = one.registry.aliases.promote, two.registry.aliases.promote
    assert (await promote("a", "m1", "m2", "by hand")).kind == "ok"
    assert (await late("a", "m1", "m3", "drift")).kind == "moved"
    assert (await late("a", "m1", "m3", None)).kind == "moved"
    assert (await two.open("a")).name == "m2"
    assert (await promote("a", "m2", "m1", "by hand again")).kind == "ok"
    assert (await late("a", "m1", "m3", "drift")).kind == "made"
    assert (await two.open("a")).name == "m1"


async def test_a_decision_is_remembered_as_long_as_an_event_id(redis_url: str) -> None:
    """The window of this stream holds 150 ids at least, 300 at most: decisions like events."""
    async with worker(redis_url, seen_ids=150) as one:
        await one.create("m1")
        await one.create("m2", stream="m1")
        await one.registry.aliases.set("a", "m1")
        promote = one.registry.aliases.promote
        assert (await promote("a", "m1", "m2", "first")).kind == "ok"
        for n in range(149):
            of, to = ("m2", "m1") if n % 2 == 0 else ("m1", "m2")
            assert (await promote("a", of, to, f"d{n}")).kind == "ok"
            assert (await promote("a", "m1", "m2", "first")).kind == "made"
        assert (await one.open("a")).name == "m1"
        await one.registry.aliases.set("b", "m1")
        assert (await promote("b", "m1", "m2", "first")).kind == "ok"  # of another alias
        for first in range(0, 300, 100):  # fills the window twice over
            await one.learn("m1", *(event(n) for n in range(first, first + 100)))
        assert (await promote("a", "m1", "m2", "d0")).kind == "ok"


async def test_a_decision_and_an_event_of_one_name_do_not_meet(one: Worker) -> None:
    await one.create("m1")
    await one.registry.aliases.set("a", "m1")
    ids = ["d", "ad", "\xffa\xffd"]
    await one.learn("m1", *({**event(n), "id": name} for n, name in enumerate(ids)))
    assert (await one.registry.aliases.promote("a", "m1", "m1", "d")).kind == "ok"
    assert (await one.registry.aliases.promote("a", "m1", "m1", "d")).kind == "made"
    await one.learn("m1", {**event(9), "id": "a d"})
    assert (await one.open("m1")).state.events == len(ids) + 1


async def test_a_promotion_whose_reply_is_lost_is_sent_again(redis_url: str, proxy: Proxy) -> None:
    async with worker(proxy.url) as one:
        await one.create("m1")
        await one.create("m2", stream="m1")
        await one.registry.aliases.set("a", "m1")
        promote, lost = aliases.promote, 0

        async def loses(*call: Any) -> Any:
            nonlocal lost
            if lost < 2:
                proxy.drop_replies, lost = 1, lost + 1
            return await promote(*call)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(aliases, "promote", loses)
            for _ in range(2):
                with pytest.raises(Unavailable):
                    await one.registry.aliases.promote("a", "m1", "m2", "d")
            assert (await one.registry.aliases.promote("a", "m1", "m2", "d")).kind == "made"
        assert (await one.open("a")).name == "m2"
    assert proxy.dropped == 2


def test_aliases_and_models_share_their_names(client: httpx.Client, new_model: NewModel) -> None:
    path, elsewhere = new_model(), new_model()
    name, alias = _name(path), f"{_name(path)}-alias"
    spec = {"learner": {"type": "perceptron"}}
    at = f"/v1/aliases/{alias}"
    assert client.put(f"/v1/aliases/{name}", json={"model": name}).status_code == 409
    assert client.put(at, json={"model": f"{name}-none"}).status_code == 404
    assert client.put(at, json={"model": name}).status_code == 201
    assert client.put(at, json={"model": name}).status_code == 200
    client.post(f"{path}/learn", json={"x": {"a": 1.0}, "y": True})
    client.post(f"{path}/checkpoints", json={"name": "c"}).raise_for_status()
    exported = client.get(f"{path}/checkpoints/c/export").json()
    taken = (
        client.put(at, json={"model": _name(elsewhere)}),
        client.put(f"/v1/models/{alias}", json=spec),
        client.post(f"/v1/models/{alias}/import", json=exported),
        client.post(f"{path}/replay", json={"name": alias}),
        client.delete(path),
        client.delete(f"/v1/models/{alias}"),
        client.post(f"{at}/promote", json={"from": name, "to": _name(elsewhere)}),
    )
    for answer in taken:
        assert answer.status_code == 409, (answer.request.url, answer.text)
    assert client.post(f"{at}/promote", json={"from": alias, "to": name}).status_code == 404
    other = {"model": alias}
    assert client.put(f"/v1/aliases/{alias}2", json=other).status_code == 404
    assert alias not in {m["name"] for m in client.get("/v1/models").json()}
    assert client.delete(at).status_code == 204
    assert client.get(f"/v1/models/{alias}").status_code == 404
    assert client.put(f"/v1/models/{alias}", json=spec).status_code == 201
    assert client.put(at, json={"model": name}).status_code == 409


def test_an_alias_works_where_a_model_does(client: httpx.Client, new_model: NewModel) -> None:
    first = new_model()
    second = new_model(stream=_name(first), learner={"type": "passive_aggressive"})
    alias = f"/v1/models/{_name(first)}-live"
    at = alias.replace("models", "aliases")
    client.put(at, json={"model": _name(first)}).raise_for_status()
    for model in (first, second):
        learned = client.post(f"{alias}/learn", json={"x": {"a": 0.3, "b": -1.0}, "y": True})
        assert learned.status_code == 200
        behind = {"at_least": learned.json()["position"]}
        for call in ("weights", ""):
            through = client.get(f"{alias}/{call}".rstrip("/"), params=behind).json()
            direct = client.get(f"{model}/{call}".rstrip("/"), params=behind).json()
            assert through | {"stale_s": None} == direct | {"stale_s": None}  # time passes
        x = {"x": {"a": 0.7, "b": 0.1}}
        through, direct = (
            client.post(f"{m}/predict", json=x, params=behind).json() for m in (alias, model)
        )
        assert through == direct
        lines = client.post(
            f"{alias}/predict",
            content='{"x":{"a":1}}\n',
            headers={"content-type": "application/x-ndjson"},
        )
        assert lines.status_code == 200, lines.text
        made = client.post(f"{alias}/checkpoints", json={"name": f"c-{_name(model)}"}).json()
        assert made["model"] == _name(model)
        assert client.post(f"{alias}/freeze").status_code == 200
        assert client.get(model).json()["frozen"]
        restore = {"checkpoint": made["uid"]}
        assert client.post(f"{alias}/restore", json=restore).status_code == 200
        assert not client.get(model).json()["frozen"]
        assert (
            client.get(f"{alias}/checkpoints").json() == client.get(f"{model}/checkpoints").json()
        )
        move = {"from": _name(first), "to": _name(second), "decision": "now"}
        expected = {"result": "promoted" if model == first else "repeated", "model": _name(second)}
        assert client.post(f"{at}/promote", json=move).json() == expected
    compared = client.get(f"/v1/streams/{_name(first)}").json()
    assert compared["aliases"] == {f"{_name(first)}-live": _name(second)}
    client.delete(at).raise_for_status()


async def test_an_alias_means_what_it_meant_while_redis_is_away(
    redis_url: str, proxy: Proxy
) -> None:
    async with worker(proxy.url) as one, worker(redis_url) as two:
        await one.create("m1")
        await one.create("m2", stream="m1")
        await one.registry.aliases.set("a", "m1")
        await one.open("a")
        proxy.refuse = True
        proxy.cut()
        assert (await two.registry.aliases.promote("a", "m1", "m2", None)).kind == "ok"
        for _ in range(3):
            assert (await one.open("a")).name == "m1"
        with pytest.raises(Unavailable):
            await one.open("b")
        proxy.refuse = False
        while True:
            try:
                await one.read("a")
                break
            except Unavailable:
                await asyncio.sleep(0.05)
        assert (await one.open("a")).name == "m2"


async def test_an_alias_means_what_it_meant_while_its_model_cannot_be_read(
    redis_url: str, db: redis.Redis
) -> None:
    async with worker(redis_url, max_staleness_ms=1) as one:
        await one.create("m1")
        await one.registry.aliases.set("a", "m1")
        live_model = await one.open("a")
        db.hset("hinged:models", "m1", "{")
        await asyncio.sleep(0.05)
        assert await one.registry.open("a") is live_model


async def test_an_alias_that_is_known_costs_two_small_reads(one: Worker, two: Worker) -> None:
    await one.create("m1")
    await one.create("m2", stream="m1")
    await one.registry.aliases.set("a", "m1")
    await one.learn("a", event(1))
    calls: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("hget", "hget_bytes", "hgetall"):
            real = getattr(one.connection, name)

            async def counted(*call: Any, name: str = name, real: Any = real) -> Any:
                calls[name] += 1
                return await real(*call)

            patch.setattr(one.connection, name, counted)
        for n in range(1, 6):
            assert (await one.registry.open("a")).name == "m1"
            assert calls == {"hget": n, "hget_bytes": 2 * n}  # the first by way of the second
        await two.registry.aliases.promote("a", "m1", "m2", None)
        assert (await one.registry.open("a")).name == "m2"
    # the model's name may come to mean another model
    await two.registry.aliases.promote("a", "m2", "m1", None)
    assert (await one.registry.open("a")).name == "m1"
    await two.registry.aliases.delete("a")
    with pytest.raises(NotFound):
        await one.registry.open("a")
    await two.create("a")
    assert (await one.open("a")).name == "a"


async def test_an_alias_whose_model_is_gone_can_be_set_again(one: Worker) -> None:
    for stream in ("s1", "s2"):
        await one.create(stream)
    await one.create("m2", stream="s1")
    await one.registry.aliases.set("a", "s1")
    await one.registry.aliases.set("b", "s1")
    await one.open("a")

    async def none(*_: object) -> dict[str, str]:
        return {}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aliases, "of_stream", none)  # as two calls at a time may see it
        await one.lifecycle.delete("s1")
        with pytest.raises(NotFound):
            await one.open("a")
        assert await one.registry.aliases.set("a", "m2") == ("s1", True)
        assert (await one.open("a")).name == "m2"
        with pytest.raises(Conflict):
            await one.registry.aliases.set("a", "s2")
        assert await one.registry.aliases.set("b", "s2") == ("s2", True)
        await one.lifecycle.delete("m2")
    assert await one.registry.aliases.set("a", "s2") == ("s2", True)
    for alias in "ab":
        assert (await one.open(alias)).name == "s2"
