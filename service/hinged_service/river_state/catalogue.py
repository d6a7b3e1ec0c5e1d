"""River's classes that are stored: the attributes of each, and of what kind they are."""

from __future__ import annotations

import random
import re
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from river import (
    base,
    compose,
    drift,
    ensemble,
    feature_extraction,
    linear_model,
    metrics,
    multiclass,
    naive_bayes,
    optim,
    preprocessing,
    proba,
    stats,
    tree,
    utils,
)
from river._river_rust import drift as rust_drift
from river._river_rust import stats as rust_stats
from river.drift import binary
from river.drift.binary.hddm_w import SampleInfo
from river.metrics.base import Metric
from river.preprocessing.impute import Constant
from river.tree.nodes import branch, htc_nodes
from river.tree.splitter.nominal_splitter_classif import NominalSplitterClassif
from river.utils.sorted_window import SortedWindow

from hinged_service.codec import DamagedState
from hinged_service.river_state.rust import has_data

__all__ = ["CLASSES", "NAMES", "Entry"]

Kinds = dict[str, Any]
_ROLLING: Any = utils.Rolling
_VECTOR_DICT: Any = utils.VectorDict


@dataclass(frozen=True, slots=True)
class Entry:
    """How the objects of one class are stored.

    Parameters
    ----------
    kinds
        The attributes every object has, with their kinds (see `kinds.fits`).
    optional
        The attributes that some have.
    derived
        The attributes that are not stored: they follow from the others, or are of
        no consequence.
    finish
        Sets the derived attributes of an object that has all others, and raises
        `DamagedState` if these do not go together.

    """

    kinds: Kinds
    optional: Kinds = field(default_factory=dict)
    derived: frozenset[str] = frozenset()
    finish: Callable[[Any], None] = lambda made: None


def _updated(attribute: str) -> Callable[[Any], None]:
    def finish(made: Any) -> None:
        if made._is_updated is not has_data(getattr(made, attribute)):
            raise DamagedState(f"a stored {type(made).__name__} is damaged")

    return finish


def _finish_gaussian(made: Any) -> None:
    if made.seed is None:  # draws only what nothing asks for, and could not be repeated
        made._rng = random.Random(0)  # noqa: S311
    elif not isinstance(getattr(made, "_rng", None), random.Random):
        raise DamagedState("a stored distribution has a seed but no random numbers")


def _finish_pa(made: Any) -> None:
    steps = {0: made._calc_tau_0, 1: made._calc_tau_1, 2: made._calc_tau_2}
    if made.mode not in steps:
        raise DamagedState("the mode of a stored passive-aggressive learner is damaged")
    made.calc_tau = steps[made.mode]


def _finish_page_hinkley(made: Any) -> None:
    tests = {"up": made._test_increase, "down": made._test_decrease, "both": made._test_both}
    if made.mode not in tests:
        raise DamagedState("the mode of a stored Page-Hinkley test is damaged")
    made._test_drift = tests[made.mode]


