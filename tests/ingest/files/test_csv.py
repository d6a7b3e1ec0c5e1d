"""CSV and TSV: what columns are read as, and every way a row can be wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from hinged_service.ingest.files import FileError, FileOptions, open_source
from tests.conftest import data_file
from tests.ingest.files.reading import check_places, events_of, faults_of, source_of

PEOPLE = """\
name,height,colour,member,weight,class
a,1.5,red,true,2,yes
b,,blue,FALSE,,no
"""


def test_columns_are_inferred_and_said(tmp_path: Path) -> None:
    source = source_of(tmp_path / "p.csv", PEOPLE, label="class", id="name", weight="weight")
    assert events_of(source) == [
        {"x": {"height": 1.5, "colour": "red", "member": 1.0}, "y": "yes", "id": "a", "w": 2.0},
        {"x": {"colour": "blue", "member": 0.0}, "y": "no", "id": "b"},
    ]
    assert source.describe() == (
        "reading height as number, member as bool (true is 1, false is 0), colour as text; "
        "label: class (text); id: name; weight: weight "
        "(types by the first 2 rows)"
    )


def test_types_can_be_told(tmp_path: Path) -> None:
    types = {"height": "text", "colour": "ignore", "name": "ignore", "weight": "ignore"}
    source = source_of(tmp_path / "p.csv", PEOPLE, label="class", types=types)
    assert events_of(source) == [
        {"x": {"height": "1.5", "member": 1.0}, "y": "yes"},
        {"x": {"member": 0.0}, "y": "no"},
    ]
    assert source.describe() == (
        "reading member as bool (true is 1, false is 0), height as text; label: class (text); "
        "ignoring: name, colour, weight (types by the first 2 rows and as given)"
    )


@pytest.mark.parametrize(
    ("cells", "labels", "description"),
    [
        (["1", "0"], [1, 0], "y (whole number)"),
        (["-1", "+1.0"], [-1, 1], "y (whole number)"),
        (["True", "false"], [True, False], "y (bool)"),
        (["1", "b"], ["1", "b"], "y (text)"),
    ],
)
def test_labels_have_a_type(
    tmp_path: Path, cells: list[str], labels: list[object], description: str
) -> None:
    source = source_of(tmp_path / "l.csv", "y,a\n" + "".join(f"{c},1\n" for c in cells), label="y")
    read = [event["y"] for event in events_of(source)]
    assert read == labels
    assert [type(label) for label in read] == [type(label) for label in labels]
    assert description in source.describe()


def test_labels_can_be_mapped(tmp_path: Path) -> None:
    content = "y,a\nUP,1\nDOWN,2\nup,3\n"
    source = source_of(tmp_path / "l.csv", content, label="y", labels={"UP": True, "DOWN": False})
    first, second, third = source.records()
    assert (first.event, second.event) == (
        {"x": {"a": 1.0}, "y": True},
        {"x": {"a": 2.0}, "y": False},
    )
    assert third.error == "column y must be 'UP' or 'DOWN', not 'up'"
    assert "label: y (UP as True, DOWN as False)" in source.describe()


def test_fractions_are_no_labels(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"label y holds fractions such as 0\.5"):
        source_of(tmp_path / "l.csv", "y,a\n1,1\n0.5,1\n", label="y")
    source = source_of(tmp_path / "l.csv", "y,a\n0.5,1\n", label="y", types={"y": "text"})
    assert events_of(source) == [{"x": {"a": 1.0}, "y": "0.5"}]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("red,1", "column a must be a number, not 'red'"),
        ("nan,1", "column a must be a number between -1e100 and 1e100, not 'nan'"),
        ("inf,1", "column a must be a number between -1e100 and 1e100, not 'inf'"),
        ("1e101,1", "column a must be a number between -1e100 and 1e100, not '1e101'"),
        ("9" * 400 + ",1", "column a must be a number between -1e100 and 1e100, not '99"),
        ("9" * 5000 + ",1", "column a must be a number between -1e100 and 1e100, not '99"),
        ("1_000,1", "column a must be a number, not '1_000'"),
        ("\u0661,1", "column a must be a number, not"),
        ("1,", "column y is empty: there is no label"),
        ("1,2.5", "column y must be a whole number, not '2.5'"),
        ("1,9223372036854775808", "column y must be a whole number of 64 bits"),
        ("1,yes", "column y must be a number, not 'yes'"),
        ("1", "has 1 cells where the header has 2"),
        ("1,1,1", "has 3 cells where the header has 2"),
        ('"1"x,1', "is not CSV at line 4"),
        ("1\r2,1", "is not CSV at line 4"),
    ],
)
def test_a_cell_that_does_not_fit_the_column_is_bad(tmp_path: Path, row: str, reason: str) -> None:
    path = tmp_path / "b.csv"
    source = source_of(path, f"a,y\n1,0\n\n{row}\n2,1\n", label="y", sample_rows=1)
    good, bad, after = source.records()
    assert (good.error, after.event) == (None, {"x": {"a": 2.0}, "y": 1})
    assert bad.event is None
    assert bad.line == 4
    assert bad.error is not None
    assert bad.error.startswith(reason)
    assert len(bad.error) < 200


@pytest.mark.parametrize(
    ("weight", "name", "reason"),
    [
        ("-1", "a", "column w must be a weight of at least 0, not '-1'"),
        ("nan", "a", "column w must be a number between"),
        ("1", "", "column n must be text of 1 to 256 characters"),
        ("1", "a" * 257, "column n must be text of 1 to 256 characters"),
    ],
)
def test_weights_and_ids_are_checked(tmp_path: Path, weight: str, name: str, reason: str) -> None:
    path = tmp_path / "b.csv"
    source = source_of(path, f"w,n,y\n{weight},{name},1\n", label="y", id="n", weight="w")
    ((line, error),) = faults_of(source)
    assert line == 2
    assert error.startswith(reason)


@pytest.mark.parametrize("quoted", [False, True])
def test_ids_are_text_unless_they_are_told_to_be_numbers(tmp_path: Path, quoted: bool) -> None:
    cells = ["123", "123.0", "1.230e2", "007", "9007199254740993", "1.5"]
    marked = [f'"{cell}"' if quoted else cell for cell in cells]
    content = "k,a,b,y\n" + "".join(f"{cell},1,2,1\n" for cell in marked)
    as_text = source_of(tmp_path / "t.csv", content, label="y", id="k")
    assert [event["id"] for event in events_of(as_text)] == cells
    numbers = source_of(tmp_path / "n.csv", content, label="y", id="k", types={"k": "number"})
    records = list(numbers.records())
    read_back = [record.event["id"] for record in records if record.event is not None]
    assert read_back == ["123", "123", "123", "7", "9007199254740993"]
    reason = "column k must be text or a whole number (a float one below 9007199254740992)"
    assert faults_of(numbers) == [(7, f"{reason}, not '1.5'")]


INDEX = "Unnamed: 0,a,Unnamed,y\n7,1,2,1\n"


@pytest.mark.parametrize(
    ("name", "content", "options", "events"),
    [
        (
            "missing.csv",
            "a,b,c,y\n?,  ,NA,1\n1,x,,0\n",
            {"missing": ("", "?", "NA")},
            [{"x": {}, "y": 1}, {"x": {"a": 1.0, "b": "x"}, "y": 0}],
        ),
        (
            "marker like a number.csv",
            "a,b,y\n1,-999,1\n-999,2,0\n",
            {"missing": ("-999",)},
            [{"x": {"a": 1.0}, "y": 1}, {"x": {"b": 2.0}, "y": 0}],
        ),
        ("no quote.csv", 't,y\n"open,1\n', {"quote": None}, [{"x": {"t": '"open'}, "y": 1}]),
        ("quote.csv", "t,y\n'a,b',1\n", {"quote": "'"}, [{"x": {"t": "a,b"}, "y": 1}]),
        ("nameless.csv", ",a,y\n0,1,1\n", {"types": {"": "ignore"}}, [{"x": {"a": 1.0}, "y": 1}]),
        ("tabs.tsv", "a\ty\n1\t1\n", {}, [{"x": {"a": 1.0}, "y": 1}]),
        ("semicolons.csv", "a;y\n1;1\n", {"delimiter": ";"}, [{"x": {"a": 1.0}, "y": 1}]),
        (
            "index ignored.csv",
            INDEX,
            {"types": {"Unnamed: 0": "ignore"}},
            [{"x": {"a": 1.0, "Unnamed": 2.0}, "y": 1}],
        ),
        (
            "index as number.csv",
            INDEX,
            {"types": {"Unnamed: 0": "number"}},
            [{"x": {"Unnamed: 0": 7.0, "a": 1.0, "Unnamed": 2.0}, "y": 1}],
        ),
        (
            "index as id.csv",
            INDEX,
            {"id": "Unnamed: 0"},
            [{"x": {"a": 1.0, "Unnamed": 2.0}, "y": 1, "id": "7"}],
        ),
    ],
)
def test_options_decide_what_a_row_is(
    tmp_path: Path, name: str, content: str, options: dict[str, object], events: list[object]
) -> None:
    assert events_of(source_of(tmp_path / name, content, label="y", **options)) == events


def test_rows_of_numbers_only_and_others_agree(tmp_path: Path) -> None:
    cells = ["1", " 2 ", "-0", "1e100", "1e-400", ".5", "", " "]
    cells += ["1_0", "nan", "-inf", "2e100", "x", "１"]
    pairs = [(a, b) for a in cells for b in cells]
    body = "".join(f"{a},{b},1\n" for a, b in pairs)
    types: dict[str, str] = {"a": "number", "b": "number"}
    together = source_of(tmp_path / "t.csv", f"a,b,y\n{body}", label="y", types=types)
    # A column of text beside them makes the reader go cell by cell.
    apart = f"a,b,t,y\n{body}".replace(",1\n", ",,1\n")
    single = source_of(tmp_path / "s.csv", apart, label="y", types={**types, "t": "text"})
    assert [r[:4] for r in together.records()] == [r[:4] for r in single.records()]
    assert len(faults_of(together)) == len(pairs) - 8 * 8


def test_an_empty_column_is_said(tmp_path: Path) -> None:
    source = source_of(tmp_path / "m.csv", "a,y\n,1\n,0\nx,1\n", label="y", sample_rows=2)
    assert source.describe().endswith("(types by the first 2 rows; empty so far: a)")
    assert faults_of(source) == [(4, "column a must be a number, not 'x'")]


def test_quotes_marks_and_line_ends(tmp_path: Path) -> None:
    content = '\ufefft,y\r\n"two\r\nlines, ""quoted""",1\r\n\r\n中\u2028\x85,0'
    source = source_of(tmp_path / "q.csv", content, label="y")
    records = list(source.records())
    check_places(records)
    assert [(record.line, record.event) for record in records] == [
        (2, {"x": {"t": 'two\r\nlines, "quoted"'}, "y": 1}),
        (5, {"x": {"t": "中\u2028\x85"}, "y": 0}),
    ]


