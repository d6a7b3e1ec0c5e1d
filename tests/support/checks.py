"""Checks and marks that tests of several areas share."""

from collections.abc import Callable
from typing import Any, TypeVar

import httpx
import pytest

from tests.support.engine import Event, Worker
from tests.support.service import RawAnswer

Test = TypeVar("Test", bound=Callable[..., Any])


def check_problem(answer: httpx.Response | RawAnswer, status: int) -> dict[str, Any]:
    """Return a problem document after checking that the answer is one, of this status."""
    code = answer.status if isinstance(answer, RawAnswer) else answer.status_code
    assert code == status, answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem["status"] == status
    assert problem["title"]
    assert problem["detail"]
    return problem


def timed(test: Test) -> Test:
    """Mark a test that judges how long something takes under the waits of production.

    Nothing else runs beside it.
    """
    marked: Test = pytest.mark.alone(pytest.mark.usefixtures("impatient")(test))
    return marked


def order_of(entry_id: str) -> tuple[int, int]:
    """Return the two numbers of an entry id or of the position of an entry."""
    ms, _, seq = entry_id.partition(".")[0].partition("-")
    return int(ms), int(seq)


async def learns(one: Worker, *events: Event) -> bool:
    """Learn events with the model `m`; true if that is not refused."""
    await one.learn("m", *events)
    return True
