"""One drill: a model of its own, a load on it, and the row of the table that it makes."""

from __future__ import annotations

import contextlib
import math
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx
import redis

from tests.support.drill_table import PROPERTY, Row
from tests.support.fleet.balance import Balance, tail_of, weigh
from tests.support.fleet.load import Load
from tests.support.fleet.senders import GIVE_UP_S
from tests.support.worker import Worker

Record = Callable[[str, object], None]


class Drill:
    """A model on some workers, and the account of its events.

    Parameters
    ----------
    workers
        They serve the model.
    redis_client
        Makes a client of the server that has the model's stream.
    record
        pytest's `record_property`.

    """

    def __init__(
        self, workers: Sequence[Worker], redis_client: Callable[[], redis.Redis], record: Record
    ) -> None:
        self.workers = workers
        self.redis_client = redis_client
        self.model = f"drill-{secrets.token_hex(4)}"
        self.path = f"/v1/models/{self.model}"
        self._record = record
        self._create()

    @contextlib.contextmanager
    def load(self, enough: int = 150) -> Iterator[Load]:
        """Have clients send events; the drill begins once some are acknowledged by everyone."""
        with Load([worker.url for worker in self.workers], self.path) as load:
            load.recovered(0.0)
            load.until_more(enough)
            yield load

    def weigh(self, load: Load) -> Balance:
        """Compare the log, the workers and the snapshot, and count the events."""
        with self.redis_client() as client:
            return weigh(client, self.model, self.model, load, self.workers)

    def judge(
        self, name: str, done: str, load: Load, recover_s: float, safe_until_s: float = math.inf
    ) -> Balance:
        """Expect that nothing is doubled and, unless acknowledged after a moment, nothing lost."""
        balance = self.weigh(load)
        self.report(name, done, balance, recover_s)
        lost = sorted(event for event in balance.lost if load.first_s[event] < safe_until_s)
        assert not lost, f"acknowledged and lost: {lost[:5]}"
        assert not balance.doubled, f"learned twice: {sorted(balance.doubled)[:5]}"
        found = balance.learned + len(balance.lost)
        assert balance.sent == balance.acknowledged == found, "some were never learned"
        if not balance.lost:
            strayed = [p for p in load.acknowledged.values() if not balance.folded.reached(p)]
            assert not strayed, "an answer named a place that the log never had"
        return balance

    def judge_loss(self, name: str, done: str, load: Load, recover_s: float, dead: Path) -> Balance:
        """Expect that no more is lost than what the server that kept `dead` had alone."""
        balance = self.weigh(load)
        tail = tail_of(dead, self.model, balance.folded)
        self.report(name, done.format(len(tail)), balance, recover_s)
        beyond = sorted(balance.lost - tail)
        assert not beyond, f"lost although another server had it: {beyond[:5]}"
        for event in tail - balance.lost:
            assert balance.folded.reached(load.acknowledged[event]), "it was not sent again"
        assert not balance.doubled, f"learned twice: {sorted(balance.doubled)[:5]}"
        assert balance.acknowledged == balance.sent == balance.learned + len(balance.lost)
        return balance

    def report(self, name: str, done: str, balance: Balance, recover_s: float) -> None:
        """Give the table its row."""
        row = Row(
            name,
            done,
            balance.sent,
            balance.acknowledged,
            balance.learned,
            len(balance.lost),
            len(balance.doubled),
            recover_s,
        )
        self._record(PROPERTY, row.as_json())

    def _create(self) -> None:
        spec = {"learner": {"type": "perceptron"}}
        deadline_s = time.monotonic() + GIVE_UP_S
        while True:
            answer = httpx.put(
                f"{self.workers[0].url}{self.path}", json=spec, timeout=30, verify=False
            )
            if answer.is_success:
                return
            assert answer.status_code == 503, answer.text
            assert time.monotonic() < deadline_s, answer.text
            time.sleep(0.05)
