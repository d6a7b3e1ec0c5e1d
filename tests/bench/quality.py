"""Quality on streams: predict, then learn; every learner, fixed and tuned peers.

Learners of this package that do not scale by themselves get the scaled form of a stream, as
the peers do; `Auto` gets the events as they come.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from sklearn.metrics import roc_auc_score

import hinged
from tests.bench import quality_peers
from tests.bench.quality_peers import Model
from tests.bench.streams import Event, Label, Stream, read
from tests.bench.table import RIGHT, Row, table

__all__ = ["grid", "measure"]

RANK = "average rank"
NATS = "nats"
BELOW_FIXED, BELOW_TUNED = 0.3, 0.5
_LEAST = 1e-15

BINARY: dict[str, Callable[[], Model]] = {
    "Perceptron": hinged.Perceptron,
    "AveragedPerceptron": hinged.AveragedPerceptron,
    "PocketPerceptron": hinged.PocketPerceptron,
    "PassiveAggressive I": hinged.PassiveAggressive,
    "PassiveAggressive II": lambda: hinged.PassiveAggressive(mode="II"),
    "PassiveAggressive uncapped": lambda: hinged.PassiveAggressive(mode="uncapped"),
    "LinearUnit": hinged.LinearUnit,
    "HingeSGD AdaGrad": hinged.HingeSGD,
    "HingeSGD Pegasos": lambda: hinged.HingeSGD(steps="pegasos", l2=1e-3),
    "AROW": hinged.AROW,
    "AROW forgetting": lambda: hinged.AROW(forgetting=0.01),
    "SCW": hinged.SCW,
    "LogisticSGD RMS": hinged.LogisticSGD,
    "CoinBetting": hinged.CoinBetting,
    "FTRLProximal": hinged.FTRLProximal,
    "Quadratic": hinged.Quadratic,
    "Hedge": hinged.Hedge,
}
MULTICLASS: dict[str, Callable[[], Model]] = {
    "MulticlassPerceptron": hinged.MulticlassPerceptron,
    "MulticlassAveragedPerceptron": hinged.MulticlassAveragedPerceptron,
    "MulticlassPocketPerceptron": hinged.MulticlassPocketPerceptron,
    "MulticlassPassiveAggressive": hinged.MulticlassPassiveAggressive,
    "MulticlassAROW": hinged.MulticlassAROW,
    "MulticlassLogisticSGD": hinged.MulticlassLogisticSGD,
    "MulticlassDiscriminant": hinged.MulticlassDiscriminant,
    "MulticlassQuadratic": hinged.MulticlassQuadratic,
}


@dataclass(frozen=True)
class Quality:
    """Worth of predictions before learning; NaN where the model does not tell.

    Attributes
    ----------
    accuracy, balanced
        In per cent; balanced is the mean over classes of the share predicted right.
    log_loss
        Mean of -log of the probability of the true label, in nats. The first event of a class
        counts as if all classes were equally likely, unless the model knows them all.
    auc
        Area under the ROC curve, of binary labels.

    """

    accuracy: float
    balanced: float
    log_loss: float
    auc: float


def judged(model: Model, events: list[Event]) -> Quality:
    """Return the quality of `model` over `events`, each predicted before it is learned."""
    right: Counter[Label] = Counter()
    losses: list[float] = []
    scores: list[float] = []
    counts = Counter(y for _, y in events)
    unseen = dict.fromkeys(counts, 1.0 / len(counts))
    for x, y in events:
        right[y] += model.predict_one(x) == y
        if hasattr(model, "predict_proba_one"):
            proba: Mapping[Any, float] = model.predict_proba_one(x)
            losses.append(-math.log(max(proba.get(y, unseen[y]), _LEAST)))
            unseen[y] = 0.0
            scores.append(proba.get(True, 0.0))
        elif hasattr(model, "score_one"):
            scores.append(model.score_one(x))
        model.learn_one(x, y)
    binary = len(counts) == 2 and True in counts
    return Quality(
        100 * right.total() / len(events),
        100 * fmean(right[y] / n for y, n in counts.items()),
        fmean(losses) if losses else math.nan,
        roc_auc_score([y for _, y in events], scores) if binary and scores else math.nan,
    )


def base_rate(events: list[Event]) -> float:
    """Return the log loss of the labels' shares, as known in hindsight, told for every event."""
    shares = [n / len(events) for n in Counter(y for _, y in events).values()]
    return -math.fsum(p * math.log(p) for p in shares)


