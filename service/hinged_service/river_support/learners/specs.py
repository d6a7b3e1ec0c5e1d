"""River's own classifiers in a spec, with their parameters.

The parameters are bounded so that no event within the bounds of `hinged_service.wire.events`
can make a weight or a statistic overflow, and so that memory is bounded.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator
from river import base

from hinged_service.river_support.lazy import imported
from hinged_service.river_support.learners.binary import RiverBinary
from hinged_service.river_support.learners.classifier import OneVsOne, RiverClassifier
from hinged_service.river_support.learners.multiclass import RiverMulticlass
from hinged_service.river_support.learners.optimizers import SGD, Optimizer
from hinged_service.river_support.learners.parameters import (
    Classes,
    RiverSpec,
    arguments,
    class_name,
)
from hinged_service.wire.strict_model import StrictModel

__all__ = ["RiverLearner"]

_NEVER = 2**62
"""A tree estimates its size whenever the weight it has seen is a multiple of this."""

Alpha = Annotated[float, Field(ge=1e-10, le=1e6, description="Smoothing: added to each count.")]
Penalty = Annotated[
    float, Field(ge=0, le=1_000, description="Strength of the squared penalty; at most 1 / lr.")
]


class _River(RiverSpec):
    """A River classifier: its construction, and the events that its kind can take."""

    subpackage: ClassVar[str]
    names: ClassVar[int] = 10_000
    """The most feature names, also if the model's spec allows more."""
    bounds: ClassVar[tuple[str, ...]] = ()
    """Fields that are no parameters of River's class."""
    fixed: ClassVar[dict[str, int]] = {}
    """Parameters that no spec may set."""
    weighted: ClassVar[bool] = False
    nonnegative: ClassVar[bool] = False

    @property
    def numbers(self) -> int:
        """The numbers stored for a name, for each class if there are several."""
        return 1

    @property
    def takes_weights(self) -> bool:
        """True if it learns sample weights other than 0 and 1."""
        return self.weighted

    @property
    def constant(self) -> float:
        """1 if an intercept is learned, else 0."""
        return 0.0

    def river(self) -> base.Classifier:
        """Return the fresh River classifier."""
        kind = getattr(imported(self.subpackage), class_name(self))
        made: base.Classifier = kind(**arguments(self, *self.bounds), **self.fixed)
        return made

    def build(self, max_features: int) -> RiverBinary | RiverMulticlass:
        """Return the fresh learner."""
        return self.adapted(self.river(), max_features)

    @abc.abstractmethod
    def adapted(
        self, river: base.Classifier, max_features: int, members: int = 1
    ) -> RiverBinary | RiverMulticlass:
        """Return a learner that asks and teaches so many classifiers within this one's bounds."""


class _Binary(_River):
    subpackage: ClassVar[str] = "river.linear_model"
    names: ClassVar[int] = 100_000

    def adapted(self, river: base.Classifier, max_features: int, members: int = 1) -> RiverBinary:
        classifier = RiverClassifier(
            river, self.takes_weights, self.constant, numbers=self.numbers * members
        )
        return RiverBinary(classifier, min(max_features, self.names))


class _Multiclass(_River):
    bounds: ClassVar[tuple[str, ...]] = ("max_classes",)
    asked: ClassVar[Callable[..., RiverClassifier]] = RiverClassifier
    max_classes: Classes = 100

    def adapted(
        self, river: base.Classifier, max_features: int, members: int = 1
    ) -> RiverMulticlass:
        classifier = self.asked(
            river,
            self.takes_weights,
            nonnegative=self.nonnegative,
            max_leaves=getattr(self, "max_leaves", None),
            numbers=self.numbers * members,
        )
        return RiverMulticlass(classifier, min(max_features, self.names), self.max_classes)


class _Penalised(StrictModel):
    optimizer: Optimizer = Field(SGD(type="SGD"), description="The optimizer of the weights.")
    l2: Penalty = 0.0

    @property
    def numbers(self) -> int:
        """Weight and gradient's averages; the same for each class."""
        return 3 if self.optimizer.type == "Adam" else 1 if self.optimizer.type == "SGD" else 2

    @model_validator(mode="after")
    def _stable(self) -> _Penalised:
        if self.l2 * self.optimizer.lr > 1.0:
            raise ValueError("l2 * lr must be at most 1, or the penalty overshoots 0")
        return self


