"""Two Pythons on one Redis: neither folds what the other does until it is handed over."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.forked_worker import ForkedWorker
from tests.support.redis_server import RedisServer
from tests.support.worker import Worker

SPECS: dict[str, dict[str, Any]] = {
    "scaled": {
        "learner": {"type": "perceptron"},
        "labels": ["no", "yes"],
        "pipeline": [{"type": "StandardScaler"}],
        "metrics": ["accuracy", "log_loss"],
        "drift": {"detector": {"type": "ADWIN"}},
    },
    "arow": {"learner": {"type": "arow"}, "labels": ["no", "yes"]},
    "tree": {"learner": {"type": "HoeffdingTreeClassifier"}},
    "bayes": {"learner": {"type": "GaussianNB"}},
}


class OtherPython(Worker):
    """The service under the interpreter that the variable names."""

    def __init__(self, redis_url: str, python: str) -> None:
        super().__init__(redis_url)
        self._python = python

    def start(self, wait: bool = True) -> None:
        variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        self._process = subprocess.Popen(
            [
                *(self._python, "-m", "uvicorn", "--factory", "hinged_service.app:create_app"),
                *("--port", str(self.port), "--log-level", "warning", "--no-access-log"),
            ],
            env=variables | self._environment,
            cwd="/",  # not where this source lies
        )
        if wait:
            self.wait_until_alive()


@pytest.fixture
def here_and_there(own_server: RedisServer) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    python = os.environ.get("HINGED_TEST_OTHER_PYTHON", "")
    if not Path(python).is_file():
        pytest.skip(
            "HINGED_TEST_OTHER_PYTHON names no interpreter of another version that has hinged"
        )
    workers = ForkedWorker(own_server.url), OtherPython(own_server.url, python)
    for worker in workers:
        worker.start()
    with (
        httpx.Client(base_url=workers[0].url, timeout=30, verify=False) as here,
        httpx.Client(base_url=workers[1].url, timeout=30, verify=False) as there,
    ):
        yield here, there
    for worker in workers:
        worker.kill()


def _events(first: int, count: int) -> list[dict[str, Any]]:
    return [
        {
            "x": {"a": n % 7 / 3 - 1, "b": n % 5 * 1.1, "c": n % 11 / 7},
            "y": "yes" if n % 3 == 0 else "no",
            "id": f"e{n}",
        }
        for n in range(first, first + count)
    ]


def test_models_go_from_one_python_to_the_other_and_back(
    here_and_there: tuple[httpx.Client, httpx.Client],
) -> None:
    for kind in SPECS:
        _there_and_back(*here_and_there, kind)


def _there_and_back(here: httpx.Client, there: httpx.Client, kind: str) -> None:
    path = f"/v1/models/{kind}"
    here.put(path, json=SPECS[kind]).raise_for_status()
    here.post(f"{path}/learn", json=_events(0, 300)).raise_for_status()
    for number, (new, old) in enumerate([(there, here), (here, there)], start=1):
        refused = new.post(f"{path}/learn", json=_events(0, 1))
        assert refused.status_code == 503
        assert "hinged upgrade" in refused.json()["detail"]
        older = old.get(path).json()
        before = old.post(f"{path}/predict", json=_unlabelled()).raise_for_status().json()
        done = new.post(f"{path}/upgrade").raise_for_status().json()
        assert done["before"] != done["fold"]
        assert done["fold"] in refused.json()["detail"]
        assert old.post(f"{path}/learn", json=_events(0, 1)).status_code == 503
        after = new.post(f"{path}/predict", json=_unlabelled()).raise_for_status().json()
        assert [p["y"] for p in after] == [p["y"] for p in before]
        scores = [p["score"] for p in after]
        assert scores == pytest.approx([p["score"] for p in before], rel=1e-9, abs=1e-12)
        newer = new.get(path).json()
        assert (newer["events"], newer["mistakes"]) == (older["events"], older["mistakes"])
        again = new.post(f"{path}/learn", json=_events(300 * number - 10, 310)).json()
        assert [one["duplicate"] for one in again] == [True] * 10 + [False] * 300
        assert new.get(path).json()["events"] == 300 * (number + 1)


def _unlabelled() -> list[dict[str, Any]]:
    return [{"x": e["x"]} for e in _events(1_000, 5)]
