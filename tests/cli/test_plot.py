"""`hinged plot` draws each kind of picture, and says what is missing."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import typer

from hinged_service.cli.command import Session
from hinged_service.cli.output import Output
from hinged_service.cli.plot import What, plot
from hinged_service.client import Client, Event
from tests.cli.conftest import Run
from tests.support.service import Service


def test_without_matplotlib_it_says_what_to_install(
    service: Service, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with Client(service.url) as client, pytest.raises(typer.Exit) as ended:
        plot(Session(client, Output.TABLE), "m", Path("m.png"))
    assert ended.value.exit_code == 1
    assert "pip install 'hinged[plot]'" in capsys.readouterr().err


def test_each_picture_is_drawn(run: Run, service: Service, name: str, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    many = f"{name}-many"
    with Client(service.url) as client:
        spec = {"learner": {"type": "perceptron"}, "metrics": ["reliability"]}
        client.create_model(name, spec)
        events = [Event({"a": float(i % 3), "$b$": 1.0}, i % 3 > 0) for i in range(60)]
        list(client.learn_many(name, events))
        client.freeze(name)
        client.create_model(many, {"learner": {"type": "multiclass_perceptron"}})
        list(client.learn_many(many, [Event({"a": 1.0}, "p"), Event({"b": 1.0}, "q")]))

        expected = {
            What.ACCURACY: ("events learned", "accuracy, %", "newest events (rolling)", "freeze"),
            What.WEIGHTS: ("a", "$b$", "weight (intercept"),
            What.BOUND: ("updates", "bound: general", "bound: hinge"),
            What.CALIBRATION: (f"Reliability of {name}, uncalibrated", "share that came true"),
        }
        session = Session(client, Output.TABLE)
        for what, texts in expected.items():
            file = tmp_path / f"{what}.svg"
            with pytest.MonkeyPatch.context() as patch:
                patch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
                plot(session, name, file, what)
            drawn = " ".join(t for t in ET.parse(file).getroot().itertext())
            for text in texts:
                assert text in drawn, (what, text)
        plot(session, many, tmp_path / "many.png", What.WEIGHTS)
    assert (tmp_path / "many.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    done = run("plot", name, "--out", str(tmp_path / "one.png"), "--json").json()
    assert done == {"model": name, "what": "accuracy", "file": str(tmp_path / "one.png")}
    wrong = run("plot", many, "--what", "calibration", "--out", str(tmp_path / "c.png"))
    assert (wrong.code, "reliability" in wrong.err) == (2, True)
    assert run("plot", many, "--what", "bound", "--out", str(tmp_path / "b.png")).code == 4
    assert run("plot", name, "--out", "picture.pdf").code == 2
    assert run("plot", name, "--out", "/no/such/folder/p.png").code == 1
