"""A broker for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.ingest.kafka.broker import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker without topics."""
    made = Broker()
    yield made
    made.close()
