"""Predictions as records of a Kafka topic."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import confluent_kafka as ck

from hinged_service.errors import Unavailable
from hinged_service.ingest.kafka.options import KafkaOptions, redacted
from hinged_service.ingest.predictions import Output, Predicted
from hinged_service.ingest.target import BAD_USAGE, Failed

__all__ = ["PredictionTopic"]

_TIMEOUT_S = 30.0


class PredictionTopic(Output):
    """A topic whose records have the event's id as key; a kill may write some of them twice."""

    def __init__(self, options: KafkaOptions, topic: str) -> None:
        self.name = f"Kafka at {options.bootstrap}"
        self._topic = topic
        self._client = options.client
        config: dict[str, Any] = {
            "client.id": "hinged",
            **options.client,
            "bootstrap.servers": options.bootstrap,
            "enable.idempotence": True,
            "log_level": 0,
        }
        try:
            self._producer = ck.Producer(config)
        except (ck.KafkaException, ValueError) as error:
            reason = redacted(str(error), options.client)
            raise Failed(f"Kafka's client refuses an option: {reason}.", BAD_USAGE) from None

    async def put(self, rows: Sequence[Predicted]) -> None:
        """Write them and wait until the brokers have them."""
        await asyncio.to_thread(self._put, rows)

    def _put(self, rows: Sequence[Predicted]) -> None:
        refused: list[ck.KafkaError] = []

        def note(error: ck.KafkaError | None, _: object) -> None:
            if error is not None:
                refused.append(error)

        for row in rows:
            self._producer.produce(self._topic, row.json(), row.id, on_delivery=note)
            self._producer.poll(0)
        left = self._producer.flush(_TIMEOUT_S)
        if left or refused:
            self._producer.purge()
            self._producer.flush(1)
            reason = redacted(str(refused[0]) if refused else "no answer", self._client)
            raise Unavailable(
                f"Kafka does not take predictions for {self._topic}: {reason}.", retry_after_s=1
            )
