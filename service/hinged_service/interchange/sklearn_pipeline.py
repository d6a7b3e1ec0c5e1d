"""A linear model as a fitted pipeline of scikit-learn."""

from __future__ import annotations

from typing import Any

from hinged_service.interchange.linear import LinearModel, NotExportable
from hinged_service.pipelines.values import MAX_VALUE

__all__ = ["as_sklearn"]


def as_sklearn(model: LinearModel) -> object:
    """Return a fitted `sklearn.pipeline.Pipeline`.

    It takes a frame with the model's features as columns, in order; NaN is an absent feature. Its
    `decision_function` is the score. A model whose probabilities are calibrated becomes a
    classifier without probabilities, as scikit-learn's linear ones have none of that kind.
    """
    import numpy as np
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, Perceptron
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import FunctionTransformer, StandardScaler

    count = len(model.names)
    if not count:
        raise NotExportable("scikit-learn takes no model without a feature, and all weights are 0.")
    if model.label_at_zero:
        raise NotExportable("scikit-learn predicts the negative label at score 0, this model not.")
    steps: list[tuple[str, Any]] = []
    for number, stage in enumerate(model.stages, start=1):
        centre, divisor, least, most = (np.array(part) for part in zip(*stage, strict=True))
        scaler = StandardScaler()
        scaler.mean_, scaler.scale_, scaler.var_ = centre, divisor, divisor**2
        scaler.n_features_in_, scaler.n_samples_seen_ = count, 1
        steps.append((f"scale{number}", scaler))
        if (abs(least) < MAX_VALUE).any():
            cut = FunctionTransformer(np.clip, kw_args={"a_min": least, "a_max": most})
            steps.append((f"cut{number}", cut))
    filler = SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True)
    steps.append(("absent", filler.fit(np.zeros((1, count)))))
    classifier = LogisticRegression() if model.temperature is None else Perceptron()
    classifier.coef_ = np.array(model.weights)
    classifier.intercept_ = np.array(model.intercepts)
    classifier.classes_ = np.array(model.labels)
    classifier.n_features_in_ = count
    steps.append(("classify", classifier))
    steps[0][1].feature_names_in_ = np.array(model.names, dtype=object)
    return Pipeline(steps)
