"""A prediction leaves nothing behind, of any model and any names."""

import gc
import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.wire.events import Event
from tests.river_support.learners import catalogue

KEPT = 400_000
"""Bytes; 80 kB are frequencies that an RBFSampler may remember."""
MANY = {"RBFSampler": {"n_components": 500}, "FeatureHasher": {"n_features": 2**20}}
WORDS = ("BagOfWords", "TFIDF")
FRESH = f"""
import json, sys
from {__name__} import left_behind
print(left_behind(*json.loads(sys.argv[1])))
"""


def asked(number: int) -> dict[str, Any]:
    return {f"{'n' * 200}{number}.{i}": 1.0 for i in range(4)}


def left_behind(spec: dict[str, Any], text: str | None = None) -> int:
    state = ModelState(ModelSpec.model_validate_json(json.dumps(spec)))
    ys: tuple[Any, ...] = ("low", "middle", "high") if state.multiclass else (True, False)

    def new(number: int) -> dict[str, Any]:
        return asked(number) if text is None else {text: " ".join(asked(number))}

    seen = [Event(x=new(-n % 3), y=ys[n % len(ys)]) for n in range(30)]
    assert not any(hasattr(r, "reason") for r in state.learn_all(seen, frozenset(), "1-0"))
    for number in range(20):
        state.predict(new(number))
    tracemalloc.start()
    state.predict(new(99))  # the names of the last event are kept
    gc.collect()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(100, 600):
        state.predict(new(number))
    gc.collect()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return kept - before


def is_little(spec: dict[str, Any], text: str | None = None) -> bool:
    """Return whether little is left; if not, in a process without threads of other tests."""
    if left_behind(spec, text) < KEPT:
        return True
    here = Path(__file__).parents[2]
    command = [sys.executable, "-c", FRESH, json.dumps([spec, text])]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=True)
    return int(done.stdout) < KEPT


@pytest.mark.parametrize("kind", catalogue.LEARNERS)
def test_learners_keep_no_names_that_they_were_only_asked_about(kind: str) -> None:
    assert is_little({"learner": catalogue.learner(kind)})


@pytest.mark.parametrize("kind", [k for k in catalogue.TRANSFORMERS if k != "Union"])
def test_transformers_keep_no_names_that_they_were_only_asked_about(kind: str) -> None:
    steps = catalogue.steps(kind)
    if kind in MANY:
        steps = [{"type": kind, **MANY[kind]}]
    text = "text" if kind in WORDS else None
    assert is_little({"learner": {"type": "perceptron"}, "pipeline": steps}, text)
