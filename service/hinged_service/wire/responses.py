"""Answers of the service, which it encodes, its client decodes and its OpenAPI describes.

A field with a default may be missing in the answer of an older service. A `position` may be
passed as `at_least` to a call that must have as much. The file is long: all answers stand side
by side, one struct each.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from hinged_service.wire.faults import MAX_DETAILS

__all__ = [
    "AliasInfo",
    "Checkpoint",
    "CommandResult",
    "Damage",
    "Drift",
    "Duplicate",
    "Early",
    "ExpertWeights",
    "Explanation",
    "Fault",
    "Follower",
    "Label",
    "LabelCounts",
    "Learned",
    "LinearWeights",
    "ModelInfo",
    "ModelListed",
    "Outcome",
    "Prediction",
    "Problem",
    "Promoted",
    "Repaired",
    "Restored",
    "StreamInfo",
    "StreamListed",
    "Upgraded",
    "Weights",
    "about",
]

Label = bool | int | str

if TYPE_CHECKING:  # msgspec knows no literal booleans; type checkers distinguish answers by them
    No: TypeAlias = Literal[False]
    Yes: TypeAlias = Literal[True]
else:
    No = bool
    Yes = Annotated[bool, Meta(examples=[True])]


def about(text: str) -> Meta:
    """Return the description of a field, for the OpenAPI and for readers."""
    return Meta(description=text)


LearnedUpTo = Annotated[str, about("The place in the log up to which the model had learned.")]
_INDEX: Final = re.compile(r"\[(\d+)\]")


class Prediction(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A prediction."""

    y: Annotated[
        Label | None, about("The predicted label; null while a multiclass model knows no class.")
    ]
    score: Annotated[
        float,
        about(
            "The score that decided it: `w . x + b`, the pooled log-odds of a hedge, or the "
            "highest score of all classes."
        ),
    ]
    proba: Annotated[
        dict[str, float],
        about(
            "Per label, by its text (`'true'`, `'3'`, `'spam'`): the logistic function of the "
            "score, the softmax of all scores, or River's own. They are calibrated for auto, for "
            "hedges and with `calibrate` in the spec; otherwise they order events, but are not "
            "frequencies. With more than ten classes, the ten likeliest, the likeliest first, "
            "unless `proba` asks for others."
        ),
    ]
    position: LearnedUpTo
    stale_s: Annotated[
        float | None, about("Only while Redis does not answer: the model's age in seconds.")
    ] = None


class Learned(msgspec.Struct, frozen=True, gc=False):
    """The outcome of an event, predicted and scored before it was learned."""

    y_pred: Annotated[Label | None, about("The label predicted before learning.")]
    score: Annotated[float, about("The score that decided it, before learning.")]
    mistake: Annotated[bool, about("Whether the predicted label was wrong.")]
    updated: Annotated[bool, about("Whether the weights changed.")]
    hinge_loss: Annotated[float, about("`max(0, 1 - margin)` before learning.")]
    position: Annotated[str, about("A place in the log at which the event is in the model.")]
    duplicate: Annotated[No, about("Whether the event had counted before.")] = False


class Duplicate(msgspec.Struct, frozen=True, gc=False):
    """The answer for an event that had counted before, maybe in an attempt that got no answer."""

    position: Annotated[str, about("A place in the log at which the event is in the model.")]
    duplicate: Annotated[Yes, about("True.")] = True


Outcome = Learned | Duplicate


class Early(msgspec.Struct, frozen=True, gc=False):
    """The answer for a label that came before its prediction: it waits for it."""

    position: LearnedUpTo
    early: Annotated[Yes, about("True for a label that came before its prediction.")] = True


class Explanation(msgspec.Struct, frozen=True):
    """The contributions of features to a score."""

    y: Annotated[
        Label | None, about("The label whose score is explained; null while no class was seen.")
    ]
    score: Annotated[float, about("The score; the sum of all contributions and the intercept.")]
    intercept: Annotated[float, about("The score without features.")]
    contributions: Annotated[
        dict[str, float],
        about(
            "By the features that the learner sees, largest magnitude first; of a hedge by its "
            "experts."
        ),
    ]
    features: Annotated[
        dict[str, float],
        about(
            "The same by the features of the event; a contribution that comes from several is "
            "shared equally, one that comes from none (a bias) has its own name."
        ),
    ]
    position: LearnedUpTo


