"""The steps of the program in `dataflows.md` in a data frame of Quix Streams, without a broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hinged_service.client import Client, Conflict
from hinged_service.follow import follow
from tests.streams.conftest import Program
from tests.support.redis_server import RedisServer

frames = pytest.importorskip("quixstreams.dataframe", reason="Quix Streams is not installed")


def test_records_are_predicted_and_learned_under_the_id_of_their_offset(
    api: Client, server: RedisServer, program: Program
) -> None:
    from quixstreams.dataframe.registry import DataFrameRegistry
    from quixstreams.models import MessageContext, Topic, TopicType

    app = program("dataflows.md", "app.py")
    no_broker: Any = SimpleNamespace(producer=None)
    registry = DataFrameRegistry()
    records = frames.StreamingDataFrame(
        Topic("mails", topic_type=TopicType.REGULAR),
        topic_manager=no_broker,
        registry=registry,
        processing_context=no_broker,
        stream_id="mails",
    )
    registry.register_root(records)
    predicted = []
    with follow(server.url, "mail") as model:
        steps = app.steps(records, model, api)
        for offset, y in ((7, True), (7, True), (8, False)):  # the first comes twice
            at = MessageContext("mails", 2, offset, 0)
            [(record, *_)] = steps.test({"x": {"a": 1.0}, "y": y}, ctx=at)
            predicted.append(record["y_pred"])
            model.wait_for(api.model("mail").position, 20)
    assert predicted == [False, True, True]
    assert api.model("mail").events == 2
    with pytest.raises(Conflict):  # the id is that of the offset
        api.learn("mail", {"a": 1.0}, False, id="mails-2-7")
