"""The pipeline of a model: from an event as it is sent to the numbers that its learner takes."""

from __future__ import annotations

from typing import Any

import hinged
from hinged_service.pipelines.byte_limit import ByteLimit
from hinged_service.pipelines.catalogue import Steps
from hinged_service.pipelines.chain import Chain
from hinged_service.pipelines.stage import Scaling
from hinged_service.pipelines.state_checks import count
from hinged_service.pipelines.values import LEARNER, Features, Numbers, floats, only_numbers

__all__ = ["Pipeline"]

VERSION = 1


class Pipeline:
    """Transformers in turn, run as River's pipelines run them.

    Where the values are those of River, they are so bit for bit; where a
    transformer differs, its spec describes how. In addition, a number beyond 1e100 that a
    transformer makes is cut to it, and what is stored stays within `max_features`
    per transformer and `max_bytes` together.

    Parameters
    ----------
    steps
        The transformers' specs; none at all is fine.
    max_features
        How many names, words or categories each transformer keeps at most. Later ones
        are ignored and counted.
    max_bytes
        How many bytes all of them keep together; likewise. `None` for no limit.

    Attributes
    ----------
    learns
        Whether any of the transformers learns.
    takes_numbers
        Whether it never refuses an event of numbers only.
    added
        The features that it may add to those of the event; `None` if it gives others.

    Examples
    --------
    >>> from pydantic import TypeAdapter
    >>> steps = TypeAdapter(Steps).validate_json('[{"type": "StandardScaler"}]')
    >>> pipeline = Pipeline(steps, max_features=10)
    >>> pipeline.learn_transform_one({"age": 30.0}), pipeline.learn_transform_one({"age": 40.0})
    ({'age': 0.0}, {'age': 1.0})
    >>> pipeline.transform_one({"age": 50.0, "clicks": 3.0})
    {'age': 3.0, 'clicks': 0.0}

    """

    def __init__(self, steps: Steps, max_features: int, max_bytes: int | None = None) -> None:
        self._steps = steps
        self._max_features = max_features
        self._max_bytes = max_bytes
        self._chain, self._byte_limit = self._fresh()
        self.learns = self._chain.learns
        self.takes_numbers = self._chain.numbers_suffice and self._chain.gives_numbers
        self.added = self._chain.added

    def _fresh(self) -> tuple[Chain, ByteLimit]:
        chain = Chain([step.build(self._max_features) for step in self._steps])
        byte_limit = ByteLimit(self._max_bytes)
        chain.share(byte_limit)
        return chain, byte_limit

    def stored_bytes(self) -> int:
        """Return the bytes of the stored names, words and categories, with their records."""
        return self._byte_limit.taken

    @property
    def ignored(self) -> int:
        """The number of features not learned, over all events, because a transformer is full."""
        return self._chain.ignored

    def transform_one(self, x: Features) -> Numbers:
        """Return the features for a prediction of the learner; nothing changes.

        Parameters
        ----------
        x
            Names to numbers of at most 1e100, booleans, text, or `None` for what is
            missing.

        Raises
        ------
        hinged.InvalidEvent
            Naming the first feature that a transformer, or the learner, does not take,
            and what would take it.

        """
        made = self._chain.transform(x)
        return made if self._chain.gives_numbers else floats(made, LEARNER)  # type: ignore[return-value]

    def learn_transform_one(self, x: Features, checked: bool = False) -> Numbers:
        """Learn an event and return the features that the learner learns.

        Each transformer learns what it gets before it transforms it, as in
        `river.compose.Pipeline.learn_one`.

        Parameters
        ----------
        x
            An event as in `transform_one`.
        checked
            Whether `transform_one` has just taken it. If not, that is tried first where a
            transformer might refuse the event after another one has learned from it.

        Raises
        ------
        hinged.InvalidEvent
            As `transform_one` does. Nothing has changed then.

        """
        chain = self._chain
        if not chain.learns:
            return self.transform_one(x)
        whole = chain.all_or_nothing and chain.gives_numbers
        if not (checked or whole or (chain.numbers_suffice and only_numbers(x))):
            self.transform_one(x)
        made = chain.learn_transform(x)
        return made if chain.gives_numbers else floats(made, LEARNER)  # type: ignore[return-value]

    def progress_one(self, x: Numbers) -> tuple[Numbers, Numbers]:
        """Return the result of `transform_one`, then learn, and return the features to learn.

        Parameters
        ----------
        x
            Floats of at most 1e100, which is not checked; only where `takes_numbers`.

        """
        return self._chain.progress(x)

    def scalings(self, name: str) -> list[Scaling | None]:
        """Return the scaling of a number of that name by each stage, `None` where there is none."""
        return [stage.scaling(name) for stage in self._chain.stages]

    def origins(self, x: Features) -> dict[str, tuple[str, ...]]:
        """Return the origins in `x` of each feature of `transform_one(x)`.

        Raises
        ------
        hinged.InvalidEvent
            As `transform_one` does.

        """
        self.transform_one(x)
        return self._chain.origins(x)

    def get_state(self) -> dict[str, Any]:
        """Return all that was learned, as JSON-like data of finite numbers.

        The order of the keys of its objects does not matter.
        """
        return {"version": VERSION, "stages": self._chain.get_state()}

    def set_state(self, data: Any) -> None:
        """Restore the state that `get_state` of a pipeline of the same steps returned.

        Raises
        ------
        hinged.InvalidState
            If it is damaged, or of other steps; nothing has changed then.

        """
        if not isinstance(data, dict) or data.keys() != {"version", "stages"}:
            raise hinged.InvalidState("the pipeline's state must have a version and stages")
        count(data["version"], "the version of the pipeline's state", VERSION, VERSION)
        chain, byte_limit = self._fresh()
        chain.set_state(data["stages"])
        self._chain, self._byte_limit = chain, byte_limit