class LogisticRegressionSpec(_Penalised, _Binary):
    """River's logistic regression; learns 100,000 names at most."""

    type: Literal["LogisticRegression"]
    weighted: ClassVar[bool] = True
    intercept_lr: float = Field(
        0.01, ge=0, le=1_000, description="The rate of the intercept; 0 for none."
    )

    @property
    def constant(self) -> float:
        """1 if an intercept is learned, else 0."""
        return 1.0 if self.intercept_lr > 0.0 else 0.0


class PAClassifierSpec(_Binary):
    """River's passive-aggressive classifier; learns 100,000 names at most.

    River leaves the intercept out of the norm, so that mode 0, and mode 2 with a C
    above 0.5, can make it grow without a bound; hinged's `passive_aggressive` has them.
    """

    type: Literal["PAClassifier"]
    C: float = Field(1.0, gt=0, le=1e6, description="Aggressiveness; at most 0.5 in mode 2.")
    mode: Literal[1, 2] = Field(1, description="1 caps the step, 2 softens it.")
    learn_intercept: bool = Field(True, description="Learn an intercept beside the weights.")

    @model_validator(mode="after")
    def _stable(self) -> PAClassifierSpec:
        if self.mode == 2 and self.C > 0.5:
            raise ValueError("mode 2 needs C of at most 0.5")
        return self

    @property
    def constant(self) -> float:
        """1 if an intercept is learned, else 0."""
        return 1.0 if self.learn_intercept else 0.0


class ALMAClassifierSpec(_Binary):
    """River's approximate large margin algorithm, p = 2, without an intercept.

    An update takes time linear in all names; 10,000 at most are learned.
    """

    type: Literal["ALMAClassifier"]
    names: ClassVar[int] = 10_000
    alpha: float = Field(
        0.9,
        gt=0,
        le=1,
        description="Share by which the margin may stay below the largest one. At 1 nothing is "
        "ever learned: a score of 0 is no fault then.",
    )
    B: float = Field(
        1 / 0.9,
        gt=0,
        le=1e6,
        description="Scale of the margin asked for, (1 - alpha) B / sqrt(k) at update k.",
    )
    C: float = Field(
        2**0.5, gt=0, le=1e6, description="Scale of the steps, C / sqrt(k) at update k."
    )


RiverBinaryLearner = Annotated[
    LogisticRegressionSpec | PAClassifierSpec | ALMAClassifierSpec, Field(discriminator="type")
]


class SoftmaxRegressionSpec(_Penalised, _Multiclass):
    """River's softmax regression, without intercepts; learns 10,000 names at most."""

    type: Literal["SoftmaxRegression"]
    subpackage: ClassVar[str] = "river.linear_model"


class _NaiveBayes(_Multiclass):
    subpackage: ClassVar[str] = "river.naive_bayes"


class GaussianNBSpec(_NaiveBayes):
    """River's naive Bayes with a normal distribution per class and feature; 10,000 names at most.

    An absent feature has no effect.
    """

    type: Literal["GaussianNB"]

    @property
    def numbers(self) -> int:
        """A normal distribution takes about as much as five numbers."""
        return 5


class BernoulliNBSpec(_NaiveBayes):
    """River's naive Bayes of features that are there or not; 10,000 names at most.

    An answer takes time linear in all names, times the classes.
    """

    type: Literal["BernoulliNB"]
    alpha: Alpha = 1.0
    true_threshold: float = Field(
        0.0, ge=-1e100, le=1e100, description="A feature is there if its value is above this."
    )


class MultinomialNBSpec(_NaiveBayes):
    """River's naive Bayes of counts, such as words; 10,000 names at most."""

    type: Literal["MultinomialNB"]
    nonnegative: ClassVar[bool] = True
    alpha: Alpha = 1.0


class ComplementNBSpec(_NaiveBayes):
    """River's naive Bayes of the counts of all other classes; 10,000 names at most.

    An answer takes time linear in all names, times the classes.
    """

    type: Literal["ComplementNB"]
    nonnegative: ClassVar[bool] = True
    alpha: Alpha = 1.0


