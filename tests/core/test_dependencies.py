"""`hinged` imported alone needs River and narwhals only."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata

from packaging.requirements import Requirement

SCRIPT = """
import sys

allowed = set(sys.argv[1].split(","))


class Only:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in allowed | sys.stdlib_module_names or top.startswith("_sysconfigdata"):
            return self.finder.find_spec(name, path, target)


sys.meta_path[:] = map(Only, sys.meta_path)
assert not {name.partition(".")[0] for name in sys.modules} & {"river", "pandas", "msgspec"}

import pickle
import pkgutil

import narwhals as nw

import hinged

for module in pkgutil.iter_modules(hinged.__path__):
    __import__(f"hinged.{module.name}")

from hinged import checks

for kind in (hinged.AROW, hinged.OneVsRest):
    for check in checks.yield_checks(kind(), river=False):
        check(kind())
    model = kind()
    model.learn_one({"a": 1.0}, True)
    model.learn_one({"a": -1.0}, False)
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_one({"a": 1.0}) is True, kind
    assert again.accounting.events == 2
"""
FRAMES = """
import polars as pl

X = pl.DataFrame({"a": [1.0, -1.0, 2.0]})
model = hinged.Perceptron()
model.learn_many(X, pl.Series([True, False, True]))
assert model.accounting.events == 3
assert model.predict_many(X).to_list() == [True, False, True]
assert set(model.predict_proba_many(X).columns) == {"False", "True"}
"""


def needed(name: str) -> set[str]:
    """Return a distribution and all that it requires, without extras, by import name."""
    found = {name}
    for line in metadata.requires(name) or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            found |= needed(requirement.name)
    return found


def run(script: str, allowed: set[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, ",".join(sorted(allowed))]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_all_of_the_learners_work_with_river_and_narwhals_alone() -> None:
    allowed = {"hinged"} | needed("river") | needed("narwhals")
    assert not allowed & {"msgspec", "pandas", "redis", "fastapi", "pydantic", "sklearn", "polars"}
    done = run(SCRIPT + "\nprint('all ran')", allowed)
    assert (done.returncode, done.stdout) == (0, "all ran\n"), done.stderr


def test_frames_need_their_own_library_beside() -> None:
    allowed = {"hinged", "polars", "_polars_runtime_32"} | needed("river") | needed("narwhals")
    done = run(SCRIPT.partition("for module in")[0] + FRAMES + "\nprint('all ran')", allowed)
    assert (done.returncode, done.stdout) == (0, "all ran\n"), done.stderr


def test_the_block_on_other_modules_blocks() -> None:
    for blocked in ("river", "narwhals"):
        done = run(SCRIPT, ({"hinged"} | needed("river") | needed("narwhals")) - {blocked})
        assert done.returncode == 1
        assert f"No module named '{blocked}" in done.stderr
