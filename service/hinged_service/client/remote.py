"""A classifier of River whose model is in the service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from types import TracebackType
from typing import Any, Self

import msgspec
from river import base

from hinged_service.client import calls
from hinged_service.client.batches import BATCH_BYTES, Batch, Batcher
from hinged_service.client.errors import Conflict, Invalid, TooLarge
from hinged_service.client.events import Encoded, Event, encode_event, encode_question, present
from hinged_service.client.sync_client import Client
from hinged_service.wire.responses import Label, Prediction

__all__ = ["RemoteClassifier"]


class RemoteClassifier(base.Classifier):
    """A River classifier that learns and predicts in the service.

    Its answers are those of the same learner in process, event by event: a prediction waits
    until the worker that answers has learned all events passed to this object. Learning and
    predicting are a round trip each.

    It is a handle: events that others learn into the model count here too. A pickle holds the
    address, the key and the events not yet sent, not the weights.

    Parameters
    ----------
    service
        The address of the service, or a `Client`, which then is the caller's to close.
    model
        The name of the model.
    spec
        Its spec, with which it is created on first use unless it is there; without
        a spec it has to be there.
    batch
        Events that `learn_one` may gather before it sends them. They are always
        sent before a prediction, so the answers are the same; `close`, or leaving
        the `with` block, sends the last ones.

    Notes
    -----
    Features are sent as `hinged_service.client.events` describes, with one addition:
    unless the model has a pipeline of its own, true and false are 1 and 0, as they
    are in process. A value of NaN is missing, as a transformer in front may give it,
    and so is `None` if the model has no pipeline: the feature is left out, as the
    learners in process do; infinity is refused. Labels are booleans, integers or text
    and come back as such.

    If sending fails (`Unavailable`, `Unreachable`, ...), the events that the error
    has in `event_ids` stay here and are sent first by the next call; do not give
    them again. If the service refuses an event (`Invalid`), that one is left out,
    and the others stay.

    A failover of Redis that lost entries which this object had seen is raised once, as
    `Conflict`; afterwards predictions come from the surviving log.

    A clone would share the model with its original, so it needs another name:
    `clone({"model": "other"})`.

    Examples
    --------
    ::

        remote = RemoteClassifier(
            "http://127.0.0.1:8000", "phishing", spec={"learner": {"type": "perceptron"}}
        )
        with remote:
            evaluate.progressive_val_score(
                datasets.Phishing(), preprocessing.StandardScaler() | remote, metrics.Accuracy()
            )

    """

    def __init__(
        self,
        service: str | Client,
        model: str,
        *,
        spec: Mapping[str, Any] | None = None,
        batch: int = 1,
    ) -> None:
        if not 1 <= batch <= 10_000:
            raise ValueError(f"1 <= batch <= 10000 must hold, not {batch}")
        self.service = service
        self.model = model
        self.spec = spec
        self.batch = batch
        self._client = service if isinstance(service, Client) else Client(service)
        self._pending: list[Encoded] = []
        self._position: str | None = None

    def flush(self) -> None:
        """Send the pending events, in order."""
        while self._pending:
            batcher = Batcher(lambda event: event, self.batch, BATCH_BYTES)
            added = map(batcher.add, self._pending)
            batch = next((full for full in added if full.items), None) or batcher.rest()
            try:
                self._send(batch)
            except (Invalid, TooLarge) as error:
                refused = _refused(error, len(batch.items))
                self._pending = [e for i, e in enumerate(self._pending) if i not in refused]
                raise
            del self._pending[: len(batch.items)]

    def close(self) -> None:
        """Send the pending events, and close the connections if they are not the caller's."""
        try:
            self.flush()
        finally:
            if self._client is not self.service:
                self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def learn_one(self, x: Mapping[Any, Any], y: Label, w: float = 1.0) -> None:
        """Learn from one labelled event, or keep it until there are `batch` of them.

        Raises
        ------
        Invalid
            Naming the field; with a batch, `"[3].y"` for its fourth event.
        ClientError
            If it could not be sent; it stays here, to be sent by the next call,
            unless the model could not even be found or created.

        """
        plain = self._plain_numbers
        event = encode_event(Event(present(x, plain), y, w), flags_are_numbers=plain)
        self._pending.append(event)
        if len(self._pending) >= self.batch:
            self.flush()

    def predict_one(self, x: Mapping[Any, Any], **kwargs: Any) -> Label | None:
        """Return the label of `x`; `None` while a multiclass model knows no class."""
        return self._predict(x).y

    def predict_proba_one(self, x: Mapping[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Return a number per label, in sum 1; `{}` while no class was seen.

        Calibrated of a hedge, and of a model with `calibrate` in its spec.
        """
        label = self._label
        return {label(text): p for text, p in self._predict(x, "all").proba.items()}

    def score_one(self, x: Mapping[Any, Any]) -> float:
        """Return the score that decides the label of `x`."""
        return self._predict(x).score

    def clone(
        self, new_params: dict[str, Any] | None = None, include_attributes: bool = False
    ) -> Self:
        """Return a handle to another model, which `new_params` must name.

        Raises `TypeError` if it would be the same model, or attributes are asked for.
        """
        if include_attributes or (new_params or {}).get("model", self.model) == self.model:
            raise TypeError(
                f"A clone would share the model {self.model!r} with its original. Name another "
                'one: clone({"model": "..."}), within a pipeline '
                'clone({"RemoteClassifier": {"model": "..."}}).'
            )
        return super().clone(new_params)

    def __deepcopy__(self, _: dict[int, Any]) -> Self:
        raise TypeError(
            f"A copy would share the model {self.model!r} with its original; use "
            'clone({"model": "..."}) for a model of its own.'
        )

    @property
    def _multiclass(self) -> bool:
        return "max_classes" in self._served["learner"]

    @property
    def _plain_numbers(self) -> bool:
        return not self._served.get("pipeline")

    @cached_property
    def _served(self) -> dict[str, Any]:
        """The spec that the service has; the model is created if this object has a spec."""
        if self.spec is not None:
            return self._client.create_model(self.model, self.spec).spec
        return self._client.model(self.model).spec

    @cached_property
    def _label(self) -> Callable[[str], Label]:
        """The conversion of a label's text to the label."""
        labels = self._served.get("labels")
        if labels is None and not self._multiclass:
            labels = [False, True]
        if isinstance(labels, list):
            return {_text(label): label for label in labels}.__getitem__
        return int if labels == "integers" else str

    def _predict(self, x: Mapping[Any, Any], proba: str = "none") -> Prediction:
        self.flush()
        plain = self._plain_numbers
        question = encode_question(present(x, plain), flags_are_numbers=plain)
        try:
            return self._client.send(calls.predict(self.model, question, self._position, proba))
        except Conflict:
            self._position = None
            raise

    def _send(self, batch: Batch) -> None:
        if len(batch.items) == 1:
            outcome = self._client.send(calls.learn(self.model, batch.items[0]))
        else:
            outcome = self._client.send(calls.learn_many(self.model, batch))[-1]
        self._position = outcome.position


def _text(label: Label) -> str:
    return label if isinstance(label, str) else msgspec.json.encode(label).decode()


def _refused(error: Invalid | TooLarge, sent: int) -> set[int]:
    """Return which events of those sent will never be taken."""
    if error.logged or sent == 1:
        return set(range(sent))
    named = {fault.index for fault in error.errors if fault.index is not None}
    return named if named or isinstance(error, TooLarge) else set(range(sent))
