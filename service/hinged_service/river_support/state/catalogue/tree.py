"""Hoeffding trees."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from river import proba, tree
from river.tree.nodes import branch, htc_nodes
from river.tree.splitter.nominal_splitter_classif import NominalSplitterClassif

from hinged_service.river_support.state.catalogue.entry import Entry, all_of
from hinged_service.river_support.state.catalogue.likeness import check_alike
from hinged_service.wire.codec import DamagedState

__all__ = ["CLASSES"]

_NUMBERS = dict[Any, float]
_LEAF: dict[str, Any] = {
    "stats": _NUMBERS,
    "depth": int,
    "splitter": tree.splitter.Splitter,
    "splitters": dict[Any, tree.splitter.Splitter] | None,
    "_disabled_attrs": set[Any],
    "_last_split_attempt_at": float,
}
_BRANCH: dict[str, Any] = {
    "children": list[tree.base.Branch | tree.base.Leaf],
    "stats": _NUMBERS,
    "feature": Any,
    "depth": int,
}
_TREE = (
    all_of(str, "_split_criterion _leaf_prediction")
    | {"max_depth": float, "binary_split": bool}
    | all_of(float, "_max_size _max_byte_size memory_estimate_period")
    | all_of(bool, "stop_mem_management remove_poor_attrs merit_preprune")
    | {"_root": tree.base.Branch | tree.base.Leaf | None}
    | all_of(int, "_n_active_leaves _n_inactive_leaves")
    | all_of(float, "_inactive_leaf_size_estimate _active_leaf_size_estimate")
    | {"_size_estimate_overhead_fraction": float, "_growth_allowed": bool}
    | {"_train_weight_seen_by_model": float, "grace_period": int, "delta": float, "tau": float}
    | {"nb_threshold": int, "nominal_attributes": list[Any] | None}
    | {"splitter": tree.splitter.Splitter}
    | all_of(float, "min_branch_fraction max_share_to_split")
    | {"classes": set[Any]}
)


def _finish_children(made: tree.base.Branch) -> None:
    mapping = getattr(made, "_mapping", None)
    if len(made.children) != (2 if mapping is None else len(mapping)):
        raise DamagedState("a stored tree lacks a branch")
    if mapping is not None and {i: v for v, i in mapping.items()} != vars(made)["_r_mapping"]:
        raise DamagedState("a stored tree's branches are damaged")


def _finish_splitter(made: tree.splitter.GaussianSplitter) -> None:
    seen = vars(made)
    lows, highs, found = (
        seen[name] for name in ("_min_per_class", "_max_per_class", "_att_dist_per_class")
    )
    if not lows.keys() == highs.keys() == found.keys():
        raise DamagedState("the classes of a stored splitter are damaged")
    for each in found.values():
        spread = vars(each)["_var"]
        if not (spread.mean.n >= 0.0 and vars(spread)["_S"] >= 0.0 and spread.ddof == 1):
            raise DamagedState("the spread of a stored splitter is damaged")


def _finish_tree(made: tree.HoeffdingTreeClassifier) -> None:
    """Check all nodes: each has one place and the form that the tree gives it."""
    parts = vars(made)
    waiting = [] if parts["_root"] is None else [(parts["_root"], 0)]
    seen: set[int] = set()
    active = inactive = 0
    kinds = _LEAVES[parts["_leaf_prediction"]]
    while waiting:
        node, depth = waiting.pop()
        if id(node) in seen or node.depth != depth or depth > min(made.max_depth, _DEEPEST):
            raise DamagedState("a node of a stored tree stands in the wrong place")
        seen.add(id(node))
        if isinstance(node, tree.base.Branch):
            waiting += [(child, depth + 1) for child in node.children]
            continue
        if type(node) not in kinds:
            raise DamagedState("a leaf of a stored tree is of another kind than its leaves")
        check_alike(node.splitter, made.splitter)
        active, inactive = active + node.is_active(), inactive + (not node.is_active())
        for splitter in (node.splitters or {}).values():
            if not isinstance(splitter, NominalSplitterClassif):
                check_alike(splitter, made.splitter)
    if (active, inactive) != (parts["_n_active_leaves"], parts["_n_inactive_leaves"]):
        raise DamagedState("the leaves of a stored tree are not as many as it counts")


_DEEPEST = 200
"""River walks a tree by recursion."""

_LEAVES = {
    "mc": (htc_nodes.LeafMajorityClass,),
    "nb": (htc_nodes.LeafNaiveBayes,),
    "nba": (htc_nodes.LeafNaiveBayesAdaptive,),
}
CLASSES: dict[type, Entry] = {
    tree.HoeffdingTreeClassifier: Entry(_TREE, finish=_finish_tree),
    htc_nodes.LeafMajorityClass: Entry(_LEAF),
    htc_nodes.LeafNaiveBayes: Entry(_LEAF),
    htc_nodes.LeafNaiveBayesAdaptive: Entry(
        _LEAF | all_of(float, "_mc_correct_weight _nb_correct_weight")
    ),
    branch.NumericBinaryBranch: Entry(_BRANCH | {"threshold": float}, finish=_finish_children),
    branch.NominalBinaryBranch: Entry(_BRANCH | {"value": Any}, finish=_finish_children),
    branch.NominalMultiwayBranch: Entry(
        _BRANCH | {"_mapping": dict[Any, int], "_r_mapping": dict[int, Any]},
        finish=_finish_children,
    ),
    tree.splitter.GaussianSplitter: Entry(
        all_of(_NUMBERS, "_min_per_class _max_per_class")
        | {"_att_dist_per_class": dict[Any, proba.Gaussian], "n_splits": int},
        finish=_finish_splitter,
    ),
    NominalSplitterClassif: Entry(
        all_of(float, "_total_weight_observed _missing_weight_observed")
        | {"_att_dist_per_class": defaultdict[Any, _NUMBERS], "_att_values": set[Any]}
    ),
}
