"""Log of changes: one line when a state is entered, one when it is left."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

__all__ = ["StateChangeLog"]

_MOST = 1_000


class _LoggedState(NamedTuple):
    text: str
    at_s: float
    again: int


class StateChangeLog:
    """The bad states that were logged and are not over.

    A state is logged once, until `leave` ends it or its text changes. Only the latest thousand
    are remembered.
    """

    def __init__(self) -> None:
        self._bad: OrderedDict[Hashable, _LoggedState] = OrderedDict()

    def enter(
        self,
        key: Hashable,
        logger: logging.Logger,
        message: str,
        *args: object,
        level: int = logging.WARNING,
        exc_info: bool | BaseException | None = False,
        every_s: float | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Log a bad state of the thing `key`, unless it is logged already.

        If it goes on, it is logged again after `every_s` seconds, with its number of times.
        """
        text, now_s = message % args if args else message, time.monotonic()
        logged = self._bad.get(key)
        seen = ""
        if logged is not None and logged.text == text:
            if every_s is None or now_s - logged.at_s < every_s:
                self._bad[key] = logged._replace(again=logged.again + 1)
                return
            seen = f" (and {logged.again} times more since it was last logged)"
        self._bad[key] = _LoggedState(text, now_s, 0)
        self._bad.move_to_end(key)
        if len(self._bad) > _MOST:
            self._bad.popitem(last=False)
        logger.log(level, "%s%s", text, seen, exc_info=exc_info, extra=extra)

    def leave(
        self,
        key: Hashable,
        logger: logging.Logger,
        message: str = "",
        *args: object,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Log that a bad state is over, if it was logged and there is a message."""
        if self._bad.pop(key, None) is not None and message:
            logger.warning(message, *args, extra=extra)
