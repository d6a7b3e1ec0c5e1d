"""LIBSVM and SVMlight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ingest.files.reading import check_places, events_of, faults_of, source_of


def test_features_are_named_by_their_index(tmp_path: Path) -> None:
    content = "# a comment, caf\u00e9\n+1 1:0.5 007:-2e-3 # more\n\n-1\n"
    source = source_of(tmp_path / "a.libsvm", content)
    records = list(source.records())
    check_places(records)
    assert [(record.line, record.event) for record in records] == [
        (2, {"x": {"1": 0.5, "7": -0.002}, "y": True}),
        (4, {"x": {}, "y": False}),
    ]


@pytest.mark.parametrize(
    ("labels", "read", "description"),
    [
        (["1", "-1"], [True, False], "-1 as false, 1 as true"),
        (["+1", "+1"], [True, True], "-1 as false, 1 as true"),
        (["0", "1"], [0, 1], "whole numbers"),
        (["3", "1.0", "2"], [3, 1, 2], "whole numbers"),
        (["-1", "0", "1"], [-1, 0, 1], "whole numbers"),
    ],
)
def test_labels(tmp_path: Path, labels: list[str], read: list[Any], description: str) -> None:
    source = source_of(tmp_path / "a.svm", "".join(f"{label} 1:1\n" for label in labels))
    found = [event["y"] for event in events_of(source)]
    assert found == read
    assert [type(label) for label in found] == [type(label) for label in read]
    assert source.describe() == f"reading indices as feature names; labels: {description}"


def test_labels_can_be_mapped(tmp_path: Path) -> None:
    source = source_of(tmp_path / "a.svm", "+1\n2\n", labels={"+1": "spam"})
    assert [(r.event, r.error) for r in source.records()] == [
        ({"x": {}, "y": "spam"}, None),
        (None, "label must be '+1', not '2'"),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("0 1:1", "label must be -1 or 1 as in the first lines, not '0'"),
        ("1,2 1:1", "label must be a number, not '1,2'"),
        ("1.5 1:1", "label must be a whole number"),
        ("1 qid:3 1:1", "qid is for ranking"),
        ("1 1:1 1:2", "feature '1' appears twice"),
        ("1 1:1 01:2", "feature '1' appears twice"),
        ("1 -1:1", "must be index:value, not '-1:1'"),
        ("1 1", "must be index:value, not '1'"),
        ("1 1:2 3 4:5:6", "must be index:value, not '3'"),
        ("1 1:1_0 2:1", "feature '1' must be a number, not '1_0'"),
        ("1 1:", "feature '1' must be a number, not ''"),
        ("1 1:nan", "feature '1' must be a number between"),
        ("1 1:1:1", "feature '1' must be a number, not '1:1'"),
        ("1 caf\u00e9:1", "is not ASCII text"),
        ("1 " + "1" * 300 + ":1", "feature '111"),
        ("1 " + " ".join(f"{i}:1" for i in range(10_001)), "has 10001 features"),
        ("1 1:" + "1" * 9 * 2**20, "the line is longer than 8 MiB"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str, reason: str) -> None:
    source = source_of(tmp_path / "a.libsvm", f"-1 1:1\n{line}\n1 1:1\n", sample_rows=1)
    ((number, error),) = faults_of(source)
    assert number == 2
    assert error.startswith(reason)
    assert len(error) < 200