class ModelListed(msgspec.Struct, frozen=True):
    """A model as the list shows it."""

    name: Annotated[str, about("The model's name.")]
    spec: Annotated[dict[str, Any], about("Its spec, defaults included.")]
    base: Annotated[str, about("The position at which the model starts.")]


class LabelCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Predictions that waited for their labels; up to `coverage` of the whole stream."""

    predicted: Annotated[int, about("Predictions that were kept under an id.")]
    waiting: Annotated[int, about("Those whose label has not come.")]
    joined: Annotated[int, about("Those whose label came.")]
    defaulted: Annotated[int, about("Those that got the default label.")]
    expired: Annotated[int, about("Those given up without a label.")]
    late: Annotated[int, about("Labels that came too late.")]
    unknown: Annotated[int, about("Labels of no prediction.")]
    duplicates: Annotated[int, about("Labels that had come before.")]
    conflicts: Annotated[int, about("Labels whose prediction had another one.")]
    early: Annotated[int, about("Labels that came first and wait for their prediction.")]
    unclaimed: Annotated[int, about("Those whose prediction never came.")]
    coverage: Annotated[
        float | None,
        about("The share of the predictions that do not wait any more whose label came."),
    ]
    labelled: Annotated[int, about("Events of this model that were such a label.")]
    served: Annotated[int, about("Predictions of this model that have a label, or the default.")]
    served_mistakes: Annotated[int, about("Those that were wrong.")]
    mean_delay_s: Annotated[float | None, about("Delay of the labels in seconds, on average.")]
    longest_delay_s: Annotated[float, about("The longest delay, in seconds.")]


class Drift(msgspec.Struct, frozen=True):
    """A drift that a model's detector found."""

    entry: Annotated[str, about("Id of the log entry; its first part is the time in ms.")]
    number: Annotated[int, about("Number of the event within the entry.")]
    events: Annotated[int, about("Events of the model until then.")]


class Damage(msgspec.Struct, frozen=True):
    """A damaged part of the stored data of a model."""

    what: Annotated[str, about("The part, and what is wrong with it.")]
    where: Annotated[str, about("Its place: the id of a log entry, a checkpoint or the inbox.")]


class ModelInfo(ModelListed, frozen=True, kw_only=True):
    """A model, its position and its account."""

    position: Annotated[str, about("The place in the log up to which it has learned.")]
    progress: Annotated[
        float,
        about("The share of the stream's log that it has learned; below 1 it is catching up."),
    ] = 1.0
    events: Annotated[int, about("Events that counted, each once.")]
    judged: Annotated[
        int,
        about(
            "Those of them that count in accuracy: of weight above 0, with a prediction (a "
            "multiclass model that knows no class yet has none)."
        ),
    ] = 0
    mistakes: Annotated[int, about("Judged events whose predicted label was wrong.")]
    accuracy: Annotated[float | None, about("1 - mistakes / judged; null without one.")] = None
    updates: Annotated[int, about("Weight changes; ties change weights without a mistake.")]
    hinge_loss: Annotated[float, about("Sum of max(0, 1 - margin), each before its update.")]
    overflows: Annotated[
        int,
        about(
            "Updates left out because a weight would be infinite, or because the score that "
            "they would come from overflowed. More than a few: the model diverges."
        ),
    ]
    rejected: Annotated[int, about("Events of the stream that this model cannot take.")]
    doors: Annotated[
        dict[str, dict[str, int]],
        about(
            "Records from sources (inbox, file, redis-stream, kafka) that it did not learn, by "
            "door and reason: duplicates had counted before, the others are dead letters."
        ),
    ] = {}
    excluded: Annotated[int, about("Events of the stream that its spec leaves out.")] = 0
    frozen: Annotated[bool, about("Whether it only predicts.")] = False
    configured: Annotated[dict[str, Any], about("Parameters changed since it was created.")] = {}
    metrics: Annotated[
        dict[str, Any],
        about(
            "Its progressive metrics by name. A confusion matrix has the 50 classes that occur "
            "most often, fewer if their names are long. If it is cut, a value under its name and "
            "`_classes` holds how many classes are listed, and of how many."
        ),
    ] = {}
    label_counts: Annotated[
        LabelCounts | None, about("Predictions and their labels, once one was made with an id.")
    ] = None
    drifts: Annotated[int, about("Drifts that its detector found.")] = 0
    detections: Annotated[tuple[Drift, ...], about("The latest of them, oldest first.")] = ()
    perceptron_loss: Annotated[float, about("Sum of max(0, -margin), each before its update.")]
    radius: Annotated[float, about("The largest norm of an event, its constant included.")]
    ignored_features: Annotated[int, about("Features of updates left out at max_features.")]
    features: Annotated[int, about("Feature names that have a weight.")]
    bytes: Annotated[
        int,
        about("Bytes of all that it learned by name, counted as for max_bytes of the spec."),
    ] = 0
    max_bytes: Annotated[
        int, about("The limit of these bytes; events that need more are refused.")
    ] = 0
    classes: Annotated[
        tuple[Label, ...],
        about("Binary: the labels, the negative one first. Multiclass: those seen, in order."),
    ]
    calibrated: Annotated[
        bool | None,
        about(
            "Whether its probabilities are calibrated; otherwise they order events, but are not "
            "frequencies. null: an older service does not report it."
        ),
    ] = None
    snapshot: Annotated[
        str, about("Entry id of the snapshot in Redis, as this worker last read it.")
    ]
    stale_s: Annotated[float | None, about("Its age in seconds while Redis does not answer.")] = (
        None
    )
    damaged: Annotated[
        tuple[Damage, ...],
        about(
            "The damaged parts of it and its stream: entries of the log, waiting predictions and "
            "offsets of sources, which a repair mends, and checkpoints, which can be deleted."
        ),
    ] = ()


