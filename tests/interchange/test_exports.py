"""Exports of linear models predict what the service predicts, wherever they run."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import random
import sqlite3
import subprocess
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

from hinged_service.client import Client
from hinged_service.interchange.formats import NotExportable, exported_as
from tests.cli.conftest import run_hinged
from tests.support.service import Service
from tests.support.shared_service import NewModel

numbers = itertools.count()
NAMES = ["age", "clicks", 'a "quoted" é', "flag", "rare"]
SPECS: dict[str, dict[str, Any]] = {
    "plain": {"learner": {"type": "averaged_perceptron"}, "labels": ["ham", "spam"]},
    "scaled": {"learner": {"type": "passive_aggressive"}, "scale": "auto"},
    "calibrated": {
        "learner": {"type": "logistic_sgd"},
        "pipeline": [{"type": "StandardScaler"}, {"type": "MinMaxScaler"}],
        "calibrate": True,
        "labels": [-1, 1],
    },
    "classes": {"learner": {"type": "multiclass_perceptron"}, "scale": "auto"},
    "rest": {
        "learner": {"type": "one_vs_rest", "learner": {"type": "arow"}},
        "pipeline": [{"type": "RobustScaler"}, {"type": "Discard", "keys": ["rare"]}],
        "labels": "integers",
        "calibrate": True,
    },
}
ZERO = {"plain": 0, "scaled": True, "calibrated": -1}


def events(seed: int, count: int) -> list[dict[str, float]]:
    """Events that each lack some features; one feature is far out now and then."""
    dice = random.Random(seed)
    made = []
    for _ in range(count):
        x = {
            "age": dice.gauss(40, 12),
            "clicks": float(dice.randrange(30)) * dice.choice([1, 1, 1, 100]),
            'a "quoted" é': dice.gauss(-3e-4, 1e-4),
            "flag": float(dice.random() < 0.3),
            "rare": dice.expovariate(1),
        }
        made.append({n: v for n, v in x.items() if dice.random() < 0.8})
    return made


def label(kind: str, x: dict[str, float]) -> Any:
    """Return a label that the features tell, more or less."""
    side = x.get("age", 40) - 40 + 20 * x.get("flag", 0) > 0
    if kind == "classes":
        return "old" if side else "busy" if x.get("clicks", 0) > 20 else "it's ok"
    if kind == "rest":
        return 3 if side else 20 if x.get("clicks", 0) > 20 else 1
    pair: Any = SPECS[kind].get("labels", [False, True])
    return pair[side]


class Model:
    """A model of the service, its document, and its answers about events it has not learned."""

    def __init__(self, client: httpx.Client, url: str, kind: str) -> None:
        self.kind, self.name, spec = kind, f"exported-{kind}-{next(numbers)}", SPECS[kind]
        path = f"/v1/models/{self.name}"
        assert client.put(path, json=spec).status_code == 201
        learned = [{"x": x, "y": label(kind, x)} for x in events(1, 300)]
        assert client.post(f"{path}/learn", json=learned).is_success
        self.asked = [*events(2, 60), {}, {"age": 41.5}, dict.fromkeys(NAMES, 0.0)]
        answer = client.post(f"{path}/predict", json=[{"x": x} for x in self.asked])
        self.answers = answer.json()
        self.multiclass = kind in ("classes", "rest")
        of_text = int if kind == "rest" else str
        classes = [of_text(text) for text in self.answers[0]["proba"]]
        self.labels = classes if self.multiclass else spec.get("labels", [False, True])
        with Client(url) as caller:
            self.document = caller.export_checkpoint(
                self.name, caller.make_checkpoint(self.name).uid
            )

    def export(self, format: str, table: str = "events") -> bytes:  # noqa: A002
        return exported_as(format, self.name, self.document, table)

    def check(self, i: int, y: Any, score: float, proba: dict[str, float], near: float) -> None:
        expected = self.answers[i]
        assert (y, type(y)) == (expected["y"], type(expected["y"])), (i, self.asked[i])
        assert score == pytest.approx(expected["score"], rel=near, abs=near)
        for text, p in proba.items():
            assert p == pytest.approx(expected["proba"][text], rel=near, abs=near)


def text_of(y: Any) -> str:
    return y if isinstance(y, str) else json.dumps(y)


@pytest.fixture(scope="module", params=SPECS)
def model(request: pytest.FixtureRequest, client: httpx.Client, service: Service) -> Model:
    return Model(client, service.url, request.param)


def test_sql(model: Model) -> None:
    query = model.export("sql", "my events").decode()
    columns = ", ".join('"' + n.replace('"', '""') + '" REAL' for n in NAMES)
    rows = [(i, *(x.get(n) for n in NAMES)) for i, x in enumerate(model.asked)]
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(f'CREATE TABLE "my events" (n INTEGER, {columns})')
        db.executemany('INSERT INTO "my events" VALUES (?, ?, ?, ?, ?, ?)', rows)
        db.row_factory = sqlite3.Row
        found = db.execute(query).fetchall()
    assert len(found) == len(model.asked)
    for row in found:
        y = bool(row["label"]) if model.kind == "scaled" else row["label"]
        positive = y if model.multiclass else model.labels[1]
        model.check(row["n"], y, row["score"], {text_of(positive): row["probability"]}, 1e-9)


def test_c(model: Model, tmp_path: Path) -> None:
    (tmp_path / "model.h").write_bytes(model.export("c"))
    n = model.name.replace("-", "_")
    (tmp_path / "main.c").write_text(
        f"""#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"
