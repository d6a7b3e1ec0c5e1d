"""The job of `beam-and-spark.md` under Spark in local mode."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from hinged_service.client import Client
from tests.streams.conftest import Program
from tests.support.service import Service

sql = pytest.importorskip("pyspark.sql", reason="PySpark is not installed")
pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs a JVM"),
    pytest.mark.filterwarnings("default"),
]


def test_a_stream_whose_batches_are_repeated_learns_each_event_once(
    api: Client, service: Service, program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    job = program("beam-and-spark.md", "spark_job.py")
    records = tmp_path / "records"
    records.mkdir()
    lines = [
        json.dumps({"id": f"s{n}", "x": {"a": float(n), "b": 1.0}, "y": n % 2 == 0})
        for n in range(30)
    ]
    (records / "one.json").write_text("\n".join(lines))
    builder = sql.SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    try:
        schema = "id string, x struct<a: double, b: double>, y boolean"
        for run in range(2):  # the second has no checkpoint of the first, so it learns all again
            events = spark.readStream.schema(schema).json(str(records))
            query = events.writeStream.foreachBatch(job.learned_by(service.url))
            query = query.trigger(availableNow=True)
            query.option("checkpointLocation", str(tmp_path / f"c{run}")).start().awaitTermination()
            assert api.model("mail").events == 30
        kafka = spark.createDataFrame(
            [("mails", 3, 17, bytearray(b'{"x": {"a": 2.5}, "y": true}'))],
            "topic string, partition int, offset long, value binary",
        )
        [row] = job.of_kafka(kafka, "x struct<a: double>, y boolean").collect()
        assert (row.id, row.x.asDict(), row.y) == ("mails-3-17", {"a": 2.5}, True)
    finally:
        spark.stop()
