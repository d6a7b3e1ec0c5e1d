"""The steps of `beam-and-spark.md` under Apache Beam's direct runner."""

from __future__ import annotations

from typing import Any

import pytest

from hinged_service.client import Client
from tests.streams.conftest import Program
from tests.support.redis_server import RedisServer
from tests.support.service import Service

beam = pytest.importorskip("apache_beam", reason="Apache Beam is not installed")


@pytest.mark.filterwarnings("default")
def test_a_pipeline_that_runs_twice_learns_each_event_once(
    api: Client, server: RedisServer, service: Service, program: Program
) -> None:
    from apache_beam.testing.util import assert_that, equal_to

    steps = program("beam-and-spark.md", "beam_steps.py")
    api.learn("mail", {"a": 1.0}, True)
    records: list[dict[str, Any]] = [
        {"x": {"a": float(n - 10)}, "y": n > 10, "id": f"r{n}"} for n in range(1, 21)
    ]
    with beam.Pipeline() as pipeline:
        found = pipeline | beam.Create(records) | beam.ParDo(steps.Predict(server.url, "mail"))
        # w = 1 and b = 1 after the one event, so true where a > -1
        expected = [record["x"]["a"] > -1 for record in records]
        assert_that(found | beam.Map(lambda record: record["y_pred"]), equal_to(expected))
    for _ in range(2):
        with beam.Pipeline() as pipeline:
            learn = beam.ParDo(steps.Learn(service.url, "mail"))
            pipeline | beam.Create(records) | learn
        assert api.model("mail").events == 21
