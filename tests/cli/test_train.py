"""`hinged train`: files learned side by side and mixed, against a mixture made here."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

import hinged
from hinged_service.cli.main import cli
from hinged_service.interchange import engines
from hinged_service.interchange.back_fill import Part
from hinged_service.interchange.engines import EngineFailed
from tests.cli.conftest import Run
from tests.support.ingest import Event, events
from tests.support.service import Service

PASSES = 2
Here = Callable[..., Any]


def mixture(parts: list[list[Event]], kind: type = hinged.Perceptron) -> Any:
    """Return the mixture of copies of a learner that learned the parts, pass by pass."""
    model = kind()
    for _ in range(PASSES):
        copies = []
        for part in parts:
            copy = kind()
            copy.set_state(model.get_state())
            for row in part:
                copy.learn_one(row["x"], row["y"])
            copies.append(copy)
        model = hinged.mix(copies)
    return model


def written(folder: Path, parts: list[list[Event]]) -> list[str]:
    """Write the parts as files of lines; return their paths."""
    paths = [folder / f"part-{number}.ndjson" for number in range(len(parts))]
    for path, part in zip(paths, parts, strict=True):
        path.write_text("\n".join(map(json.dumps, part)))
    return [str(path) for path in paths]


def three_parts() -> list[list[Event]]:
    rows = events(90)
    return [rows[:20], rows[20:70], rows[70:]]


@pytest.mark.parametrize("engine", ["processes", "dask", "ray"])
def test_the_model_is_the_mixture_and_learns_on(
    engine: str, run: Run, client: httpx.Client, name: str, tmp_path: Path
) -> None:
    if engine != "processes":
        pytest.importorskip(engine, reason=f"{engine} is not installed")
    parts = three_parts()
    words = "--on", engine, "--passes", str(PASSES), "--workers", "2", "--json"
    environment = {"RAY_AUTH_MODE": "disabled"}
    done = run("train", name, *written(tmp_path, parts), *words, **environment)
    assert done.code == 0, done
    summary = json.loads(done.out)
    assert (summary["files"], summary["events"], summary["bad"]) == (3, 90, 0)
    expected = mixture(parts)
    found = client.get(f"/v1/models/{name}/weights?top=100").json()
    assert found["weights"] == dict(expected.weights)
    assert found["intercept"] == expected.intercept
    x = {"f0": 1.0, "new": 2.0}
    event = {"x": x, "y": not expected.predict_one(x)}
    client.post(f"/v1/models/{name}/learn", json=event).raise_for_status()
    expected.learn_one(x, event["y"])
    found = client.get(f"/v1/models/{name}/weights?top=100").json()
    assert found["weights"] == dict(expected.weights)


@pytest.fixture
def here(service: Service, monkeypatch: pytest.MonkeyPatch) -> Here:
    """Run `hinged train` in this process, the files learned one after the other."""

    def one_by_one(*_: object) -> Any:
        return contextlib.nullcontext(map)

    monkeypatch.setattr(engines, "engine", one_by_one)
    environment = {"HINGED_URL": service.url, "COLUMNS": "200"}
    return lambda *words: CliRunner().invoke(cli, ["train", *words], env=environment)


def test_tables_with_labels_of_text_and_another_rule(
    here: Here, client: httpx.Client, name: str, tmp_path: Path
) -> None:
    parts, paths = three_parts(), []
    for number, part in enumerate(parts):
        path = tmp_path / f"{number}.csv"
        paths.append(str(path))
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*part[0]["x"], "class"])
            writer.writerows([*row["x"].values(), "spam" if row["y"] else "ham"] for row in part)
    words = "--label", "class", "--negative", "ham", "--positive", "spam", "--passes", str(PASSES)
    done = here(name, *paths, *words, "--learner", "passive_aggressive")
    assert done.exit_code == 0, done
    assert "90 events of 3 files" in done.output
    expected = mixture(parts, hinged.PassiveAggressive)
    info = client.get(f"/v1/models/{name}").json()
    assert info["spec"]["labels"] == ["ham", "spam"]
    assert info["spec"]["learner"]["type"] == "passive_aggressive"
    found = client.get(f"/v1/models/{name}/weights?top=100").json()
    assert found["weights"] == dict(expected.weights)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--learner", "arow"), "arow cannot be mixed"),
        (("--set", "learning_rate=-1"), "learning_rate"),
        (("--on", "elsewhere"), "elsewhere"),
        (("--negative", "ham"), "go together"),
        (("--max-bad", "some"), "some"),
        (("a.ndjson",), "named twice"),
        (("-",), "standard input"),
    ],
)
def test_wrong_usage_is_told(words: tuple[str, ...], text: str) -> None:
    answer = CliRunner().invoke(cli, ["train", "m", "a.ndjson", *words])
    assert (answer.exit_code, text in " ".join(answer.output.split())) == (2, True), answer.output


def test_files_that_cannot_be_learned_make_no_model(
    here: Here, client: httpx.Client, name: str, tmp_path: Path
) -> None:
    paths, gone = written(tmp_path, three_parts()), str(tmp_path / "gone.ndjson")
    done = here(name, *paths, gone)
    assert (done.exit_code, "gone.ndjson" in done.stderr) == (1, True), done
    bad = tmp_path / "bad.ndjson"
    lines = ["{", {"y": True}, {"x": {"a": 1}, "y": "text"}, {"x": {"a": "text"}, "y": True}]
    bad.write_text("\n".join(one if isinstance(one, str) else json.dumps(one) for one in lines))
    once = "--passes", "1", "--json"
    done = here(name, *paths, str(bad), *once)
    assert (done.exit_code, "4 bad records" in done.stderr, "record 1" in done.stderr) == (
        1,
        True,
        True,
    ), done
    assert client.get(f"/v1/models/{name}").status_code == 404
    assert here(name, *paths, str(bad), *once, "--max-bad", "5%").exit_code == 0
    done = here(name, *paths)
    assert (done.exit_code, "already" in done.stderr) == (4, True), done


def test_an_engine_that_cannot_run_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineFailed, match="pip install ray"), engines.engine("ray", None, None):
        pass
    here = engines.engine("processes", 1, "tcp://127.0.0.1:1")
    with pytest.raises(EngineFailed, match="--address"), here:
        pass
    with (
        engines.engine("processes", 1, None) as spread,
        pytest.raises(EngineFailed, match="memory"),
    ):
        list(spread(_ended, ["a"]))


def _ended(path: str) -> Part:
    os._exit(1)
