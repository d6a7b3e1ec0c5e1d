"""Settings of malloc: how much freed memory a process keeps."""

from __future__ import annotations

import ctypes
import gc

__all__ = ["give_back", "keep_freed"]

_BLOCK_BYTES = 2**21


def keep_freed() -> None:
    """Let the process keep 4 MiB of freed memory for what it allocates next.

    glibc trims the heap once the free top exceeds twice the largest block ever freed. With request
    bodies of a few 100 KB that happens on every request, at about 200 page faults each (7 % of
    learning an array of 500 events). Freeing one larger block, which is never touched, raises that
    bound; elsewhere it does nothing. Blocks up to its size come from the heap from then on, and
    leave holes when they are freed: with 16 MiB the tables that a model of 200,000 weights had
    outgrown were a fifth of its memory.
    """
    bytes(_BLOCK_BYTES)


def give_back() -> None:
    """Free what only cycles hold, and let malloc give free memory back to the system.

    It takes tens of milliseconds: for when much was dropped at once. Without glibc the second
    part is left out.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