TSV = 't\tu\ty\nham\t"start\t1\nham\tan "end"\t0\n"a"\t"\t1\n'


def test_a_quotation_mark_in_tsv_is_text(tmp_path: Path) -> None:
    for name, options in (("q.tsv", {}), ("q.csv", {"delimiter": "\t", "quote": None})):
        source = source_of(tmp_path / name, TSV, label="y", **options)
        assert [(event["x"]["t"], event["x"]["u"], event["y"]) for event in events_of(source)] == [
            ("ham", '"start', 1),
            ("ham", 'an "end"', 0),
            ('"a"', '"', 1),
        ]
        assert source.continued == 0


def test_quotes_in_tsv_can_be_told_and_lines_that_go_on_are_counted(tmp_path: Path) -> None:
    content = 't\ty\n"two\nlines"\t1\n\'x\'\t0\n"a\nb"\t1\t2\n'
    source = source_of(tmp_path / "q.tsv", content, label="y", quote='"', sample_rows=2)
    first, second, bad = source.records()
    assert (first.event, second.event) == (
        {"x": {"t": "two\nlines"}, "y": 1},
        {"x": {"t": "'x'"}, "y": 0},
    )
    assert (bad.line, bad.error) == (
        5,
        "has 3 cells where the header has 2; its quoted cells go on until line 6",
    )
    assert source.continued == 2
    assert len(list(source.records(1))) == 2
    assert source.continued == 1


