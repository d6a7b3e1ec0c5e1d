"""Alerts and dashboard ask for what the service tells, and each alert says what to do."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.deploy.files import DEPLOY, documents
from tests.deploy.load import everything_happens
from tests.deploy.queries import ALERTS, DASHBOARD, OF_PROMETHEUS, PANELS, drawn, spoken_of
from tests.support.redis_server import RedisServer
from tests.support.service import Service

SUFFIXES = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
    "summary": ("_sum", "_count"),
}
ASKED = {rule["alert"]: [rule["expr"]] for rule in ALERTS} | {
    panel["title"]: drawn(panel) for panel in PANELS
}
PROMTOOL = shutil.which("promtool")


@pytest.fixture(scope="module")
def exposed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, set[str]]]:
    """By name of a series the labels that a real service gives it when much has happened."""
    with (
        RedisServer(tmp_path_factory.mktemp("redis")) as redis,
        Service(redis.url) as service,
        service.client() as client,
    ):
        everything_happens(client, redis)
        yield {
            family.name + suffix: labels_of(family)
            for family in text_string_to_metric_families(client.get("/metrics").text)
            for suffix in SUFFIXES[family.type]
        }


def labels_of(family: Metric) -> set[str]:
    assert family.samples, f"{family.name} is not told although everything happened"
    return {label for sample in family.samples for label in sample.labels}


@pytest.fixture(scope="module")
def exposed_of_disk(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The same of the disk of an embedded server."""
    folder = tmp_path_factory.mktemp("data")
    with Service(None, data_dir=folder) as service, service.client() as client:
        text = client.get("/metrics").text
    families = text_string_to_metric_families(text)
    return {one.name: set() for one in families if one.name.startswith("hinged_disk_")}


@pytest.mark.parametrize("title", ASKED)
def test_queried_metrics_are_exported(
    title: str, exposed: dict[str, set[str]], exposed_of_disk: dict[str, set[str]]
) -> None:
    exposed = exposed | exposed_of_disk
    for expression in ASKED[title]:
        spoken = spoken_of(expression)
        all_labels: set[str] = set(OF_PROMETHEUS)
        for name, matched in spoken.series.items():
            if name == "up":  # Prometheus's own
                continue
            assert name in exposed, f"{expression} asks for {name}"
            labels = exposed[name] | OF_PROMETHEUS
            assert matched <= labels, expression
            all_labels |= labels
        assert spoken.groups <= all_labels, expression


def test_everything_that_is_told_is_asked_for(exposed: dict[str, set[str]]) -> None:
    asked = {
        name
        for expressions in ASKED.values()
        for expression in expressions
        for name in spoken_of(expression).series
    }
    families = {re.sub("_(total|bucket|sum|count)$", "", name) for name in exposed}
    missing = {family for family in families if not any(name.startswith(family) for name in asked)}
    assert missing == set()


def test_the_dashboard_chooses_among_models_that_are_told(exposed: dict[str, set[str]]) -> None:
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            found = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])
            assert found is not None
            assert found[2] in exposed[found[1]]


def test_panels_have_names_of_their_own_and_do_not_overlap() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_the_dashboard_is_provisioned_where_it_is_mounted() -> None:
    (providers,) = documents(DEPLOY / "grafana/provisioning/dashboards/hinged.yml")
    compose: Any = documents(DEPLOY.parent / "docker-compose.yml")[0]["services"]["grafana"]
    mounted = [volume.split(":")[1] for volume in compose["volumes"]]
    assert providers["providers"][0]["options"]["path"] in mounted
    (sources,) = documents(DEPLOY / "grafana/provisioning/datasources/prometheus.yml")
    assert sources["datasources"][0]["url"] == "http://prometheus:9090"


def test_each_alert_has_a_runbook_and_each_runbook_an_alert() -> None:
    text = (DEPLOY.parent / "docs/operations/runbooks.md").read_text()
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == [rule["alert"] for rule in ALERTS]
    for rule in ALERTS:
        anchor = f"docs/operations/runbooks.md#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook_url"] == anchor
        assert rule["labels"]["severity"] in {"critical", "warning"}


@pytest.mark.skipif(PROMTOOL is None, reason="there is no promtool on this machine")
@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "config", "--syntax-only", DEPLOY / "prometheus/prometheus.yml"],
        ["check", "rules", DEPLOY / "prometheus/alerts.yml"],
        ["test", "rules", Path(__file__).with_name("alerts_test.yml")],
    ],
    ids=lambda arguments: " ".join(map(str, arguments[:2])),
)
def test_promtool_agrees(arguments: list[Any]) -> None:
    done = subprocess.run([str(PROMTOOL), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
