"""Tables and generated pages say what the code says."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from hinged_service import errors
from hinged_service.client.errors import ClientError, error_class
from hinged_service.errors import ServiceError
from hinged_service.settings import Settings
from tests.docs.pages import DOCS, README, ROOT
from tests.support.service import Service


def page(name: str) -> str:
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def test_the_generated_pages_are_current() -> None:
    command = [sys.executable, ".ci/reference.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_table_of_settings_is_complete_and_true() -> None:
    rows = re.findall(
        r"^\| `HINGED_(\w+)` \| (?:`(.*?)`)? ?\|", page("reference/settings"), re.MULTILINE
    )
    documented = {name.lower(): default for name, default in rows}
    assert documented.keys() == Settings.model_fields.keys()
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else str(field.default)
        here = documented[name].replace("~", str(Path.home()))
        assert here == (default.lower() if isinstance(field.default, bool) else default), name


def test_every_metric_is_in_the_table(tmp_path: Path) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \|", page("reference/metrics"), re.MULTILINE)
    with Service(None, data_dir=tmp_path) as service, service.client() as client:
        text = client.get("/metrics").text
    served = dict(re.findall(r"^# TYPE (hinged_\w+) (\w+)$", text, re.MULTILINE))
    assert {name: kind for name, kind in rows if "disk" not in name} == {
        name: kind for name, kind in served.items() if "disk" not in name
    }
    assert served.keys() <= dict(rows).keys()


def test_every_error_is_in_the_table() -> None:
    rows = re.findall(r"^\| (\d+) \| (.+?) \| `(\w+)` \|", page("reference/errors"), re.MULTILINE)
    own = [kind for kind in ServiceError.__subclasses__() if kind.__module__ == errors.__name__]
    kinds: list[type[ServiceError]] = [ServiceError, *own]
    assert sorted((int(status), title) for status, title, _ in rows) == sorted(
        (kind.status, kind.title) for kind in kinds
    )
    for status, _, name in rows:
        assert error_class(int(status)).__name__ == name
        assert issubclass(error_class(int(status)), ClientError)


def test_every_dependency_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    first = re.findall(r"^\| (`.+?) \|", page("dependencies"), re.MULTILINE)
    explained = re.findall(r"`([a-z-]+)(?:\[\w+\])?`", " ".join(first))
    assert set(explained) == {Requirement(text).name for text in project["dependencies"]}


def test_the_speeds_of_the_readme_are_those_that_were_measured() -> None:
    results = json.loads((ROOT / "tests/bench/RESULTS.json").read_text())
    medians = {
        row["name"]: statistics.median(row["values"])
        for row in results["Single calls, 16 connections"]["rows"]
    }
    section = README.read_text().partition("\n## How fast\n")[2].partition("\n## ")[0]
    documented = re.findall(r"^\|.*\| ([\d.]+) \|$", section, re.MULTILINE)
    measured = [
        medians[name]
        for name in (
            "predict / FastAPI + River",
            "learn, fsync everysec / FastAPI + River in memory",
            "learn, fsync everysec / FastAPI + River pickled in Redis",
        )
    ]
    assert documented == [f"{value:.2g}" if value < 100 else f"{value:.0f}" for value in measured]