def test_the_place_in_a_file_depends_on_its_quote(tmp_path: Path) -> None:
    names = [
        source_of(tmp_path / "a.tsv", TSV, label="y", **options).identity().split(":")[0]
        for options in ({}, {"quote": None}, {"quote": '"'}, {"quote": "'"})
    ]
    assert names == ["tsv", "tsv", "tsv-quote-22", "tsv-quote-27"]
    assert source_of(tmp_path / "a.csv", "y\n1", label="y").identity().startswith("csv:")
    unquoted = source_of(tmp_path / "a.csv", "y\n1", label="y", quote=None)
    assert unquoted.identity().startswith("csv-unquoted:")


@pytest.mark.parametrize("name", ["sms.csv", "sms.tsv"])
def test_every_text_message_is_a_record(tmp_path: Path, name: str) -> None:
    content = data_file("sms_spam.tsv").read_bytes()
    options = {"delimiter": "\t", "quote": None} if name == "sms.csv" else {}
    source = source_of(tmp_path / name, content, label="Label", **options)
    lines = content.decode().splitlines()[1:]
    assert [(event["y"], event["x"]["SMS"]) for event in events_of(source)] == [
        tuple(line.split("\t")) for line in lines
    ]
    assert len(lines) == 5_574


def test_an_open_quote_is_one_bad_record(tmp_path: Path) -> None:
    source = source_of(tmp_path / "q.csv", 'a,y\n1,1\n"2,0\n3,1\n', label="y", sample_rows=1)
    assert faults_of(source) == [(3, "a quoted cell is not closed before the file ends")]


