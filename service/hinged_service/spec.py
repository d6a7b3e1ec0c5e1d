"""What a model is: its spec, as posted and as stored in the index."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, field_validator

import hinged

__all__ = ["NAME_PATTERN", "IndexEntry", "ModelSpec", "PerceptronSpec"]

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,127}$"
"""Names of models and streams: letters, digits, `_`, `.` and `-`."""

Name = Annotated[str, Field(pattern=NAME_PATTERN)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class PerceptronSpec(_Strict):
    """The plain perceptron: w += learning_rate * t * x whenever t * score <= 0."""

    type: Literal["perceptron"]
    learning_rate: float = Field(1.0, gt=0, allow_inf_nan=False, description="eta > 0")
    fit_intercept: bool = Field(True, description="Learn an intercept beside the weights.")

    def build(self) -> hinged.Perceptron:
        """Return the fresh learner."""
        return hinged.Perceptron(learning_rate=self.learning_rate, fit_intercept=self.fit_intercept)


Text = Annotated[StrictStr, Field(max_length=256)]
Integer = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]


class ModelSpec(_Strict):
    """A model: a learner that follows a stream of labelled events."""

    learner: PerceptronSpec = Field(description="The update rule and its parameters.")
    labels: tuple[StrictBool, StrictBool] | tuple[Integer, Integer] | tuple[Text, Text] | None = (
        Field(
            None,
            description="The two labels, the negative one first, both of one JSON type. "
            "Without it labels are true and false (or 1 and 0).",
        )
    )
    stream: Name | None = Field(
        None, description="The stream to follow; a new one with the model's name if left out."
    )
    max_features: int = Field(
        1_000_000,
        ge=1,
        le=1_000_000,
        description="Feature names a model learns at most; later ones are ignored and counted.",
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
    def _distinct(cls, labels: tuple[Any, Any] | None) -> tuple[Any, Any] | None:
        if labels is not None and labels[0] == labels[1]:
            raise ValueError("labels must be two different values")
        return labels

    def on(self, name: str) -> ModelSpec:
        """Return the spec with its stream named, the default being the model's own name."""
        return self if self.stream else self.model_copy(update={"stream": name})


class IndexEntry(_Strict):
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
