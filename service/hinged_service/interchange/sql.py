"""A linear model as SQL: a query that adds label, score and probability to rows of a table."""

from __future__ import annotations

from collections.abc import Sequence

from hinged_service.interchange.linear import LinearModel
from hinged_service.model.predictor import Label, label_text
from hinged_service.pipelines.stage import Scaling
from hinged_service.pipelines.values import MAX_VALUE

__all__ = ["as_sql"]

_HEAD = """\
-- The model {name}, exported by hinged. Columns are features: NULL is a feature that is absent, and
-- a column that the table lacks must be taken out. Put your table in place of {table}.
"""
_FAR = 700.0
"""Log-odds beyond which exp() might overflow; the probability is 0 or 1 to 300 digits."""


def as_sql(model: LinearModel, table: str = "events") -> str:
    """Return the query: all columns of `table`, with `score`, `label` and `probability`.

    A multiclass model adds a score of each class as well. The probability is that of the positive
    label, multiclass that of the predicted label.
    """
    scores = [
        _score(model, row, intercept)
        for row, intercept in zip(model.weights, model.intercepts, strict=True)
    ]
    head = _HEAD.format(name=model.name.replace("\n", " "), table=_name(table))
    if not model.multiclass:
        sign = ">=" if model.label_at_zero else ">"
        negative, positive = map(_value, model.labels)
        factor, limit = model.temperature or (None, _FAR)
        odds = "score" if factor is None else f"({_number(factor)} * score)"
        capped = _cut(odds, -limit, limit)
        return (
            f"{head}SELECT *,\n"
            f"  CASE WHEN score {sign} 0 THEN {positive} ELSE {negative} END AS label,\n"
            f"  1.0 / (1.0 + EXP(-{capped})) AS probability\n"
            f"FROM (SELECT *,\n  {scores[0]} AS score\nFROM {_name(table)}) AS scored;\n"
        )
    columns = [_name(f"score_{label_text(label)}") for label in model.labels]
    inner = ",\n  ".join(f"{s} AS {c}" for s, c in zip(scores, columns, strict=True))
    top = _first_best(columns, columns)
    label = _first_best(columns, [_value(one) for one in model.labels])
    factor, limit = model.temperature or (1.0, _FAR)
    shares = [
        f"EXP({_cut(f'({_number(factor)} * ({column} - score))', -limit, 0.0)})"
        for column in columns
    ]
    return (
        f"{head}SELECT *, 1.0 / ({_sum(shares)}) AS probability\n"
        f"FROM (SELECT *,\n  {label} AS label,\n  {top} AS score\n"
        f"FROM (SELECT *,\n  {inner}\nFROM {_name(table)}) AS scored) AS labelled;\n"
    )


def _score(model: LinearModel, row: Sequence[float], intercept: float) -> str:
    terms = [_number(intercept)]
    for i, (name, weight) in enumerate(zip(model.names, row, strict=True)):
        if weight:
            value = f"CAST({_name(name)} AS DOUBLE PRECISION)"
            for stage in model.stages:
                value = _scaled(value, stage[i])
            terms.append(f"COALESCE({value} * {_number(weight)}, 0.0)")
    return _sum(terms)


def _scaled(value: str, by: Scaling) -> str:
    if by.centre:
        value = f"({value} - {_number(by.centre)})"
    if by.divisor != 1.0:
        value = f"({value} / {_number(by.divisor)})"
    if (by.least, by.most) == (-MAX_VALUE, MAX_VALUE):
        return value
    return _cut(value, by.least, by.most)


def _cut(value: str, least: float, most: float) -> str:
    low, high = _number(least), _number(most)
    return (
        f"(CASE WHEN {value} < {low} THEN {low} WHEN {value} > {high} THEN {high} ELSE {value} END)"
    )


def _sum(terms: Sequence[str]) -> str:
    """Return a sum as a tree of little depth, which databases bound."""
    if len(terms) <= 8:
        return f"({' + '.join(terms)})"
    half = len(terms) // 2
    return f"({_sum(terms[:half])}\n  + {_sum(terms[half:])})"


def _first_best(scores: Sequence[str], values: Sequence[str]) -> str:
    """Return the value of the highest score, of equal ones the first.

    A score that is not below any later one is the highest, if no earlier one was.
    """
    cases = []
    for i, score in enumerate(scores[:-1]):
        beats = " AND ".join(f"{score} >= {other}" for other in scores[i + 1 :])
        cases.append(f"WHEN {beats} THEN {values[i]}")
    return f"CASE {' '.join(cases)} ELSE {values[-1]} END"


def _number(value: float) -> str:
    return f"({value!r})" if value < 0 else repr(value)


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _value(label: Label) -> str:
    if isinstance(label, bool):
        return "TRUE" if label else "FALSE"
    return str(label) if isinstance(label, int) else "'" + label.replace("'", "''") + "'"
