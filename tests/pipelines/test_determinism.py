"""The same events give the same bits in processes that hash text differently."""

import os
import subprocess
import sys

from tests.pipelines.streams import CATALOGUE


def run(seed: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "tests.pipelines.fold_stream"],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_no_output_and_no_state_depends_on_pythons_hash_of_text() -> None:
    first, second = run("1"), run("2")
    assert first.count("\n") == len(CATALOGUE)
    assert first == second
