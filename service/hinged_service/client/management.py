"""What the clients can do beside learning and predicting: commands, checkpoints, aliases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from hinged_service.client import management_calls as calls
from hinged_service.client.calls import Call
from hinged_service.client.management_results import (
    AliasInfo,
    Checkpoint,
    Promoted,
    StreamInfo,
    StreamListed,
    Upgraded,
)
from hinged_service.client.results import ModelListed

__all__ = ["AsyncManagement", "Management"]

T = TypeVar("T")


class Management:
    """The part of `Client` about models as a whole."""

    def _run(self, call: Call[T]) -> T:
        raise NotImplementedError

    def configure(self, name: str, parameters: Mapping[str, Any]) -> str:
        """Change parameters of the learner from now on; what was learned stays.

        Parameters
        ----------
        name
            The model.
        parameters
            Of `learning_rate`, `C`, `r`, `margin` and `share` those that the learner has.

        Returns
        -------
        The command's place in the log: events after it are learned so.

        Raises
        ------
        Invalid
            If the learner has no such parameter, or it may not be that.

        """
        return self._run(calls.command(name, "configure", {"set": parameters}, repeated=True))

    def freeze(self, name: str) -> str:
        """Stop learning, only predict; return the command's place in the log."""
        return self._run(calls.command(name, "freeze", repeated=True))

    def unfreeze(self, name: str) -> str:
        """Learn again; return the command's place in the log."""
        return self._run(calls.command(name, "unfreeze", repeated=True))

    def reset(self, name: str) -> str:
        """Forget what was learned; return the command's place in the log.

        It is sent once only: carried out again after a lost answer, it would forget
        what was learned in between.
        """
        return self._run(calls.command(name, "reset", repeated=False))

    def restore(self, name: str, checkpoint: str) -> str:
        """Go back to a checkpoint; return the command's place in the log.

        Like `reset` it is sent once only.

        Parameters
        ----------
        name
            The model.
        checkpoint
            Name or uid of a checkpoint of its stream.

        """
        return self._run(calls.command(name, "restore", {"checkpoint": checkpoint}, repeated=False))

    def upgrade(self, name: str) -> Upgraded:
        """Let the version of the service that answers go on with a model.

        Versions whose arithmetic may differ do not fold the same model: those of the
        version before answer 503 for it from then on.

        Raises
        ------
        Conflict
            If that version cannot; nothing was changed.

        """
        return self._run(calls.upgrade(name))

    def make_checkpoint(self, name: str, checkpoint: str | None = None) -> Checkpoint:
        """Keep the model's present state, for good; sent once only.

        Parameters
        ----------
        name
            The model.
        checkpoint
            What to call it, unique on the stream; it always has a uid too.

        Raises
        ------
        Conflict
            If the name is taken.

        """
        return self._run(calls.checkpoint(name, checkpoint))

    def checkpoints(self, name: str) -> list[Checkpoint]:
        """Return the checkpoints of a model's stream, oldest first."""
        return self._run(calls.checkpoints(name))

    def delete_checkpoint(self, name: str, checkpoint: str) -> None:
        """Delete a checkpoint by its name or uid.

        Raises
        ------
        Conflict
            If a model still needs it.

        """
        return self._run(calls.delete_checkpoint(name, checkpoint))

    def export_checkpoint(self, name: str, checkpoint: str) -> bytes:
        """Return a checkpoint, named as in `restore`, as one JSON document for `import_model`."""
        return self._run(calls.export_checkpoint(name, checkpoint))

    def import_model(self, name: str, document: bytes) -> ModelListed:
        """Make a model of an exported document; sent once only.

        Raises
        ------
        Conflict
            If there is a model of that name.
        Invalid
            If it is no such document, of another version, or damaged.

        """
        return self._run(calls.import_model(name, document))

    def replay(
        self,
        name: str,
        new: str,
        *,
        checkpoint: str | None = None,
        exclude: Mapping[str, Any] | None = None,
        learner: Mapping[str, Any] | None = None,
    ) -> ModelListed:
        """Make a new model that learns the stream's past again; sent once only.

        It catches up in the background: `model(new).progress` tells how far it is.

        Parameters
        ----------
        name
            The model to rebuild.
        new
            The new model's name.
        checkpoint
            Where to start; at the oldest event that the stream still has if `None`.
        exclude
            Events to leave out: `{"ids": [...], "entries": [...], "times": [...]}`.
        learner
            The learner's spec, if it is to be another one.

        """
        return self._run(calls.replay(name, new, checkpoint, exclude, learner))

    def streams(self) -> list[StreamListed]:
        """Return all streams with their models and aliases."""
        return self._run(calls.streams())

    def stream(self, name: str) -> StreamInfo:
        """Compare the models of a stream, which all learn from every event of it."""
        return self._run(calls.stream(name))

    def aliases(self) -> list[AliasInfo]:
        """Return all aliases with the models that they mean."""
        return self._run(calls.aliases())

    def set_alias(self, alias: str, model: str) -> AliasInfo:
        """Make an alias: it works wherever the name of a model does.

        Raises
        ------
        Conflict
            If the name is taken, or the alias means another model: then `promote`.

        """
        return self._run(calls.set_alias(alias, model))

    def promote(self, alias: str, from_: str, to: str, decision: str | None = None) -> Promoted:
        """Let an alias mean another model, if it still means the one.

        Parameters
        ----------
        alias
            The alias.
        from_, to
            The model that it means now, and the one that it is to mean.
        decision
            Names the decision: it is carried out once, however often it is sent; the
            client makes a name if it is `None`.

        """
        return self._run(calls.promote(alias, from_, to, decision))

    def delete_alias(self, alias: str) -> None:
        """Forget an alias; the model that it means stays."""
        return self._run(calls.delete_alias(alias))


