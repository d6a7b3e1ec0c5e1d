"""`hinged top` and `hinged tail`: numbers that can be counted, at a terminal and in scripts."""

from __future__ import annotations

import csv
import json
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hinged_service.client import Client, Event
from tests.cli.conftest import Run, at_a_terminal, environ
from tests.support.forked_command import ForkedCommand
from tests.support.service import Service

ROLLING = {"type": "rolling", "metric": "accuracy", "window": 2}


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    with Client(service.url) as client:
        yield client


def test_top_tells_rate_accuracy_and_status(run: Run, client: Client, name: str) -> None:
    spec = {"learner": {"type": "perceptron"}, "metrics": [ROLLING]}
    client.create_model(f"{name}-busy", spec)
    client.create_model(f"{name}-calm", {"learner": {"type": "perceptron"}})
    client.freeze(f"{name}-calm")
    client.learn(f"{name}-busy", {"a": 1.0}, True)
    over = threading.Event()

    def learn() -> None:
        while not over.wait(0.05):
            client.learn(f"{name}-busy", {"a": 1.0}, True)

    thread = threading.Thread(target=learn)
    thread.start()
    try:
        busy, calm = run("top", "--match", name, "--once", "--json").json()
    finally:
        over.set()
        thread.join()
    assert (busy["name"], busy["learner"], busy["updates"]) == (f"{name}-busy", "perceptron", 1)
    assert 1 < busy["events_per_s"] <= 20
    assert (busy["accuracy"], busy["rolling"]) == (1 - 1 / busy["events"], 1.0)
    assert (calm["events"], calm["events_per_s"], calm["accuracy"]) == (0, 0, None)
    assert (busy["status"], calm["status"]) == ("live", "frozen")
    screen = run("top", "--match", f"{name}-calm").out.split()  # no terminal: once
    assert screen[-9:] == [
        f"{name}-calm",
        "perceptron",
        "0",
        "0",
        "-",
        "-",
        "0",
        screen[-2],
        "frozen",
    ]


def test_top_refreshes_a_terminal_until_it_is_interrupted(
    service: Service, client: Client, model: str
) -> None:
    def learn_and_stop(screen: str) -> bool:
        if "1 of 1 models" in screen and client.model(model).events == 0:
            list(client.learn_many(model, [Event({"a": 1.0}, True)] * 3))
        return "66.67%" in screen

    words = ["top", "--match", model, "--interval-s", "1"]
    code, screen = at_a_terminal(service, words, learn_and_stop)
    assert code == 0
    assert "Traceback" not in screen
    assert "\x1b[?1049l" in screen  # the screen is back


def test_long_work_shows_rate_and_time_left(
    service: Service, client: Client, model: str, tmp_path: Path
) -> None:
    file = tmp_path / "events.ndjson"
    file.write_text('{"x": {"a": 1}, "y": true}\n' * 200_000)
    results = tmp_path / "results.json"
    with file.open("rb") as lines, results.open("wb") as out:
        code, screen = at_a_terminal(
            service, ["learn", model, "--json"], lambda _: False, stdin=lines, stdout=out
        )
    assert (code, len(json.loads(results.read_text()))) == (0, 200_000)
    plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", screen)
    assert re.search(r"learning .* \d+%  [\d,]+ events/s \S+ left: \d:\d\d:\d\d", plain), plain


def test_tail_prints_events_as_they_are_learned(
    service: Service, client: Client, name: str
) -> None:
    client.create_model(name, {"learner": {"type": "perceptron"}, "labels": ["ham", "spam"]})
    forms = {form: ["--output", form, "--count", "2"] for form in ("table", "json", "csv")}
    forms["csv"].append("--features")
    running = {
        form: ForkedCommand(["tail", name, *options], environ(service))
        for form, options in forms.items()
    }
    assert running["table"].stdout.readline().startswith(f"Following {name} from ")
    assert json.loads(running["json"].stdout.readline())["event"] == "model"
    assert json.loads(running["json"].stdout.readline())["event"] == "metrics"
    columns = next(csv.reader([running["csv"].stdout.readline()]))
    time.sleep(0.5)  # its connection cannot be seen
    client.learn(name, {"free": 1.0}, "spam", id="m1")
    client.learn(name, {"free": 2.0}, "spam", w=0.5)
    outputs = {form: command.communicate(timeout=30) for form, command in running.items()}
    assert [command.returncode for command in running.values()] == [0, 0, 0]
    assert {err for _, err in outputs.values()} == {""}

    first, second = outputs["table"][0].splitlines()
    assert first.endswith("wrong  is spam, predicted ham  score 0  loss 1  updated  id m1")
    assert "right  is spam, predicted spam  score 3  loss 0  weight 0.5" in second
    lines = [json.loads(line) for line in outputs["json"][0].splitlines()]
    outcomes = [line for line in lines if line["event"] == "outcome"]
    assert [(o["y_pred"], o["score"]) for o in outcomes] == [("ham", 0.0), ("spam", 3.0)]
    rows = [
        dict(zip(columns, row, strict=True)) for row in csv.reader(outputs["csv"][0].splitlines())
    ]
    assert [(r["id"], r["mistake"], json.loads(r["x"])) for r in rows] == [
        ("m1", "true", {"free": 1.0}),
        (rows[1]["id"], "false", {"free": 2.0}),
    ]


def test_tail_ends_with_its_model(service: Service, client: Client, model: str) -> None:
    command = ForkedCommand(["tail", model], environ(service))
    command.stdout.readline()
    client.delete_model(model)
    out, _ = command.communicate(timeout=30)
    assert (command.returncode, out) == (0, "The feed ended: deleted.\n")
