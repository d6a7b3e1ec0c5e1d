"""The learners that a spec may name: their parameters, checked and documented.

The file is long: a class for each learner.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

import hinged
from hinged.hedge import default_pool
from hinged.multiclass_hedge import default_multiclass_pool
from hinged_service.model.initial_weights import Finite, InitialWeights, RandomWeightsSpec
from hinged_service.river_support.lazy import optim
from hinged_service.river_support.learners.parameters import (
    Classes,
    RiverSpec,
    arguments,
    class_name,
)
from hinged_service.wire.strict_model import StrictModel

__all__ = ["AutoSpec", "BinaryLearner", "OwnLearner", "has_river_part", "initial_names"]


Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Schedule(RiverSpec):
    """A learning rate that falls: rate / t^power at the t-th event."""

    type: Literal["inverse_scaling"]
    rate: Positive
    power: Positive = 0.5

    def river(self) -> object:
        """Return the fresh schedule."""
        return optim.schedulers.InverseScaling(self.rate, self.power)


Rate = Positive | Schedule


class _Binary(StrictModel):
    """A binary rule: the class of the spec's name, with parameters of the fields' names."""

    label_at_zero: bool = Field(
        False, description="Predict the positive label at score 0 instead of the negative one."
    )
    initial_weights: InitialWeights | None = Field(
        None, description="Weights to start from: by feature name, or random; 0 if left out."
    )
    initial_intercept: Finite = Field(0.0, description="The intercept to start from.")

    @model_validator(mode="after")
    def _with_intercept(self) -> Self:
        if self.initial_intercept != 0.0 and not getattr(self, "fit_intercept", True):
            raise ValueError("initial_intercept needs fit_intercept true")
        return self

    @property
    def initial_names(self) -> int:
        """The number of names that have an initial weight."""
        return len(self.initial_weights) if isinstance(self.initial_weights, dict) else 0

    def build(self, max_features: int) -> hinged.BinaryLinearClassifier:
        """Return the fresh learner."""
        rule: type[hinged.BinaryLinearClassifier] = getattr(hinged, class_name(self))
        return rule(**arguments(self), max_features=max_features)


class _Multiclass(StrictModel):
    """A multiclass rule, likewise."""

    initial_weights: RandomWeightsSpec | None = Field(
        None, description="Weights that a new class starts from: random, or 0 if left out."
    )

    def build(self, max_features: int) -> hinged.MulticlassLinearClassifier:
        """Return the fresh learner."""
        rule: type[hinged.MulticlassLinearClassifier] = getattr(hinged, class_name(self))
        return rule(**arguments(self), max_features=max_features)


class _WithRate(StrictModel):
    learning_rate: Rate = Field(1.0, description="The step eta, a number or a schedule.")
    fit_intercept: bool = Field(True, description="Learn an intercept beside the weights.")


class PerceptronSpec(_WithRate, _Binary):
    """The perceptron: a step along the event whenever t * score <= margin."""

    type: Literal["perceptron"]
    margin: NonNegative = Field(0.0, description="Update at margins up to this.")
    update_on: Literal["tie", "mistake"] = Field(
        "tie", description="Update at score 0 too, or only when the predicted label is wrong."
    )

    @model_validator(mode="after")
    def _consistent(self) -> PerceptronSpec:
        if self.update_on == "mistake" and self.margin > 0.0:
            raise ValueError("update_on mistake needs margin 0: it asks only for the label")
        return self


class AveragedPerceptronSpec(_WithRate, _Binary):
    """The perceptron, predicting with the mean of its weights after each event."""

    type: Literal["averaged_perceptron"]


class PocketPerceptronSpec(_WithRate, _Binary):
    """The perceptron, predicting with the weights of its longest run of correct events."""

    type: Literal["pocket_perceptron"]


class _PassiveAggressive(StrictModel):
    C: Positive = Field(1.0, description="Aggressiveness; without effect when uncapped.")
    mode: Literal["uncapped", "I", "II"] = Field("I", description="Which of the three forms.")
    fit_intercept: bool = Field(True, description="Learn an intercept beside the weights.")


class PassiveAggressiveSpec(_PassiveAggressive, _Binary):
    """Passive-aggressive learning: the smallest step that reaches margin 1."""

    type: Literal["passive_aggressive"]


class LinearUnitSpec(_Binary):
    """The linear unit (ADALINE): the delta rule on the score itself."""

    type: Literal["linear_unit"]
    learning_rate: Rate = Field(0.03, description="The step eta, a number or a schedule.")
    capped: bool = Field(True, description="Never step past the target of the event.")
    fit_intercept: bool = Field(True, description="Learn an intercept beside the weights.")


class HingeSGDSpec(_Binary):
    """Sub-gradient descent on the hinge loss with penalties: the linear SVM, online."""

    type: Literal["hinge_sgd"]
    learning_rate: Rate = Field(0.3, description="The step eta; a schedule with constant steps.")
    steps: Literal["adagrad", "constant", "sqrt", "pegasos"] = Field(
        "adagrad", description="Decay of the step: per feature, none, with 1/sqrt(t), 1/(l2 t)."
    )
    l2: NonNegative = Field(0.0, description="Strength of the squared penalty.")
    l1: NonNegative = Field(0.0, description="Strength of the absolute penalty.")
    project: bool = Field(
        True,
        description="Pegasos without l1: shrink the intercept too, and project onto the ball of "
        "radius 1/sqrt(l2).",
    )
    fit_intercept: bool = Field(True, description="Learn an intercept beside the weights.")

    @model_validator(mode="after")
    def _consistent(self) -> HingeSGDSpec:
        if self.steps == "pegasos" and self.l2 == 0.0:
            raise ValueError("pegasos needs l2 above 0: its step is 1 / (l2 t)")
        if self.steps != "constant" and isinstance(self.learning_rate, Schedule):
            raise ValueError("a schedule needs steps constant")
        if isinstance(self.initial_weights, RandomWeightsSpec) and self.l1 + self.l2 > 0.0:
            raise ValueError("random initial_weights need l1 and l2 of 0")
        return self


class _AROW(StrictModel):
    r: Positive = Field(1.0, description="The larger, the smaller the steps.")
    fit_intercept: bool = Field(True, description="Learn an intercept beside the weights.")


class AROWSpec(_AROW, _Binary):
    """Adaptive regularisation of weights: a variance per weight, which shrinks with use."""

    type: Literal["arow"]
    forgetting: NonNegative = Field(
        0.0, lt=1, description="The part of the confidence that an update forgets."
    )


class SCWSpec(_Binary):
    """Soft confidence-weighted learning (SCW-I): a margin of several standard deviations."""

    type: Literal["scw"]
    C: Positive = Field(0.1, description="The largest step.")
    phi: Positive = Field(0.35, description="Standard deviations between margin and 0.")
    fit_intercept: bool = Field(True, description="Learn an intercept beside the weights.")


class LogisticSGDSpec(_Binary):
    """Stochastic gradient descent on the logistic loss: logistic regression, online."""

    type: Literal["logistic_sgd"]
    learning_rate: Rate = Field(0.01, description="The step eta, a number or a schedule.")
    steps: Literal["rms", "adagrad", "constant"] = Field(
        "rms",
        description="Division of the step per feature: by the root of the mean square of its "
        "gradients, of their sum, or not at all.",
    )
    decay: NonNegative = Field(
        0.999, lt=1, description="The part of the mean square that an update keeps, in rms."
    )
    fit_intercept: bool = Field(True, description="Learn an intercept beside the weights.")


class CoinBettingSpec(_Binary):
    """Logistic regression that bets on the sign of each gradient: no rate to choose."""

    type: Literal["coin_betting"]
    fit_intercept: bool = Field(True, description="Learn an intercept beside the weights.")


class FTRLProximalSpec(_Binary):
    """Logistic regression (FTRL-proximal) whose useless weights are exactly 0."""

    type: Literal["ftrl_proximal"]
    learning_rate: Positive = Field(0.3, description="The step alpha.")
    beta: NonNegative = Field(0.1, description="The larger, the smaller the first steps.")
    l1: NonNegative = Field(0.0, description="Strength of the absolute penalty.")
    l2: NonNegative = Field(0.0, description="Strength of the squared penalty.")
    fit_intercept: bool = Field(True, description="Learn an intercept beside the weights.")


_BinaryRule = (
    PerceptronSpec
    | AveragedPerceptronSpec
    | PocketPerceptronSpec
    | PassiveAggressiveSpec
    | LinearUnitSpec
    | HingeSGDSpec
    | AROWSpec
    | SCWSpec
    | LogisticSGDSpec
    | CoinBettingSpec
    | FTRLProximalSpec
)
BinaryLearner = Annotated[_BinaryRule, Field(discriminator="type")]


class CurvedSpec(StrictModel):
    """A binary learner of random cosines of the whole event: its boundary is a curve.

    For few, dense and scaled features (`"scale": "auto"`); see FourierFeatures. An
    explanation is by the cosines.
    """

    type: Literal["curved"]
    learner: BinaryLearner = Field(AROWSpec(type="arow"), description="The binary rule.")
    n_components: int = Field(100, ge=1, le=1_000, description="Cosines.")
    bend: float = Field(
        2.0, gt=0, le=1e6, description="Curvature: gamma times the number of features."
    )
    seed: int = Field(0, ge=0, lt=2**32, description="Seed of the cosines.")
    max_width: int = Field(
        64,
        ge=1,
        le=1_000,
        description="From an event of more features only the intercept learns.",
    )

    def build(self, max_features: int) -> hinged.Curved:
        """Return the fresh learner."""
        learner = self.learner.build(self.n_components)  # its names are the cosines
        return hinged.Curved(learner, self.n_components, self.bend, self.seed, self.max_width)


class QuadraticSpec(StrictModel):
    """A binary learner of features and of their squares: its boundary bends along each feature.

    For dense and scaled features (`"scale": "auto"`). The square of the feature `a`, less 1, is
    the feature `a²`; values of 0 and 1 have none. An explanation is by both. It learns twice
    `max_features` of both at most, those that come first.
    """

    type: Literal["quadratic"]
    learner: BinaryLearner = Field(SCWSpec(type="scw", phi=1.0), description="The binary rule.")

    def build(self, max_features: int) -> hinged.Quadratic:
        """Return the fresh learner."""
        return hinged.Quadratic(self.learner.build(2 * max_features))


Expert = Annotated[_BinaryRule | CurvedSpec | QuadraticSpec, Field(discriminator="type")]


class HedgeSpec(StrictModel):
    """Hedge: a pool of binary learners, weighted by their mistakes; calibrated."""

    type: Literal["hedge"]
    models: tuple[Expert, ...] | None = Field(
        None, min_length=1, max_length=32, description="The experts; six defaults if left out."
    )
    learning_rate: Positive = Field(0.1, description="Rate at which trust is lost.")
    share: NonNegative = Field(0.001, lt=1, description="Trust spread evenly after each event.")
    curved: bool = Field(
        False,
        description="Two experts more that are curved, of 100 cosines each: for few, dense and "
        "scaled features.",
    )

    def build(self, max_features: int) -> hinged.Hedge:
        """Return the fresh learner."""
        models = (
            default_pool(max_features)
            if self.models is None
            else [m.build(max_features) for m in self.models]
        )
        return hinged.Hedge(models, self.learning_rate, self.share, self.curved)


class MulticlassPerceptronSpec(_WithRate, _Multiclass):
    """The multiclass perceptron: the right class against the best wrong one."""

    type: Literal["multiclass_perceptron"]
    max_classes: Classes = 1_000


class MulticlassAveragedPerceptronSpec(_WithRate, _Multiclass):
    """The multiclass perceptron, predicting with the mean of its weights."""

    type: Literal["multiclass_averaged_perceptron"]
    max_classes: Classes = 1_000


class MulticlassPocketPerceptronSpec(_WithRate, _Multiclass):
    """The multiclass perceptron, predicting with the weights of its longest correct run."""

    type: Literal["multiclass_pocket_perceptron"]
    max_classes: Classes = 1_000


class MulticlassPassiveAggressiveSpec(_PassiveAggressive, _Multiclass):
    """Multiclass passive-aggressive learning: both classes move, so each half as far."""

    type: Literal["multiclass_passive_aggressive"]
    max_classes: Classes = 1_000


class MulticlassAROWSpec(_AROW, _Multiclass):
    """Multiclass AROW: a variance per class and weight."""

    type: Literal["multiclass_arow"]
    max_classes: Classes = 1_000


class MulticlassLogisticSGDSpec(_Multiclass):
    """Softmax regression: the logistic loss of all classes, with AdaGrad's steps."""

    type: Literal["multiclass_logistic_sgd"]
    learning_rate: Rate = Field(0.3, description="The step eta, a number or a schedule.")
    least: NonNegative = Field(
        0.01, lt=1, description="The least probability of a wrong class that moves."
    )
    fit_intercept: bool = Field(True, description="Learn an intercept beside the weights.")
    max_classes: Classes = 1_000


