"""A learn and a predict call pass few own functions: `python -m tests.bench.calls` shows which."""

from __future__ import annotations

from tests.bench.calls import by_file, count, counted, in_app

MOST = {"predict": (24, 8), "learn": (80, 16)}
"""Calls and files of the application on Python 3.11; later versions inline comprehensions."""


def test_one_event_passes_few_calls(redis_url: str) -> None:
    for name, calls in counted(redis_url).items():
        app = in_app(calls)
        assert (count(app) <= MOST[name][0], len(by_file(app)) <= MOST[name][1]) == (True, True), (
            f"{name}: {count(app)} calls, {by_file(app)}"
        )
