"""The choice of the probabilities in a prediction: all, none, or those of the likeliest."""

from __future__ import annotations

import re
import sys
from typing import Final

__all__ = ["ALL", "PROBA_PATTERN", "USUAL", "parse_proba"]

USUAL: Final = 10
"""Most probabilities in a prediction by default."""
ALL: Final = sys.maxsize
"""More probabilities than any model has."""
PROBA_PATTERN: Final = "^(all|none|top:[1-9][0-9]{0,5})$"
"""The forms of a choice."""

_FORM: Final = re.compile(PROBA_PATTERN)


def parse_proba(text: str | None) -> int:
    """Return how many probabilities a choice allows at most; `USUAL` without a choice.

    Raises
    ------
    ValueError
        If it is none.

    """
    if text is None:
        return USUAL
    if not _FORM.fullmatch(text):
        raise ValueError("must be all, none, or top:k with k from 1 to 999999")
    if text in ("all", "none"):
        return ALL if text == "all" else 0
    return int(text.removeprefix("top:"))
