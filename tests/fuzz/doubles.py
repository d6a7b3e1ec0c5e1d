"""Expected models, kept in this process: `hinged` alone folds a log read by hand."""

from __future__ import annotations

import copy
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import hinged
from hinged_service.engine.live_model import LiveModel
from tests.engine.lifecycle.plain_model import lose
from tests.support.plain_fold import accounts, binary

Entry = tuple[str, Mapping[str, str]]


class Double:
    """A perceptron that learns events and obeys commands by hand."""

    def __init__(self, learning_rate: float) -> None:
        self.first_rate = learning_rate
        self.learner = hinged.Perceptron(learning_rate)
        self.frozen = False
        self.events = self.mistakes = self.rejected = 0

    def learn(self, x: dict[str, float], y: Any, w: float) -> None:
        """Predict, count, and learn unless frozen."""
        target = binary(y)
        if target is None:
            self.rejected += 1
            return
        self.events += 1
        self.mistakes += self.learner.predict_one(x) is not target
        if not self.frozen:
            self.learner.learn_one(x, target, w)
        elif w > 0.0:
            lose(self.learner, self.learner.score_one(x), target)

    def obey(self, command: Mapping[str, Any]) -> None:
        """Carry out any command but restore."""
        match command:
            case {"do": "freeze"}:
                self.frozen = True
            case {"do": "unfreeze"}:
                self.frozen = False
            case {"do": "reset"}:
                account = self.learner.accounting
                self.learner = hinged.Perceptron(self.learner.learning_rate)
                self.learner.accounting = account
            case {"do": "configure", "set": {"learning_rate": rate}}:
                fresh = hinged.Perceptron(rate)
                fresh.set_state(self.learner.get_state())
                self.learner = fresh
            case _:
                raise AssertionError(f"unknown command {command}")

    def state(self) -> dict[str, Any]:
        """Return all that decides what it does next, to the bit."""
        counts = self.events, self.mistakes, self.rejected
        return _state(self.learner, self.frozen, counts)


def live(live_model: LiveModel) -> dict[str, Any]:
    """Return the same of a replica."""
    fold = live_model.state
    return _state(fold.learner, fold.frozen, (fold.events, fold.mistakes, fold.rejected))


def _state(learner: Any, frozen: bool, counts: tuple[int, int, int]) -> dict[str, Any]:
    return {
        "weights": {name: float(value).hex() for name, value in learner.weights.items()},
        "account": {name: float(value).hex() for name, value in accounts(learner).items()},
        "frozen": frozen,
        "events, mistakes, rejected": counts,
    }


@dataclass
class Past:
    """A stream as it was seen: its log, its models and checkpoints, its ids."""

    entries: list[Entry] = field(default_factory=list)
    doubles: dict[str, Double] = field(default_factory=dict)
    uids: dict[str, str] = field(default_factory=dict)
    kept: dict[str, Double] = field(default_factory=dict)
    checkpoints: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    counted: dict[str, tuple[int, Any]] = field(default_factory=dict)
    waiting: dict[str, int] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    ids: Counter[str] = field(default_factory=Counter)

    def copy(self) -> Past:
        """Return it as it is now."""
        return copy.deepcopy(self)

    def go_on(self, entries: list[Entry]) -> None:
        """Take the log as Redis has it: what was seen, and more; its beginning may be trimmed."""
        past = dict(self.entries)
        seen = [(entry_id, fields) for entry_id, fields in entries if entry_id in past]
        assert all(fields == past[entry_id] for entry_id, fields in seen), "the past has changed"
        if self.entries:
            assert seen, "nothing is left of what was seen"
            assert seen[-1][0] == self.entries[-1][0], "what was acknowledged is lost"
        for entry_id, fields in entries[len(seen) :]:
            self._fold(entry_id, fields)
            self.entries.append((entry_id, fields))

    def _fold(self, entry_id: str, fields: Mapping[str, str]) -> None:
        if "genesis" in fields:
            return
        last, before = self.entries[-1]
        assert _order(last) < _order(entry_id), "the log goes back"
        payload = fields["events"] if "events" in fields else fields["command"]
        expected = before["chain"] + last + fields["from"] + _sha1(payload)
        expected += fields.get("skip", "[]") + fields.get("joined", "")
        assert fields["chain"] == _sha1(expected), "the chain leads from elsewhere"
        if "command" in fields:
            self._command(json.loads(payload))
            return
        skip, joined = set(json.loads(fields["skip"])), json.loads(fields.get("joined", "{}"))
        for index, event in enumerate(json.loads(payload)):
            if index not in skip:
                self._learn(event, joined.get(str(index)))

    def _learn(self, event: Mapping[str, Any], prediction: Mapping[str, Any] | None) -> None:
        features = event["x"] if prediction is None or "x" in event else prediction["x"]
        x = {name: float(value) for name, value in features.items()}
        for double in self.doubles.values():
            double.learn(x, event["y"], float(event.get("w", 1.0)))
        name = event.get("id")
        if name is not None:
            self.ids[name] += 1
            assert self.ids[name] == 1, f"{name} counts twice"
            self.waiting.pop(name, None)

    def _command(self, command: dict[str, Any]) -> None:
        uid = command.pop("model")
        for name, past in self.uids.items():
            if past == uid:
                if command["do"] == "restore":
                    self.doubles[name] = copy.deepcopy(self.kept[command["checkpoint"]])
                else:
                    self.doubles[name].obey(command)


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def _order(entry_id: str) -> tuple[int, int]:
    ms, _, seq = entry_id.partition("-")
    return int(ms), int(seq)
