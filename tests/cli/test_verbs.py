"""Every verb as a process: for machines one JSON document, for people words and tables."""

from __future__ import annotations

import csv
import io
import json
import typing
from pathlib import Path

import pytest
import typer.main

from hinged_service.cli.main import cli
from tests.cli.conftest import Run

NOT_OURS = {"serve", "demo", "doctor", "ingest", "key"}
ELSEWHERE = {"tail", "plot", "train"}  # test_watch.py, test_plot.py, test_train.py
LABELS = "--label", "ham", "--label", "spam"


def verbs() -> set[str]:
    commands: typing.Any = typer.main.get_command(cli)
    return set(commands.commands)


def test_every_verb_in_a_course_through_the_life_of_a_model(
    run: Run, name: str, tmp_path: Path
) -> None:
    used = set()

    def do(verb: str, *arguments: str, stdin: str = "") -> typing.Any:
        used.add(verb)
        return run(verb, *arguments, "--json", stdin=stdin).json()

    made = do("create", name, "--learner", "perceptron", *LABELS, "--set", "learning_rate=1.0")
    assert (made["name"], made["spec"]["labels"]) == (name, ["ham", "spam"])
    assert name in {m["name"] for m in do("models")}
    outcome = do("learn", name, "free=1", "money=1", "--label", "spam", "--id", "m1")
    assert (outcome["mistake"], outcome["duplicate"]) == (True, False)
    assert do("learn", name, "free=1", "money=1", "--label", "spam", "--id", "m1")["duplicate"]
    position = outcome["position"]
    found = do("predict", name, "free=1", "--at-least", position)
    assert (found["y"], found["score"]) == ("spam", 2.0)
    assert do("show", name)["events"] == 1
    assert [m["events"] for m in do("top", "--match", name, "--interval-s", "1")] == [1]
    assert do("repair", name) == {"model": name, "removed": [], "passed_over": [], "records": []}
    upgraded = do("upgrade", name)
    assert (upgraded["model"], upgraded["before"]) == (name, upgraded["fold"])
    assert do("weights", name, "--top", "1") == {**do("weights", name), "weights": {"free": 1.0}}
    second = do("weights", name, "--top", "1", "--skip", "1")["weights"]
    assert second == {"money": 1.0}
    explained = do("explain", name, "free=1", "money=2")
    assert (explained["score"], explained["features"]) == (4.0, {"free": 1.0, "money": 2.0})

    kept = do("checkpoint", name, "--name", f"{name}-kept")
    assert kept["events"] == 1
    assert [c["name"] for c in do("checkpoints", name)] == [f"{name}-kept"]
    assert do("configure", name, "learning_rate=0.5")["model"] == name
    assert do("show", name)["configured"] == {"learning_rate": 0.5}
    do("freeze", name)
    assert do("show", name)["frozen"]
    do("unfreeze", name)
    do("reset", name)
    assert do("weights", name)["weights"] == {}
    do("restore", name, f"{name}-kept")
    assert do("weights", name)["weights"] == {"free": 1.0, "money": 1.0}

    file = tmp_path / "model.json"
    exported = do("export", name, str(file))
    assert exported["bytes"] == file.stat().st_size
    assert len(do("checkpoints", name)) == 1  # that of the export is gone again
    assert do("import", f"{name}-copy", str(file))["name"] == f"{name}-copy"
    assert do("weights", f"{name}-copy")["weights"] == {"free": 1.0, "money": 1.0}
    assert do("replay", name, f"{name}-past", "--without-id", "m1", "--wait")["name"]
    assert do("weights", f"{name}-past")["weights"] == {}

    assert do("alias", f"{name}-live", name)["model"] == name
    assert do("predict", f"{name}-live", "free=1")["y"] == "spam"
    assert do("promote", f"{name}-live", f"{name}-past")["result"] == "promoted"
    assert {a["alias"]: a["model"] for a in do("aliases")}[f"{name}-live"] == f"{name}-past"
    assert name in {s["stream"] for s in do("streams")}
    assert {m["name"] for m in do("streams", name)["models"]} == {name, f"{name}-past"}
    do("unalias", f"{name}-live")
    do("predict", name, "free=1", "--id", "m9")
    assert do("label", name, "m9", "spam")["duplicate"] is False
    assert do("discard", name, kept["uid"]) == {"discarded": kept["uid"]}
    for model in (name, f"{name}-copy", f"{name}-past"):
        assert do("delete", model, "--yes") == {"deleted": model}
    assert not [m for m in do("models") if m["name"].startswith(f"{name}-")]
    assert used == verbs() - NOT_OURS - ELSEWHERE