class MulticlassDiscriminantSpec(StrictModel):
    """The nearest class means, over a variance that all classes share: right with few events.

    For dense and scaled features (`"scale": "auto"`). Its intercepts are those of events that
    have every feature.
    """

    type: Literal["multiclass_discriminant"]
    max_classes: Classes = 1_000

    def build(self, max_features: int) -> hinged.MulticlassDiscriminant:
        """Return the fresh learner."""
        return hinged.MulticlassDiscriminant(self.max_classes, max_features)


class OneVsRestSpec(StrictModel):
    """One binary learner per class against all others, the label by the highest score."""

    type: Literal["one_vs_rest"]
    learner: BinaryLearner = Field(description="The binary rule.")
    max_classes: Classes = 1_000

    def build(self, max_features: int) -> hinged.OneVsRest:
        """Return the fresh learner."""
        return hinged.OneVsRest(self.learner.build(max_features), self.max_classes)


_MulticlassRule = (
    MulticlassPerceptronSpec
    | MulticlassAveragedPerceptronSpec
    | MulticlassPocketPerceptronSpec
    | MulticlassPassiveAggressiveSpec
    | MulticlassAROWSpec
    | MulticlassLogisticSGDSpec
    | MulticlassDiscriminantSpec
    | OneVsRestSpec
)
MulticlassLearner = Annotated[_MulticlassRule, Field(discriminator="type")]


