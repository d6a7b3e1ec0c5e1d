"""Memory of a process: freed memory that it keeps, and objects that it scans for garbage."""

from __future__ import annotations

import ctypes
import gc

__all__ = ["collect_rarely", "give_back", "keep_freed", "spare_imported"]

_BLOCK_BYTES = 2**21
_OBJECTS = 10_000


def keep_freed() -> None:
    """Let the process keep 4 MiB of freed memory for later use.

    glibc trims the heap once the free top exceeds twice the largest block ever freed. With request
    bodies of a few 100 KB that happens on every request, at about 200 page faults each (7 % of
    learning an array of 500 events). Freeing one larger block, which is never touched, raises that
    bound; elsewhere it does nothing. Blocks up to its size come from the heap from then on, and
    leave holes when they are freed: with 16 MiB the tables that a model of 200,000 weights had
    outgrown were a fifth of its memory.
    """
    bytes(_BLOCK_BYTES)


def collect_rarely() -> None:
    """Look for garbage when 10,000 objects more were made than freed, in place of 700.

    Most of what is dropped is freed without a collection. Models that are parked and opened in
    turn are no garbage, but a collection takes their parts for objects that stay, and looks through
    all when it has met a quarter more of these: in 15,000 predictions of 10,000 models twice, for
    0.25 and 0.39 s (Python 3.11), in which no call is answered.
    """
    gc.set_threshold(_OBJECTS)


def spare_imported() -> None:
    """Exclude all present objects from garbage collection: modules, classes, the app.

    A full one took 53 ms for these 107,000 objects (Python 3.11), and no call is answered
    meanwhile. It comes whenever models have made a quarter more objects, as trees of River's do.
    """
    gc.collect()
    gc.freeze()


def give_back() -> None:
    """Free cycles, and let malloc return free memory to the system.

    It takes tens of milliseconds: for when much was dropped at once. Without glibc the second
    part is left out.
    """
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
