"""Watch of the servers of a deployment: trouble goes to the log, /readyz and the metrics."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from hinged_service.errors import StartupError
from hinged_service.store.transport.server_check import Condition
from hinged_service.telemetry.observer import Observer

__all__ = ["ServerWatch"]

logger = logging.getLogger(__name__)


class ServerWatch:
    """The conditions of the servers as last seen.

    Attributes
    ----------
    warnings
        Risks to their data; the service works in spite of them.

    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._most_replicas = 0
        self.warnings: list[str] = []

    def note(self, found: Sequence[Condition]) -> None:
        """Take note of the conditions of all primaries.

        Raises
        ------
        StartupError
            One of them would lose the log; the message states what to set.

        """
        replicas = min((one.replicas for one in found), default=0)
        self._most_replicas = max(self._most_replicas, replicas)
        volatile = next((one.volatile for one in found if one.volatile), "")
        tears = next((one.tears for one in found if one.tears and not one.volatile), "")
        fault = next((one.fault for one in found if one.fault), "")
        self._observer.redis_condition = {
            "evicts": int(bool(fault)),
            "append_only": int(not volatile),
            "replicas": replicas,
        }
        if tears:
            self._observer.changes.enter("redis tears", logger, "%s", tears)
        self.warnings = [
            text
            for text in (
                self._log_change(
                    "redis persistence", volatile, "Redis has an append-only file again."
                ),
                self._log_change(
                    "redis replicas",
                    ""
                    if replicas >= self._most_replicas
                    else f"Redis has {replicas} replicas; it had {self._most_replicas}.",
                    "Redis has its replicas again.",
                ),
            )
            if text
        ]
        if self._log_change("redis fault", fault, "Redis keeps the whole log again.", bad=True):
            raise StartupError(fault)

    def _log_change(self, key: str, text: str, over: str, *, bad: bool = False) -> str:
        """Log that a state begins or ends; return its text, empty if it is over."""
        changes = self._observer.changes
        if text:
            level = logging.ERROR if bad else logging.WARNING
            changes.enter(key, logger, "%s", text, level=level)
        else:
            changes.leave(key, logger, over)
        return text
