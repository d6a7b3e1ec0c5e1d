"""The names that a caller may touch."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable

from hinged_service.errors import Forbidden

__all__ = ["EVERYTHING", "NameAccess", "matches"]


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a name fits one of the patterns, with `*` and `?` as in file names."""
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


class NameAccess:
    """The models, streams and aliases that a caller may touch: those whose names fit a pattern.

    Parameters
    ----------
    patterns
        The patterns.
    of
        The caller, as a refusal names it.

    """

    def __init__(self, patterns: tuple[str, ...], of: str) -> None:
        self._patterns = patterns
        self._of = of

    def includes(self, name: str) -> bool:
        """Return whether the caller may touch the model, stream or alias of this name."""
        return matches(name, self._patterns)

    def check(self, name: str, instead: str | None = None) -> None:
        """Raise `Forbidden` if the name is out of reach.

        The refusal has `instead` for a name that the caller does not know.
        """
        if not self.includes(name):
            raise Forbidden(f"{self._of} is not for {instead or repr(name)}.")


EVERYTHING = NameAccess(("*",), "The service itself")
