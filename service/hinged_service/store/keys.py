"""The names of all keys in Redis. Every key of a stream has its hash tag `{stream}`."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import ClassVar

from hinged_service.wire.codec import VECTORS

__all__ = ["INDEX", "CheckpointKeys", "ModelKeys", "StateKeys", "StreamKeys"]

INDEX = "hinged:models"
"""Hash: name of a model or alias to its index entry (uid, stream, spec, base), as JSON."""


@dataclass(frozen=True)
class StreamKeys:
    """The keys of one stream.

    Parameters
    ----------
    stream
        The stream's name.

    """

    stream: str

    def _key(self, kind: str) -> str:
        return f"hinged:{{{self.stream}}}:{kind}"

    @functools.cached_property
    def meta(self) -> str:
        """Hash: the stream's uid, last entry id and chain, id window, holds, pins, counters.

        Per model also the fold tag of those who fold it, and its last upgrade.
        """
        return self._key("meta")

    @functools.cached_property
    def log(self) -> str:
        """Stream: the labelled events, in the order in which they count."""
        return self._key("log")

    @functools.cached_property
    def followers(self) -> str:
        """Hash: model uid to position and chain of its snapshot."""
        return self._key("followers")

    @functools.cached_property
    def producers(self) -> str:
        """Hash: producer to its last batch and the answer it got."""
        return self._key("producers")

    @functools.cached_property
    def seen(self) -> tuple[str, str]:
        """Two hashes, by generation: event id to digest of its content."""
        return self._key("seen:0"), self._key("seen:1")

    @functools.cached_property
    def aliases(self) -> str:
        """Hash: alias to the uid of the model that it means, with the decisions made."""
        return self._key("aliases")

    @functools.cached_property
    def pending(self) -> tuple[str, ...]:
        """Eight hashes, the slots of a ring: id to a prediction that waits for its label."""
        return tuple(self._key(f"pending:{slot}") for slot in range(8))

    @functools.cached_property
    def offsets(self) -> str:
        """Hash: a source outside to the offset of what it is to bring next."""
        return self._key("offsets")

    @functools.cached_property
    def inbox(self) -> str:
        """Stream: events from anybody, on their way to the log; trimmed behind what was taken."""
        return self._key("inbox")

    @functools.cached_property
    def dead(self) -> str:
        """Stream, the last 10,000: source, offset, reason and beginning of records refused."""
        return self._key("dead")

    @functools.cached_property
    def checkpoints(self) -> str:
        """Hash: checkpoint uid to what it is of; and `name:` with its name to its uid."""
        return self._key("checkpoints")

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
    """The keys of one stored state.

    Parameters
    ----------
    on
        The keys of its stream.
    uid
        Its uid.

    """

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
        """Return the expiring hash in which a whole vector is gathered."""
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
