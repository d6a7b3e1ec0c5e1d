"""Online linear classifiers with River's interfaces and honest mistake accounting."""

from hinged.accounting import Accounting, Outcome
from hinged.arow import AROW
from hinged.auto import Auto
from hinged.auto_scaler import AutoScaler
from hinged.averaged import AveragedPerceptron
from hinged.base import INTERCEPT, LinearClassifier
from hinged.binary import BinaryLinearClassifier
from hinged.calibrated import Calibrated
from hinged.class_balance import ClassBalance
from hinged.coin_betting import CoinBetting
from hinged.curved import Curved
from hinged.errors import HingedError, InvalidEvent, InvalidParameter, InvalidState
from hinged.fourier_features import FourierFeatures
from hinged.ftrl_proximal import FTRLProximal
from hinged.hedge import Hedge
from hinged.hinge_sgd import HingeSGD
from hinged.linear_regression_unit import LinearRegressionUnit
from hinged.linear_unit import LinearUnit
from hinged.logistic_sgd import LogisticSGD
from hinged.multiclass_arow import MulticlassAROW
from hinged.multiclass_averaged import MulticlassAveragedPerceptron
from hinged.multiclass_discriminant import MulticlassDiscriminant
from hinged.multiclass_hedge import MulticlassHedge
from hinged.multiclass_linear import MulticlassLinearClassifier
from hinged.multiclass_logistic_sgd import MulticlassLogisticSGD
from hinged.multiclass_passive_aggressive import MulticlassPassiveAggressive
from hinged.multiclass_perceptron import MulticlassPerceptron
from hinged.multiclass_pocket import MulticlassPocketPerceptron
from hinged.multiclass_quadratic import MulticlassQuadratic
from hinged.one_vs_rest import OneVsRest
from hinged.parameter_mixing import mix
from hinged.passive_aggressive import PassiveAggressive
from hinged.perceptron import Perceptron, random_weights
from hinged.pocket import PocketPerceptron
from hinged.quadratic import Quadratic
from hinged.scw import SCW
from hinged.start import RandomWeights
from hinged.vector import WeightVector

__all__ = [
    "AROW",
    "FOLD_VERSION",
    "INTERCEPT",
    "SCW",
    "Accounting",
    "Auto",
    "AutoScaler",
    "AveragedPerceptron",
    "BinaryLinearClassifier",
    "Calibrated",
    "ClassBalance",
    "CoinBetting",
    "Curved",
    "FTRLProximal",
    "FourierFeatures",
    "Hedge",
    "HingeSGD",
    "HingedError",
    "InvalidEvent",
    "InvalidParameter",
    "InvalidState",
    "LinearClassifier",
    "LinearRegressionUnit",
    "LinearUnit",
    "LogisticSGD",
    "MulticlassAROW",
    "MulticlassAveragedPerceptron",
    "MulticlassDiscriminant",
    "MulticlassHedge",
    "MulticlassLinearClassifier",
    "MulticlassLogisticSGD",
    "MulticlassPassiveAggressive",
    "MulticlassPerceptron",
    "MulticlassPocketPerceptron",
    "MulticlassQuadratic",
    "OneVsRest",
    "Outcome",
    "PassiveAggressive",
    "Perceptron",
    "PocketPerceptron",
    "Quadratic",
    "RandomWeights",
    "WeightVector",
    "__version__",
    "mix",
    "random_weights",
]

__version__ = "0.1.0"

FOLD_VERSION = 5
"""Raised whenever the same events would give other weights, or other metrics, than before."""
