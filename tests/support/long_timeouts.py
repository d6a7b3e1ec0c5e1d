"""Settings for tests that do not judge how long the service waits."""

from __future__ import annotations

from typing import Any

LONG_TIMEOUTS: dict[str, Any] = {
    "redis_timeout_ms": 10_000,
    "append_timeout_ms": 15_000,
    "read_wait_ms": 10_000,
}
"""A busy machine may stand still for a second; that is no fault of the service."""