def measure(quick: bool) -> list[Row]:
    """Return the rows: every quality, `Auto` beside the best peers and the base rate, ranks."""
    rows: list[Row] = []
    ranks: dict[str, list[float]] = {}
    for stream in read(1_000) if quick else read():
        found, tuned = _measured(stream, quick)
        rows += _rows(stream, found, tuned)
        ranked = {n: q.accuracy for n, q in found.items()}
        for name in ranked:
            ranks.setdefault(name, []).append(_rank(ranked, name))
    return [*rows, *(Row(f"{RANK}: {name}", [fmean(of)], RANK) for name, of in ranks.items())]


def _measured(stream: Stream, quick: bool) -> tuple[dict[str, Quality], dict[str, float]]:
    """Return the quality of all learners, and the accuracy of the tuned peers."""
    ours = BINARY if stream.binary else MULTICLASS
    scaled = ours | quality_peers.fixed(stream)
    found = {name: judged(make(), stream.scaled) for name, make in scaled.items()}
    found["Auto"] = judged(hinged.Auto(max_classes=2 if stream.binary else 1_000), stream.raw)
    if not quick:
        found |= {n: judged(make(), stream.raw) for n, make in quality_peers.ceilings().items()}
    grid = {} if quick else quality_peers.tuned(stream)
    tuned = {name: judged(make(), stream.scaled).accuracy for name, make in grid.items()}
    return found, tuned


def _rows(stream: Stream, found: dict[str, Quality], tuned: dict[str, float]) -> list[Row]:
    name, auto = stream.name + (" (told)" if stream.told else ""), found["Auto"]
    rows: list[Row] = []
    for learner, quality in found.items():
        rows.append(Row(f"{name}: {learner}", [quality.accuracy], RIGHT))
        for kind, value in (("log loss", quality.log_loss), ("AUC", quality.auc)):
            if not math.isnan(value):
                unit = NATS if kind == "log loss" else "area"
                rows.append(Row(f"{name}: {learner}, {kind}", [value], unit))
        rows.append(Row(f"{name}: {learner}, balanced", [quality.balanced], "% of each class"))
    peers = {n: found[n].accuracy for n in quality_peers.fixed(stream)}
    rows += _behind(f"{name}: Auto below the best fixed peer", auto, peers, BELOW_FIXED)
    rows += _behind(f"{name}: Auto below the best tuned peer", auto, tuned, BELOW_TUNED)
    above = auto.log_loss - base_rate(stream.raw)
    rows.append(Row(f"{name}: Auto's log loss above the base rate", [above], NATS, 0.0, True))
    return rows


def _behind(text: str, auto: Quality, peers: Mapping[str, float], target: float) -> list[Row]:
    if not peers:
        return []
    best = max(peers, key=peers.__getitem__)
    behind = peers[best] - auto.accuracy
    return [Row(f"{text}, {best}", [behind], "points of per cent", target, at_most=True)]


def grid(rows: list[Row]) -> str:
    """Return the accuracies as one line per stream, then the ranks and the targets."""
    cells: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.unit == RIGHT:
            stream, _, name = row.name.partition(": ")
            cells.setdefault(stream, {})[name] = row.values[0]
    learners = ("Auto", "Hedge", "AROW", "River ARF", "River KNN")
    lines = [f"| stream | {' | '.join(learners)} |", "|---" * (len(learners) + 1) + "|"]
    for stream, of in cells.items():
        numbers = (f"{of[name]:.2f}" if name in of else "" for name in learners)
        lines.append(f"| {stream} | {' | '.join(numbers)} |")
    ranks = sorted((r for r in rows if r.unit == RANK), key=lambda row: row.values[0])
    lines += ["", *(f"- {row.name}: {row.values[0]:.1f}" for row in ranks)]
    return "\n".join(lines) + "\n\n" + table([row for row in rows if row.target is not None])


def _rank(of: dict[str, float], name: str) -> float:
    """Return the place from 1; those that are equal share the mean of their places."""
    better = sum(value > of[name] for value in of.values())
    equal = sum(value == of[name] for value in of.values())
    return better + (equal + 1) / 2
