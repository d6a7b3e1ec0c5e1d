"""What a model is: its spec, as posted and as stored in the index."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import (
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationInfo,
    field_validator,
)

from hinged_service.learners import Learner, Strict

__all__ = ["NAME_PATTERN", "IndexEntry", "ModelSpec"]

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,127}$"
"""Names of models and streams: letters, digits, `_`, `.` and `-`."""

Name = Annotated[str, Field(pattern=NAME_PATTERN)]


Text = Annotated[StrictStr, Field(max_length=256)]
Integer = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]


Labels = (
    Annotated[tuple[StrictBool, ...], Field(min_length=2, max_length=1_000)]
    | Annotated[tuple[Integer, ...], Field(min_length=2, max_length=1_000)]
    | Annotated[tuple[Text, ...], Field(min_length=2, max_length=1_000)]
)


class ModelSpec(Strict):
    """A model: a learner that follows a stream of labelled events."""

    learner: Learner = Field(description="The update rule and its parameters.")
    labels: Literal["integers"] | Labels | None = Field(
        None,
        description="Binary: the two labels, the negative one first; without it true and false "
        "(or 1 and 0). Multiclass: all labels, or integers; without it any text is a label. All "
        "labels of a model are of one JSON type.",
    )
    stream: Name | None = Field(
        None, description="The stream to follow; a new one with the model's name if left out."
    )
    max_features: int = Field(
        1_000_000,
        ge=1,
        le=1_000_000,
        description="Feature names a model learns at most (each expert of a hedge, each class of "
        "one_vs_rest); later ones are ignored and counted.",
    )

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "learner": {"type": "perceptron", "learning_rate": 1.0},
                    "labels": ["ham", "spam"],
                    "stream": "sms",
                }
            ]
        }
    )

    @field_validator("labels")
    @classmethod
    def _fitting(cls, labels: Any, info: ValidationInfo) -> Any:
        learner = info.data.get("learner")
        cap = getattr(learner, "max_classes", None)
        if isinstance(labels, tuple) and len(set(labels)) < len(labels):
            raise ValueError("labels must be different values")
        if learner is not None and cap is None and labels is not None and len(labels) != 2:
            raise ValueError("a binary learner has two labels")
        if cap is not None and isinstance(labels, tuple) and len(labels) > cap:
            raise ValueError(f"there are {len(labels)} labels, but max_classes is {cap}")
        return labels

    @property
    def multiclass(self) -> bool:
        """Whether the learner tells more than two labels apart."""
        return hasattr(self.learner, "max_classes")

    def on(self, name: str) -> ModelSpec:
        """Return the spec with its stream named, the default being the model's own name."""
        return self if self.stream else self.model_copy(update={"stream": name})


class IndexEntry(Strict):
    """What the index knows of a model name."""

    uid: str
    stream: Name
    spec: ModelSpec
    base: str | None = Field(None, description="The position at which the model starts.")
    deleting: bool = False

    def dumps(self) -> str:
        """Return the entry as the index stores it."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True)

    @classmethod
    def loads(cls, text: str) -> IndexEntry:
        """Read an entry from the index."""
        return cls.model_validate_json(text)

    def with_base(self, base: str) -> IndexEntry:
        """Return the entry of the registered model."""
        return self.model_copy(update={"base": base})

    def as_deleting(self) -> IndexEntry:
        """Return the entry of a model whose deletion has begun."""
        return self.model_copy(update={"deleting": True})


def same_spec(a: ModelSpec, b: ModelSpec) -> bool:
    """Tell whether two specs describe the same model, types of labels included."""
    return _canonical(a) == _canonical(b)


def _canonical(spec: ModelSpec) -> str:
    data: dict[str, Any] = spec.model_dump(mode="json")
    return json.dumps(data, sort_keys=True)
