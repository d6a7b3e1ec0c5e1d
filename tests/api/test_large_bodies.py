"""Large bodies are read beside the loop; meanwhile the model's state may be taken."""

import asyncio
import json
import threading
from typing import Any

import pytest

from hinged_service.api import events
from hinged_service.api.events import Learning
from hinged_service.api.large_answers import outcome_bytes
from hinged_service.engine.long_work import LARGE_BYTES, in_thread
from hinged_service.model.state import ModelState
from tests.support.engine import worker


async def test_a_state_taken_while_a_body_is_read_is_waited_for(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = [{"x": {f"name{i}": 0.5 for i in range(30)}, "y": "a"} for _ in range(1500)]
    body = json.dumps(sent).encode()
    assert len(body) > LARGE_BYTES
    async with worker(redis_url, max_events_per_call=2000) as one:
        await one.create("m", learner={"type": "multiclass_perceptron"})
        live_model = await one.open("m")
        read = threading.Event()
        seen: list[bool] = []

        def size(state: ModelState, some: Any) -> int:
            seen.append(live_model.away)
            return outcome_bytes(state, some)

        monkeypatch.setattr(events, "outcome_bytes", size)
        monkeypatch.setattr(events, "reserve", lambda *_: None)
        before = asyncio.ensure_future(in_thread(lambda: read.wait(10)))
        call = Learning(one.settings).answer(live_model, body, {})
        learning = asyncio.ensure_future(call)
        await asyncio.sleep(0.05)  # the body waits for the thread
        async with live_model.replica.take(changes=False):
            read.set()
            await before
            await in_thread(lambda: None)  # the body is read
            await asyncio.sleep(0.05)
            assert seen == []
        answer = await learning
        assert isinstance(answer, list)  # of pieces
        assert len(json.loads(b"".join(answer))) == 1500
        assert seen == [False]
