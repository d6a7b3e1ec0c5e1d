"""A linear model as an ONNX graph in double precision."""

from __future__ import annotations

import json
from typing import Any

from hinged_service.interchange.linear import LinearModel

__all__ = ["as_onnx"]

_OPSET = 17
_IR = 8


def as_onnx(model: LinearModel) -> bytes:
    """Return the model as bytes of ONNX.

    The input `x` is a double matrix whose columns are the features, as listed in the metadata under
    `features`; NaN is an absent feature. Outputs: `label`, `scores` (a column if binary, else one
    for each label) and `probabilities` (a column for each label, as listed under `labels`).

    Raises
    ------
    ModuleNotFoundError
        The package onnx is not installed.

    """
    import numpy as np
    from onnx import TensorProto, checker, helper, numpy_helper

    nodes = []
    constants = []

    def constant(name: str, value: object) -> str:
        constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(operator: str, out: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401
        nodes.append(helper.make_node(operator, list(inputs), [out], **attributes))
        return out

    value = "x"
    for number, stage in enumerate(model.stages):
        parts = zip(("centre", "divisor", "least", "most"), zip(*stage, strict=True), strict=True)
        centre, divisor, least, most = (
            constant(f"{name}{number}", np.array(part, float)) for name, part in parts
        )
        value = add("Sub", f"centred{number}", value, centre)
        value = add("Div", f"scaled{number}", value, divisor)
        value = add("Max", f"raised{number}", value, least)
        value = add("Min", f"cut{number}", value, most)
    absent = add("IsNaN", "absent", "x")
    zero = constant("zero", np.array(0.0))
    value = add("Where", "present", absent, zero, value)
    weights = np.array(model.weights, float).reshape(len(model.intercepts), len(model.names))
    product = add("MatMul", "product", value, constant("weights", weights.T))
    add("Add", "scores", product, constant("intercepts", np.array(model.intercepts, float)))
    factor, limit = model.temperature or (1.0, None)
    scale = constant("scale", np.array(factor))
    if model.multiclass:
        at = add("ArgMax", "at", "scores", axis=1, keepdims=0)
        top = add("ReduceMax", "top", "scores", axes=[1], keepdims=1)
        odds = add("Mul", "odds", add("Sub", "below", "scores", top), scale)
        if limit is not None:
            odds = add("Max", "limited", odds, constant("limit", np.array(-limit)))
        add("Softmax", "probabilities", odds, axis=1)
    else:
        sign = "GreaterOrEqual" if model.label_at_zero else "Greater"
        over = add("Cast", "over", add(sign, "positive", "scores", zero), to=TensorProto.INT64)
        flat = constant("flat", np.array([-1], np.int64))
        at = add("Reshape", "at", over, flat)
        odds = add("Mul", "odds", "scores", scale)
        if limit is not None:
            odds = add("Max", "raised", odds, constant("least", np.array(-limit)))
            odds = add("Min", "limited", odds, constant("most", np.array(limit)))
        share = add("Sigmoid", "share", odds)
        rest = add("Sigmoid", "rest", add("Neg", "against", odds))
        add("Concat", "probabilities", rest, share, axis=1)
    kind = type(model.labels[0])
    types = {str: TensorProto.STRING, bool: TensorProto.BOOL, int: TensorProto.INT64}
    labels = np.array(model.labels, dtype=object if kind is str else kind)
    add("Gather", "label", constant("labels", labels), at)
    double = TensorProto.DOUBLE
    graph = helper.make_graph(
        nodes,
        "hinged",
        [helper.make_tensor_value_info("x", double, ["n", len(model.names)])],
        [
            helper.make_tensor_value_info("label", types[kind], ["n"]),
            helper.make_tensor_value_info("scores", double, ["n", len(model.intercepts)]),
            helper.make_tensor_value_info("probabilities", double, ["n", len(model.labels)]),
        ],
        constants,
    )
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", _OPSET)], producer_name="hinged"
    )
    made.ir_version = _IR
    about = {"model": model.name, "features": model.names, "labels": model.labels}
    helper.set_model_props(made, {k: json.dumps(v, ensure_ascii=False) for k, v in about.items()})
    checker.check_model(made)
    return bytes(made.SerializeToString())
