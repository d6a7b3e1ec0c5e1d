"""Two workers, one server and any failures, step by step, against plain models.

One file: one machine, with its rules and what must hold after each.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from hinged_service.engine.live_model import LiveModel
from hinged_service.errors import Conflict, ModelGone, NotFound, SetAside, Unavailable
from hinged_service.wire.events import Question
from tests.fuzz.budget import tries
from tests.fuzz.doubles import Double, Past, live
from tests.support.engine import Event, Worker, leaked_keys, stream_from_tomorrow
from tests.support.fleet.faults import Faults
from tests.support.plain_fold import model_uid
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer

STREAM = "s"
NAMES = ("a", "b", "c")
ALIAS = "live"
PATIENCE_S = 60.0
STALL_S = 0.03

T = TypeVar("T")

number = st.sampled_from([0, 1, 2, 3])
value = st.sampled_from(
    [*(1.0, -1.0, 0.5, 0.1, 3, -0.0, 0, 1e100, -1e100, 5e-324, 1e-300, 2**53 + 1, 0.1 + 0.2)]
)
features = st.dictionaries(st.sampled_from(["a", "b", "é", "", "\x00json:1", "0"]), value)
label = st.sampled_from([True, False, True, False, 1, 0, "ham", 2])
named = st.tuples(st.integers(0, 11), number)
"""The number of an id and the variant of its content."""


@st.composite
def events(draw: st.DrawFn) -> Event:
    """Draw an event, with an id or without."""
    if draw(st.booleans()):
        return event_of(*draw(named))
    event: Event = {"x": draw(features), "y": draw(label)}
    if draw(st.booleans()):
        event["w"] = draw(st.sampled_from([0.5, 2, 1e-9, 1e100]))
    return event


few_ids = st.lists(
    st.builds(lambda *parts: event_of(*parts), st.integers(0, 5), number), min_size=2, max_size=5
)
"""Events of few ids, so that they come again, also with another content."""


def event_of(name: int, variant: int) -> Event:
    """Return one of the contents that an id may have: mostly the first."""
    variant = max(0, variant - 2)
    return {"x": {"a": name / 3 - 1, f"n{name % 4}": 1.0 + variant}, "y": True, "id": f"e{name}"}


class Engine(RuleBasedStateMachine):
    """The rules; `past` is what must have come of them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="hinged-fuzz-"))
        self.loop = asyncio.new_event_loop()
        self.server = RedisServer(self.folder / "redis", fsync="always")
        self.server.start()
        self.client = self.server.client()
        self.proxies = [Proxy(self.server.port) for _ in range(2)]
        for proxy in self.proxies:
            proxy.start()
        self.faults = Faults(random.Random(), self.server, self.proxies, self.folder / "copy")
        self.workers = [self._new_worker(n) for n in range(2)]
        self.past = Past()
        self.copied: Past | None = None

    def teardown(self) -> None:
        """Leave nothing behind."""
        for one in self.workers:
            self.loop.run_until_complete(one.kill())
        for proxy in self.proxies:
            proxy.stop()
        self.loop.close()
        self.client.close()
        self.server.kill()
        shutil.rmtree(self.folder)

    def _new_worker(self, which: int) -> Worker:
        async def made() -> Worker:
            return Worker(
                self.proxies[which].url,
                retention_bytes=(0, 10**9)[which],
                reply_bytes=(1024, 2**22)[which],
                snapshot_chunk=3,
                max_replicas=(1, 1_000)[which],
            )

        return self.loop.run_until_complete(made())

    def run(self, call: Callable[[], Awaitable[T]]) -> T:
        """Do what may safely be done again until Redis has answered; troubles pass."""
        end_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                return self.loop.run_until_complete(call())
            except SetAside as error:
                raise AssertionError("an undamaged model is set aside") from error
            except Unavailable:
                if time.monotonic() > end_s:
                    raise

    async def read(self, which: int, name: str) -> LiveModel:
        """Bring a worker's model to the log's end, also one that was created again."""
        live_model = await self.workers[which].open(name)
        await live_model.freshness.read()
        return live_model

    def sync(self) -> None:
        """Take in what has come into the log."""
        entries: Any = self.client.xrange(f"hinged:{{{STREAM}}}:log")
        self.past.go_on(entries)

    # What there is

    @initialize(ahead=st.sampled_from([True, True, False]), models=st.integers(1, 2))
    def begin(self, ahead: bool, models: int) -> None:
        """Begin with a model or two, maybe on a server whose clock ran a day ahead."""
        if ahead:  # what comes after a loss gets the very ids that were lost
            stream_from_tomorrow(self.client, STREAM)
            self.sync()
        for name in NAMES[:models]:
            self.create(0, name, 1.0)

    @rule(which=st.integers(0, 1), name=st.sampled_from(NAMES), rate=st.sampled_from([1.0, 0.1]))
    def create(self, which: int, name: str, rate: float) -> None:
        """Make a model that follows the stream from now on."""
        if name in self.past.doubles:
            return
        learner = {"type": "perceptron", "learning_rate": rate}
        self.run(lambda: self.workers[which].create(name, learner=learner, stream=STREAM))
        self._made(name, Double(rate))

    @rule(which=st.integers(0, 1), name=st.sampled_from(NAMES), of=st.sampled_from(NAMES))
    def challenge(self, which: int, name: str, of: str) -> None:
        """Make a model that begins with the state of another."""
        double = self.past.doubles.get(of)
        if double is None or name in self.past.doubles:
            return
        learner = {"type": "perceptron", "learning_rate": double.first_rate}
        start = {"model": of}
        self.run(
            lambda: self.workers[which].create(name, learner=learner, stream=STREAM, start=start)
        )
        self._made(name, Past(doubles={of: double}).copy().doubles[of])

    def _made(self, name: str, double: Double) -> None:
        self.sync()
        self.past.doubles[name] = double
        self.past.uids[name] = model_uid(self.client, name)

    @rule(which=st.integers(0, 1), name=st.sampled_from(NAMES))
    def delete(self, which: int, name: str) -> None:
        """Delete a model, and the stream with the last one."""
        if name not in self.past.doubles:
            return
        try:
            self.run(lambda: self.workers[which].lifecycle.delete(name))
        except NotFound:
            pass  # it was done, but the answer was lost
        except Conflict:
            assert self.past.aliases.get(ALIAS) == name
            return
        assert self.past.aliases.get(ALIAS) != name
        del self.past.doubles[name], self.past.uids[name]
        if not self.past.doubles:
            self.past = Past()
            assert not self.client.exists(f"hinged:{{{STREAM}}}:log")

    @rule(which=st.integers(0, 1), to=st.sampled_from(NAMES))
    def alias(self, which: int, to: str) -> None:
        """Point the alias to a model."""
        if to not in self.past.doubles:
            return
        aliases, of = self.workers[which].registry.aliases, self.past.aliases.get(ALIAS)
        if of is None:
            self.run(lambda: aliases.set(ALIAS, to))
        else:
            self.run(lambda: aliases.promote(ALIAS, of, to, None))
        self.past.aliases[ALIAS] = to

    @rule(which=st.integers(0, 1))
    def unalias(self, which: int) -> None:
        """Delete the alias."""
        if self.past.aliases.pop(ALIAS, None) is None:
            return
        with contextlib.suppress(NotFound):  # it was done, but the answer was lost
            self.run(lambda: self.workers[which].registry.aliases.delete(ALIAS))

    # What is learned

    @rule(
        which=st.integers(0, 1),
        name=st.sampled_from([*NAMES, ALIAS]),
        batch=st.lists(events(), min_size=1, max_size=6),
    )
    def learn(self, which: int, name: str, batch: list[Event]) -> None:
        """Learn some events; some count already, and some contradict those that count."""
        if name not in self.past.doubles and name not in self.past.aliases:
            self._unknown(which, name, batch)
            return
        contents = {name: content for name, (content, _) in self._contents().items()}
        agree, fresh = True, set[str]()
        for event in batch:
            if "id" in event:
                mine = int(event["x"][f"n{int(event['id'][1:]) % 4}"])
                agree &= contents.setdefault(event["id"], mine) == mine
                fresh.add(event["id"])
        before = set(self.past.ids)
        try:
            learned = self.loop.run_until_complete(self.workers[which].learn(name, *batch))
        except Conflict:
            self.sync()
            assert not agree, "what contradicts nothing was refused"
            assert set(self.past.ids) == before, "a part of what was refused counts"
            return
        except SetAside as error:
            raise AssertionError("an undamaged model is set aside") from error
        except Unavailable:  # it may be in the log or not: the log tells
            self.sync()
            return
        assert agree, "what contradicts an event of its id was taken"
        assert [o is None for o in learned.outcomes] == _repeated(batch, before)
        self.past.acknowledged |= fresh
        self.past.counted |= {name: (contents[name], None) for name in fresh}
        self.sync()
        assert fresh <= set(self.past.ids), "what was acknowledged is not in the log"

    @rule(which=st.integers(0, 1), at=st.integers(0, 2), batch=few_ids)
    def learn_again(self, which: int, at: int, batch: list[Event]) -> None:
        """Learn what was learned before, and more, by a model that is there."""
        there = sorted(self.past.doubles)
        if there:
            self.learn(which, there[at % len(there)], batch)

    def _contents(self) -> dict[str, tuple[int, Any]]:
        """Return which content counts or waits under an id."""
        return self.past.counted

    def _unknown(self, which: int, name: str, batch: list[Event]) -> None:
        try:
            self.run(lambda: self.workers[which].learn(name, *batch))
        except (NotFound, ModelGone):
            return
        raise AssertionError("a model that is not there has learned")

    @rule(which=st.integers(0, 1), name=st.sampled_from(NAMES), of=st.integers(0, 5), x=features)
    def predict(self, which: int, name: str, of: int, x: dict[str, float]) -> None:
        """Predict an event whose label is to come."""
        if name not in self.past.doubles:
            return
        question = Question({k: float(v) for k, v in x.items()}, f"p{of}")

        async def predict() -> None:
            live_model = await self.workers[which].open(name)
            y = live_model.state.predict(question.x).y
            sent = msgspec.json.encode(question.x).decode()
            await live_model.delayed.keep([question], [sent], [y])

        try:
            self.run(predict)
        except Conflict:
            assert question.id in self.past.ids or question.id in self.past.waiting
            return
        assert question.id is not None
        assert question.id not in self.past.ids
        self.past.waiting[question.id] = 1

    @rule(which=st.integers(0, 1), name=st.sampled_from(NAMES), of=st.integers(0, 5), y=label)
    def label_later(self, which: int, name: str, of: int, y: Any) -> None:
        """Send the label of a prediction."""
        if name not in self.past.doubles:
            return
        event: Event = {"id": f"p{of}", "y": y}
        learned_before, waits = event["id"] in self.past.ids, event["id"] in self.past.waiting
        try:
            self.loop.run_until_complete(self.workers[which].learn(name, event))
        except NotFound:
            assert not learned_before
            assert not waits
            return
        except Conflict:
            assert learned_before
            return
        except SetAside as error:
            raise AssertionError("an undamaged model is set aside") from error
        except Unavailable:
            self.sync()
            return
        assert learned_before or waits
        self.past.acknowledged.add(event["id"])
        self.sync()

    @rule(
        which=st.integers(0, 1),
        name=st.sampled_from(NAMES),
        command=st.sampled_from(
            [
                {"do": "freeze"},
                {"do": "unfreeze"},
                {"do": "reset"},
                {"do": "configure", "set": {"learning_rate": 0.25}},
            ]
        ),
    )
    def command(self, which: int, name: str, command: dict[str, Any]) -> None:
        """Give a command."""
        if name not in self.past.doubles:
            return

        async def send() -> None:
            await (await self.read(which, name)).commands.append(command)

        self.run(send)
        self.sync()

    @rule(which=st.integers(0, 1), name=st.sampled_from(NAMES))
    def checkpoint(self, which: int, name: str) -> None:
        """Keep a model's state."""
        double = self.past.doubles.get(name)
        if double is None:
            return
        made = self.run(lambda: self._checkpoint(which, name))
        self.past.kept[made.uid] = Past(doubles={name: double}).copy().doubles[name]
        self.past.checkpoints[made.uid] = name

    async def _checkpoint(self, which: int, name: str) -> Any:
        return await (await self.read(which, name)).checkpoints.make(None)

    @precondition(lambda self: self.past.kept)
    @rule(which=st.integers(0, 1), name=st.sampled_from(NAMES), data=st.data())
    def restore(self, which: int, name: str, data: st.DataObject) -> None:
        """Go back to a state that was kept."""
        double = self.past.doubles.get(name)
        uid = data.draw(st.sampled_from(sorted(self.past.kept, key=list(self.past.kept).index)))
        if double is None or self.past.kept[uid].first_rate != double.first_rate:
            return

        async def restore() -> None:
            live_model = await self.read(which, name)
            await live_model.commands.restore(await live_model.checkpoints.find(uid))

        self.run(restore)
        self.sync()

    @rule(which=st.integers(0, 1), name=st.sampled_from(NAMES))
    def save(self, which: int, name: str) -> None:
        """Save a snapshot; the one worker trims the log as far as it may."""
        if name not in self.past.doubles:
            return

        async def save() -> None:
            await (await self.read(which, name)).save()

        self.run(save)

    # What goes wrong

    @rule(which=st.integers(0, 1), saved=st.sampled_from(["none", *NAMES]))
    def restart(self, which: int, saved: str) -> None:
        """Kill a worker, maybe after one model was saved; another takes its place."""
        self.save(0, saved)
        self.loop.run_until_complete(self.workers[which].kill())
        self.workers[which] = self._new_worker(which)

    @rule(which=st.integers(0, 1), times=st.integers(1, 3))
    def lose_answers(self, which: int, times: int) -> None:
        """Let the next answers of Redis get lost on their way."""
        self.faults.lose_answers(times, times, which)

    @rule(which=st.integers(0, 1))
    def cut(self, which: int) -> None:
        """Cut a worker's connections."""
        self.faults.cut(which)

    @rule()
    def forget_scripts(self) -> None:
        """Let Redis forget its scripts."""
        self.faults.forget_scripts()

    @rule()
    def crash(self) -> None:
        """Kill Redis; it comes back with its append-only file."""
        self.faults.crash()

    @rule()
    def stand_still(self) -> None:
        """Let Redis stand still during what comes next."""
        self.server.signal(signal.SIGSTOP)
        threading.Timer(STALL_S, lambda: self.server.signal(signal.SIGCONT)).start()

    @rule()
    def copy_data(self) -> None:
        """Note how everything is."""
        self.faults.copy_data()
        self.copied = self.past.copy()

    @precondition(lambda self: self.copied is not None)
    @rule()
    def set_back(self) -> None:
        """Lose what came since, as a failover does that loses the tail."""
        assert self.copied is not None
        self.faults.set_back()
        self.past = self.copied.copy()
        self.sync()

    @rule(
        which=st.integers(0, 1),
        at=st.integers(0, 2),
        lost=st.lists(events(), min_size=1, max_size=3),
        instead=st.lists(st.lists(events(), min_size=1, max_size=3), min_size=1, max_size=3),
        each=st.booleans(),
    )
    def another_past(
        self, which: int, at: int, lost: list[Event], instead: list[list[Event]], each: bool
    ) -> None:
        """Let one worker have learned what the log loses; the other goes on from before."""
        there = sorted(self.past.doubles)
        if not there:
            return
        name = there[at % len(there)]
        self.replicas_are_the_plain_models()
        self.copy_data()
        self.learn(which, name, lost)
        self.set_back()
        for batch in instead:
            self.learn(1 - which, name, batch)
            if each:
                self.replicas_are_the_plain_models()

    # What must hold

    @invariant()
    def replicas_are_the_plain_models(self) -> None:
        """Both workers have learned what the log says, to the bit; nothing acknowledged went."""
        self.sync()
        assert self.past.acknowledged <= set(self.past.ids)
        for name, double in self.past.doubles.items():
            for which in (0, 1):
                live_model = self.run(lambda w=which, n=name: self.read(w, n))  # type: ignore[misc]
                assert live_model.entry.uid == self.past.uids[name]
                assert live_model.position.id == self.past.entries[-1][0]
                assert live(live_model) == double.state(), f"worker {which} has another {name}"
        if self.past.doubles:
            leaked = leaked_keys(self.client, STREAM)
            assert [key for key in leaked if ":checkpoint:" not in key] == []


def _repeated(batch: list[Event], before: set[str]) -> list[bool]:
    """Tell which events of a batch are answered as duplicates."""
    seen, found = set(before), []
    for event in batch:
        found.append("id" in event and event["id"] in seen)
        if "id" in event:
            seen.add(event["id"])
    return found


def test_two_workers_live_through_anything() -> None:
    phases = [Phase.reuse, Phase.generate]  # to shrink on real servers takes many minutes
    settings = tries(12, stateful_step_count=25, phases=phases)
    run_state_machine_as_test(Engine, settings=settings)