class LinearWeights(msgspec.Struct, frozen=True):
    """One linear function."""

    weights: Annotated[dict[str, float], about("By feature name, largest magnitude first.")]
    intercept: Annotated[float, about("b in `score = w . x + b`.")]


class ExpertWeights(LinearWeights, frozen=True):
    """One expert of a hedge."""

    trust: Annotated[float, about("Its share of the pool.")]


class Weights(msgspec.Struct, frozen=True, omit_defaults=True):
    """The weights that predict."""

    position: LearnedUpTo
    weights: Annotated[
        dict[str, float] | None, about("Binary: by feature name, largest magnitude first.")
    ] = None
    intercept: Annotated[float | None, about("Binary: the intercept.")] = None
    classes: Annotated[
        dict[str, LinearWeights] | None,
        about("Multiclass: by the label's text; of a hedge those of its most trusted expert."),
    ] = None
    experts: Annotated[tuple[ExpertWeights, ...] | None, about("Hedge: its experts, in order.")] = (
        None
    )


class CommandResult(msgspec.Struct, frozen=True):
    """A command that was carried out."""

    position: Annotated[str, about("Its place in the log; events after it are learned so.")]


class Restored(CommandResult, frozen=True):
    """A restore that was carried out."""

    frozen: Annotated[
        bool, about("Whether the model only predicts now; restored from the checkpoint, too.")
    ]
    was_frozen: Annotated[bool, about("Whether it only predicted before.")]


class Upgraded(msgspec.Struct, frozen=True):
    """The version of the service that folds the model now."""

    position: Annotated[
        str, about("Where in the log this version goes on; events after it are learned so.")
    ]
    fold: Annotated[str, about("The versions that decide the arithmetic from there on.")]
    before: Annotated[
        str, about("Those that decided it before; the same if this version folded it already.")
    ]