def test_the_same_for_people(run: Run, name: str) -> None:
    def do(*arguments: str, **more: str) -> str:
        done = run(*arguments, **more)
        assert (done.code, done.err) == (0, ""), done
        return " ".join(done.out.split())

    assert f"Created the model {name}: perceptron" in do(
        "create", name, "--learner", "perceptron", *LABELS
    )
    assert f"{name} perceptron {name} ham, spam" in do("models")
    answer = do("learn", name, "free=1", "--label", "spam", "--id", "m1")
    assert "Predicted ham, was spam: wrong. The weights changed." in answer
    assert "counted before" in do("learn", name, "free=1", "--label", "spam", "--id", "m1")
    assert "P(ham), uncalibrated 0.119203 P(spam), uncalibrated 0.880797" in do(
        "predict", name, "free=1"
    )
    assert "events 1 accuracy 0.00% mistakes 1" in do("show", name)
    assert do("weights", name) == "feature weight free 1 (intercept) 1"
    assert "free 3 (intercept) 1 (score) 4" in do("explain", name, "free=3")
    assert "Events so far: 1." in do("checkpoint", name, "--name", f"{name}-c")
    assert f"{name}-c {name}" in do("checkpoints", name)
    do("freeze", name)
    restored = do("restore", name, f"{name}-c")
    assert f"back at {name}-c. It learns again: it was not frozen when" in restored
    assert f"{name} perceptron 1 1 0" in do("streams", name)
    assert "points to" in do("alias", f"{name}-live", name)
    assert f"{name}-live {name} {name}" in do("aliases")
    assert "is deleted" in do("unalias", f"{name}-live")
    assert "is deleted" in do("delete", name, "--yes")


def test_csv_has_a_head_and_all_digits(run: Run, name: str) -> None:
    def rows(*arguments: str, **more: str) -> list[list[str]]:
        done = run(*arguments, "--output", "csv", **more)
        assert (done.code, done.err) == (0, ""), done
        return list(csv.reader(io.StringIO(done.out)))

    def record(*arguments: str) -> dict[str, str]:
        head, only = rows(*arguments)
        return dict(zip(head, only, strict=True))

    assert record("create", name, "--learner", "perceptron", *LABELS)["name"] == name
    event = json.dumps({"x": {'a,"b"\n': 0.1}, "y": "spam"})
    assert rows("learn", name, "--event", event)[0][:3] == ["y_pred", "score", "mistake"]
    assert record("learn", name, "free=1", "--label", "spam")["mistake"] == "false"
    weights = rows("weights", name)
    assert weights == [["feature", "weight"], ['a,"b"\n', "0.1"], ["(intercept)", "1.0"]]
    answer = record("show", name)
    assert (answer["events"], answer["accuracy"], answer["stale_s"]) == ("2", "0.5", "")
    assert json.loads(answer["spec"])["labels"] == ["ham", "spam"]
    assert record("streams", name)["accuracy"] == "0.5"
    assert [name, "perceptron", name, "ham, spam"] in rows("models")
    found = rows("predict", name, stdin='{"free": 1}\n{"free": 2}\n')
    assert found[0] == ["event", "label", "score", "probability"]
    assert [row[:3] for row in found[1:]] == [["1", "spam", "1.0"], ["2", "spam", "1.0"]]
    assert rows("checkpoints", name) == [
        ["checkpoint", "model", "made", "events", "accuracy", "uid"]
    ]