class HoeffdingTreeClassifierSpec(_Multiclass):
    """River's Hoeffding tree; learns 1,000 names at most.

    It is bounded by leaves instead of bytes: River's own limit reads the sizes of
    Python objects, which differ between processes. A tree that is full goes on
    learning in the leaves it has.
    """

    type: Literal["HoeffdingTreeClassifier"]
    subpackage: ClassVar[str] = "river.tree"
    bounds: ClassVar[tuple[str, ...]] = ("max_classes", "max_leaves")
    fixed: ClassVar[dict[str, int]] = {"memory_estimate_period": _NEVER}
    names: ClassVar[int] = 1_000
    weighted: ClassVar[bool] = True
    grace_period: int = Field(200, ge=1, le=1_000_000, description="Weight between attempts.")
    max_depth: int = Field(10, ge=1, le=30, description="The depth of a leaf that never splits.")
    max_leaves: int = Field(500, ge=1, le=10_000, description="The leaves at which growth ends.")
    split_criterion: Literal["info_gain", "gini"] = Field(
        "info_gain", description="The measure of a split."
    )
    delta: float = Field(1e-7, gt=0, lt=1, description="The risk of a wrong split.")
    tau: float = Field(0.05, ge=0, le=1, description="Split anyway when the bound is below this.")
    leaf_prediction: Literal["mc", "nb", "nba"] = Field(
        "nba", description="The prediction: majority class, naive Bayes, or the better one."
    )

    @property
    def numbers(self) -> int:
        """A leaf's normal distribution of a class takes about as much as five numbers."""
        return 5


class _OfBinary(_Multiclass):
    subpackage: ClassVar[str] = "river.multiclass"
    classifier: RiverBinaryLearner = Field(description="The binary classifier.")

    @property
    def numbers(self) -> int:
        """The numbers of the binary classifier."""
        return self.classifier.numbers

    @property
    def takes_weights(self) -> bool:
        """True if it learns sample weights other than 0 and 1."""
        return self.classifier.takes_weights


class OneVsRestClassifierSpec(_OfBinary):
    """River's one binary classifier per class; learns 10,000 names at most."""

    type: Literal["OneVsRestClassifier"]


class OneVsOneClassifierSpec(_OfBinary):
    """River's one binary classifier per pair of classes; learns 10,000 names at most."""

    type: Literal["OneVsOneClassifier"]
    asked: ClassVar[Callable[..., RiverClassifier]] = OneVsOne
    max_classes: int = Field(
        20, ge=1, le=50, description="Largest number of classes. An event of one more is refused."
    )


_Member = (
    LogisticRegressionSpec
    | PAClassifierSpec
    | ALMAClassifierSpec
    | SoftmaxRegressionSpec
    | GaussianNBSpec
    | BernoulliNBSpec
    | MultinomialNBSpec
    | ComplementNBSpec
    | HoeffdingTreeClassifierSpec
    | OneVsRestClassifierSpec
)
Bagged = Annotated[_Member, Field(discriminator="type")]


class BaggingClassifierSpec(_River):
    """River's bagging: every member learns an event as often as a Poisson draw says.

    The model is binary or multiclass as its members are.
    """

    type: Literal["BaggingClassifier"]
    subpackage: ClassVar[str] = "river.ensemble"
    model: Bagged = Field(description="The classifier of each member.")
    n_models: int = Field(10, ge=2, le=50, description="The members.")
    seed: int = Field(ge=0, lt=2**63, description="Seed of the draws; always the same ones.")

    @property
    def max_classes(self) -> int:
        """The most classes; no attribute of a binary model."""
        if isinstance(self.model, _Multiclass):
            return self.model.max_classes
        raise AttributeError("max_classes")

    def adapted(
        self, river: base.Classifier, max_features: int, members: int = 1
    ) -> RiverBinary | RiverMulticlass:
        return self.model.adapted(river, max_features, members * self.n_models)


RiverLearner = _Member | OneVsOneClassifierSpec | BaggingClassifierSpec
"""River's classifiers that a spec may name."""
