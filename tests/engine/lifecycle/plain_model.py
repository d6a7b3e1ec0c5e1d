"""The expected result of commands, checkpoints and replays: River's scaler and `hinged` alone.

The log is read by hand and its chain computed from its definition. Nothing of
the service's fold is imported here.
"""

import copy
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import redis
from river import preprocessing

import hinged
from hinged_service.engine.live_model import LiveModel
from tests.support.checks import order_of
from tests.support.engine import Event
from tests.support.plain_fold import accounts

SCALED = {"learner": {"type": "perceptron"}, "pipeline": [{"type": "StandardScaler"}]}
"""The spec of a model that `Plain` is the double of."""

Leaves = Callable[[str, Event], bool]


def lose(learner: hinged.Perceptron, score: float, y: bool) -> None:
    """Count the losses of a score that is not learned from."""
    margin = score if y else -score
    learner.accounting.hinge_loss += max(0.0, 1.0 - margin)
    learner.accounting.perceptron_loss += max(0.0, -margin)


class Plain:
    """`StandardScaler | Perceptron` in this process, which obeys commands by hand."""

    def __init__(self, learning_rate: float = 1.0) -> None:
        self.scaler: Any = preprocessing.StandardScaler()
        self.learner = hinged.Perceptron(learning_rate)
        self.learning_rate = learning_rate
        self.frozen = False
        self.events = self.mistakes = 0

    def learn(self, event: Event) -> None:
        x, y = event["x"], event["y"]
        self.events += 1
        self.mistakes += self.learner.predict_one(self.scaler.transform_one(x)) is not y
        if not self.frozen:
            self.scaler.learn_one(x)
            self.learner.learn_one(self.scaler.transform_one(x), y)
            return
        lose(self.learner, self.learner.score_one(self.scaler.transform_one(x)), y)

    def obey(self, command: Mapping[str, Any]) -> None:
        """Carry out any command but restore."""
        match command:
            case {"do": "freeze"}:
                self.frozen = True
            case {"do": "unfreeze"}:
                self.frozen = False
            case {"do": "reset"}:
                account = self.learner.accounting
                self.scaler = preprocessing.StandardScaler()
                self.learner = hinged.Perceptron(self.learning_rate)
                self.learner.accounting = account
            case {"do": "configure", "set": {"learning_rate": rate}}:
                self.learning_rate = rate
                fresh = hinged.Perceptron(rate)
                fresh.set_state(self.learner.get_state())
                self.learner = fresh
            case _:
                raise AssertionError(f"unknown command {command}")

    def state(self) -> dict[str, Any]:
        return _state(self.learner, self.events, self.mistakes, self.frozen) | {
            "scores": [
                float(self.learner.score_one(self.scaler.transform_one(x))).hex() for x in PROBES
            ]
        }


PROBES: list[dict[str, float]] = [
    {"a": n / 7 - 0.3, f"n{n}": 1.5 + n, "b": 1 / (n + 2)} for n in range(11)
]


def _state(learner: Any, events: int, mistakes: int, frozen: bool) -> dict[str, Any]:
    account = {k: float(v).hex() for k, v in accounts(learner).items()}
    weights = {name: float(value).hex() for name, value in learner.weights.items()}
    found = {"weights": weights, "events": events, "mistakes": mistakes, "frozen": frozen}
    return found | {"account": account}


def live(live_model: LiveModel) -> dict[str, Any]:
    """Return the same of a replica."""
    fold = live_model.state
    scores = [float(fold.predict(dict(x)).score).hex() for x in PROBES]
    return _state(fold.learner, fold.events, fold.mistakes, fold.frozen) | {"scores": scores}


def fold_log(
    client: redis.Redis,
    stream: str,
    uid: str,
    checkpoints: Mapping[str, str] | None = None,
    leaves: Leaves = lambda entry_id, event: False,
    model: Plain | None = None,
    after: str = "0-0",
) -> Plain:
    """Fold a whole stream as the model `uid` must, commands included.

    Parameters
    ----------
    client, stream, uid
        Where; whose commands count.
    checkpoints
        Uid of a checkpoint to the entry id at which it was made of this model.
    leaves
        Whether an event is left out.
    model, after
        What to go on with, and from which entry id.

    """
    plain = Plain() if model is None else model
    kept: dict[str, Plain] = {}
    last = chain = ""
    entries: Any = client.xrange(f"hinged:{{{stream}}}:log")
    for entry_id, fields in entries:
        if "genesis" not in fields:
            assert fields["chain"] == chain_of(chain, last, fields)
        last, chain = entry_id, fields["chain"]
        if order_of(entry_id) > order_of(after):
            if "events" in fields:
                _learn_all(plain, entry_id, fields, leaves)
            elif "command" in fields:
                command = json.loads(fields["command"])
                if command.pop("model") == uid:
                    if command["do"] == "restore":
                        plain = copy.deepcopy(kept[command["checkpoint"]])
                    else:
                        plain.obey(command)
        for name, place in (checkpoints or {}).items():
            if place == entry_id:
                kept[name] = copy.deepcopy(plain)
    return plain


def _learn_all(plain: Plain, entry_id: str, fields: Mapping[str, str], leaves: Leaves) -> None:
    skip = set(json.loads(fields["skip"]))
    for index, event in enumerate(json.loads(fields["events"])):
        if index not in skip and not leaves(entry_id, event):
            plain.learn(event)


def chain_of(chain: str, last: str, fields: Mapping[str, str]) -> str:
    """Return the chain that an entry must have after the one before."""
    payload = fields["command"] if "command" in fields else fields["events"]
    return _sha1(chain + last + fields["from"] + _sha1(payload) + fields.get("skip", "[]"))


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
