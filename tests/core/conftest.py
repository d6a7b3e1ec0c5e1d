"""Data sets that are too large to ship, and the plain reference the learners are held to."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

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