class Repaired(msgspec.Struct, frozen=True):
    """Entries of the log and other records that a repair dealt with."""

    removed: Annotated[
        tuple[str, ...], about("Ids of entries that were no part of the log; they are deleted.")
    ]
    passed_over: Annotated[
        tuple[str, ...], about("Ids of entries whose content is lost; their events do not count.")
    ]
    records: Annotated[
        tuple[str, ...],
        about("Waiting predictions and offsets of sources that could not be read; removed."),
    ]


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A stored state of a model at one moment."""

    uid: Annotated[str, about("Its permanent name.")]
    name: Annotated[str | None, about("For people; unique on the stream.")] = None
    model: Annotated[str, about("The name that its model had.")]
    spec: Annotated[dict[str, Any], about("That model's spec.")]
    position: Annotated[
        str | None, about("Its place in the stream's log; none if it was imported.")
    ] = None
    created_ms: Annotated[int, about("The time when it was made, in milliseconds since 1970.")]
    events: Annotated[int, about("Events of the model until then.")]
    mistakes: Annotated[int, about("Mistakes of the model until then.")]
    judged: Annotated[
        int | None,
        about("Events that count in accuracy, 1 - mistakes / judged; null in an old one."),
    ] = None


class Follower(msgspec.Struct, frozen=True):
    """A model of a stream, as it compares to the others."""

    name: Annotated[str, about("The model.")]
    aliases: Annotated[tuple[str, ...], about("Aliases that point to it.")]
    learner: Annotated[str, about("The type of its learner.")]
    position: Annotated[str | None, about("The place in the log up to which it has learned.")] = (
        None
    )
    events: Annotated[int | None, about("Events that counted since the model began.")] = None
    judged: Annotated[
        int | None, about("Those of weight above 0 for which there was a prediction.")
    ] = None
    mistakes: Annotated[int | None, about("Mistakes among the judged.")] = None
    accuracy: Annotated[float | None, about("1 - mistakes / judged.")] = None
    metrics: Annotated[dict[str, Any], about("Its progressive metrics by name.")] = {}
    drifts: Annotated[int | None, about("Drifts detected.")] = None
    problem: Annotated[
        str | None, about("Why this worker cannot serve it now; then there are no numbers.")
    ] = None


class StreamInfo(msgspec.Struct, frozen=True):
    """A stream and its models, the most accurate first."""

    stream: Annotated[str, about("Its name.")]
    aliases: Annotated[
        dict[str, str | None], about("The model of each alias; null if it was lost.")
    ]
    models: Annotated[tuple[Follower, ...], about("Its models.")]


class StreamListed(msgspec.Struct, frozen=True):
    """A stream as the list shows it."""

    stream: Annotated[str, about("Its name.")]
    models: Annotated[tuple[str, ...], about("The models that follow it.")]
    aliases: Annotated[tuple[str, ...], about("The aliases that point to one of them.")]


class AliasInfo(msgspec.Struct, frozen=True):
    """An alias and the model that it points to."""

    alias: Annotated[str, about("Its name.")]
    stream: Annotated[str, about("The stream of its models.")]
    model: Annotated[str | None, about("The model that it points to; null if it was lost.")]


class Promoted(msgspec.Struct, frozen=True):
    """The result of a promotion."""

    result: Annotated[
        Literal["promoted", "refused", "repeated"],
        about(
            "promoted: the alias points to the new model from now on. refused: the alias did not "
            "point to `from`, and nothing changed. repeated: this decision was carried out "
            "before, and nothing changed now."
        ),
    ]
    model: Annotated[str | None, about("The model that the alias points to now.")]


class Fault(msgspec.Struct, frozen=True):
    """One fault of a request."""

    field: Annotated[
        str,
        about(
            "Its place, as in `y` or `x['age']`, or `[3].x['age']` for the fourth of many events."
        ),
    ]
    reason: Annotated[str, about("The condition that must hold there.")]

    @property
    def index(self) -> int | None:
        """The place of the event at fault among many, `None` for a lone one."""
        found = _INDEX.match(self.field)
        return int(found[1]) if found else None

    def moved(self, by: int) -> Fault:
        """Return the fault with its place, if it has one, counted from `by` earlier."""
        if self.index is None:
            return self
        rest = self.field.partition("]")[2]
        return Fault(f"[{self.index + by}]{rest}", self.reason)


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A problem document (RFC 9457): the error and the next step."""

    type: Annotated[str, about("Always `about:blank`.")] = ""
    title: Annotated[str, about("Name and number of the HTTP status.")] = ""
    status: Annotated[int, about("Name and number of the HTTP status.")] = 0
    detail: Annotated[str, about("The error and the next step.")]
    errors: Annotated[
        Annotated[tuple[Fault, ...], Meta(max_length=MAX_DETAILS)], about("The single faults.")
    ] = ()
    logged: Annotated[
        bool, about("Whether the events are in the log all the same, their ids used up.")
    ] = False
    request_id: Annotated[
        str | None, about("That of x-request-id, or one made: the service's log has it too.")
    ] = None