int main(void) {{
    char word[64]; double x[{n.upper()}_FEATURES], s[{n.upper()}_SCORES], p[{n.upper()}_LABELS];
    for (int i = 0; i < {n.upper()}_FEATURES; i++) printf("%s\\n", {n}_names[i]);
    puts("");
    for (;;) {{
        for (int i = 0; i < {n.upper()}_FEATURES; i++) {{
            if (scanf("%63s", word) != 1) return 0;
            x[i] = strcmp(word, "nan") ? atof(word) : NAN;
        }}
        {n}_scores(x, s); {n}_probabilities(x, p);
        printf("%d %s", {n}_label(x), {n}_labels[{n}_label(x)]);
        for (int k = 0; k < {n.upper()}_SCORES; k++) printf(" %.17g", s[k]);
        for (int k = 0; k < {n.upper()}_LABELS; k++) printf(" %.17g", p[k]);
        puts("");
    }}
}}
"""
    )
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1"]
    command = ["gcc", *flags, "main.c", "-o", "main", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    names = subprocess.run(
        ["./main"], cwd=tmp_path, input="", capture_output=True, text=True, check=True
    ).stdout.splitlines()[:-1]
    lines = "\n".join(" ".join(repr(x.get(n, math.nan)) for n in names) for x in model.asked)
    run = subprocess.run(
        ["./main"], cwd=tmp_path, input=lines, capture_output=True, text=True, check=True
    )
    found = run.stdout.splitlines()[len(names) + 1 :]
    assert len(found) == len(model.asked)
    for i, line in enumerate(found):
        count = len(model.labels) + (len(model.labels) if model.multiclass else 1)
        numbers = [float(word) for word in line.split(" ")[-count:]]
        at = int(line.split(" ", 1)[0])
        proba = dict(zip(map(text_of, model.labels), numbers[-len(model.labels) :], strict=True))
        assert line.startswith(f"{at} {text_of(model.labels[at])} ")
        scores = numbers[: len(model.labels)] if model.multiclass else [numbers[-3]] * 2
        model.check(i, model.labels[at], scores[at], proba, 1e-9)


def test_sklearn(model: Model) -> None:
    pipeline = pickle.loads(model.export("sklearn"))
    names = list(pipeline.feature_names_in_)
    frame = pd.DataFrame([[x.get(n, math.nan) for n in names] for x in model.asked], columns=names)
    labels, scores = pipeline.predict(frame).tolist(), pipeline.decision_function(frame)
    calibrated = "calibrate" in SPECS[model.kind]
    assert hasattr(pipeline, "predict_proba") is not calibrated
    shares = [[]] * len(labels) if calibrated else pipeline.predict_proba(frame).tolist()
    for i, (y, score, share) in enumerate(zip(labels, scores, shares, strict=True)):
        proba = dict(zip(map(text_of, model.labels), share, strict=False))
        model.check(i, y, score.max() if model.multiclass else score, proba, 1e-9)


def test_onnx(model: Model) -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    import numpy as np

    session = runtime.InferenceSession(model.export("onnx"))
    about = session.get_modelmeta().custom_metadata_map
    names, classes = json.loads(about["features"]), json.loads(about["labels"])
    x = np.array([[e.get(n, math.nan) for n in names] for e in model.asked])
    labels, scores, shares = session.run(None, {"x": x})
    for i, (y, score, share) in enumerate(zip(labels.tolist(), scores, shares, strict=True)):
        proba = dict(zip(map(text_of, classes), share.tolist(), strict=True))
        model.check(i, y, score.max(), proba, 1e-9)


def test_river(model: Model, client: httpx.Client) -> None:
    found = pickle.loads(model.export("river"))
    for i, x in enumerate(model.asked):
        proba = {text_of(y): p for y, p in found.predict_proba_one(x).items()}
        model.check(i, found.predict_one(x), found.score_one(x), proba, 0.0)
    further = [{"x": x, "y": label(model.kind, x)} for x in events(3, 50)]
    assert client.post(f"/v1/models/{model.name}/learn", json=further).is_success
    for event in further:
        found.learn_one(event["x"], event["y"])
    again = pickle.loads(pickle.dumps(found))
    answer = client.post(f"/v1/models/{model.name}/predict", json={"x": model.asked[0]}).json()
    assert again.score_one(model.asked[0]) == answer["score"]
    assert again.predict_proba_one(model.asked[0]) == {
        y: answer["proba"][text_of(y)] for y in model.labels
    }


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"learner": {"type": "auto"}, "labels": ["a", "b"]}, "hinged replay"),
        ({"learner": {"type": "curved", "learner": {"type": "arow"}}}, "curved"),
        ({"learner": {"type": "quadratic"}}, "quadratic"),
        ({"learner": {"type": "multiclass_quadratic"}}, "multiclass_quadratic"),
        ({"learner": {"type": "multiclass_discriminant"}}, "multiclass_discriminant"),
        (
            {"learner": {"type": "perceptron"}, "pipeline": [{"type": "Normalizer"}]},
            "stage 1 of the pipeline, Normalizer,",
        ),
        ({"learner": {"type": "multiclass_perceptron"}}, "knows 0 classes"),
        (
            {"learner": {"type": "perceptron", "initial_weights": {"type": "random"}}},
            "random weight",
        ),
    ],
)
def test_a_model_that_is_not_linear_is_refused_with_the_way_out(
    service: Service, new_model: NewModel, tmp_path: Path, spec: dict[str, Any], message: str
) -> None:
    name = new_model(**spec).rsplit("/", 1)[1]
    file = tmp_path / "out"
    done = run_hinged("export", name, str(file), "--format", "sql", HINGED_URL=service.url)
    assert done.code == 1
    assert message in done.err
    assert not file.exists()
    river = run_hinged("export", name, str(file), "--format", "river", HINGED_URL=service.url)
    assert river.code == 0, river
    assert pickle.loads(file.read_bytes()).predict_one({"a": 1}) in (None, False, True, "a")


def test_the_command_writes_a_file_or_says_what_to_install(
    model: Model, service: Service, tmp_path: Path
) -> None:
    if model.kind != "plain":
        pytest.skip("one model is enough")
    file = tmp_path / "out"
    done = run_hinged("export", model.name, str(file), "--format", "c", HINGED_URL=service.url)
    assert (done.code, file.read_bytes()[:12]) == (0, b"/* The model"), done
    onnx = run_hinged("export", model.name, str(file), "--format", "onnx", HINGED_URL=service.url)
    if find_spec("onnx") is None:
        assert (onnx.code, "hinged[export]" in onnx.err) == (1, True)


def test_a_document_that_cannot_be_read_here_is_refused_with_the_reason() -> None:
    for form in ("river", "sql"):
        with pytest.raises(NotExportable, match="format is not an exported model"):
            exported_as(form, "m", b"{}")
