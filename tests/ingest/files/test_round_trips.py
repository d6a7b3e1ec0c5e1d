"""Files written by the rules of a format are read back as they were."""

from __future__ import annotations

import csv
import io
import string
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from tests.ingest.files.reading import events_of, source_of

NUMBERS = st.floats(-1e100, 1e100)
WORDS = st.text(
    st.characters(blacklist_characters=" \t\r\n|:", codec="utf-8"), min_size=1, max_size=20
)
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1).filter(lambda text: not text.isspace())
LABELS = TEXTS.filter(lambda text: len(text) <= 256)


def read(name: str, content: str, **options: Any) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        return events_of(source_of(Path(folder) / name, content, **options))


@given(
    st.lists(
        st.tuples(
            st.booleans(), st.dictionaries(st.integers(0, 10**9).map(str), NUMBERS, max_size=20)
        )
    )
)
def test_libsvm(rows: list[tuple[bool, dict[str, float]]]) -> None:
    lines = [
        f"{'+1' if y else '-1'} " + " ".join(f"{k}:{v!r}" for k, v in x.items()) for y, x in rows
    ]
    assert read("a.libsvm", "\n".join(lines)) == [{"x": x, "y": y} for y, x in rows]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 9),
            st.floats(0, 1e100),
            st.text(string.ascii_letters, min_size=1, max_size=9),
            st.dictionaries(WORDS, st.dictionaries(WORDS, NUMBERS, max_size=5), max_size=3),
        )
    )
)
def test_vw(rows: list[tuple[int, float, str, dict[str, dict[str, float]]]]) -> None:
    lines = [
        f"{y} {w!r} '{tag} "
        + " ".join(
            f"|{space} " + " ".join(f"{name}:{value!r}" for name, value in features.items())
            for space, features in x.items()
        )
        + ("" if x else "|")
        for y, w, tag, x in rows
    ]
    expected = []
    for y, w, tag, x in rows:
        flat: dict[str, float] = {}
        for space, features in x.items():
            for name, value in features.items():
                flat[f"{space}^{name}"] = flat.get(f"{space}^{name}", 0.0) + value
        expected.append({"x": flat, "y": y, "w": w, "id": tag})
    assert read("a.vw", "\n".join(lines), id="tag") == expected


@given(st.lists(st.tuples(NUMBERS, st.none() | TEXTS, st.booleans(), LABELS)))
@example([(1.0, '"', True, "a,b"), (-0.0, "\ra", False, "\n.")])
def test_csv(rows: list[tuple[float, str | None, bool, str]]) -> None:
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(["n", "t", "b", "y"])
    writer.writerows([repr(n), t, str(b), y] for n, t, b, y in rows)
    types = {"n": "number", "t": "text", "b": "bool", "y": "text"}
    assert read("a.csv", file.getvalue(), label="y", types=types) == [
        {"x": {"n": n} | ({} if t is None else {"t": t}) | {"b": float(b)}, "y": y}
        for n, t, b, y in rows
    ]
