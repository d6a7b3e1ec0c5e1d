"""The PromQL of the alerts and of the dashboard, and what it speaks of."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import promql_parser

from tests.deploy.files import DEPLOY, documents

ALERTS: list[dict[str, Any]] = [
    rule
    for group in documents(DEPLOY / "prometheus" / "alerts.yml")[0]["groups"]
    for rule in group["rules"]
]
DASHBOARD: dict[str, Any] = json.loads((DEPLOY / "grafana/dashboards/hinged.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
OF_PROMETHEUS = {"job", "instance"}
"""Labels that the scraper adds to every series."""


@dataclass
class Spoken:
    """Names in an expression: labels that are matched by name of a series, all grouped by."""

    series: dict[str, set[str]] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)


def drawn(panel: dict[str, Any], interval: str = "1m") -> list[str]:
    """The expressions of a panel, with what Grafana puts in for its variables."""
    return [
        target["expr"].replace("$__rate_interval", interval).replace("$model", ".*")
        for target in panel["targets"]
    ]


def spoken_of(expression: str) -> Spoken:
    """Parse an expression."""
    found = Spoken()

    def visit(node: promql_parser.Expr) -> bool:
        selector = node
        if isinstance(node, promql_parser.MatrixSelector):
            selector = node.vector_selector
        if isinstance(selector, promql_parser.VectorSelector):
            assert selector.name is not None
            labels = {matcher.name for matcher in selector.matchers.matchers}
            found.series.setdefault(selector.name, set()).update(labels)
        if isinstance(node, promql_parser.AggregateExpr) and node.modifier is not None:
            found.groups.update(node.modifier.labels)
        return True

    promql_parser.walk(promql_parser.parse(expression), visit)
    return found
