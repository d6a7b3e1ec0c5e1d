"""Labelled streams for the part `quality`: some to choose by, the others to tell by.

What River and scikit-learn ship or make; elec.csv, letter.csv and sms_spam.tsv come from the
folder HINGED_DATA, where it is set. Of what is made, and of Shuttle, the first 10,000 events
are taken.
"""

from __future__ import annotations

import csv
import itertools
import os
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from river import datasets, preprocessing
from river.datasets import synth
from sklearn import datasets as tables

__all__ = ["Event", "Label", "Stream", "read"]

LENGTH = 10_000
Label = bool | str
Event = tuple[dict[str, float], Label]


@dataclass(frozen=True)
class Stream:
    """A stream in two forms: as it comes, and centred and scaled for learners that need it.

    Attributes
    ----------
    told
        True if no choice of this package was made on it.

    """

    name: str
    raw: list[Event]
    scaled: list[Event]
    told: bool

    @property
    def labels(self) -> list[Label]:
        """The distinct labels, in the order of their first event."""
        return list(dict.fromkeys(y for _, y in self.raw))

    @property
    def binary(self) -> bool:
        """True if each label is true or false."""
        return all(isinstance(y, bool) for y in self.labels)


def _numbers(x: Any) -> dict[str, float]:
    """Return the numbers of `x`; a word becomes a name of its own with the value 1."""
    return {
        (f"{k}={v}" if isinstance(v, str) else str(k)): 1.0 if isinstance(v, str) else float(v)
        for k, v in x.items()
    }


def _binary(source: Iterable[Any], true: Callable[[Any], Any] = bool) -> Iterator[Event]:
    return ((_numbers(x), bool(true(y))) for x, y in source)


def _classes(source: Iterable[Any]) -> Iterator[Event]:
    return ((_numbers(x), str(y)) for x, y in source)


def _above_median(source: Iterable[Any]) -> Iterator[Event]:
    rows = list(itertools.islice(source, LENGTH))
    middle = median(y for _, y in rows)
    return _binary(rows, lambda y: y > middle)


def _table(made: Any) -> Iterator[tuple[dict[str, float], int]]:
    """Return the rows of a table of scikit-learn, in an order that a seed decides."""
    order = list(range(len(made.target)))
    random.Random(1).shuffle(order)
    names = [str(name) for name in made.feature_names]
    return (
        (dict(zip(names, made.data[i].tolist(), strict=True)), int(made.target[i])) for i in order
    )


def _open(name: str, **options: Any) -> Iterator[dict[str, str]]:
    path = Path(os.environ["HINGED_DATA"]) / name
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file, **options)


def _elec() -> Iterator[Event]:
    for row in _open("elec.csv"):
        y = row.pop("class") == "1"
        yield {k: float(v) for k, v in row.items()}, y


def _letter() -> Iterator[Event]:
    for row in _open("letter.csv"):
        y = row.pop("Letter")
        yield {k: float(v) for k, v in row.items()}, y


def _sms() -> Iterator[Event]:
    for row in _open("sms_spam.tsv", delimiter="\t", quoting=csv.QUOTE_NONE):
        words = sorted(set(row["SMS"].lower().split()))
        yield dict.fromkeys(words, 1.0), row["Label"] == "spam"


def _sources() -> Iterator[tuple[str, bool, Callable[[], Iterable[Event]]]]:
    """Yield name, whether it is told only, and what gives the events."""
    made: Any = synth
    ships: Any = datasets
    drifting = made.ConceptDriftStream(
        made.Agrawal(0, seed=3), made.Agrawal(4, seed=4), seed=5, position=5_000, width=500
    )
    swapping = made.ConceptDriftStream(
        made.LED(1, 0.1), made.LEDDrift(2, 0.1, n_drift_features=4), 5, 5_000, 500
    )
    rbf = {"n_classes": 2, "n_features": 10, "n_centroids": 50}
    yield "Phishing", False, lambda: _binary(ships.Phishing())
    yield "SEA", False, lambda: _binary(made.SEA(0, seed=1, noise=0.1))
    yield "Agrawal", False, lambda: _binary(made.Agrawal(0, seed=1))
    yield "RandomRBF", False, lambda: _binary(made.RandomRBF(1, 2, **rbf))
    yield "breast cancer", False, lambda: _binary(_table(tables.load_breast_cancer()))
    yield "Yeast, class 1", False, lambda: _binary(ships.Yeast(), lambda y: y["Class1"])
    yield "Bananas", True, lambda: _binary(ships.Bananas())
    yield "Hyperplane", True, lambda: _binary(made.Hyperplane(2, mag_change=0.001, n_features=10))
    yield "Agrawal, drift", True, lambda: _binary(drifting)
    moving = made.RandomRBFDrift(1, 2, change_speed=0.001, **rbf)
    yield "RandomRBF, drift", True, lambda: _binary(moving)
    yield "STAGGER", True, lambda: _binary(made.STAGGER(0, seed=1))
    yield "Mixed", True, lambda: _binary(made.Mixed(0, seed=1))
    yield "Sine", True, lambda: _binary(made.Sine(0, seed=1))
    yield "Friedman, drift", True, lambda: _above_median(made.FriedmanDrift(seed=1))
    yield "Planes", True, lambda: _above_median(made.Planes2D(seed=1))
    yield "Mv", True, lambda: _above_median(made.Mv(seed=1))
    yield "Shuttle", True, lambda: _binary(ships.Shuttle())
    yield "SolarFlare", True, lambda: _binary(ships.SolarFlare(), lambda y: y["c-class-flares"])
    yield "ImageSegments", False, lambda: _classes(ships.ImageSegments())
    yield "LED", False, lambda: _classes(made.LED(seed=1, noise_percentage=0.1))
    yield "digits", True, lambda: _classes(_table(tables.load_digits()))
    yield "wine", True, lambda: _classes(_table(tables.load_wine()))
    yield "Waveform", True, lambda: _classes(made.Waveform(seed=1))
    yield "LED, drift", True, lambda: _classes(swapping)
    if os.environ.get("HINGED_DATA"):
        yield "elec", False, _elec
        yield "sms_spam", False, _sms
        yield "letter", False, _letter


def read(length: int = 50_000) -> Iterator[Stream]:
    """Yield the streams, each at most `length` events long."""
    for name, told, source in _sources():
        whole = source in (_elec, _letter)
        raw = list(itertools.islice(source(), length if whole else min(length, LENGTH)))
        yield Stream(name, raw, _scaled(raw), told)


def _scaled(rows: list[Event]) -> list[Event]:
    """Return the rows as River's StandardScaler leaves them; 0/1 features stay as they are."""
    dense = {k for x, _ in rows for k, v in x.items() if v not in (0.0, 1.0)}
    if not dense:
        return rows
    scaler: Any = preprocessing.StandardScaler()
    done: list[Event] = []
    for x, y in rows:
        numbers = {k: v for k, v in x.items() if k in dense}
        scaler.learn_one(numbers)
        done.append(({**x, **scaler.transform_one(numbers)}, y))
    return done
