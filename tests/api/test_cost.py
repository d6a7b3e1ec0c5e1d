"""A spec whose events would take too long is refused when its model is created, factors named."""

from typing import Any

import httpx
import pytest

from tests.support.checks import check_problem
from tests.support.service import Service
from tests.support.shared_service import NewModel

CUBES = {"type": "PolynomialExtender", "degree": 3}
LOGISTIC = {"type": "LogisticRegression"}
OVER_ALL = {"type": "OneVsRestClassifier", "classifier": LOGISTIC, "max_classes": 1000}
COSINES = {"type": "RBFSampler", "n_components": 1000}
CLASSES: dict[str, Any] = {"type": "one_vs_rest", "learner": {"type": "arow"}, "max_classes": 1000}

DEAR = {
    "products times classes": (
        {"learner": CLASSES, "pipeline": [CUBES]},
        {"pipeline[0].degree", "learner.max_classes"},
    ),
    "cosines times classes": (
        {"learner": CLASSES, "pipeline": [COSINES]},
        {"pipeline[0].n_components", "learner.max_classes"},
    ),
    "any classes": (
        {"learner": {"type": "auto"}, "pipeline": [{"type": "PolynomialExtender"}]},
        {"pipeline[0].degree", "learner.max_classes"},
    ),
    "members times classes": (
        {"learner": {"type": "BaggingClassifier", "model": OVER_ALL, "n_models": 50, "seed": 1}},
        {"learner.n_models", "learner.model.max_classes"},
    ),
    "branches": (
        {
            "learner": {"type": "hedge", "models": [{"type": "arow"}] * 32},
            "pipeline": [
                {"type": "Union", "branches": [[CUBES], [{**CUBES, "separator": "+"}], [COSINES]]}
            ],
        },
        {"learner.models", "pipeline[0].branches[0][0].degree"},
    ),
}
FINE: dict[str, dict[str, Any]] = {
    "products": {"learner": {"type": "perceptron"}, "pipeline": [CUBES]},
    "classes": {"learner": CLASSES},
    "listed classes": {
        "learner": {"type": "auto"},
        "pipeline": [{"type": "PolynomialExtender"}],
        "labels": ["no", "yes"],
    },
    "few classes": {
        "learner": {"type": "auto", "max_classes": 10},
        "pipeline": [{"type": "PolynomialExtender"}],
    },
    "trees": {
        "learner": {
            "type": "BaggingClassifier",
            "model": {"type": "HoeffdingTreeClassifier"},
            "n_models": 50,
            "seed": 1,
        }
    },
    "words": {
        "learner": {"type": "hedge"},
        "pipeline": [{"type": "TFIDF", "on": "t", "ngram_range": [1, 5]}],
    },
}


@pytest.mark.parametrize("name", DEAR)
def test_a_spec_beyond_the_budget_is_refused_by_its_factors(
    client: httpx.Client, name: str
) -> None:
    spec, fields = DEAR[name]
    problem = check_problem(client.put("/v1/models/dear", json=spec), 422)
    assert "max_cost_per_event_ms" in problem["detail"]
    assert fields <= {error["field"] for error in problem["errors"]}
    assert client.get("/v1/models/dear").status_code == 404


@pytest.mark.parametrize("name", FINE)
def test_a_spec_within_the_budget_makes_a_model(new_model: NewModel, name: str) -> None:
    new_model(**FINE[name])


def test_a_model_that_is_there_works_on_under_a_smaller_budget(service: Service) -> None:
    spec = {"learner": {"type": "perceptron"}, "pipeline": [CUBES]}
    event = {"x": {"a": 2.0}, "y": True}
    url = service.settings.redis_url
    with service.client() as client:
        assert client.put("/v1/models/there", json=spec).status_code == 201
    assert url is not None
    with Service(url, max_cost_per_event_ms=1) as narrow, narrow.client() as client:
        assert client.put("/v1/models/there", json=spec).status_code == 200
        assert client.post("/v1/models/there/learn", json=event).status_code == 200
        assert client.put("/v1/models/other", json=spec).status_code == 422
        assert client.delete("/v1/models/there").status_code == 204


def test_an_event_of_too_many_terms_is_refused_and_the_next_is_learned(
    client: httpx.Client, new_model: NewModel
) -> None:
    words = {"type": "BagOfWords", "on": "t", "ngram_range": [1, 5]}
    model = new_model(pipeline=[words])
    text = " ".join(f"w{i}" for i in range(14_000))  # 14,000 words make 5 times as many terms
    for path, body in (("learn", {"x": {"t": text}, "y": True}), ("predict", {"x": {"t": text}})):
        problem = check_problem(client.post(f"{model}/{path}", json=body), 422)
        assert [error["field"] for error in problem["errors"]] == ["x"]
    body = {"x": {"t": text[:1000]}, "y": True}
    assert client.post(f"{model}/learn", json=body).status_code == 200
    assert client.get(model).json()["events"] == 1
