"""Checks of stored state: every fault raises `InvalidState`."""

from __future__ import annotations

import sys
from typing import Any

import hinged
from hinged.errors import shown

__all__ = ["count", "items", "number", "text"]


def items(data: Any, what: str, length: int | None = None) -> list[Any]:
    """Return `data` if it is a list, of `length` if that is passed."""
    if not isinstance(data, list) or (length is not None and len(data) != length):
        size = "" if length is None else f" of {length}"
        raise hinged.InvalidState(f"{what} must be a list{size}, not {_abbreviated(data)}")
    return data


def count(data: Any, what: str, least: int = 0, most: int = 2**53) -> int:
    """Return `data` if it is an integer in range."""
    if type(data) is not int or not least <= data <= most:
        raise hinged.InvalidState(f"{what} must be {least} to {most}, not {_abbreviated(data)}")
    return data


def number(data: Any, what: str, least: float, most: float = sys.float_info.max) -> float:
    """Return `data` if it is a finite float in range."""
    if type(data) is not float or not least <= data <= most:
        raise hinged.InvalidState(f"{what} must be a number in range, not {_abbreviated(data)}")
    return data


def text(data: Any, what: str) -> str:
    """Return `data` if it is text."""
    if not isinstance(data, str):
        raise hinged.InvalidState(f"{what} must be text, not {_abbreviated(data)}")
    return data


def _abbreviated(data: Any) -> str:
    """Return the text for `data` in an error; it may be of any size and depth."""
    return type(data).__name__ if isinstance(data, (list, dict)) else shown(data)
