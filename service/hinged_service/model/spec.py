"""Specification of a model, as posted and as stored in the index."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationInfo,
    field_validator,
)
from pydantic_core import core_schema

import hinged
from hinged_service.errors import Detail, Unprocessable
from hinged_service.evaluation.drift import DriftSpec, Promote
from hinged_service.evaluation.specs import MetricSpecs, check_metrics
from hinged_service.model.learner_specs import AutoSpec, OwnLearner, has_river_part, initial_names
from hinged_service.model.start import NAME_PATTERN, Exclude, Name, Start
from hinged_service.pipelines import Steps
from hinged_service.pipelines.auto_scaler import AutoScalerSpec
from hinged_service.river_support.custom import CustomSpec
from hinged_service.river_support.learners import Label, RiverLearner
from hinged_service.wire.strict_model import StrictModel

__all__ = ["CONFIGURABLE", "MAX_BYTES", "NAME_PATTERN", "ModelSpec"]

T = TypeVar("T")

MAX_BYTES = 512 * 2**20
"""The `max_bytes` of models that were stored without any; it decides what they learn."""

CONFIGURABLE = ("learning_rate", "C", "r", "phi", "margin", "share", "forgetting")
"""Parameters of a learner that may be changed while it learns."""

Learner = Annotated[OwnLearner | RiverLearner | CustomSpec, Field(discriminator="type")]

Text = Annotated[StrictStr, Field(max_length=256)]
Integer = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]


Labels = (
    Annotated[tuple[StrictBool, ...], Field(min_length=2, max_length=1_000)]
    | Annotated[tuple[Integer, ...], Field(min_length=2, max_length=1_000)]
    | Annotated[tuple[Text, ...], Field(min_length=2, max_length=1_000)]
)


def _said(kind: object, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
    """Describe the allowed labels in one sentence, not the fault of each kind."""
    return core_schema.custom_error_schema(
        handler(kind),
        custom_error_type="labels",
        custom_error_message="must be 2 to 1,000 labels of one type: text of up to 256 characters, "
        'integers of 64 bits, or true and false; for a multiclass learner also "integers"',
    )


_Listed = Annotated[Literal["integers"] | Labels, GetPydanticSchema(_said)] | None


class Retention(StrictModel):
    """The part of its log that a stream keeps behind the snapshots: the bound reached first."""

    events: int | None = Field(None, ge=0, le=10**12, description="The most events.")
    bytes: int | None = Field(None, ge=0, le=10**15, description="The most bytes of their JSON.")


class LateLabels(StrictModel):
    """Rules for predictions of a stream whose labels come later."""

    wait_s: int = Field(
        86_400,
        ge=1,
        le=8 * 7 * 86_400,
        description="Shortest wait of a prediction with an id for its label, in seconds.",
    )
    max_waiting: int = Field(
        100_000,
        ge=1,
        le=10_000_000,
        description="Largest number of predictions that wait; then 429.",
    )
    default_label: bool | Integer | Text | None = Field(
        None,
        description="The label of a prediction whose own did not come in time. Default: none.",
    )
    early: bool = Field(False, description="Let a label come before its prediction.")


class ModelSpec(StrictModel):
    """A model: a learner that follows a stream of labelled events."""

    learner: Learner = Field(description="The update rule and its parameters.")
    pipeline: Steps = Field(
        (),
        description="Transformers of the features, in this order. Without them, features must be "
        "numbers.",
    )
    scale: Literal["auto"] | None = Field(
        None,
        description="auto: an AutoScaler behind the pipeline, but before the first "
        "FourierFeatures. It centres and scales dense numeric features, and leaves flags and "
        "sparse features alone.",
    )
    calibrate: bool = Field(
        False,
        description="Scale the scores online so that the probabilities are calibrated; labels and "
        "scores stay. The learner auto and hedges are calibrated without it.",
    )
    labels: _Listed = Field(
        None,
        description="Binary: the two labels, the negative one first. Left out, they are true and "
        "false, or 1 and 0. Multiclass: all labels, or integers. Left out, any text is a label. "
        "The learner auto: two labels make it binary. Left out, its first event decides whether "
        "labels are text, integers or booleans. All labels of a model have one JSON type.",
    )
    class_weight: Literal["balanced"] | None = Field(
        None,
        description="balanced: the sample weight of an event is multiplied by n / (k n_y). n is "
        "the number of events learned so far, with this one; n_y is that of its label; k is the "
        "number of labels seen. The effect depends on the rule.",
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
    max_bytes: int | None = Field(
        None,
        ge=4_096,
        le=2**40,
        description="The most bytes of what the model learns by name. A stored number counts 128 "
        "bytes and its name, for each class, expert and part of a rule. An event that might need "
        "more is refused; transformers then ignore new names. Transformers that learn have half "
        "of these bytes. Default: the service's setting.",
    )
    metrics: MetricSpecs = Field(
        (),
        description="Progressive metrics: each event is predicted, scored, then learned. By name, "
        "or with parameters.",
    )
    drift: DriftSpec | None = Field(
        None, description="A detector on the model's mistakes, and what to do when it fires."
    )
    start: Start = Field(
        "now",
        description="Where the model starts on its stream: now; log, with the oldest event in the "
        "log (if the log was trimmed, with the second entry); or with another model's state.",
    )
    exclude: Exclude | None = Field(
        None, description="Events of the stream that this model leaves out."
    )
    late_labels: LateLabels | None = Field(
        None,
        description="Rules for predictions that wait for labels. If no model of the stream has "
        "any: a day, and no default label.",
    )
    retention: Retention | None = Field(
        None,
        description="The part of the log that the stream keeps: the largest that a model asks "
        "for. Default: the service's setting.",
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
    def _fitting(cls, labels: _Listed, info: ValidationInfo) -> _Listed:
        learner = info.data.get("learner")
        cap = getattr(learner, "max_classes", None)
        if isinstance(labels, tuple) and len(set(labels)) < len(labels):
            raise ValueError("labels must be different values")
        if learner is not None and cap is None and labels is not None and len(labels) != 2:
            raise ValueError("a binary learner has two labels")
        if cap is not None and isinstance(labels, tuple) and len(labels) > cap:
            raise ValueError(f"there are {len(labels)} labels, but max_classes is {cap}")
        return labels

    @field_validator("pipeline")
    @classmethod
    def _only_one(cls, steps: Steps, info: ValidationInfo) -> Steps:
        if steps and isinstance(info.data.get("learner"), CustomSpec):
            raise ValueError("a custom model has a pipeline of its own: leave this one out")
        return steps

    @field_validator("scale")
    @classmethod
    def _scalable(cls, scale: str | None, info: ValidationInfo) -> str | None:
        if scale and isinstance(info.data.get("learner"), CustomSpec):
            raise ValueError("a custom model has a pipeline of its own: leave this out")
        return scale

    @field_validator("max_features")
    @classmethod
    def _with_room(cls, most: int, info: ValidationInfo) -> int:
        if (names := initial_names(info.data.get("learner"))) > most:
            raise ValueError(f"initial_weights has {names} names, which is more")
        return most

    @field_validator("metrics")
    @classmethod
    def _measurable(cls, metrics: MetricSpecs, info: ValidationInfo) -> MetricSpecs:
        cap = _most_classes(info.data.get("learner"), info.data.get("labels"))
        check_metrics(metrics, cap is not None)
        return metrics

    @field_validator("late_labels")
    @classmethod
    def _answerable(cls, late: LateLabels | None, info: ValidationInfo) -> LateLabels | None:
        label = None if late is None else late.default_label
        learner, labels = info.data.get("learner"), info.data.get("labels")
        if label is None or learner is None or isinstance(learner, CustomSpec):
            return late
        if isinstance(labels, tuple):
            possible = any(type(label) is type(one) and label == one for one in labels)
        elif isinstance(learner, AutoSpec):
            possible = True
        elif hasattr(learner, "max_classes"):
            possible = type(label) is (str if labels is None else int)
        else:
            possible = label in (0, 1)
        if not possible:
            raise ValueError("default_label must be one of the model's labels")
        return late

    @property
    def calibrated(self) -> bool:
        """True if the probabilities are calibrated; else they order events and are no frequency."""
        return self.calibrate or self.learner.type in ("auto", "hedge", "multiclass_hedge")

    @property
    def pair(self) -> tuple[Label, Label] | None:
        """The negative and the positive label of a binary model that names them."""
        if self.multiclass or not isinstance(self.labels, tuple):
            return None
        return self.labels[0], self.labels[1]

    @functools.cached_property
    def max_classes(self) -> int | None:
        """The most classes of a multiclass learner; `None` for a binary one."""
        return _most_classes(self.learner, self.labels)

    @property
    def multiclass(self) -> bool:
        """True for a learner of more than two labels."""
        return self.max_classes is not None

    @functools.cached_property
    def steps(self) -> Steps:
        """The transformers of every event, with that of `scale`."""
        if not self.scale:
            return self.pipeline
        types = [step.type for step in self.pipeline]
        at = types.index("FourierFeatures") if "FourierFeatures" in types else len(types)
        return (*self.pipeline[:at], AutoScalerSpec(type="AutoScaler"), *self.pipeline[at:])

    @functools.cached_property
    def accepts_non_numeric(self) -> bool:
        """True if features may be text, booleans or missing."""
        return bool(self.pipeline) or isinstance(self.learner, CustomSpec)

    @functools.cached_property
    def can_reject_features(self) -> bool:
        """True if the model may still refuse features that are valid in an event."""
        return bool(self.steps) or not isinstance(self.learner, OwnLearner)

    @functools.cached_property
    def needs_no_import(self) -> bool:
        """True if the library alone has all of the model, none of River's parts."""
        parts = self.steps or self.metrics or self.drift is not None
        own = isinstance(self.learner, OwnLearner) and not has_river_part(self.learner)
        return own and not parts

    @property
    def promotes(self) -> str | None:
        """The alias that the drift action moves, `None` if it moves none."""
        action = None if self.drift is None else self.drift.action
        return action.promote.alias if isinstance(action, Promote) else None

    @functools.cached_property
    def _found(self) -> dict[Callable[[ModelSpec], Any], Any]:
        return {}

    def once(self, find: Callable[[ModelSpec], T]) -> T:
        """Return the result of `find` for the spec, once for all models that share it."""
        if find not in self._found:
            self._found[find] = find(self)
        found: T = self._found[find]
        return found

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other fields; nothing that was found out is copied."""
        copied = super().model_copy(update=update, deep=deep)
        for name, value in vars(ModelSpec).items():
            if isinstance(value, functools.cached_property):
                vars(copied).pop(name, None)
        return copied

    def check_new(self) -> None:
        """Raise `Unprocessable` if no new model may have the spec, though a stored one might.

        That is a custom model that the process does not serve, balance of a learner without
        sample weights, or a span of excluded events that ends before it begins.
        """
        if self.exclude is not None:
            self.exclude.check_spans()
        if isinstance(self.learner, CustomSpec):
            self.learner.check_served()
        if self.class_weight is not None:
            try:
                self.learner.build(self.max_features).check_weight(0.5)
            except hinged.InvalidEvent as error:
                reason = f"needs a learner that takes every sample weight; here it {error.reason}"
                raise Unprocessable(
                    "Nothing was made: see errors.", [Detail("class_weight", reason)]
                ) from None

    def configured(self, parameters: dict[str, Any]) -> Learner:
        """Return the learner's spec with some parameters changed.

        Raises
        ------
        ValueError
            If the learner has no such parameter, or it may not change, or not to that.

        """
        if parameters:
            own = isinstance(self.learner, OwnLearner)
            changeable = [n for n in CONFIGURABLE if own and n in type(self.learner).model_fields]
            if not parameters.keys() <= set(changeable):
                some = f"only {', '.join(changeable)}" if changeable else "no parameter"
                raise ValueError(f"{some} of this learner may change")
        if isinstance(self.learner, AutoSpec) and not self.multiclass:
            return self.learner.model_copy(update={"max_classes": 2})
        if not parameters:
            return self.learner
        changed = {**self.learner.model_dump(mode="json"), **parameters}
        return type(self.learner).model_validate_json(json.dumps(changed))

    @property
    def bytes_bound(self) -> int:
        """The bytes that numbers stored by name may take."""
        return MAX_BYTES if self.max_bytes is None else self.max_bytes

    def with_max_bytes(self, max_bytes: int | None) -> ModelSpec:
        """Return the spec with that bound on its bytes, unless it has one."""
        return self.model_copy(update={"max_bytes": max_bytes}) if self.max_bytes is None else self

    def on(self, name: str) -> ModelSpec:
        """Return the spec with its stream named, the default being the model's own name."""
        return self if self.stream else self.model_copy(update={"stream": name})


def _most_classes(learner: object, labels: _Listed) -> int | None:
    """Return the most classes of a multiclass learner; `None` for a binary one."""
    if isinstance(learner, AutoSpec) and isinstance(labels, tuple) and len(labels) == 2:
        return None
    cap: int | None = getattr(learner, "max_classes", None)
    return cap


def same_spec(a: ModelSpec, b: ModelSpec) -> bool:
    """Return whether two specs describe the same model, types of labels included."""
    return _canonical(a) == _canonical(b)


def _canonical(spec: ModelSpec) -> str:
    data: dict[str, Any] = spec.model_dump(mode="json")
    return json.dumps(data, sort_keys=True)
