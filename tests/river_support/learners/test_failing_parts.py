"""A River part that raises while it learns: its model is set aside with the reason, no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from river import naive_bayes

from hinged_service import pipelines
from tests.river_support.learners.conftest import Start
from tests.support.processes import wait_until_saved
from tests.support.service import Service

Clients = tuple[httpx.Client, httpx.Client]
Create = Callable[..., str]


class RustPanic(BaseException):
    """A panic of the Rust parts of River, which is no `Exception`."""


@pytest.mark.parametrize("fault", [ZeroDivisionError("no such part"), RustPanic("no such part")])
@pytest.mark.parametrize("part", ["learner", "transformer"])
def test_a_part_that_raises_sets_its_model_aside_alone(
    clients: Clients,
    start: Start,
    create: Create,
    monkeypatch: pytest.MonkeyPatch,
    part: str,
    fault: BaseException,
) -> None:
    stream = f"{part}-{type(fault).__name__}"
    broken = create(
        learner={"type": "GaussianNB"},
        labels=[False, True],
        pipeline=[{"type": "StandardScaler"}],
        stream=stream,
    )
    sound = create(learner={"type": "perceptron"}, stream=stream)
    elsewhere = create(learner={"type": "GaussianNB"}, labels=[False, True])
    events = [{"x": {"a": float(n), "b": 1.0}, "y": n % 2 == 0, "id": f"e{n}"} for n in range(12)]
    for client, event in zip(clients * 3, events[:6], strict=True):
        assert client.post(f"{broken}/learn", json=event).status_code == 200
    wait_until_saved(clients[0], broken)

    def raising(method: Any) -> Any:
        def raise_at_seven(self: Any, x: dict[str, Any], *rest: Any, **more: Any) -> Any:
            if "seventh" in x:
                raise fault
            return method(self, x, *rest, **more)

        return raise_at_seven

    with monkeypatch.context() as patch:
        if part == "learner":
            of: Any = naive_bayes.GaussianNB
            patch.setattr(of, "learn_one", raising(of.learn_one))
        else:
            stage: Any = pipelines.Pipeline
            patch.setattr(stage, "learn_transform_one", raising(stage.learn_transform_one))
        bad = {"x": {"a": 1.0, "seventh": 1.0}, "y": True, "id": "e-bad"}
        for client in (*clients, *clients):
            refused = client.post(f"{broken}/learn", json=bad, timeout=10)
            assert refused.status_code == 503, refused.text
            assert int(refused.headers["retry-after"]) >= 1
            assert type(fault).__name__ in refused.json()["detail"]
            asked = client.post(f"{broken}/predict", json={"x": bad["x"]}, timeout=10)
            assert asked.status_code == 503, asked.text
        for client, event in zip(clients * 3, events[6:], strict=True):
            assert client.post(f"{sound}/learn", json=event).status_code == 200
            assert client.post(f"{elsewhere}/learn", json=event).status_code == 200
        for client in clients:
            assert client.get(sound).json()["events"] == 13, "it learned the bad one too, once"
            assert client.get(elsewhere).json()["events"] == 6
    mended: Service = start()
    with mended.client() as client:
        model = client.get(broken).json()
        assert (model["events"], model["rejected"]) == (13, 0), "the snapshot was of before"
    mended.stop()
