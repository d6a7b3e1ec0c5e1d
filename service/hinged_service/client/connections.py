"""The connections of a client, which belong to one process.

A forked process inherits the sockets of its parent. If both used them, one would
read the answer to the other's request.
"""

from __future__ import annotations

import codecs
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar

from hinged_service.client.errors import ClientError

__all__ = ["Connections"]


class _Pool(Protocol):
    @property
    def is_closed(self) -> bool: ...


P = TypeVar("P", bound=_Pool)


class Connections(Generic[P]):
    """A pool of connections; after a fork the child has one of its own.

    Parameters
    ----------
    make
        Makes a pool.
    again
        Whether it may be called again.

    """

    def __init__(self, make: Callable[[], P], *, again: bool) -> None:
        self._make, self._again = make, again
        self._pool: P | None = make()
        self._making = threading.Lock()
        _all.add(self)

    def pool(self) -> P:
        """Return the pool of this process; raise `ClientError` if there can be none."""
        pool = self._pool
        if pool is None:
            if not self._again:
                raise ClientError(
                    "A client with a transport of its own ends with a fork: make another in the "
                    "child process. Nothing was sent."
                )
            with self._making:
                pool = self._pool = self._pool or self._make()
        return pool

    def present(self) -> P | None:
        """Return the pool if there is one to close."""
        return self.pool() if self._again else self._pool

    def leave(self) -> None:
        """Leave the pool to the parent: the child must not even close it.

        Closing takes locks that a thread of the parent may have held, and calls the event
        loop, and parent and child share a part of it.
        """
        self._making = threading.Lock()
        if self._pool is not None and not self._pool.is_closed:
            _inherited.append(self._pool)
            self._pool = None


_all: Final[weakref.WeakSet[Connections[Any]]] = weakref.WeakSet()
_inherited: Final[list[_Pool]] = []


def _leave_all() -> None:
    for connections in _all:
        connections.leave()


# Every first connection needs it. A fork while another thread loads it would leave the lock of the
# module taken in the child, for good.
codecs.lookup("idna")
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_all)
