"""The names of all keys in Redis. Every key of a stream has its hash tag `{stream}`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hinged_service.wire.codec import VECTORS

__all__ = ["INDEX", "CheckpointKeys", "ModelKeys", "StateKeys", "StreamKeys"]

INDEX = "hinged:models"
"""Hash: name of a model or alias to its index entry (uid, stream, spec, base), as JSON."""


def _part(name: str) -> property:
    """Return a property that makes a key on demand, as many models keep such objects."""
    return property(lambda keys: f"hinged:{{{keys.stream}}}:{name}")


class StreamKeys:
    """The keys of one stream.

    Attributes
    ----------
    stream
        The stream's name.
    meta
        Hash: the stream's uid, last entry id and chain, id window, holds, pins, counters. Per
        model also the fold tag of those who fold it, and its last upgrade. Per source the batch
        whose predictions are not written yet.
    log
        Stream: the labelled events, in the order in which they count.
    followers
        Hash: model uid to position and chain of its snapshot.
    followed
        These three, with which most scripts begin.
    producers
        Hash: producer to its last batch and the answer it got.
    seen
        Two hashes, by generation: event id to digest of its content, and the decisions about
        aliases.
    aliases
        Hash: alias to the uid of the model that it points to, with the newest decisions.
    pending
        Eight hashes, the slots of a ring: id to a prediction that waits for its label.
    offsets
        Hash: an outside source to the offset of its next record.
    inbox
        Stream: events from outside, on their way to the log; trimmed behind those taken.
    dead
        Stream, the last 10,000: source, offset, reason and beginning of records refused.
    checkpoints
        Hash: checkpoint uid to its description; and `name:` with its name to its uid.

    """

    __slots__ = ("stream",)

    def __init__(self, stream: str) -> None:
        self.stream = stream

    meta = _part("meta")
    log = _part("log")
    followers = _part("followers")
    producers = _part("producers")
    aliases = _part("aliases")
    offsets = _part("offsets")
    inbox = _part("inbox")
    dead = _part("dead")
    checkpoints = _part("checkpoints")

    @property
    def followed(self) -> list[str]:
        """`meta`, `log` and `followers`."""
        return [self.meta, self.log, self.followers]

    @property
    def seen(self) -> tuple[str, str]:
        """Both generations."""
        seen = f"hinged:{{{self.stream}}}:seen"
        return f"{seen}:0", f"{seen}:1"

    @property
    def pending(self) -> tuple[str, ...]:
        """The slots of the ring."""
        return tuple([f"hinged:{{{self.stream}}}:pending:{slot}" for slot in range(8)])

    def all(self) -> list[str]:
        """Return every key that goes with the stream, `meta`, `followers`, `checkpoints` first."""
        return [
            self.meta,
            self.followers,
            self.checkpoints,
            self.log,
            self.producers,
            *self.seen,
            self.aliases,
            self.offsets,
            *self.pending,
            self.inbox,
            self.dead,
        ]

    def model(self, uid: str) -> ModelKeys:
        """Return the keys of the model `uid` on this stream."""
        return ModelKeys(self, uid)

    def checkpoint(self, uid: str) -> CheckpointKeys:
        """Return the keys of the checkpoint `uid` of this stream."""
        return CheckpointKeys(self, uid)


@dataclass(frozen=True, slots=True)
class StateKeys:
    """The keys of one stored state, of a uid, `on` a stream."""

    on: StreamKeys
    uid: str
    kind: ClassVar[str]

    def _key(self, part: str) -> str:
        return f"hinged:{{{self.on.stream}}}:{self.kind}:{self.uid}:{part}"

    @property
    def state(self) -> str:
        """Hash: position, chain, all of the state but the vectors, and a digest over it."""
        return self._key("state")

    def vector(self, name: str) -> str:
        """Return the hash of one vector: feature name to value."""
        return self._key(name if name == "weights" else f"vec:{name}")

    def temporary(self, name: str, nonce: str) -> str:
        """Return the expiring hash to which a whole vector is sent in chunks."""
        return self._key(f"temp:{nonce}:{name}")

    def all(self) -> list[str]:
        """Return every lasting key of the state."""
        return [self.state, *(self.vector(name) for name in VECTORS)]


class ModelKeys(StateKeys):
    """The keys of a model's snapshot."""

    kind = "model"


class CheckpointKeys(StateKeys):
    """The keys of a checkpoint."""

    kind = "checkpoint"
