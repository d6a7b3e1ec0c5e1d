"""Windows."""

from __future__ import annotations

from collections import deque
from typing import Any

from river import stats, utils
from river.metrics.base import Metric
from river.utils.sorted_window import SortedWindow

from hinged_service.river_support.state.catalogue.entry import Entry
from hinged_service.wire.codec import DamagedState

__all__ = ["CLASSES"]


def _finish_sorted_window(made: SortedWindow[float]) -> None:
    if made.unsorted_window.maxlen is None or len(made.data) != len(made.unsorted_window):
        raise DamagedState("a stored window is damaged")


def _finish_rolling(made: utils.Rolling[Any]) -> None:
    size = vars(made)["_window_size"]
    if vars(made)["window"].maxlen != size or not size > 0:
        raise DamagedState("a stored window is damaged")


CLASSES: dict[type, Entry] = {
    utils.Rolling: Entry(
        {
            "obj": Metric | stats.Mean | stats.Var,
            "_window_size": int,
            "window": deque[tuple[tuple[Any, ...], dict[str, Any]]],
        },
        finish=_finish_rolling,
    ),
    SortedWindow: Entry(
        {"data": list[float], "unsorted_window": deque[float]}, finish=_finish_sorted_window
    ),
}
