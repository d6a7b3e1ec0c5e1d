"""Events of plain numbers, asked and learned in one pass, do what the same events do in two."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import state_scalars
from hinged_service.pipelines import Pipeline
from hinged_service.wire.events import Event, MixedEvent

NUMBERS = [0.0, 1.0, -1.0, 0.1, 7.5, 1e-320, 3e99, 1e100, -1e100]
FILLED = {"type": "StatImputer", "imputers": [{"feature": "f1", "statistic": "Mean"}]}
SCALERS = [[{"type": "StandardScaler"}], [{"type": "MinMaxScaler"}, {"type": "Normalizer"}]]
PIPELINES: dict[str, list[dict[str, Any]]] = {
    "AutoScaler": [{"type": "AutoScaler"}],
    "StandardScaler": [{"type": "StandardScaler"}],
    "without std": [{"type": "StandardScaler", "with_std": False}],
    "MinMaxScaler": [{"type": "MinMaxScaler"}],
    "Normalizer first": [{"type": "Normalizer"}, {"type": "StandardScaler"}],
    "two that learn": [{"type": "StandardScaler"}, {"type": "StandardScaler"}],
    "three that learn": [FILLED, {"type": "MaxAbsScaler"}, {"type": "StandardScaler"}],
    "Union": [{"type": "StandardScaler"}, {"type": "Union", "branches": SCALERS}],
}
LEARNERS: dict[str, dict[str, Any]] = {
    "binary": {"learner": {"type": "perceptron"}},
    "multiclass": {"learner": {"type": "multiclass_perceptron", "max_classes": 2}},
}


def fields(labels: list[Any]) -> Iterator[tuple[Any, Any, float]]:
    """Give events of names that come and go, some too many; numbers near each other, then far."""
    r = random.Random(3)
    for number in range(300):
        x = {
            f"f{i}": r.choice(NUMBERS) if number > 200 else r.gauss(i, 1e-3)
            for i in r.sample(range(9), r.randrange(9))
        }
        yield x, r.choice(labels), r.choice([1.0, 1.0, 0.5, 0.0])


@pytest.mark.parametrize("steps", PIPELINES.values(), ids=PIPELINES)
@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_one_pass_gives_the_results_and_the_state_of_two(
    learner: dict[str, Any], steps: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = ModelSpec.model_validate_json(
        json.dumps({**learner, "pipeline": steps, "max_features": 6, "metrics": ["accuracy"]})
    )
    passes = 0
    progress_one = Pipeline.progress_one

    def counted(*given: Any) -> Any:
        nonlocal passes
        passes += 1
        return progress_one(*given)

    monkeypatch.setattr(Pipeline, "progress_one", counted)
    one, two = ModelState(spec), ModelState(spec)
    events = list(fields(["a", "b", "c"] if spec.multiclass else [True, False, "neither"]))
    plain = one.learn_all([Event(x, y, w) for x, y, w in events], frozenset(), "1-0")
    at_once = passes
    mixed = two.learn_all([MixedEvent(x, y, w) for x, y, w in events], frozenset(), "1-0")
    assert (repr(plain), repr(state(one))) == (repr(mixed), repr(state(two)))
    assert one.rejected > 0
    assert 100 < at_once == passes


def state(fold: ModelState) -> Any:
    return state_scalars(fold), {name: dict(v.view()) for name, v in fold.vectors().items()}
