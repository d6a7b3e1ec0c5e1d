"""Tests of ending tasks: a cancel that is lost is repeated."""

from __future__ import annotations

import asyncio

import pytest

from hinged_service.tasks import cancel


def test_a_cancel_that_is_lost_is_repeated() -> None:
    async def deaf() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:  # as where an answer comes in the same moment
            await asyncio.Event().wait()

    async def run() -> asyncio.Task[None]:
        task = asyncio.create_task(deaf())
        await asyncio.sleep(0)
        await asyncio.wait_for(cancel(None, task), 5)
        return task

    assert asyncio.run(run()).cancelled()


def test_the_error_of_a_task_is_left_to_the_caller() -> None:
    async def failing() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise OSError("no way")

    async def run() -> asyncio.Task[None]:
        task = asyncio.create_task(failing())
        await asyncio.sleep(0)
        await cancel(task)
        return task

    with pytest.raises(OSError, match="no way"):
        asyncio.run(run()).result()