def test_many_events_through_a_pipe(run: Run, name: str) -> None:
    run("create", name, "--learner", "multiclass_perceptron", "--json").json()
    events = [{"x": {"a": i % 3 + 1}, "y": "pqr"[i % 3], "id": f"e{i}"} for i in range(30)]
    lines = "\n".join(json.dumps(event) for event in events)
    outcomes = run("learn", name, "--json", stdin=lines).json()
    assert [o["duplicate"] for o in outcomes] == [False] * 30
    array = json.dumps(events)
    assert all(o["duplicate"] for o in run("learn", name, "--json", "--event", array).json())
    assert "counted before  30" in run("learn", name, stdin=array).out
    questions = '{"a": 1}\n{"x": {"a": 2}}\n'
    found = run("predict", name, "--json", stdin=questions).json()
    for question, prediction in zip(({"a": 1}, {"a": 2}), found, strict=True):
        one = run("predict", name, "--json", stdin=json.dumps(question)).json()
        assert one == prediction
    assert len(run("predict", name, stdin=questions).out.splitlines()) == 3
    assert "class  feature" in run("weights", name).out


def test_options_of_learn_stand_in_for_what_the_json_of_an_event_lacks(run: Run, name: str) -> None:
    run("create", name, "--learner", "perceptron", *LABELS, "--json").json()
    events = '{"x": {"a": 1}, "y": "ham", "w": 2}\n{"x": {"b": 1}, "y": null}'
    run("learn", name, "--label", "spam", "--weight", "3", "--json", stdin=events).json()
    # A tie of weight 2 for ham: a = b = -2. Then -2 for spam, a mistake of weight 3.
    found = run("weights", name, "--json").json()
    assert (found["weights"], found["intercept"]) == ({"b": 3.0, "a": -2.0}, 1.0)


def test_a_label_without_features_is_sent_elsewhere(run: Run, name: str) -> None:
    run("create", name, "--learner", "perceptron", *LABELS, "--json").json()
    refused = run("learn", name, stdin='{"id": "m1", "y": "ham"}')
    assert refused.code == 2
    assert "no features" in refused.err
    assert "hinged label" in refused.err


def test_a_label_comes_after_its_prediction(run: Run, name: str) -> None:
    spec = {"learner": {"type": "perceptron"}, "labels": ["ham", "spam"]}
    spec["late_labels"] = {"early": True}
    run("create", name, "--spec", "-", stdin=json.dumps(spec))
    assert run("predict", name, "a=1", "--id", "m7", "--json").json()["y"] == "ham"
    assert "Predicted ham, was spam: wrong." in run("label", name, "m7", "spam").out
    assert "counted before" in run("label", name, "m7", "spam").out
    assert "waits" in run("label", name, "m8", "spam").out
    refused = run("predict", name, "--id", "m9", stdin='{"a": 1}\n{"a": 2}')
    assert (refused.code, "names one event" in refused.err) == (2, True)


def test_labels_have_the_type_of_the_model(run: Run, name: str) -> None:
    for kind, labels, given, y in (
        ("perceptron", (), "true", True),
        ("perceptron", ("--label", "0", "--label", "1"), "1", 1),
        ("perceptron", ("--label", "0", "--label", "one"), "0", "0"),
        ("multiclass_perceptron", (), "7", "7"),
        ("auto", (), "7", "7"),
    ):
        model = f"{name}-{kind}-{len(labels)}-{given}"
        run("create", model, "--learner", kind, *labels, "--json").json()
        for _ in range(2):
            assert run("learn", model, "a=1", "--label", given).code == 0
        expected = run("predict", model, "a=1", "--json").json()["y"]
        assert (expected, type(expected)) == (y, type(y))
    for y in (7, True):  # the type of the labels that a model of the learner auto has
        model = f"{name}-auto-{y}"
        run("create", model, "--learner", "auto", "--json").json()
        run("learn", model, "--event", json.dumps({"x": {"a": 1}, "y": y}), "--json").json()
        assert run("learn", model, "a=1", "--label", json.dumps(y)).code == 0


def test_values_are_read_as_json_or_are_text(run: Run, name: str) -> None:
    run("create", name, "--learner", "perceptron", "--step", "OneHotEncoder", "--json").json()
    given = "zip=01234", "eq=a=b", 'text="5"', "new=true"
    assert run("learn", name, *given, "--label", "true", "--json").json()["updated"]
    weights = run("weights", name, "--json").json()["weights"]
    event = json.dumps({"zip": "01234", "eq": "a=b", "text": "5", "new": True})
    run("predict", name, "--event", event, "--json").json()
    assert run("predict", name, *given, "--json").json()["score"] == len(weights) + 1


