"""The number of tries: few and always the same, or as much as `HINGED_FUZZ` says, at random."""

from __future__ import annotations

import os
import time
from typing import Any

from hypothesis import HealthCheck, settings

__all__ = ["ASKED", "SEED", "tries"]

ASKED = int(os.environ.get("HINGED_FUZZ", "0"))
"""Examples per test, with new seeds each time; 0 for the usual ones."""

SEED = os.environ.get("HINGED_FUZZ_SEED") or (str(time.time_ns()) if ASKED else "usual")
"""Beginning of the seeds of what does not come from Hypothesis; told when a test fails."""


def tries(usual: int, **more: Any) -> settings:
    """Return settings for `usual` examples, or for those that were asked for."""
    return settings(
        max_examples=ASKED or usual,
        derandomize=not ASKED,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        **more,
    )