class AsyncManagement:
    """The part of `AsyncClient` about models as a whole: `Management`, awaited."""

    async def _run(self, call: Call[T]) -> T:
        raise NotImplementedError

    async def configure(self, name: str, parameters: Mapping[str, Any]) -> str:
        """Change parameters of the learner from now on, as `Client.configure`."""
        return await self._run(calls.command(name, "configure", {"set": parameters}, repeated=True))

    async def freeze(self, name: str) -> str:
        """Stop learning, only predict, as `Client.freeze`."""
        return await self._run(calls.command(name, "freeze", repeated=True))

    async def unfreeze(self, name: str) -> str:
        """Learn again, as `Client.unfreeze`."""
        return await self._run(calls.command(name, "unfreeze", repeated=True))

    async def reset(self, name: str) -> str:
        """Forget what was learned, as `Client.reset`."""
        return await self._run(calls.command(name, "reset", repeated=False))

    async def restore(self, name: str, checkpoint: str) -> str:
        """Go back to a checkpoint, as `Client.restore`."""
        return await self._run(
            calls.command(name, "restore", {"checkpoint": checkpoint}, repeated=False)
        )

    async def upgrade(self, name: str) -> Upgraded:
        """Let the version that answers go on with a model, as `Client.upgrade`."""
        return await self._run(calls.upgrade(name))

    async def make_checkpoint(self, name: str, checkpoint: str | None = None) -> Checkpoint:
        """Keep the model's present state, as `Client.make_checkpoint`."""
        return await self._run(calls.checkpoint(name, checkpoint))

    async def checkpoints(self, name: str) -> list[Checkpoint]:
        """Return the checkpoints of a model's stream, as `Client.checkpoints`."""
        return await self._run(calls.checkpoints(name))

    async def delete_checkpoint(self, name: str, checkpoint: str) -> None:
        """Delete a checkpoint, as `Client.delete_checkpoint`."""
        return await self._run(calls.delete_checkpoint(name, checkpoint))

    async def export_checkpoint(self, name: str, checkpoint: str) -> bytes:
        """Return a checkpoint as one JSON document, as `Client.export_checkpoint`."""
        return await self._run(calls.export_checkpoint(name, checkpoint))

    async def import_model(self, name: str, document: bytes) -> ModelListed:
        """Make a model of an exported document, as `Client.import_model`."""
        return await self._run(calls.import_model(name, document))

    async def replay(
        self,
        name: str,
        new: str,
        *,
        checkpoint: str | None = None,
        exclude: Mapping[str, Any] | None = None,
        learner: Mapping[str, Any] | None = None,
    ) -> ModelListed:
        """Make a new model that learns the stream's past again, as `Client.replay`."""
        return await self._run(calls.replay(name, new, checkpoint, exclude, learner))

    async def streams(self) -> list[StreamListed]:
        """Return all streams, as `Client.streams`."""
        return await self._run(calls.streams())

    async def stream(self, name: str) -> StreamInfo:
        """Compare the models of a stream, as `Client.stream`."""
        return await self._run(calls.stream(name))

    async def aliases(self) -> list[AliasInfo]:
        """Return all aliases, as `Client.aliases`."""
        return await self._run(calls.aliases())

    async def set_alias(self, alias: str, model: str) -> AliasInfo:
        """Make an alias, as `Client.set_alias`."""
        return await self._run(calls.set_alias(alias, model))

    async def promote(
        self, alias: str, from_: str, to: str, decision: str | None = None
    ) -> Promoted:
        """Let an alias mean another model, as `Client.promote`."""
        return await self._run(calls.promote(alias, from_, to, decision))

    async def delete_alias(self, alias: str) -> None:
        """Forget an alias, as `Client.delete_alias`."""
        return await self._run(calls.delete_alias(alias))
