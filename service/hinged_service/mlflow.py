"""Models of the service in MLflow: a `python_function` flavour, and their metrics in runs.

A logged model is its exported document, plain numbers, or the name of a model that is followed:
nothing in it is unpickled when it is loaded. It needs `pip install 'hinged[mlflow]'`.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import metadata
from pathlib import Path
from typing import Any, Final, Self

import mlflow
from mlflow import pyfunc
from mlflow.models import Model, ModelSignature
from mlflow.models.model import ModelInfo as LoggedModel
from mlflow.types import ParamSchema, ParamSpec
from river import base

import hinged
from hinged import frames
from hinged_service.client import Client
from hinged_service.client.exports import export_model
from hinged_service.follow import Follower
from hinged_service.interchange.river_model import ExportedModel

__all__ = [
    "FLAVOR",
    "FrameModel",
    "export_model",
    "load_model",
    "log_metrics",
    "log_model",
    "save_model",
]

FLAVOR: Final = "hinged"
_EXPORTED: Final = "model.json"
_FOLLOWED: Final = "followed.json"
_REQUIREMENTS: Final = "requirements.txt"
_ENVIRONMENT: Final = "python_env.yaml"


class FrameModel:
    """A classifier that answers frames, as `mlflow.pyfunc` asks.

    Parameters
    ----------
    model
        The classifier; a follower is opened, until the process ends or `close` is called.

    """

    def __init__(self, model: base.Classifier) -> None:
        self._open = ExitStack()
        self.model = self._open.enter_context(model) if isinstance(model, Follower) else model

    def predict(
        self, data: frames.Frame | Sequence[dict[str, Any]], params: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401 - of the caller's own kind of frame
        """Return a label per row, or with the parameter `output` = `proba` a frame.

        Parameters
        ----------
        data
            A frame, its columns the features; missing cells are absent features. Or a list of
            events as mappings.
        params
            `output`: `label` (by default) or `proba`, a column for each label.

        Raises
        ------
        ValueError
            `output` is neither.

        """
        output = (params or {}).get("output", "label")
        if output not in ("label", "proba"):
            raise ValueError(f"output must be 'label' or 'proba', not {output!r}")
        records: Any = data if isinstance(data, list) else frames.rows(data)
        rows = [
            {k: v for k, v in row.items() if v == v} for row in records
        ]  # NaN is not equal to it
        if output == "label":
            return [self.model.predict_one(row) for row in rows]
        import pandas as pd

        return pd.DataFrame([self.model.predict_proba_one(row) for row in rows])

    def close(self) -> None:
        """Close the followed models."""
        self._open.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def save_model(
    path: str | os.PathLike[str],
    document: bytes | None = None,
    follow: str | None = None,
    mlflow_model: Model | None = None,
    signature: ModelSignature | None = None,
) -> None:
    """Write a model as MLflow keeps one.

    Parameters
    ----------
    path
        The folder, which is made.
    document
        An exported document: the model stays as it is there.
    follow
        Instead of it the name of a model or alias: the model is that of the service, at most 100 ms
        behind, in each process that loads it. `HINGED_REDIS_URL` has the address there, so that no
        password is kept in MLflow.
    mlflow_model, signature
        As of other flavours.

    Raises
    ------
    ValueError
        Not exactly one of `document` and `follow` is passed, or the document cannot be read here.

    """
    if (document is None) == (follow is None):
        raise ValueError("Give either an exported document or the name of a model to follow.")
    if document is not None:
        ExportedModel(document)  # or it raises why it cannot be read
    folder = Path(path)
    folder.mkdir(parents=True)
    data = _FOLLOWED if document is None else _EXPORTED
    (folder / data).write_bytes(json.dumps(follow).encode() if document is None else document)
    version, river = hinged.__version__, metadata.version("river")
    (folder / _REQUIREMENTS).write_text(f"hinged[mlflow]=={version}\nriver=={river}\n")
    environment = {"python": platform.python_version(), "dependencies": [f"-r {_REQUIREMENTS}"]}
    (folder / _ENVIRONMENT).write_text(json.dumps(environment))  # which is YAML, too
    made = mlflow_model or Model()
    # without this one MLflow passes no parameter on
    output = ParamSpec("output", "string", "label")
    made.signature = signature or ModelSignature(params=ParamSchema([output]))
    made.add_flavor(FLAVOR, hinged_version=version, data=data)
    pyfunc.add_to_model(
        made, loader_module=__name__, data=data, python_env={"virtualenv": _ENVIRONMENT}
    )
    made.save(str(folder / "MLmodel"))


def log_model(
    document: bytes | None = None,
    follow: str | None = None,
    name: str = "model",
    registered_model_name: str | None = None,
    signature: ModelSignature | None = None,
) -> LoggedModel:
    """Log a model in the present run; parameters are those of `save_model`."""
    logged: LoggedModel = Model.log(
        artifact_path=None,
        flavor=sys.modules[__name__],
        name=name,
        registered_model_name=registered_model_name,
        document=document,
        follow=follow,
        signature=signature,
    )
    return logged


def load_model(model_uri: str) -> base.Classifier:
    """Return a logged model as a classifier of River; enter a follower with `with`."""
    from mlflow.artifacts import download_artifacts

    folder = Path(download_artifacts(artifact_uri=model_uri))
    followed = folder / _FOLLOWED
    return _classifier(followed if followed.exists() else folder / _EXPORTED)


def log_metrics(client: Client, name: str) -> None:
    """Log the counts and metrics of a model of the service in the present run.

    The step is the number of its events. Metrics that are no number are left out. The tags
    `hinged.model` and `hinged.position` identify their state.
    """
    info = client.model(name)
    counts = ("events", "judged", "mistakes", "accuracy", "updates", "hinge_loss", "features")
    found: dict[str, Any] = {count: getattr(info, count) for count in counts}
    found |= {_plain(metric): value for metric, value in info.metrics.items()}
    numbers = {k: float(v) for k, v in found.items() if type(v) in (int, float)}
    mlflow.log_metrics(numbers, step=info.events)
    mlflow.set_tags({"hinged.model": info.name, "hinged.position": info.position})


def _load_pyfunc(path: str) -> FrameModel:
    """Return a saved model; `mlflow.pyfunc.load_model` calls this."""
    return FrameModel(_classifier(Path(path)))


def _classifier(path: Path) -> base.Classifier:
    if path.name == _EXPORTED:
        return ExportedModel(path.read_bytes())
    name = json.loads(path.read_bytes())
    url = os.environ.get("HINGED_REDIS_URL")
    if not url:
        raise ValueError(f"To follow {name!r}, set HINGED_REDIS_URL to the Redis of the service.")
    return Follower(url, name)


def _plain(name: str) -> str:
    """Return the name of a metric without characters that MLflow refuses."""
    return "".join(c if c.isalnum() or c in "_-. /" else "_" for c in name)