class MulticlassQuadraticSpec(StrictModel):
    """A multiclass learner of features and of their squares: boundaries bend along each feature.

    For dense and scaled features (`"scale": "auto"`). The square of the feature `a`, less 1, is
    the feature `a²`; values of 0 and 1 have none. An explanation is by both.
    """

    type: Literal["multiclass_quadratic"]
    learner: MulticlassLearner = Field(
        MulticlassAROWSpec(type="multiclass_arow"), description="The multiclass rule."
    )
    max_classes: Classes = 1_000

    @property
    def rule(self) -> _MulticlassRule:
        """The multiclass rule, of no more classes than `max_classes`."""
        least = min(self.max_classes, self.learner.max_classes)
        return self.learner.model_copy(update={"max_classes": least})

    def build(self, max_features: int) -> hinged.MulticlassQuadratic:
        """Return the fresh learner."""
        return hinged.MulticlassQuadratic(self.rule.build(2 * max_features))


MulticlassExpert = Annotated[_MulticlassRule | MulticlassQuadraticSpec, Field(discriminator="type")]


class MulticlassHedgeSpec(StrictModel):
    """Hedge for many classes: a pool of multiclass learners, weighted by their mistakes."""

    type: Literal["multiclass_hedge"]
    models: tuple[MulticlassExpert, ...] | None = Field(
        None, min_length=1, max_length=32, description="The experts; five defaults if left out."
    )
    learning_rate: Positive = Field(0.1, description="Rate at which trust is lost.")
    share: NonNegative = Field(0.001, lt=1, description="Trust spread evenly after each event.")
    max_classes: Classes = 1_000

    def build(self, max_features: int) -> hinged.MulticlassHedge:
        """Return the fresh learner."""
        models = (
            default_multiclass_pool(self.max_classes, max_features)
            if self.models is None
            else [m.build(max_features) for m in self.models]
        )
        return hinged.MulticlassHedge(models, self.learning_rate, self.share, self.max_classes)