def test_an_open_quote_takes_8_mib_at_most(tmp_path: Path) -> None:
    line = "x" * 1000 + ",1\n"
    content = f'a,y\nx,1\n"{line * 9000}last,0\n'
    source = source_of(tmp_path / "q.csv", content, label="y", sample_rows=1)
    records = list(source.records())
    check_places(records)
    bad = records[1]
    assert bad.line == 3
    assert bad.error is not None
    assert bad.error.startswith("a quoted cell does not end until line 8")
    assert records[-1].event == {"x": {"a": "last"}, "y": 0}


def test_wrong_encodings_are_named_with_their_line(tmp_path: Path) -> None:
    content = "t,y\nok,1\ncaf\xe9,0\nok,1\n".encode("latin-1")
    source = source_of(tmp_path / "e.csv", content, label="y")
    assert faults_of(source) == [(3, "line 3 is not utf-8: give the encoding it has")]
    read_back = source_of(tmp_path / "e.csv", content, label="y", encoding="latin-1")
    assert events_of(read_back)[1]["x"] == {"t": "café"}


def test_utf_16_and_utf_32_are_refused_with_advice(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"):
        with pytest.raises(FileError, match=f"is {encoding[:6].upper()}: convert it"):
            source_of(tmp_path / "e.csv", "a,y\n1,1\n".encode(encoding), label="y")
    with pytest.raises(FileError, match="'utf-16' is unknown or no superset of ASCII"):
        FileOptions(encoding="utf-16")


@pytest.mark.parametrize(
    ("content", "options", "reason"),
    [
        ("", {"label": "y"}, "it has no header"),
        ("\n\n", {"label": "y"}, "it has no header"),
        ("a,a,y\n", {"label": "y"}, "names 'a' more than once"),
        (",y\n", {"label": "y"}, "Column 1 has no name"),
        ("Unnamed: 0,y\n", {"label": "y"}, "Column 1, Unnamed: 0, is the row index of a pandas"),
        ("a,y,Unnamed: 0.1\n", {"label": "y"}, "Column 3, Unnamed: 0.1, is the row index"),
        ("a,__index_level_12__,y\n", {"label": "y"}, "Column 2, __index_level_12__, is the row"),
        ("a" * 300 + ",y\n", {"label": "y"}, "Column 1's name is over 256"),
        ("a,b\n", {}, "No label column is given.* the columns are: a, b"),
        ("a,b\n", {"label": "y"}, "no column 'y'; the columns are: a, b"),
        ("a,y\n", {"label": "y", "id": "k"}, "no column 'k'"),
        ("a,y\n", {"label": "y", "types": {"k": "text"}}, "no column 'k'"),
        ("a,y\n", {"label": "y", "types": {"y": "ignore"}}, "label y cannot be ignored"),
        (b"caf\xe9,y\n", {"label": "y"}, "header .line 1. cannot be read"),
    ],
)
def test_headers_are_checked(
    tmp_path: Path, content: str | bytes, options: dict[str, object], reason: str
) -> None:
    with pytest.raises(FileError, match=reason):
        source_of(tmp_path / "h.csv", content, **options)


def test_more_features_than_an_event_may_have(tmp_path: Path) -> None:
    names = ",".join(f"f{i}" for i in range(10_001))
    cells = ",".join("1" for _ in range(10_001))
    source = source_of(tmp_path / "w.csv", f"{names},y\n{cells},1\n", label="y")
    assert faults_of(source) == [(2, "has 10001 features; at most 10000 are taken")]


def test_text_longer_than_an_event_may_have(tmp_path: Path) -> None:
    content = f"t,y\n{'x' * 100_000},1\n{'x' * 200_000},1\n{'z' * 9 * 2**20},1\nx,1\n"
    source = source_of(tmp_path / "t.csv", content, label="y")
    assert faults_of(source) == [
        (3, "column t has 200000 characters; at most 100000 are taken"),
        (4, "the line is longer than 8 MiB"),
    ]
    assert [record.number for record in source.records()] == [0, 1, 2, 3]


def test_elec(elec: list[tuple[dict[str, float], bool]]) -> None:
    path = data_file("elec.csv")
    source = open_source(str(path), FileOptions(label="class"))
    records = list(source.records())
    check_places(records)
    assert [(r.event["x"], bool(r.event["y"])) for r in records if r.event is not None] == elec
    assert records[-1].bytes_read == source.size_bytes
    assert source.describe().startswith(
        "reading period, nswprice, nswdemand, vicprice, vicdemand, transfer as number; "
        "label: class (whole number)"
    )
