"""Admission control: how many requests a worker has under way, and what they hold.

A queue in front of a model bounds what waits for that model. This bounds the worker: all
requests together, whatever they ask for and however slowly they come.
"""

from __future__ import annotations

from typing import Final

from starlette.types import Scope

from hinged_service.errors import Busy
from hinged_service.settings import Settings

__all__ = ["HELD", "AdmissionControl", "RequestLease"]

HELD: Final = "hinged.held"
"""Where the scope of a request that has entered keeps what it holds."""
_ALWAYS: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Calls for whoever watches the worker: never refused for lack of room."""


class AdmissionControl:
    """The room of a worker.

    Parameters
    ----------
    settings
        The worker's.

    Attributes
    ----------
    requests, most_requests
        How many requests are under way, and may be.
    bytes, most_bytes
        What they hold of their bodies, and may hold.
    body_timeout_s
        How long a small body may be on its way.

    """

    def __init__(self, settings: Settings) -> None:
        self.most_requests = settings.max_requests
        self.most_bytes = settings.max_held_bytes
        self.body_timeout_s = settings.body_timeout_ms / 1000
        self.requests = 0
        self.bytes = 0

    def enter(self, scope: Scope) -> RequestLease:
        """Begin a request, which has to leave in the end.

        Raises
        ------
        Busy
            There are too many.

        """
        if self.requests >= self.most_requests and scope["path"] not in _ALWAYS:
            raise Busy(
                f"The worker has {self.requests} requests under way, as many as max_requests "
                "allows; nothing of this one was taken.",
                retry_after_s=1,
            )
        held = scope[HELD] = RequestLease(self)
        return held


class RequestLease:
    """Share of one request in the bounds, from its beginning.

    Parameters
    ----------
    room
        The worker's room.

    Attributes
    ----------
    whole
        Whether the whole body has come, where one reads it.

    """

    __slots__ = ("bytes", "left", "room", "whole")

    def __init__(self, room: AdmissionControl) -> None:
        self.room = room
        self.bytes = 0
        self.whole = self.left = False
        room.requests += 1

    def add(self, size: int) -> None:
        """Hold so many bytes more of the body, until the answer.

        A body that is alone is taken whatever the bound.

        Raises
        ------
        Busy
            All bodies together would hold too much.

        """
        room = self.room
        if room.bytes + size > room.most_bytes and room.bytes > self.bytes:
            raise Busy(
                "The bodies of the worker's requests hold as much as max_held_bytes allows; "
                "nothing of this one was taken.",
                retry_after_s=1,
            )
        room.bytes += size
        self.bytes += size

    def leave(self) -> None:
        """End the request, whatever happened; once more does nothing."""
        if not self.left:
            self.left = True
            self.room.requests -= 1
            self.room.bytes -= self.bytes
