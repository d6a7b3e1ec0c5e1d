"""Accuracy of every learner beside fixed peers: predict, then learn, on identical input.

Phishing and Bananas ship with River; elec.csv and sms_spam.tsv are read from the folder
HINGED_DATA, where it is set. Vowpal Wabbit takes part if `vowpalwabbit` is installed.
"""

from __future__ import annotations

import csv
import functools
import importlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from river import datasets, linear_model, optim, preprocessing

import hinged
from tests.bench.table import RIGHT, Row, table

RANK = "average rank"
Rows = list[tuple[dict[str, float], bool]]

OURS: dict[str, Callable[[], Any]] = {
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
    "Hedge": hinged.Hedge,
}

_river: Any = linear_model
PEERS: dict[str, Callable[[], Any]] = {
    "River Perceptron": _river.Perceptron,
    "River PA I": lambda: _river.PAClassifier(C=1.0, mode=1),
    "River PA II": lambda: _river.PAClassifier(C=1.0, mode=2),
    "River logistic SGD(.1)": lambda: _river.LogisticRegression(optim.SGD(0.1)),
    "River logistic AdaGrad(.3)": lambda: _river.LogisticRegression(optim.AdaGrad(0.3)),
    "River ALMA": _river.ALMAClassifier,
}


class VowpalWabbit:
    """Vowpal Wabbit behind the two methods the table needs."""

    def __init__(self, loss: str) -> None:
        module = importlib.import_module("vowpalwabbit")
        self.workspace = module.Workspace(f"--loss_function {loss} --quiet")

    def _example(self, x: dict[str, float], label: str = "") -> str:
        names = {n: str(n).replace(" ", "_").replace(":", "_").replace("|", "_") for n in x}
        return f"{label} | " + " ".join(f"{names[n]}:{v}" for n, v in x.items())

    def predict_one(self, x: dict[str, float]) -> bool:
        return float(self.workspace.predict(self._example(x))) > 0.0

    def learn_one(self, x: dict[str, float], y: bool) -> None:
        self.workspace.learn(self._example(x, "1" if y else "-1"))


def phishing() -> Rows:
    return [(dict(x), bool(y)) for x, y in datasets.Phishing()]


def bananas() -> Rows:
    source: Any = datasets.Bananas
    return [(dict(x), bool(y)) for x, y in source()]


def _open(name: str, **options: Any) -> Iterator[dict[str, str]]:
    path = Path(os.environ.get("HINGED_DATA", "")) / name
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file, **options)


def elec() -> Rows:
    return [
        ({k: float(v) for k, v in row.items() if k != "class"}, row["class"] == "1")
        for row in _open("elec.csv")
    ]


def sms() -> Rows:
    rows = _open("sms_spam.tsv", delimiter="\t", quoting=csv.QUOTE_NONE)
    return [
        (dict.fromkeys(sorted(set(r["SMS"].lower().split())), 1.0), r["Label"] == "spam")
        for r in rows
    ]


def scaled(rows: Rows) -> Rows:
    scaler: Any = preprocessing.StandardScaler()
    done = []
    for x, y in rows:
        scaler.learn_one(x)
        done.append((scaler.transform_one(x), y))
    return done


def accuracy(model: Any, rows: Rows) -> float:
    right = 0
    for x, y in rows:
        right += bool(model.predict_one(x)) is y
        model.learn_one(x, y)
    return right / len(rows)


def measure(quick: bool) -> list[Row]:
    """Return the rows: accuracies, how far the best is from the best peer, average ranks."""
    streams = {"Phishing": scaled(phishing()), "Bananas": scaled(bananas())}
    if os.environ.get("HINGED_DATA"):
        streams |= {"elec": scaled(elec()), "sms_spam": sms()}
    peers = dict(PEERS)
    if importlib.util.find_spec("vowpalwabbit") is not None:
        for loss in ("logistic", "hinge"):
            peers[f"Vowpal Wabbit {loss}"] = functools.partial(VowpalWabbit, loss)
    found = {
        stream: {
            name: 100 * accuracy(make(), rows[:1_000] if quick else rows)
            for name, make in (OURS | peers).items()
        }
        for stream, rows in streams.items()
    }
    rows: list[Row] = []
    for stream, of in found.items():
        best = max(of[name] for name in OURS)
        ahead = max(of[name] for name in peers) - best
        rows += [Row(f"{stream}: {name}", [value], RIGHT) for name, value in of.items()]
        rows.append(_distance(f"{stream}: the best peer ahead of our best", ahead, 0.2))
        rows.append(_distance(f"{stream}: our best ahead of Hedge", best - of["Hedge"], 0.5))
    ranks = {name: [_rank(of, name) for of in found.values()] for name in OURS | peers}
    return [*rows, *(Row(f"{RANK}: {name}", [fmean(of)], RANK) for name, of in ranks.items())]


def grid(rows: list[Row]) -> str:
    """Return the accuracies as one line per learner, and the distances below."""
    cells: dict[str, dict[str, Row]] = {}
    for row in rows:
        if row.unit in (RIGHT, RANK):
            column, _, name = row.name.partition(": ")
            cells.setdefault(name, {})[column] = row
    columns = list(next(iter(cells.values())))
    lines = [f"| learner | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name, of in sorted(cells.items(), key=lambda item: item[1][RANK].values[0]):
        shown = (f"{of[c].values[0]:.{1 if c == RANK else 2}f}" for c in columns)
        lines.append(f"| {name} | {' | '.join(shown)} |")
    rest = [row for row in rows if row.unit not in (RIGHT, RANK)]
    return "\n".join(lines) + "\n\n" + table(rest)


def _distance(name: str, value: float, target: float) -> Row:
    return Row(name, [value], "points of per cent", target=target, at_most=True)


def _rank(of: dict[str, float], name: str) -> float:
    """Return the place from 1; those that are equal share the mean of their places."""
    better = sum(value > of[name] for value in of.values())
    equal = sum(value == of[name] for value in of.values())
    return better + (equal + 1) / 2
