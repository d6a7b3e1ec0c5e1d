"""The names of all keys in Redis. Every key of a stream has its hash tag `{stream}`."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["INDEX", "VECTORS", "ModelKeys", "StreamKeys"]

INDEX = "hinged:models"
"""Hash: model name to its index entry (uid, stream, spec, base), as JSON."""

VECTORS = ("weights",)
"""The vectors that some learner's state has, each a hash of its own."""


@dataclass(frozen=True, slots=True)
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

    @property
    def meta(self) -> str:
        """Hash: the stream's uid, last entry id and chain, byte count, id window, holds."""
        return self._key("meta")

    @property
    def log(self) -> str:
        """Stream: the labelled events, in the order in which they count."""
        return self._key("log")

    @property
    def followers(self) -> str:
        """Hash: model uid to position and chain of its snapshot."""
        return self._key("followers")

    @property
    def producers(self) -> str:
        """Hash: producer to its last batch and the answer it got."""
        return self._key("producers")

    @property
    def seen(self) -> tuple[str, str]:
        """Two hashes, by generation: event id to digest of its content."""
        return self._key("seen:0"), self._key("seen:1")

    def all(self) -> list[str]:
        """Return every key that goes with the stream, `meta` and `followers` first."""
        return [
            self.meta,
            self.followers,
            self.log,
            self.producers,
            *self.seen,
            self._key("aliases"),
            self._key("offsets"),
            *(self._key(f"pending:{slot}") for slot in range(8)),
            self._key("inbox"),
        ]

    def model(self, uid: str) -> ModelKeys:
        """Return the keys of the model `uid` on this stream."""
        return ModelKeys(self, uid)


@dataclass(frozen=True, slots=True)
class ModelKeys:
    """The keys of one model's snapshot.

    Parameters
    ----------
    on
        The keys of the stream that the model follows.
    uid
        The model's uid.

    """

    on: StreamKeys
    uid: str

    @property
    def state(self) -> str:
        """Hash: position, chain, counters, intercept, and a digest over it all."""
        return f"hinged:{{{self.on.stream}}}:model:{self.uid}:state"

    def vector(self, name: str) -> str:
        """Return the hash of one vector: feature name to value."""
        kind = name if name == "weights" else f"vec:{name}"
        return f"hinged:{{{self.on.stream}}}:model:{self.uid}:{kind}"

    def temporary(self, name: str, nonce: str) -> str:
        """Return the expiring hash in which a whole vector is gathered."""
        return f"hinged:{{{self.on.stream}}}:model:{self.uid}:temp:{nonce}:{name}"

    def all(self) -> list[str]:
        """Return every lasting key of the model."""
        return [self.state, *(self.vector(name) for name in VECTORS)]
