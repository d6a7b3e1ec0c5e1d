"""Failures are told in plain words on standard error, with a code for scripts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Run, run_hinged
from tests.support.redis_server import free_port


def test_no_service_says_how_to_start_one() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    for arguments in (["models"], ["models", "--json"], ["predict", "m", "a=1"]):
        done = run_hinged(*arguments, "--url", url, "--api-key", "secret")
        assert (done.code, done.out) == (6, "")
        assert f"No service answers at {url}" in done.err
        assert "hinged serve" in done.err
        assert "HINGED_URL" in done.err
        assert "secret" not in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["show", "nobody"], 3, "There is no model 'nobody'"),
        (["predict", "nobody", "a=1"], 3, "hinged models"),
        (["restore", "{m}", "never"], 3, "never"),
        (["promote", "nothing", "{m}"], 3, "no alias 'nothing'"),
        (["create", "{m}", "--learner", "arow"], 4, "another spec"),
        (["create", "a/b", "--learner", "arow"], 3, ""),
        (["create", "x", "--learner", "nonsense"], 5, "learner.type"),
        (["configure", "{m}", "kernel=1"], 5, "set: only"),
        (["predict", "{m}", "a=text"], 5, "x['a']: must be a number"),
        (["import", "new", "{file}"], 5, "format: is not an exported model"),
    ],
)
def test_refusals(
    run: Run, model: str, tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    file = tmp_path / "file"
    file.write_text("{}")
    done = run(*(a.format(m=model, file=file) for a in arguments), "--json")
    assert (done.code, done.out) == (code, ""), done
    assert message in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["models", "--url", "nowhere"], "is not an address"),
        (["models", "--url", "ftp://h"], "is not an address"),
        (["modles"], "No such command"),
        (["create", "x"], "either --learner"),
        (["create", "x", "--learner", "arow", "--spec", "-"], "either --learner"),
        (["create", "x", "--learner", "arow", "--set", "C"], "not like name=value"),
        (["create", "x", "--spec", "/no/such/file"], "Cannot read /no/such/file"),
        (["create", "x", "--spec", "-"], "The spec is not JSON"),
        (["predict", "{m}", "a"], "not like name=value"),
        (["predict", "{m}", "a=1", "a=2"], "given twice"),
        (["predict", "{m}", "a=[1]"], "not a single value"),
        (["predict", "{m}", "a=1", "--event", "{}"], "not both"),
        (["predict", "{m}"], "There is no event"),
        (["predict", "{m}", "--event", "{"], "--event is not JSON"),
        (["predict", "{m}", "--event", "3"], "An event is an object"),
        (["predict", "{m}", "--event", '{"x": {}, "z": 1}'], "the fields are x, y, w, id."),
        (["learn", "{m}", "a=1"], "no label"),
        (["learn", "{m}", "a=1", "--label", "spam"], "its labels are false, true"),
        (["learn", "{m}", "--event", "[{}]", "--label", "true", "--id", "i"], "several"),
        (["learn", "{m}", "a=1", "--label", "true", "--weight", "-1"], "--weight"),
        (["explain", "{m}", "--event", "[{}, {}]"], "one event at a time"),
        (["weights", "{m}", "--top", "0"], "--top"),
        (["replay", "{m}", "new", "--set", "C=1"], "goes with --learner"),
        (["show"], "Missing argument"),
    ],
)
def test_bad_usage(run: Run, model: str, arguments: list[str], message: str) -> None:
    done = run(*(a.replace("{m}", model) for a in arguments))
    assert (done.code, done.out) == (2, ""), done
    assert message in " ".join(done.err.replace("│", " ").split())
    assert "Traceback" not in done.err


def test_a_line_that_is_not_json_is_named_by_its_number_in_the_text(run: Run, model: str) -> None:
    done = run("learn", model, stdin='{"x": {}, "y": true}\n\n{"x"\n')
    assert (done.code, done.out) == (2, "")
    assert "Line 3 of standard input is not JSON" in " ".join(done.err.replace("│", " ").split())


def test_deletion_asks(run: Run, model: str) -> None:
    for answer in ("n\n", "\n", ""):
        done = run("delete", model, stdin=answer)
        assert (done.code, done.out) == (1, "")
        assert "Nothing was deleted" in done.err
        assert "--yes" in done.err
    done = run("delete", model, stdin="y\n")
    assert (done.code, done.out.strip()) == (0, f"The model {model} is deleted.")
    assert run("show", model).code == 3


def test_a_promotion_from_what_it_no_longer_is(run: Run, name: str) -> None:
    for model in (name, f"{name}-2"):
        run("create", model, "--learner", "perceptron", "--stream", name, "--json").json()
    run("alias", f"{name}-a", name, "--json").json()
    done = run("promote", f"{name}-a", name, "--from", f"{name}-2", "--json")
    assert done.code == 4
    assert '"result": "refused"' in done.out


def test_a_refused_batch_says_how_far_it_came(run: Run, model: str) -> None:
    lines = '{"x": {"a": 1}, "y": true}\n' * 1_000 + '{"x": {"a": 1}, "y": "no"}\n'
    done = run("learn", model, "--json", stdin=lines)
    assert (done.code, done.out) == (5, "")
    assert "1000 of 1001 events were learned" in done.err
    assert "[1000].y" in done.err
    done = run("learn", model, stdin='{"x": {}, "y": true}\n{"x": \n')
    assert done.code == 2
    assert "Line 2" in done.err


def test_a_file_that_cannot_be_written(run: Run, model: str) -> None:
    done = run("export", model, "/no/such/folder/file")
    assert (done.code, done.out) == (1, "")
    assert "Cannot write /no/such/folder/file" in done.err


def test_arguments_that_are_not_utf_8(run: Run, name: str) -> None:
    bad = os.fsdecode(b"\xed\xa0\x80")
    assert run("create", name, "--learner", "perceptron").code == 0
    refused = [
        ("predict", bad, "a=1"),
        ("predict", name, f"{bad}=1"),
        ("predict", name, f"a={bad}"),
        ("predict", name, "a=1", "--at-least", bad),
        ("learn", bad, "a=1", "--label", "true"),
        ("learn", name, "a=1", "--label", "true", "--id", bad),
        ("explain", name, "a=1", "--class", bad),
        ("show", bad),
        ("delete", bad, "--yes"),
        ("create", "other", "--learner", bad),
        ("models", "--api-key", bad),
    ]
    usage = [
        ("predict", name, "--event", f'{{"a": "{bad}"}}'),
        ("learn", name, "a=1", "--label", bad),
        ("models", "--url", f"http://{bad}"),
        ("ingest", "file", "none.csv", "--model", bad),
        ("serve", "--insecure", "--host", bad),
        ("serve", "--redis-url", f"redis://{bad}"),
        ("ingest", "redis-stream", "--url", f"redis://{bad}", "--stream", "s", "--model", name),
        ("ingest", "kafka", "--bootstrap", bad, "--topic", "t", "--model", name),
    ]
    for code, commands in ((5, refused), (2, usage)):
        for arguments in commands:
            ran = run(*arguments)
            assert (ran.code, ran.out) == (code, ""), (arguments, ran)
            assert "Traceback" not in ran.err
    assert run("show", name, "--json").json()["events"] == 0


@pytest.mark.parametrize("name", ["a b", "a/b", "", "é", "a\n", "a" * 129, "_a"])
@pytest.mark.parametrize(
    "words",
    [
        ["file", "-", "--learner", "perceptron"],
        ["redis-stream", "--url", "redis://h", "--stream", "s"],
        ["kafka", "--bootstrap", "h:1", "--topic", "t"],
    ],
)
def test_an_ingest_into_what_is_no_name_is_refused_with_a_sentence(
    words: list[str], name: str
) -> None:
    done = run_hinged("ingest", *words, "--model", name)
    assert (done.code, done.out) == (2, "")
    assert "a name has 1 to 128 letters" in " ".join(done.err.replace("│", " ").split())
    assert "Traceback" not in done.err


@pytest.mark.parametrize("name", ["a b", "é", "a\n", "a" * 129, "_a"])
def test_verbs_refuse_what_is_no_name_with_a_sentence(run: Run, name: str) -> None:
    for words in (["show", name], ["create", name, "--learner", "arow"], ["freeze", name]):
        done = run(*words)
        assert (done.code in (3, 5), done.out) == (True, ""), (words, done)
        assert done.err.strip()
        assert "Traceback" not in done.err
