"""The program of `back-fill.md` on Dask and on Ray, against a mixture made here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import hinged
from hinged_service.client import Client
from tests.streams.conftest import Program

PARTS = [
    (list, [({"a": 1.0, "b": k}, True), ({"a": -1.0, "c": k}, False), ({"b": 1.0}, k > 2)])
    for k in (1.0, 2.0, 3.0)
]


def _by_hand() -> Any:
    model: Any = hinged.Perceptron()
    for _ in range(3):
        learned = []
        for load, source in PARTS:
            one = model.clone(include_attributes=True)
            for x, y in load(source):
                one.learn_one(x, y)
            learned.append(one)
        model = hinged.mix(learned)
    return model


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_parts_are_learned_apart_and_mixed(
    engine: str, api: Client, program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(engine, reason=f"{engine} is not installed")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))  # where Ray's workers find the program
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    backfill = program("back-fill.md", "backfill.py")
    if engine == "ray":
        import ray

        ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        model = backfill.mixed(hinged.Perceptron(), PARTS, getattr(backfill, f"on_{engine}"))
    finally:
        if engine == "ray":
            ray.shutdown()
    expected = _by_hand()
    assert dict(model.weights) == dict(expected.weights)
    api.delete_model("mail")
    backfill.start(api, "mail", model)
    x = {"a": 0.5, "b": 2.0, "c": -1.0}
    assert api.predict("mail", x).score == expected.score_one(x)
