"""Expected state of a stream, and what Redis holds: read by hand, without the service.

The log is parsed by the standard library, the chain is computed from its
definition, and `hinged` alone learns the events. Nothing of the service is
imported here: it is the witness against it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import redis

import hinged

Learner = hinged.BinaryLinearClassifier
Fields = dict[str, str]


def accounts(learner: Learner) -> dict[str, int | float]:
    """Return the intercept and every counter of a learner."""
    return dict(learner.get_state()["scalars"])


@dataclass
class LateAccount:
    """Account of one model's predictions that got a label, from the log."""

    labelled: int = 0
    delay_ms: int = 0
    longest_delay_ms: int = 0
    served: int = 0
    served_mistakes: int = 0


@dataclass
class Folded:
    """A log folded from its first event: the learner, where it ended, and what counted."""

    learner: Learner
    position: str = "0-0"
    chain: str = ""
    rejected: int = 0
    chains: dict[str, str] = field(default_factory=dict)
    counted_ids: list[str] = field(default_factory=list)
    late: LateAccount = field(default_factory=LateAccount)
    late_of: str = ""
    mistakes: int = 0

    @property
    def weights(self) -> dict[str, float]:
        """The weights by name."""
        return dict(self.learner.weights)

    @property
    def accounts(self) -> dict[str, int | float]:
        """The intercept and the counters."""
        return accounts(self.learner)

    def note(self, entry_id: str, fields: Fields) -> None:
        """Stand at an entry."""
        self.position, self.chain = entry_id, fields["chain"]
        self.chains[entry_id] = fields["chain"]

    def reached(self, position: str) -> bool:
        """Return whether a position that was answered, `id.chain`, is one of this log's."""
        entry_id, _, chain = position.partition(".")
        return self.chains.get(entry_id) == chain


@dataclass(frozen=True)
class Stored:
    """A model's snapshot as it lies in Redis."""

    position: str
    chain: str
    follower: str
    weights: dict[str, float]
    accounts: dict[str, int | float]
    rejected: int
    sizes: dict[str, int]


def fold_log(
    client: redis.Redis,
    stream: str,
    learner: Learner,
    target: Callable[[Any], bool | None] = lambda y: {True: True, False: False}.get(y),
    upto: str = "+",
    late_of: str = "",
) -> Folded:
    """Fold the whole log of `stream`, genesis to `upto`, and check its chain on the way.

    Parameters
    ----------
    client
        A client that decodes its replies.
    stream
        The stream's name.
    learner
        A fresh learner like the model's.
    target
        A label to whether it is the positive one; `None` for a label that the model rejects.
    upto
        The last entry id to take.
    late_of
        The uid of the model whose served predictions are counted.

    """
    folded = Folded(learner, late_of=late_of)
    uid = str(client.hget(f"hinged:{{{stream}}}:meta", "uid"))
    found: Any = client.xrange(f"hinged:{{{stream}}}:log", "-", upto)
    assert found, "the log is empty"
    for number, (entry_id, fields) in enumerate(found):
        if number == 0:
            assert "genesis" in fields, "the log's beginning was trimmed away: raise the retention"
            assert fields["chain"] == _sha1(uid)
            folded.note(entry_id, fields)
        else:
            fold_entry(folded, entry_id, fields, target)
    return folded


def binary(y: Any) -> bool | None:
    """Return the target of a model without labels of its own."""
    return {True: True, False: False}.get(y) if type(y) in (bool, int) else None


def fold_entry(
    folded: Folded, entry_id: str, fields: Fields, target: Callable[[Any], bool | None] = binary
) -> None:
    """Learn the next entry, after checking that its chain leads from the one before."""
    _fold_entry(folded, entry_id, fields, target)
    folded.note(entry_id, fields)


def _fold_entry(
    folded: Folded, entry_id: str, fields: Fields, target: Callable[[Any], bool | None]
) -> None:
    payload, skipped = fields["events"], fields["skip"]
    expected = _sha1(
        folded.chain
        + folded.position
        + fields["from"]
        + _sha1(payload)
        + skipped
        + fields.get("joined", "")
    )
    assert fields["chain"] == expected, "the chain does not lead from the entry before"
    skip = set(json.loads(skipped))
    joined = json.loads(fields.get("joined", "{}"))
    for index, event in enumerate(json.loads(payload)):
        if index in skip:
            continue
        positive = target(event["y"])
        if positive is None:
            folded.rejected += 1
            continue
        prediction = joined.get(str(index))
        whole = event["x"] if "x" in event else prediction["x"]
        x = {name: float(value) for name, value in whole.items()}
        folded.mistakes += folded.learner.predict_one(x) is not positive
        folded.learner.learn_one(x, positive, float(event.get("w", 1.0)))
        if prediction is not None:
            _account(folded, prediction, entry_id, positive, target)
        if event.get("id") is not None:
            folded.counted_ids.append(event["id"])


def _account(
    folded: Folded,
    prediction: dict[str, Any],
    entry_id: str,
    positive: bool,
    target: Callable[[Any], bool | None],
) -> None:
    late = folded.late
    if not prediction.get("default", False):
        delay_ms = max(0, int(entry_id.split("-")[0]) - int(prediction["at"]))
        late.labelled += 1
        late.delay_ms += delay_ms
        late.longest_delay_ms = max(late.longest_delay_ms, delay_ms)
    if folded.late_of in prediction["served"]:
        late.served += 1
        late.served_mistakes += target(prediction["served"][folded.late_of]) is not positive


def model_uid(client: redis.Redis, model: str) -> str:
    """Return the uid of a model from the index."""
    uid: str = json.loads(str(client.hget("hinged:models", model)))["uid"]
    return uid


def read_snapshot(client: redis.Redis, stream: str, uid: str) -> Stored | None:
    """Return the stored snapshot of the model `uid`; `None` if there is none yet."""
    prefix = f"hinged:{{{stream}}}"
    with client.pipeline(transaction=True) as pipe:
        pipe.hgetall(f"{prefix}:model:{uid}:state")
        pipe.hgetall(f"{prefix}:model:{uid}:weights")
        pipe.hget(f"{prefix}:followers", uid)
        state, weights, follower = pipe.execute()
    if not state:
        return None
    digest = state.pop("digest")
    assert digest == _sha1(json.dumps(sorted(state.items()))), "the state is not what was written"
    scalars = json.loads(state["scalars"])
    return Stored(
        position=state["position"],
        chain=state["chain"],
        follower=follower,
        weights={name: float(value) for name, value in weights.items()},
        accounts=scalars["learner"]["scalars"],
        rejected=scalars["counts"]["rejected"],
        sizes=json.loads(state["sizes"]),
    )


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
