"""A real Prometheus with our configuration scrapes a real service: every panel draws something."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml  # type: ignore[import-untyped]

from hinged_service.api.api_keys import new_key
from tests.deploy.files import DEPLOY, documents
from tests.deploy.load import everything_happens
from tests.deploy.queries import ALERTS, PANELS, drawn
from tests.support.processes import wait_until
from tests.support.redis_server import RedisServer, free_port
from tests.support.service import Service

PROMETHEUS = shutil.which("prometheus")
pytestmark = pytest.mark.skipif(PROMETHEUS is None, reason="there is no prometheus on this machine")


def ours(folder: Path, port: int, key: str) -> Path:
    """Our configuration, with the service's address and key, and less time between scrapes."""
    (whole,) = documents(DEPLOY / "prometheus" / "prometheus.yml")
    whole["global"] = {"scrape_interval": "200ms", "evaluation_interval": "200ms"}
    whole["rule_files"] = [str(DEPLOY / "prometheus" / name) for name in whole["rule_files"]]
    (job,) = whole["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["hinged:8000"]}]
    job["static_configs"] = [{"targets": [f"127.0.0.1:{port}"]}]
    (folder / "key").write_text(key)
    job["authorization"]["credentials_file"] = str(folder / "key")
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(whole))
    return path


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Prometheus watches a service to which everything happens again and again."""
    folder = tmp_path_factory.mktemp("prometheus")
    redis = RedisServer(folder / "redis")
    redis.start()
    admin, record = new_key("admin", ("predict", "learn", "admin"), ["*"])
    scraper, scraping = new_key("prometheus", ("predict",), ["*"])
    keys = json.dumps([one.model_dump(mode="json") for one in (record, scraping)])
    port = free_port()
    with (
        Service(redis.url, keys=keys) as service,
        service.client() as client,
    ):
        client.headers["Authorization"] = f"Bearer {admin}"
        assert PROMETHEUS is not None
        with subprocess.Popen(
            [
                PROMETHEUS,
                f"--config.file={ours(folder, service.port, scraper)}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=error",
            ]
        ) as process:
            try:
                with httpx.Client(
                    base_url=f"http://127.0.0.1:{port}/api/v1", verify=False
                ) as prometheus:
                    wait_until(lambda: scraped(prometheus), 30)
                    everything_happens(client, redis, "1")
                    wait_until(lambda: asked(prometheus, "hinged_redis_errors_total") != [], 30)
                    everything_happens(client, redis, "2")
                    yield prometheus
            finally:
                process.kill()
                redis.kill()


def scraped(prometheus: httpx.Client) -> bool:
    try:
        answer = prometheus.get("/targets")
    except httpx.TransportError:
        return False
    if answer.status_code != 200:  # it is still starting
        return False
    targets: list[dict[str, Any]] = answer.json()["data"]["activeTargets"]
    return [target["health"] for target in targets] == ["up"]


def asked(prometheus: httpx.Client, expression: str) -> list[Any]:
    answer = prometheus.get("/query", params={"query": expression}).json()
    assert answer["status"] == "success", answer
    found: list[Any] = answer["data"]["result"]
    return found


def draws(prometheus: httpx.Client, expression: str) -> bool:
    return asked(prometheus, expression) != []


def test_every_panel_draws_something(watched: httpx.Client) -> None:
    for panel in PANELS:
        for expression in drawn(panel):
            wait_until(partial(draws, watched, expression), 30)


def test_the_alerts_are_loaded_and_can_be_judged(watched: httpx.Client) -> None:
    def judged() -> bool:
        (group,) = watched.get("/rules").json()["data"]["groups"]
        assert [rule["name"] for rule in group["rules"]] == [rule["alert"] for rule in ALERTS]
        return all(rule["health"] == "ok" for rule in group["rules"])

    wait_until(judged, 30)
    assert asked(watched, 'up{job="hinged"} == 1') != []
