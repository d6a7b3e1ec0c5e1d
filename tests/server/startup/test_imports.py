"""Imports of a serving process, and their time: a worker that starts is small and quick."""

import json
import subprocess
import sys
from typing import Any

import pytest

from hinged_service.river_support.state import digest, encode
from tests.river_support.state.cases import CASES
from tests.support.redis_server import RedisServer

DECODE = """
import json, sys
from hinged_service.river_support import state as river_state
assert not {"river.stats", "river.optim", "scipy", "sklearn"} & set(sys.modules)
print(river_state.digest(river_state.decode(json.load(sys.stdin))))
"""


def run(*arguments: str, stdin: str = "") -> str:
    done = subprocess.run(
        [sys.executable, *arguments], input=stdin, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_only_models_that_need_river_s_parts_import_them_and_never_in_the_event_loop(
    own_server: RedisServer,
) -> None:
    found = json.loads(run("-m", "tests.server.startup.serving", own_server.url))
    assert found == {"small": [], "in_loop": []}


@pytest.mark.parametrize("module", ["hinged", "hinged_service.cli.main", "hinged_service.client"])
def test_imports_of_users_are_small(module: str) -> None:
    heavy = {"scipy", "sklearn", "pandas", "numpy", "redis", "pydantic", "uvicorn", "fastapi"}
    assert not heavy & set(run("-c", f"import sys, {module}; print(*sys.modules)").split())


@pytest.mark.parametrize("name", ["LogisticRegression-l1", "GaussianNB", "Pipeline", "ADWIN"])
def test_a_state_is_read_where_its_classes_were_not_imported(name: str) -> None:
    case: Any = CASES[name]
    trained = case.make()
    case.run(trained, 1, 50)
    assert run("-c", DECODE, stdin=json.dumps(encode(trained))).strip() == digest(trained)
