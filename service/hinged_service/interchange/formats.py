"""The formats of `hinged export` that are made of a document, where the command runs."""

from __future__ import annotations

import pickle

from hinged_service.engine.export import imported
from hinged_service.errors import ServiceError
from hinged_service.interchange.linear import NotExportable, linear_model
from hinged_service.interchange.river_model import ExportedModel

__all__ = ["NotExportable", "exported_as"]


def exported_as(format: str, name: str, document: bytes, table: str = "events") -> bytes:  # noqa: A002
    """Return a model in a format: `river`, `sklearn`, `onnx`, `sql` or `c`.

    Raises
    ------
    NotExportable
        The model has no such form, or a package is missing.

    """
    try:
        if format == "river":
            return pickle.dumps(ExportedModel(document, name))
        found = imported(document)
    except ServiceError as error:  # of another version, or code of the operator that is not here
        why = "; ".join(f"{detail.field} {detail.reason}" for detail in error.errors)
        raise NotExportable(
            f"The document cannot be read here: {why or error.detail}".rstrip(".") + "."
        ) from None
    linear = linear_model(name, found.spec, found.state)
    if format == "sql":
        from hinged_service.interchange.sql import as_sql

        return as_sql(linear, table).encode()
    if format == "c":
        from hinged_service.interchange.c_header import as_c

        return as_c(linear).encode()
    try:
        if format == "onnx":
            from hinged_service.interchange.onnx_graph import as_onnx

            return as_onnx(linear)
        from hinged_service.interchange.sklearn_pipeline import as_sklearn

        return pickle.dumps(as_sklearn(linear))
    except ModuleNotFoundError as error:
        raise NotExportable(
            f'{error.name} is missing: pip install "hinged[export]", or scikit-learn for sklearn.'
        ) from None
