"""Another timeout for what is fuzzed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.budget import ASKED

TIMEOUT_S = 300


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let a test that hangs end its process: Hypothesis would take a signal for a finding.

    It would try the example that hangs again and again. A run with more examples has
    no limit.
    """
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(0 if ASKED else TIMEOUT_S, method="thread"))