def test_a_spec_from_a_file_or_a_pipe(run: Run, name: str, tmp_path: Path) -> None:
    spec = json.dumps({"learner": {"type": "arow"}, "metrics": ["accuracy"]})
    (tmp_path / "spec.json").write_text(spec)
    one = run("create", name, "--spec", str(tmp_path / "spec.json"), "--json").json()
    assert run("create", name, "--spec", "-", "--json", stdin=spec).json() == one
    assert one["spec"]["learner"]["type"] == "arow"
    (tmp_path / "spec.json").write_text(spec, encoding="utf-8-sig")
    assert run("create", name, "--spec", str(tmp_path / "spec.json"), "--json").json() == one
    (tmp_path / "spec.json").write_text(spec, encoding="utf-16")
    refused = run("create", name, "--spec", str(tmp_path / "spec.json"))
    assert (refused.code, "The spec is UTF-16" in refused.err) == (2, True)


def test_events_begin_with_a_mark_or_are_refused_by_the_name_of_their_encoding(
    run: Run, model: str, tmp_path: Path
) -> None:
    lines = '\ufeff{"x":{"a":1},"y":true}\n\ufeff{"x":{"a":2},"y":true}\n'
    assert run("learn", model, "--json", stdin=lines).json()[1]["score"] == 3.0
    event = '\ufeff{"x":{"a":"z","a":2}}'
    assert run("predict", model, "--event", event, "--json").json()["score"] == 3.0
    features = '\ufeff{"a":"z","a":2}'
    assert run("predict", model, "--json", stdin=features).json()["score"] == 3.0
    for text, reason in (("{\0}\0", "UTF-16"), ("\0\0\0{\0\0\0}", "UTF-32")):
        refused = run("learn", model, stdin=text)
        assert (refused.code, f"standard input is {reason}" in refused.err) == (2, True)
    refused = run("learn", model, stdin="\ufeff")
    assert (refused.code, "There is no event" in refused.err) == (2, True)
    refused = run("learn", model, "--event", '{"x":{"\udcff":1},"y":true}')
    assert (refused.code, "--event is not JSON" in refused.err) == (2, True)


def test_a_document_through_a_pipe(run: Run, model: str) -> None:
    document = run("export", model, "-")
    assert document.json()["model"] == model
    assert run("import", f"{model}-2", "-", "--json", stdin=document.out).json()["name"]


def test_names_do_not_drive_the_terminal(run: Run, model: str) -> None:
    event = json.dumps({"x": {"\x1b[31mred [bold]é": 1}, "y": True})
    run("learn", model, "--event", event, "--json").json()
    answer = run("weights", model).out
    assert "\\x1b[31mred [bold]é" in answer
    plain = run("weights", model, PYTHONIOENCODING="ascii")
    assert (plain.code, plain.out.isascii()) == (0, True)


@pytest.mark.parametrize("verb", sorted(verbs() - NOT_OURS))
def test_every_verb_has_help_with_an_example(run: Run, verb: str) -> None:
    answer = run(verb, "--help")
    assert answer.code == 0
    assert f" hinged {verb}" in answer.out.partition("Usage:")[2].partition("\n")[2]
    for option in ("--url", "--api-key", "--output", "--json", "HINGED_URL", "HINGED_API_KEY"):
        assert option in answer.out


def test_names_are_completed_from_the_service(run: Run, model: str) -> None:
    run("checkpoint", model, "--name", f"{model}-c", "--json").json()

    def complete(words: str) -> list[str]:
        count = str(len(words.split()) - (not words.endswith(" ")))
        shell = {"_HINGED_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": count}
        return run(**shell).out.split()

    assert model in complete("hinged show cli-")
    assert complete(f"hinged restore {model} {model}") == [f"{model}-c"]
    assert "perceptron" in complete("hinged create m --learner perc")
    assert "weights" in complete("hinged wei")
    assert complete("hinged show no-such-") == []
