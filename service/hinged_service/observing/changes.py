"""Logging what changes, not what is: one line when a state is entered, one when it is left."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from typing import Any

__all__ = ["Changes"]

_MOST = 1_000


class Changes:
    """The bad states that were told of and not yet taken back.

    A state that is seen again and again is logged once, until `good` says that it is over or
    its text changes. Only the latest thousand are remembered.

    """

    def __init__(self) -> None:
        self._bad: OrderedDict[Hashable, str] = OrderedDict()

    def bad(
        self,
        key: Hashable,
        logger: logging.Logger,
        message: str,
        *args: object,
        level: int = logging.WARNING,
        exc_info: bool = False,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Log a bad state unless it was already.

        Parameters
        ----------
        key
            What is in that state.
        logger, message, args, level, exc_info, extra
            As for `logging`.

        """
        text = message % args if args else message
        if self._bad.get(key) == text:
            return
        self._bad[key] = text
        self._bad.move_to_end(key)
        if len(self._bad) > _MOST:
            self._bad.popitem(last=False)
        logger.log(level, text, exc_info=exc_info, extra=extra)

    def good(
        self, key: Hashable, logger: logging.Logger, message: str = "", *args: object, **extra: Any
    ) -> None:
        """Log that a bad state is over, if it was told of and there is a message."""
        if self._bad.pop(key, None) is not None and message:
            logger.warning(message, *args, extra=extra or None)