def _finish_text(made: Any) -> None:
    try:
        re.compile(made.tokenizer_pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise DamagedState("the pattern of a stored tokenizer is damaged") from error
    fresh = type(made)(**{name: getattr(made, name) for name in _TEXT})
    made.processing_steps = fresh.processing_steps


def _finish_pipeline(made: Any) -> None:
    if not made.steps:
        raise DamagedState("a stored pipeline has no steps")
    made._plan = None
    made._inference_transformers = ()
    made._last_step_cached = None


def _finish_children(made: Any) -> None:
    mapping = getattr(made, "_mapping", None)
    if len(made.children) != (2 if mapping is None else len(mapping)):
        raise DamagedState("a stored tree lacks a branch")
    if mapping is not None and {i: v for v, i in mapping.items()} != made._r_mapping:
        raise DamagedState("a stored tree's branches are damaged")


def _finish_sorted_window(made: Any) -> None:
    if made.unsorted_window.maxlen is None or len(made.data) != len(made.unsorted_window):
        raise DamagedState("a stored window is damaged")


def _finish_rolling(made: Any) -> None:
    if made.window.maxlen != made._window_size or not made._window_size > 0:
        raise DamagedState("a stored window is damaged")


def _finish_roc_auc(made: Any) -> None:
    if not made.n_thresholds == len(made.thresholds) == len(made.cms):
        raise DamagedState("the thresholds of a stored ROC AUC are damaged")


def _finish_ensemble(made: Any) -> None:
    if made.n_models != len(made.data):
        raise DamagedState("the members of a stored ensemble are damaged")


def _finish_optimal(made: Any) -> None:
    if made.t0 <= 0 or made.alpha <= 0:
        raise DamagedState("the parameters of a stored schedule are damaged")


_NUMBERS = dict[Any, float]
_FLOATS = defaultdict[Any, float]
_COUNTS = Counter[Any]
_MODELS = defaultdict[Any, base.Classifier]
_VECTOR = _VECTOR_DICT | defaultdict[Any, float] | None
_TEXT: dict[str, Any] = {
    "on": str | None,
    "strip_accents": bool,
    "lowercase": bool,
    "preprocessor": None,
    "stop_words": set[str] | None,
    "tokenizer_pattern": str,
    "tokenizer": None,
    "ngram_range": tuple[int, int],
}
_NOT_TEXT = frozenset(("processing_steps",))
_LINEAR: dict[str, Any] = {
    "optimizer": optim.base.Optimizer,
    "loss": optim.base.Loss,
    "l2": float,
    "l1": float,
    "intercept_init": float,
    "intercept": float,
    "intercept_lr": optim.base.Scheduler,
    "clip_gradient": float,
    "initializer": optim.base.Initializer,
    "_weights": _VECTOR_DICT,
    "_y_name": str | None,
}
_PENALTY = {"max_cum_l1": float, "cum_l1": _VECTOR_DICT}
_STEPS: dict[str, Any] = {"lr": optim.base.Scheduler, "n_iterations": int}
_MOMENTS: dict[str, Any] = {**_STEPS, "beta_1": float, "beta_2": float, "eps": float}
_BAYES: dict[str, Any] = {"alpha": float, "class_counts": _COUNTS}
_LEAF: dict[str, Any] = {
    "stats": _NUMBERS,
    "depth": int,
    "splitter": tree.splitter.Splitter,
    "splitters": dict[Any, tree.splitter.Splitter] | None,
    "_disabled_attrs": set[Any],
    "_last_split_attempt_at": float,
}
_ADAPTIVE_LEAF = {**_LEAF, "_mc_correct_weight": float, "_nb_correct_weight": float}
_BRANCH: dict[str, Any] = {
    "children": list[tree.base.Branch | tree.base.Leaf],
    "stats": _NUMBERS,
    "feature": Any,
    "depth": int,
}
_TREE: dict[str, Any] = {
    "_split_criterion": str,
    "_leaf_prediction": str,
    "max_depth": float,
    "binary_split": bool,
    "_max_size": float,
    "_max_byte_size": float,
    "memory_estimate_period": float,
    "stop_mem_management": bool,
    "remove_poor_attrs": bool,
    "merit_preprune": bool,
    "_root": tree.base.Branch | tree.base.Leaf | None,
    "_n_active_leaves": int,
    "_n_inactive_leaves": int,
    "_inactive_leaf_size_estimate": float,
    "_active_leaf_size_estimate": float,
    "_size_estimate_overhead_fraction": float,
    "_growth_allowed": bool,
    "_train_weight_seen_by_model": float,
    "grace_period": int,
    "delta": float,
    "tau": float,
    "nb_threshold": int,
    "nominal_attributes": list[Any] | None,
    "splitter": tree.splitter.Splitter,
    "min_branch_fraction": float,
    "max_share_to_split": float,
    "classes": set[Any],
}
_MATRIX: dict[str, Any] = {"cm": metrics.ConfusionMatrix}
_BINARY: dict[str, Any] = {**_MATRIX, "pos_val": Any, "_requires_labels": bool}
_FBETA: dict[str, Any] = {
    **_BINARY,
    "beta": float,
    "precision": metrics.Precision,
    "recall": metrics.Recall,
}
_MEAN = stats.Mean | _ROLLING
_VAR = stats.Var | _ROLLING
_DRIFT = {"_drift_detected": bool}
_BINARY_DRIFT: dict[str, Any] = {**_DRIFT, "_warning_detected": bool}
_SPREAD: dict[str, Any] = {"ddof": int, "mean": stats.Mean, "_S": float}

CLASSES: dict[type, Entry] = {
    # Preprocessing
    preprocessing.StandardScaler: Entry(
        {
            "with_std": bool,
            "window_size": int | None,
            "counts": _COUNTS,
            "means": _FLOATS | defaultdict[Any, _ROLLING],
            "vars": _FLOATS | defaultdict[Any, _ROLLING],
        }
    ),
    preprocessing.AdaptiveStandardScaler: Entry(
        {
            "fading_factor": float,
            "vars": defaultdict[Any, stats.EWVar],
            "means": defaultdict[Any, stats.EWMean],
        }
    ),
    preprocessing.MinMaxScaler: Entry(
        {
            "window_size": int | None,
            "min": defaultdict[Any, stats.Min] | defaultdict[Any, stats.RollingMin],
            "max": defaultdict[Any, stats.Max] | defaultdict[Any, stats.RollingMax],
        }
    ),
    preprocessing.MaxAbsScaler: Entry(
        {
            "window_size": int | None,
            "abs_max": defaultdict[Any, stats.AbsMax] | defaultdict[Any, stats.RollingAbsMax],
        }
    ),
    preprocessing.RobustScaler: Entry(
        {
            "with_centering": bool,
            "with_scaling": bool,
            "q_inf": float,
            "q_sup": float,
            "median": defaultdict[Any, stats.Quantile],
            "iqr": defaultdict[Any, stats.IQR],
        }
    ),
    preprocessing.Normalizer: Entry({"order": float}),
    preprocessing.Binarizer: Entry({"threshold": float, "dtype": type}),
    preprocessing.OneHotEncoder: Entry(
        {
            "drop_zeros": bool,
            "drop_first": bool,
            "categories": dict[Any, set[Any]] | None,
            "_zero_dict": dict[Any, int],
            "values": defaultdict[Any, set[Any]] | dict[Any, set[Any]],
        }
    ),
    preprocessing.FeatureHasher: Entry(
        {"n_features": int, "seed": int | None, "alternate_sign": bool, "_seed": int}
    ),
    preprocessing.StatImputer: Entry(
        {"imputers": tuple[tuple[Any, Any], ...], "stats": dict[Any, stats.base.Univariate]}
    ),
    Constant: Entry({"value": Any}),
    preprocessing.PreviousImputer: Entry({"_latest": dict[Any, Any]}),
    # Feature extraction
    feature_extraction.BagOfWords: Entry(_TEXT, derived=_NOT_TEXT, finish=_finish_text),
    feature_extraction.TFIDF: Entry(
        {**_TEXT, "normalize": bool, "dfs": _COUNTS, "n": int},
        derived=_NOT_TEXT,
        finish=_finish_text,
    ),
    feature_extraction.PolynomialExtender: Entry(
        {"degree": int, "interaction_only": bool, "include_bias": bool, "bias_name": Any}
    ),
    feature_extraction.RBFSampler: Entry(
        {
            "gamma": float,
            "n_components": int,
            "seed": int | None,
            "rng": random.Random,
            "weights": defaultdict[Any, list[float]],
            "offsets": list[float],
        }
    ),
    # Composition
    compose.Select: Entry({"keys": set[Any]}),
    compose.Discard: Entry({"keys": set[Any]}),
    compose.Grouper: Entry(
        {
            "transformer": base.Transformer,
            "by": list[Any],
            "transformers": defaultdict[Any, base.Transformer],
        }
    ),
    compose.TransformerUnion: Entry(
        {"transformers": dict[Any, base.Transformer | compose.Pipeline]}
    ),
    compose.Pipeline: Entry(
        {"steps": OrderedDict[Any, base.Estimator]},
        derived=frozenset(
            ("_plan", "_inference_transformers", "_last_step_cached", "_last_step_params")
        ),
        finish=_finish_pipeline,
    ),
    # Linear models
    linear_model.LogisticRegression: Entry(_LINEAR, _PENALTY),
    linear_model.Perceptron: Entry(_LINEAR, _PENALTY),
    linear_model.PAClassifier: Entry(
        {
            "C": float,
            "mode": int,
            "learn_intercept": bool,
            "weights": _FLOATS,
            "intercept": float,
            "loss": optim.losses.Hinge,
        },
        derived=frozenset(("calc_tau",)),
        finish=_finish_pa,
    ),
    linear_model.ALMAClassifier: Entry(
        {"p": float, "alpha": float, "B": float, "C": float, "w": _FLOATS, "k": int}
    ),
    linear_model.SoftmaxRegression: Entry(
        {
            "optimizer": optim.base.Optimizer,
            "optimizers": defaultdict[Any, optim.base.Optimizer],
            "loss": optim.losses.MultiClassLoss,
            "l2": float,
            "weights": defaultdict[Any, _FLOATS],
        }
    ),
    # Optimisers
    optim.SGD: Entry(_STEPS),
    optim.Momentum: Entry({**_STEPS, "rho": float, "s": _FLOATS}),
    optim.NesterovMomentum: Entry({**_STEPS, "rho": float, "s": _FLOATS}),
    optim.AdaGrad: Entry({**_STEPS, "eps": float, "g2": _FLOATS}),
    optim.AdaDelta: Entry({**_STEPS, "rho": float, "eps": float, "g2": _FLOATS, "s2": _FLOATS}),
    optim.RMSProp: Entry({**_STEPS, "rho": float, "eps": float, "g2": _VECTOR}),
    optim.Adam: Entry({**_MOMENTS, "m": _VECTOR, "v": _VECTOR}),
    optim.AdaMax: Entry({**_MOMENTS, "m": _FLOATS, "u": _FLOATS}),
    optim.Nadam: Entry({**_MOMENTS, "m": _FLOATS, "v": _FLOATS}),
    optim.AMSGrad: Entry(
        {**_MOMENTS, "correct_bias": bool, "m": _FLOATS, "v": _FLOATS, "v_hat": _FLOATS}
    ),
    optim.FTRLProximal: Entry(
        {
            "alpha": float,
            "beta": float,
            "l1": float,
            "l2": float,
            "z": _FLOATS,
            "n": _FLOATS,
            "n_iterations": int,
        }
    ),
    optim.Averager: Entry(
        {"optimizer": optim.base.Optimizer, "start": int, "avg_w": _FLOATS, "n_iterations": int}
    ),
    optim.schedulers.Constant: Entry({"learning_rate": float}),
    optim.schedulers.InverseScaling: Entry({"learning_rate": float, "power": float}),
    optim.schedulers.Optimal: Entry(
        {"loss": optim.base.Loss, "alpha": float, "t0": float}, finish=_finish_optimal
    ),
    optim.initializers.Zeros: Entry({"value": float}),
    optim.initializers.Constant: Entry({"value": float}),
    optim.losses.Log: Entry({"weight_pos": float, "weight_neg": float}),
    optim.losses.Hinge: Entry({"threshold": float}),
    optim.losses.Squared: Entry({}),
    optim.losses.CrossEntropy: Entry({"class_weight": dict[Any, float]}),
    # Naive Bayes
    naive_bayes.GaussianNB: Entry(
        {
            "class_counts": _COUNTS,
            "gaussians": defaultdict[Any, defaultdict[Any, proba.Gaussian]],
        }
    ),
    naive_bayes.BernoulliNB: Entry(
        {**_BAYES, "true_threshold": float, "feature_counts": defaultdict[Any, _COUNTS]}
    ),
    naive_bayes.MultinomialNB: Entry(
        {**_BAYES, "feature_counts": defaultdict[Any, _COUNTS], "class_totals": _COUNTS}
    ),
    naive_bayes.ComplementNB: Entry(
        {
            **_BAYES,
            "feature_counts": defaultdict[Any, _COUNTS],
            "feature_totals": _COUNTS,
            "class_totals": _COUNTS,
        }
    ),
    proba.Gaussian: Entry(
        {"seed": int | None, "_var": stats.Var},
        optional={"_rng": random.Random},
        finish=_finish_gaussian,
    ),
    # Trees
    tree.HoeffdingTreeClassifier: Entry(_TREE),
    htc_nodes.LeafMajorityClass: Entry(_LEAF),
    htc_nodes.LeafNaiveBayes: Entry(_LEAF),
    htc_nodes.LeafNaiveBayesAdaptive: Entry(_ADAPTIVE_LEAF),
    branch.NumericBinaryBranch: Entry({**_BRANCH, "threshold": float}, finish=_finish_children),
    branch.NominalBinaryBranch: Entry({**_BRANCH, "value": Any}, finish=_finish_children),
    branch.NominalMultiwayBranch: Entry(
        {**_BRANCH, "_mapping": dict[Any, int], "_r_mapping": dict[int, Any]},
        finish=_finish_children,
    ),
    tree.splitter.GaussianSplitter: Entry(
        {
            "_min_per_class": _NUMBERS,
            "_max_per_class": _NUMBERS,
            "_att_dist_per_class": dict[Any, proba.Gaussian],
            "n_splits": int,
        }
    ),
    NominalSplitterClassif: Entry(
        {
            "_total_weight_observed": float,
            "_missing_weight_observed": float,
            "_att_dist_per_class": defaultdict[Any, _NUMBERS],
            "_att_values": set[Any],
        }
    ),
    # Multiclass and ensembles
    multiclass.OneVsRestClassifier: Entry(
        {
            "classifier": base.Classifier,
            "classifiers": dict[Any, base.Classifier],
            "_y_name": str | None,
        }
    ),
    multiclass.OneVsOneClassifier: Entry(
        {"classifier": base.Classifier, "classifiers": _MODELS, "classes": set[Any]}
    ),
    ensemble.BaggingClassifier: Entry(
        {
            "data": list[base.Classifier | compose.Pipeline],
            "model": base.Classifier | compose.Pipeline,
            "n_models": int,
            "seed": int | None,
            "_rng": random.Random,
        },
        finish=_finish_ensemble,
    ),
    # Metrics
    metrics.ConfusionMatrix: Entry(
        {
            "_init_classes": set[Any],
            "sum_row": _FLOATS,
            "sum_col": _FLOATS,
            "data": defaultdict[Any, _FLOATS],
            "n_samples": int,
            "total_weight": float,
            "_total_true_positives": float,
        }
    ),
    metrics.Accuracy: Entry(_MATRIX),
    metrics.BalancedAccuracy: Entry(_MATRIX),
    metrics.CohenKappa: Entry(_MATRIX),
    metrics.GeometricMean: Entry(_MATRIX),
    metrics.Precision: Entry(_BINARY),
    metrics.Recall: Entry(_BINARY),
    metrics.MCC: Entry(_BINARY),
    metrics.F1: Entry(_FBETA),
    metrics.FBeta: Entry(_FBETA),
    metrics.MacroF1: Entry({**_MATRIX, "beta": float}),
    metrics.WeightedF1: Entry({**_MATRIX, "beta": float}),
    metrics.MicroF1: Entry(
        {
            **_MATRIX,
            "beta": float,
            "precision": metrics.MicroPrecision,
            "recall": metrics.MicroRecall,
        }
    ),
    metrics.MicroPrecision: Entry(_MATRIX),
    metrics.MicroRecall: Entry(_MATRIX),
    metrics.LogLoss: Entry({"_mean": stats.Mean}),
    metrics.CrossEntropy: Entry({"_mean": stats.Mean}),
    metrics.ROCAUC: Entry(
        {
            "n_thresholds": int,
            "pos_val": Any,
            "thresholds": list[float],
            "cms": list[metrics.ConfusionMatrix],
        },
        finish=_finish_roc_auc,
    ),
    utils.Rolling: Entry(
        {
            "obj": Metric | stats.Mean | stats.Var,
            "_window_size": int,
            "window": deque[tuple[tuple[Any, ...], dict[str, Any]]],
        },
        finish=_finish_rolling,
    ),
    # Drift
    drift.ADWIN: Entry(
        {
            **_DRIFT,
            "delta": float,
            "clock": int,
            "max_buckets": int,
            "min_window_length": int,
            "grace_period": int,
            "_helper": rust_drift.AdaptiveWindowing,
        }
    ),
    drift.PageHinkley: Entry(
        {
            **_DRIFT,
            "min_instances": int,
            "delta": float,
            "threshold": float,
            "alpha": float,
            "mode": str,
            "_x_mean": stats.Mean,
            "_sum_increase": float,
            "_sum_decrease": float,
            "_min_increase": float,
            "_max_decrease": float,
        },
        derived=frozenset(("_test_drift",)),
        finish=_finish_page_hinkley,
    ),
    drift.KSWIN: Entry(
        {
            **_DRIFT,
            "alpha": float,
            "window_size": int,
            "stat_size": int,
            "seed": int | None,
            "p_value": float,
            "n": int,
            "window": deque[float],
            "_rng": random.Random,
        }
    ),
    binary.DDM: Entry(
        {
            **_BINARY_DRIFT,
            "warm_start": int,
            "warning_threshold": float,
            "drift_threshold": float,
            "_p": stats.Mean,
            "_p_min": float | None,
            "_s_min": float | None,
            "_ps_min": float,
        }
    ),
    binary.EDDM: Entry(
        {
            **_BINARY_DRIFT,
            "warm_start": int,
            "alpha": float,
            "beta": float,
            "_error_distances": stats.Var,
            "_n": int,
            "_last_error": int,
            "_n_errors": int,
            "_p2s_prime_max": float,
        }
    ),
    binary.HDDMA: Entry(
        {
            **_BINARY_DRIFT,
            "drift_confidence": float,
            "warning_confidence": float,
            "two_sided_test": bool,
            "_x_min": stats.Mean,
            "_x_max": stats.Mean,
            "_z": stats.Mean,
        }
    ),
    binary.HDDMW: Entry(
        {
            **_BINARY_DRIFT,
            "drift_confidence": float,
            "warning_confidence": float,
            "lambda_val": float,
            "two_sided_test": bool,
            "_total": SampleInfo,
            "_s1_decr": SampleInfo,
            "_s1_incr": SampleInfo,
            "_s2_decr": SampleInfo,
            "_s2_incr": SampleInfo,
            "_incr_cutpoint": float,
            "_decr_cutpoint": float,
        }
    ),
    SampleInfo: Entry(
        {
            "_ewma": stats.EWMean,
            "_is_init": bool,
            "_ibc": float,
            "_lambd_sq": float,
            "_c_lambd_sq": float,
        }
    ),
    # Statistics
    stats.Count: Entry({"n": int}),
    stats.Sum: Entry({"sum": float}),
    stats.Mean: Entry({"n": float, "_mean": float}),
    stats.Var: Entry(_SPREAD),
    stats.SEM: Entry(_SPREAD),
    stats.Min: Entry({"min": float}),
    stats.Max: Entry({"max": float}),
    stats.AbsMax: Entry({"abs_max": float}),
    stats.Mode: Entry({"k": int, "counts": defaultdict[Any, int]}),
    stats.Shift: Entry({"amount": int, "fill_value": Any, "buffer": deque[Any]}),
    stats.EWMean: Entry({"fading_factor": float, "_ewmean": rust_stats.RsEWMean}),
    stats.EWVar: Entry({"fading_factor": float, "_ewvar": rust_stats.RsEWVar}),
    stats.Kurtosis: Entry({"bias": bool, "_kurtosis": rust_stats.RsKurtosis}),
    stats.Skew: Entry({"bias": bool, "_skew": rust_stats.RsSkew}),
    stats.PeakToPeak: Entry(
        {"_ptp": rust_stats.RsPeakToPeak, "_is_updated": bool}, finish=_updated("_ptp")
    ),
    stats.Quantile: Entry(
        {"_quantile": rust_stats.RsQuantile, "_is_updated": bool, "q": float},
        finish=_updated("_quantile"),
    ),
    stats.IQR: Entry(
        {"q_inf": float, "q_sup": float, "_iqr": rust_stats.RsIQR, "_is_updated": bool},
        finish=_updated("_iqr"),
    ),
    stats.RollingQuantile: Entry(
        {
            "_rolling_quantile": rust_stats.RsRollingQuantile,
            "q": float,
            "window_size_value": int,
            "_is_updated": bool,
        },
        finish=_updated("_rolling_quantile"),
    ),
    stats.RollingIQR: Entry(
        {
            "q_inf": float,
            "q_sup": float,
            "_rolling_iqr": rust_stats.RsRollingIQR,
            "window_size_value": int,
            "_is_updated": bool,
        },
        finish=_updated("_rolling_iqr"),
    ),
    stats.RollingMin: Entry({"window": SortedWindow}),
    stats.RollingMax: Entry({"window": SortedWindow}),
    stats.RollingAbsMax: Entry({"window": SortedWindow}),
    stats.RollingMode: Entry({"window": deque[Any], "counts": defaultdict[Any, int]}),
    SortedWindow: Entry(
        {"data": list[float], "unsorted_window": deque[float]}, finish=_finish_sorted_window
    ),
}
"""Every class of River whose objects are stored."""

NAMES = {kind: f"{kind.__module__.removeprefix('river.')}.{kind.__name__}" for kind in CLASSES}
"""The names under which they are stored; looked up, never imported."""
