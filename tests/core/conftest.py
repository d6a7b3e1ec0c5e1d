"""Data sets that are too large to ship, and the plain reference the learners are held to."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from hinged import (
    AROW,
    AveragedPerceptron,
    Hedge,
    HingeSGD,
    LinearClassifier,
    LinearUnit,
    MulticlassAROW,
    MulticlassAveragedPerceptron,
    MulticlassPassiveAggressive,
    MulticlassPerceptron,
    MulticlassPocketPerceptron,
    OneVsRest,
    PassiveAggressive,
    Perceptron,
    PocketPerceptron,
)

BINARY: list[LinearClassifier] = [
    Perceptron(),
    Perceptron(learning_rate=0.5, fit_intercept=False, margin=0.25),
    Perceptron(update_on="mistake", label_at_zero=True),
    Perceptron(initial_weights={"ip_in_url": 0.5, "other": -1.0}, initial_intercept=0.25),
    AveragedPerceptron(),
    PocketPerceptron(),
    PassiveAggressive(mode="uncapped"),
    PassiveAggressive(mode="I", C=0.5),
    PassiveAggressive(mode="II", fit_intercept=False),
    LinearUnit(),
    HingeSGD(),
    HingeSGD(l1=0.001, l2=0.01),
    HingeSGD(0.1, "constant"),
    HingeSGD(0.1, "sqrt", l1=0.01),
    HingeSGD(steps="pegasos", l2=0.1, l1=0.001),
    AROW(),
    AROW(r=0.1, fit_intercept=False),
    Hedge(),
    Hedge([Perceptron(), AROW()], learning_rate=0.5, share=0.0),
]
MULTICLASS: list[LinearClassifier] = [
    MulticlassPerceptron(),
    MulticlassAveragedPerceptron(),
    MulticlassPocketPerceptron(fit_intercept=False),
    MulticlassPassiveAggressive(),
    MulticlassPassiveAggressive(mode="uncapped"),
    MulticlassPassiveAggressive(mode="II"),
    MulticlassAROW(),
    OneVsRest(),
    OneVsRest(PassiveAggressive()),
]
LEARNERS = BINARY + MULTICLASS
"""Every learner, as configured for the tests of what all must do. Append new ones here."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give every learner, or those of one sort, to tests that ask for one by these names."""
    sorts = {
        "learner": LEARNERS,
        "binary": BINARY,
        "multiclass": MULTICLASS,
        "one_per_type": list({type(model): model for model in LEARNERS}.values()),
    }
    for name, models in sorts.items():
        if name in metafunc.fixturenames:
            ids = [f"{i}-{type(model).__name__}" for i, model in enumerate(models)]
            metafunc.parametrize(name, models, ids=ids)


Event = tuple[dict[str, float], bool]


def data_file(name: str) -> Path:
    root = Path(__file__).parents[2]
    folder = Path(os.environ.get("HINGED_TEST_DATA", root / ".." / "shared" / "data"))
    if not (folder / name).exists():
        pytest.skip(f"{name} is not there: point HINGED_TEST_DATA at the folder that holds it")
    return folder / name


@pytest.fixture(scope="session")
def elec() -> list[Event]:
    """Electricity (Harries 1999): six numbers and whether the price goes up."""
    with data_file("elec.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    label = list(rows[0])[-1]
    positive = {"UP", "1", "True", "true"}
    return [({k: float(v) for k, v in r.items() if k != label}, r[label] in positive) for r in rows]


@pytest.fixture(scope="session")
def sms() -> list[Event]:
    """SMS Spam Collection (Almeida, Hidalgo): the set of words of each message."""
    with data_file("sms_spam.tsv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [
        (dict.fromkeys(sorted(set(r["SMS"].lower().split())), 1.0), r["Label"] == "spam")
        for r in rows
    ]


@pytest.fixture(scope="session")
def letter() -> list[tuple[dict[str, float], str]]:
    """Letter Recognition (Frey, Slate 1991): sixteen whole numbers and one of 26 letters."""
    with data_file("letter.csv").open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    return [({f"x{i}": float(v) for i, v in enumerate(r[1:])}, r[0]) for r in rows]
