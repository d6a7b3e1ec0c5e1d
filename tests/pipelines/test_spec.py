"""The catalogue is closed, and every parameter has its bounds."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from hinged_service.pipelines import Steps
from tests.pipelines.streams import CATALOGUE, steps

NOTHING: dict[str, Any] = {"type": "Discard", "keys": []}


def nested(depth: int) -> dict[str, Any]:
    return {"type": "Union", "branches": [[nested(depth - 1)]]} if depth else NOTHING


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "os.system"},
        {"type": "river.preprocessing.StandardScaler"},
        {},
        {"type": "StandardScaler", "window_size": 3},
        {"type": "StandardScaler", "with_std": 1},
        {"type": "Normalizer", "order": 3},
        {"type": "RobustScaler", "q_inf": 0.8},
        {"type": "RobustScaler", "q_sup": 1.0},
        {"type": "FeatureHasher", "n_features": 0},
        {"type": "FeatureHasher", "seed": -1},
        {"type": "BagOfWords"},
        {"type": "BagOfWords", "on": "a", "tokenizer_pattern": "(a+)+"},
        {"type": "TFIDF", "on": "a", "ngram_range": [2, 1]},
        {"type": "TFIDF", "on": "a", "ngram_range": [1, 6]},
        {"type": "PolynomialExtender", "degree": 4},
        {"type": "RBFSampler", "gamma": 0},
        {"type": "RBFSampler", "gamma": "inf"},
        {"type": "FourierFeatures", "bend": 0},
        {"type": "FourierFeatures", "n_components": 1_001},
        {"type": "AutoScaler", "with_std": True},
        {"type": "Select", "keys": []},
        {"type": "Select", "keys": ["a" * 257]},
        {"type": "OneHotEncoder", "categories": {"a": [None]}},
        {"type": "OneHotEncoder", "categories": {"a": list(range(10_001))}},
        {"type": "StatImputer", "imputers": []},
        {"type": "StatImputer", "imputers": [{"feature": "a"}]},
        {"type": "StatImputer", "imputers": [{"feature": "a", "statistic": "Mean", "value": 1}]},
        {"type": "StatImputer", "imputers": [{"feature": "a", "value": v} for v in (1, 2)]},
        {"type": "StatImputer", "imputers": [{"feature": "a", "value": 1e101}]},
        {"type": "Union", "branches": []},
        {"type": "Union", "branches": [[]]},
        {"type": "Union", "branches": [[NOTHING] * 32, [NOTHING] * 32]},
        nested(4),
    ],
)
def test_refused_specs(spec: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        steps(spec)


def test_a_spec_has_a_length() -> None:
    assert len(steps(*[NOTHING] * 32)) == 32
    with pytest.raises(ValidationError):
        steps(*[NOTHING] * 33)
    assert len(steps(nested(3))) == 1


def test_deep_nesting_is_refused_not_run_into() -> None:
    text = '{"type":"Union","branches":[[' * 5_000
    with pytest.raises(ValidationError):
        TypeAdapter[Steps](Steps).validate_json(f"[{text}")


def test_every_parameter_is_described_in_the_schema() -> None:
    schema = TypeAdapter[Steps](Steps).json_schema()
    for name, model in schema["$defs"].items():
        assert model["description"], name
        for parameter, properties in model["properties"].items():
            assert parameter == "type" or properties.get("description"), (name, parameter)


def test_specs_survive_the_index() -> None:
    for specs, _ in CATALOGUE.values():
        listed = specs if isinstance(specs, list) else [specs]
        made = steps(*[{"type": s} if isinstance(s, str) else s for s in listed])
        dumped = TypeAdapter[Steps](Steps).dump_python(made, mode="json")
        assert steps(*json.loads(json.dumps(dumped, sort_keys=True))) == made
