"""Rows of plain numbers, which take a shorter way, are read as all other rows are."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hinged_service.ingest.files import FileOptions, Record, open_source
from hinged_service.wire.decoding import parse_log

ODD = (
    *("0", "-0", "-0.0", "+1", "1_0", " 1", "1 ", ".5", "1.", "01", "-01", "0x10", "nan", "inf"),
    *("-inf", "1e5", "1E+5", "1e", "1e400", "1e-400", "-1e-400", "1e100", "1e101", "", " ", "-"),
    *("9007199254740993", "18446744073709551616", "1" * 40, "0." + "3" * 40, "true", "null", "{"),
    *("1]", "[1", "1}", "١", "x", "-0e0", "5e-324", "1\t", "2\x00", " -0", "-0 "),
)


def read(path: Path, rows: list[list[str]], quoted: bool, **options: Any) -> list[Record]:
    """Return the records of a table; where every cell is quoted nothing takes the shorter way."""
    lines = [",".join(f'"{c}"' if quoted else c for c in row) for row in rows]
    head = ["id,a,b,y", '"i",1,1,true' if quoted else "i,1,1,true"]
    path.write_text("\n".join([*head, *lines]) + "\n", "utf-8")
    types: dict[str, Any] = {"a": "number", "b": "number", "y": "bool"}
    return list(open_source(str(path), FileOptions(label="y", types=types, **options)).records())


def texts(records: list[Record]) -> list[str]:
    """Return what must be the same; the sign of a zero tells, too."""
    return [repr((r.number, r.line, r.event, r.error)) for r in records]


@pytest.mark.parametrize("odd", ODD)
def test_a_cell_is_the_same_number_or_the_same_fault(tmp_path: Path, odd: str) -> None:
    rows = [["p", "1.5", "2", "true"], ["q", odd, "2", "false"], ["r", "-3", odd, "TRUE"]]
    plain = read(tmp_path / "a.csv", rows, quoted=False, id="id")
    assert texts(plain) == texts(read(tmp_path / "b.csv", rows, quoted=True, id="id"))
    assert plain[1].json == b'{"x":{"a":1.5,"b":2},"y":true,"id":"p"}'


@given(
    st.lists(
        st.tuples(
            st.one_of(st.floats().map(repr), st.decimals().map(str), st.sampled_from(ODD)),
            st.integers(-(10**25), 10**25).map(str),
            st.sampled_from(["true", "False", "", " true"]),
        ),
        max_size=12,
    )
)
def test_rows_are_read_as_if_they_were_quoted(
    tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[str, str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("plain")
    rows = [[str(n), a, b, y] for n, (a, b, y) in enumerate(cells)]
    records = read(folder / "a.csv", rows, quoted=False, id="id")
    assert texts(records) == texts(read(folder / "b.csv", rows, quoted=True, id="id"))
    for record in records:
        if record.json is not None:
            assert record.event is not None
            (event,) = parse_log(b"[" + record.json + b"]")
            assert event is not None
            assert repr(event.x) == repr(record.event["x"])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_bad_rows_and_quoted_ones_keep_their_places(tmp_path: Path, end: str) -> None:
    dice = random.Random(5)
    lines, expected = ["a,y,b,n"], []
    for number in range(3000):
        a, y, b = dice.random(), dice.randrange(3), -dice.random()
        odd = dice.random()
        if odd < 0.01:
            lines.append("")
        if odd < 0.02:
            lines.append(f"{a!r},{y},bad,x")
        elif odd < 0.04:
            lines.append(f'{a!r},{y},{b!r},"two\nlines"')
        else:
            lines.append(f"{a!r},{y},{b!r},x")
        expected.append(None if odd < 0.02 else {"x": {"a": a, "b": b}, "y": y})
        if 0.01 <= odd < 0.02:
            assert number == len(expected) - 1
    path = tmp_path / "a.csv"
    path.write_bytes(end.join(lines).encode())
    types: dict[str, Any] = {"n": "ignore", "b": "number"}
    source = open_source(str(path), FileOptions(label="y", types=types))
    records = list(source.records())
    assert [record.event for record in records] == expected
    assert [record.number for record in records] == list(range(3000))
    for start in (0, 1, 499, 1234, 2999, 3000):
        assert [r[:4] for r in source.records(start)] == [r[:4] for r in records[start:]]
    plain_ones = [record for record in records if record.json is not None]
    assert len(plain_ones) > 2500
    assert all(msgspec.json.decode(r.json or b"") == r.event for r in plain_ones)


@pytest.mark.parametrize("ends", [["\r\n", "\n"], ["\n", "\r\n"], ["\r\n"] * 5 + ["\n"]])
def test_no_end_of_a_line_gets_into_a_label_or_an_id(tmp_path: Path, ends: list[str]) -> None:
    """Files of two systems joined, or a line added to one of the other."""
    rows = [f"{n},1,spam,e{n}{ends[n % len(ends)]}" for n in range(40)]
    for count in range(1, len(rows)):
        path = tmp_path / f"{count}.csv"
        path.write_bytes(("a,b,y,id\r\n" + "".join(rows[:count])).encode())
        records = open_source(str(path), FileOptions(label="y", id="id")).records()
        expected = [("spam", f"e{n}") for n in range(count)]
        assert [r.event and (r.event["y"], r.event["id"]) for r in records] == expected


def test_marks_of_quotation_that_mean_nothing_do_not_become_json(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('a,b,y\n1,2,1\n1,"c":3,1\n1,2,1\n', "utf-8")
    types: dict[str, Any] = {"a": "number", "b": "number"}
    options = FileOptions(label="y", quote=None, types=types)
    first, bad, last = open_source(str(path), options).records()
    assert first.event == last.event == {"x": {"a": 1.0, "b": 2.0}, "y": 1}
    assert bad.error == "column b must be a number, not '\"c\":3'"


def test_names_that_mean_something_to_a_template(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("100%,%b,y,%%s\n1,2,3,4\n5,6,7,8\n", "utf-8")
    found = list(open_source(str(path), FileOptions(label="y")).records())
    assert [r.json for r in found] == [
        b'{"x":{"100%":1,"%b":2,"%%s":4},"y":3}',
        b'{"x":{"100%":5,"%b":6,"%%s":8},"y":7}',
    ]