class AutoSpec(StrictModel):
    """A learner without parameters: it scales features, combines rules and calibrates."""

    type: Literal["auto"]
    max_classes: int = Field(
        1_000,
        ge=3,
        le=1_000,
        description="Largest number of classes. An event of one more is refused.",
    )

    def build(self, max_features: int) -> hinged.Auto:
        """Return the fresh learner."""
        return hinged.Auto(self.max_classes, max_features)


OwnLearner = (
    AutoSpec
    | _BinaryRule
    | CurvedSpec
    | QuadraticSpec
    | HedgeSpec
    | _MulticlassRule
    | MulticlassQuadraticSpec
    | MulticlassHedgeSpec
)
"""The learners of `hinged`."""


def initial_names(spec: object) -> int:
    """Return how many names have an initial weight: of the learner, or the most of its members."""
    members = [*(getattr(spec, "models", None) or ()), getattr(spec, "learner", None), spec]
    return max(one.initial_names if isinstance(one, _Binary) else 0 for one in members)


def has_river_part(spec: StrictModel) -> bool:
    """Return whether a spec, or one of a model in it, has a part of River's, such as a schedule."""
    for _, value in spec:
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, RiverSpec):
                return True
            if isinstance(one, StrictModel) and has_river_part(one):
                return True
    return False
