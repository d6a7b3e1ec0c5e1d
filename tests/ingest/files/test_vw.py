"""Vowpal Wabbit's text format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.ingest.files.reading import check_places, events_of, faults_of, source_of


def test_the_example_of_its_manual(tmp_path: Path) -> None:
    content = (
        "1 1.0 zebra|MetricFeatures:3.28 height:1.5 length:2.0 "
        "|Says black with white stripes |OtherFeatures NumberOfLegs:4.0 HasStripes\n"
    )
    (event,) = events_of(source_of(tmp_path / "a.vw", content, id="tag"))
    assert event == {
        "x": {
            "MetricFeatures^height": 3.28 * 1.5,
            "MetricFeatures^length": 3.28 * 2.0,
            "Says^black": 1.0,
            "Says^with": 1.0,
            "Says^white": 1.0,
            "Says^stripes": 1.0,
            "OtherFeatures^NumberOfLegs": 4.0,
            "OtherFeatures^HasStripes": 1.0,
        },
        "y": 1,
        "w": 1.0,
        "id": "zebra",
    }


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ("1 | a b:2", {"x": {"a": 1.0, "b": 2.0}, "y": 1}),
        ("1 | the cat the", {"x": {"the": 2.0, "cat": 1.0}, "y": 1}),
        ("1 |n a |n a:0.5", {"x": {"n^a": 1.5}, "y": 1}),
        ("2 0.5 'me |n a", {"x": {"n^a": 1.0}, "y": 2, "w": 0.5}),
        ("2 |n:2 a:3 b a", {"x": {"n^a": 8.0, "n^b": 2.0}, "y": 2}),
        ("2 |", {"x": {}, "y": 2}),
        ("2\t|n\ta", {"x": {"n^a": 1.0}, "y": 2}),
        ("2 |n caf\u00e9\u00a0x", {"x": {"n^caf\u00e9\u00a0x": 1.0}, "y": 2}),
    ],
)
def test_lines(tmp_path: Path, line: str, event: dict[str, Any]) -> None:
    assert events_of(source_of(tmp_path / "a.vw", line)) == [event]


def test_signs_are_true_and_false(tmp_path: Path) -> None:
    source = source_of(tmp_path / "a.vw", "1 |n a\n-1 |n b\n")
    assert [event["y"] for event in events_of(source)] == [True, False]
    assert "labels: -1 as false, 1 as true" in source.describe()


def test_lines_without_a_label_are_counted(tmp_path: Path) -> None:
    # A word that touches the bar is a tag, also where it looks like a label.
    source = source_of(tmp_path / "a.vw", "|n a\n1 |n a\n\n'tag |n b\n1|n c\n2 |n a\n")
    for _ in range(2):
        records = list(source.records())
        check_places(records)
        assert [(record.line, record.event and record.event["y"]) for record in records] == [
            (2, 1),
            (6, 2),
        ]
        assert source.skipped == 3


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1 a b", "has no bar before its features"),
        ("0 |n a", "label must be -1 or 1 as in the first lines, not '0'"),
        ("1:0.5 2:1 |n a", "label must be a number, not '1:0.5'"),
        ("1 -1 |n a", "importance must be a weight of at least 0, not '-1'"),
        ("1 1 0.5 |n a", "has '0.5' before the bar"),
        ("1 |n a:x", "feature 'a:x' must be a number, not 'x'"),
        ("1 |n a:nan", "feature 'a:nan' must be a number between"),
        ("1 |n a:1e100 a:1e100", "feature 'a:1e100' must be a number between"),
        ("1 |n :1", "feature ':1' has no name before its colon"),
        (b"1 |n \xff", "is not UTF-8"),
        ("1 |n " + "a" * 300, "feature 'n^aaaa"),
        ("1 |n " + " ".join(f"f{i}" for i in range(10_001)), "has 10001 features"),
        ("1 |n " + "a" * 9 * 2**20, "the line is longer than 8 MiB"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str | bytes, reason: str) -> None:
    text = line.encode() if isinstance(line, str) else line
    source = source_of(tmp_path / "a.vw", b"-1 |n a\n" + text + b"\n1 |n a\n", sample_rows=1)
    ((number, error),) = faults_of(source)
    assert number == 2
    assert error.startswith(reason)
    assert len(error) < 200


def test_a_tag_as_id_must_be_there(tmp_path: Path) -> None:
    source = source_of(tmp_path / "a.vw", "1 |n a\n", id="tag")
    assert faults_of(source) == [(1, "tag must be text of 1 to 256 characters")]
