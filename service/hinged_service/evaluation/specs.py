"""Metrics as a spec names them, and the check that they fit the learner."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field

from hinged_service.wire.strict_model import StrictModel

__all__ = ["Metric", "MetricSpec", "MetricSpecs", "RollingSpec", "check_metrics", "full_spec"]

Name = Literal[
    "accuracy",
    "balanced_accuracy",
    "f1",
    "precision",
    "recall",
    "roc_auc",
    "log_loss",
    "calibration_error",
    "reliability",
    "confusion_matrix",
    "mcc",
    "cohen_kappa",
]


class MetricSpec(StrictModel):
    """A metric of all events since the model began; with two classes the positive one counts.

    With more classes, f1, precision and recall are the mean over the classes. ROC AUC is exact
    for the first 500 events of each label; after that it is off by 0.002 at most, for any
    scores. It is null while only one label was seen. Reliability lists, for ten bins of the
    probability (of the positive label; with more classes of the predicted one), its mean, the share
    of events that came true, and their number; calibration_error (ECE) is the mean distance of the
    two over all events.
    """

    type: Name

    @property
    def metric(self) -> str:
        """The metric itself."""
        return self.type

    @property
    def window(self) -> None:
        """None: all events count."""
        return

    @property
    def name(self) -> str:
        """Its name in a report."""
        return self.type


class RollingSpec(StrictModel):
    """A metric of the newest events only; ROC AUC is exact, null if they are of one label."""

    type: Literal["rolling"]
    metric: Name = Field(description="Which metric.")
    window: int = Field(1_000, ge=1, le=10_000, description="How many events count.")

    @property
    def name(self) -> str:
        """Its name in a report."""
        return f"rolling_{self.metric}_{self.window}"


Metric = Name | MetricSpec | RollingSpec
MetricSpecs = Annotated[
    tuple[Metric, ...],
    Field(max_length=20, description="Metrics by name, or with their parameters."),
]


def full_spec(spec: Metric) -> MetricSpec | RollingSpec:
    """Return the spec of a metric that may be its name alone."""
    return MetricSpec(type=spec) if isinstance(spec, str) else spec


def check_metrics(specs: Iterable[Metric], multiclass: bool) -> None:
    """Check that the metrics of a spec differ and fit its learner.

    Parameters
    ----------
    specs
        The metrics.
    multiclass
        Whether the learner distinguishes more than two classes.

    Raises
    ------
    ValueError
        Naming the metric.

    """
    names = set()
    for spec in map(full_spec, specs):
        if spec.name in names:
            raise ValueError(f"{spec.name} appears twice")
        names.add(spec.name)
        if multiclass and spec.metric in ("roc_auc", "mcc"):
            raise ValueError(f"{spec.metric} needs a learner of two classes")
