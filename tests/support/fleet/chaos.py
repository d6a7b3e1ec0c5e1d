"""Everything that can go wrong at once, at random, and what must hold all the same.

Three workers share a server, each behind a proxy that loses answers. Clients
send events with ids (again and again) and without (once each) to any of them.
Meanwhile workers are killed, the server is killed or set back to an older copy
of itself, logs are trimmed, models deleted and made again. In the end the
server's append-only file says what happened.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

from hinged_service.errors import ModelGone, NotFound, ServiceError, SetAside, Unavailable
from tests.support.aof import Past, read_past
from tests.support.engine import (
    Event,
    Worker,
    exact,
    leaked_keys,
    replica_state,
    stream_from_tomorrow,
)
from tests.support.fleet.faults import Faults, beside
from tests.support.fleet.senders import made
from tests.support.plain_fold import model_uid, read_snapshot
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

STREAM = "m"
REFUSALS = (Unavailable, NotFound, ModelGone, TimeoutError)
MODELS = ("m", "other")
WORKERS = 3
CLIENTS = 6
PATIENCE_S = 2.0
TROUBLES = {"drop": 6, "cut": 2, "slow": 2, "kill": 3, "save one": 6, "flush": 1}
TROUBLES |= {
    "stand still": 1,
    "copy data": 3,
    "set back": 2,
    "set back in a pause": 1,
    "crash": 1,
    "delete": 1,
}
"""Faults, and how often each happens compared to the others."""


class Chaos:
    """One run; its decisions come from `seed`, timing apart."""

    def __init__(
        self, server: RedisServer, copies: Path, seed: int, troubles: dict[str, int] = TROUBLES
    ) -> None:
        self.troubles = troubles
        self.random = random.Random(seed)
        self.server = server
        self.proxies = [Proxy(server.port) for _ in range(WORKERS)]
        self.faults = Faults(self.random, server, self.proxies, copies)
        self.workers: list[Worker] = []
        self.dead: list[Worker] = []
        self.sent = 0
        self.unnamed = 0
        self.acknowledged: set[str] = set()
        self.happened: Counter[str] = Counter()
        self._epoch = 0
        self._over = False
        self._resting: Worker | None = None
        self._going = asyncio.Event()
        self._going.set()
        self._copied: set[str] | None = None

    def new_worker(self, number: int) -> Worker:
        """Return a worker in the place of another, in a hurry about everything."""
        one = Worker(
            self.proxies[number].url,
            append_timeout_ms=300,
            redis_timeout_ms=250,
            max_staleness_ms=20,
            snapshot_every_events=15,
            snapshot_every_ms=100,
            housekeeping_ms=15,
            retention_bytes=(0, 4_000, 10**9)[number % 3],
            reply_bytes=(1024, 2**22, 2**22)[number % 3],
            snapshot_chunk=7,
            hold_ms=200,
            max_replicas=(1, 1_000, 1_000)[number % 3],
        )
        one.housekeeping.start()
        return one

    async def run(self, seconds: float, rounds: int = 1) -> None:
        """Make trouble for `seconds`, checking everything `rounds` times."""
        for proxy in self.proxies:
            proxy.start()
        try:
            self.workers = [self.new_worker(n) for n in range(WORKERS)]
            await self._create_all()
            for _ in range(rounds):
                await self._round(seconds / rounds)
                await self._calm()
                await self._check()
        finally:
            for one in [*self.workers, *self.dead]:
                await one.kill()
            for proxy in self.proxies:
                proxy.stop()

    async def _round(self, seconds: float) -> None:
        self._over = False
        clients = [asyncio.ensure_future(self._client()) for _ in range(CLIENTS)]
        end_s = time.monotonic() + seconds
        try:
            while time.monotonic() < end_s and not any(client.done() for client in clients):
                await asyncio.sleep(self.random.uniform(0.02, 0.2))
                await self._trouble()
        finally:
            self._over = True
            self._going.set()
            await asyncio.wait(clients)
        for client in clients:
            client.result()

    async def _client(self) -> None:
        while not self._over:
            events = [self._event() for _ in range(self.random.choice((1, 1, 2, 5)))]
            for _ in range(self.random.choice((1, 1, 2, 3))):
                await self._send(events)
                # without an id an event may be sent once only
                events = [e for e in events if e.get("id") is not None]
                if not events or self._over:
                    break
            await asyncio.sleep(0)
            await self._going.wait()

    def _event(self) -> Event:
        if self.sent and self.random.random() < 0.3:
            return made(self.random.randint(max(1, self.sent - 200), self.sent))
        self.sent += 1
        if self.random.random() < 0.7:
            return made(self.sent)
        event = made(self.sent)
        del event["id"]
        self.unnamed += 1
        event["x"][f"only{self.unnamed}"] = 1.0
        return event

    async def _send(self, events: list[Event]) -> None:
        epoch = self._epoch
        one = self.random.choice([w for w in self.workers if w is not self._resting])
        name = MODELS[0] if self.random.random() < 0.8 else MODELS[1]
        try:
            await asyncio.wait_for(one.learn(name, *events), PATIENCE_S)
        except SetAside as error:
            raise AssertionError("an undamaged model is set aside") from error
        except (*REFUSALS, asyncio.CancelledError) as error:
            # a killed worker does not answer, or cancels what was being opened
            self.happened[f"learn: {type(error).__name__}"] += 1
            return
        self.happened["learn"] += 1
        if epoch == self._epoch:
            self.acknowledged |= {e["id"] for e in events if e.get("id") is not None}

    async def _trouble(self) -> None:
        kind = self.random.choices(list(self.troubles), list(self.troubles.values()))[0]
        if kind == "set back" and self._copied is None:
            return
        number, faults = self.random.randrange(WORKERS), self.faults
        match kind:
            case "drop":
                faults.lose_answers(which=number)
            case "cut":
                faults.cut(number)
            case "slow":
                faults.slow(number)
            case "stand still":
                await beside(faults.stand_still, self.random.uniform(0.1, 0.6))()
            case "crash":
                faults.crash()
            case "flush":
                faults.forget_scripts()
            case _:
                await getattr(self, "_" + kind.replace(" ", "_"))(number)
        self.happened[kind] += 1

    async def _kill(self, number: int) -> None:
        old, self.workers[number] = self.workers[number], self.new_worker(number)
        self.dead.append(old)
        await old.kill()

    async def _copy_data(self, _: int) -> None:
        acknowledged = set(self.acknowledged)
        self.faults.copy_data()
        self._copied = acknowledged

    async def _set_back(self, number: int) -> None:
        assert self._copied is not None
        self._epoch += 1
        self.faults.set_back()
        self.acknowledged = set(self._copied)
        # a late worker may find other entries under the ids that it knows
        self._resting = self.workers[number]
        await asyncio.sleep(self.random.uniform(0.0, 0.3))
        self._resting = None

    async def _set_back_in_a_pause(self, number: int) -> None:
        """Lose a snapshot without losing any entry."""
        self._going.clear()
        for one in self.workers:
            for name in MODELS:
                await self._try(self._ask(one, name))
        await self._copy_data(number)
        for name in MODELS:
            await self._try(self.workers[number].save(name))
        for one in self.workers:
            await self._try(self._ask(one, self.random.choice(MODELS)))
        await self._set_back(number)
        self._going.set()

    async def _save_one(self, number: int) -> None:
        await self._try(self._save(number))

    async def _delete(self, number: int) -> None:
        await self._try(self._delete_and_create(number))

    async def _save(self, number: int) -> None:
        name = self.random.choice(MODELS)
        await self.workers[number].read(name)
        await self.workers[number].save(name)

    async def _delete_and_create(self, number: int) -> None:
        self._epoch += 1
        names = self.random.choice((MODELS, MODELS[:1], MODELS[1:]))
        for name in names:
            await self._try(self.workers[number].lifecycle.delete(name))
            if self.random.random() < 0.5:
                await asyncio.sleep(0.02)
        await self._create_all()
        if names is MODELS:  # with both the stream went
            self.acknowledged = set()
        self._epoch += 1

    async def _create_all(self) -> None:
        end_s = time.monotonic() + 20
        with self.server.client() as client:
            if not client.exists(f"hinged:{{{STREAM}}}:meta"):
                stream_from_tomorrow(client, STREAM)
        for name in MODELS:
            while not await self._try(self.random.choice(self.workers).create(name, stream=STREAM)):
                assert time.monotonic() < end_s, "no model can be created"

    async def _try(self, step: Any) -> bool:
        try:
            await asyncio.wait_for(step, 5)
        except SetAside as error:
            raise AssertionError("an undamaged model is set aside") from error
        except (ServiceError, TimeoutError):
            return False
        return True

    async def _calm(self) -> None:
        self.faults.calm()
        await self._create_all()
        end_s = time.monotonic() + 20
        for one in self.workers:
            for name in MODELS:
                while not await self._try(self._ask(one, name)):
                    assert time.monotonic() < end_s, "a worker does not recover"

    async def _ask(self, one: Worker, name: str) -> None:
        await (await one.open(name)).freshness.read()

    async def _check(self) -> None:
        past = read_past(self.server.directory, f"hinged:{{{STREAM}}}:log")
        whole = past.fold()
        self._check_events(past, whole.counted_ids)
        with self.server.client() as client:
            for name in MODELS:
                appenders = [await one.open(name) for one in self.workers]
                base = appenders[0].entry.base
                assert base is not None
                folded = past.fold(base)
                plain = exact(folded.weights, folded.accounts, folded.rejected)
                for live_model in appenders:
                    assert live_model.keys.uid == model_uid(client, name)
                    assert live_model.position.id == past.entries[-1][0]
                    assert replica_state(live_model) == plain, f"a replica of {name} differs"
                await appenders[self.random.randrange(WORKERS)].save()
                stored = read_snapshot(client, STREAM, model_uid(client, name))
                if stored is not None:
                    upto = past.fold(base, upto=stored.position)
                    assert stored.chain == upto.chain
                    saved = exact(stored.weights, stored.accounts, stored.rejected)
                    then = exact(upto.weights, upto.accounts, upto.rejected)
                    assert saved == then, f"the snapshot of {name} differs"
            await self._check_keys(client)

    def _check_events(self, past: Past, counted: list[str]) -> None:
        twice = [name for name, times in Counter(counted).items() if times > 1]
        assert not twice, f"counted twice: {twice[:5]}"
        lost = self.acknowledged - set(counted)
        assert not lost, f"acknowledged and lost: {sorted(lost)[:5]}"
        logged: dict[str, list[tuple[str, str]]] = {}
        for entry_id, fields in past.entries:
            for name in fields.get("events", "").replace('"', " ").split():
                if name.startswith("only"):
                    logged.setdefault(name, []).append((entry_id, fields.get("from", "")))
        twice_logged = {name: where for name, where in logged.items() if len(where) > 1}
        assert not twice_logged, f"a batch was logged twice: {twice_logged}"

    async def _check_keys(self, client: Any) -> None:
        end_s = time.monotonic() + 5
        while leaked_keys(client, STREAM):  # the sweep needs its turn
            assert time.monotonic() < end_s, leaked_keys(client, STREAM)
            await asyncio.sleep(0.05)
        uids = {model_uid(client, name) for name in MODELS}
        while set(client.hkeys(f"hinged:{{{STREAM}}}:followers")) != uids:
            assert time.monotonic() < end_s, "an orphan follows the stream"
            await asyncio.sleep(0.05)
