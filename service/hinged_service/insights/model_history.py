"""The whole life of a model, up to now, from the readings that its state keeps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from hinged_service.engine.live_model import LiveModel
from hinged_service.model.history import Point
from hinged_service.model.inspection import ROLLING
from hinged_service.wire.reports import HistoryPoint, HistoryTurn, ModelHistory

__all__ = ["history_of"]


async def history_of(live_model: LiveModel) -> ModelHistory:
    """Return the history of a model; the last point is the present."""
    state = await live_model.at_rest()
    points = state.history.points()
    now = state.reading(live_model.position.order.ms)
    if state.events > (points[-1].events if points else 0):
        points.append(now)
    turns = tuple(HistoryTurn(*turn) for turn in state.history.marks)
    return ModelHistory(str(live_model.position), tuple(_points_of(points)), turns)


def _points_of(points: Sequence[Point]) -> Iterator[HistoryPoint]:
    rates = _rates(points)
    before = start = 0
    for i, point in enumerate(points):
        while start < i and point.judged - points[start].judged >= ROLLING:
            start += 1
        # the points since the last one that has enough judged events after it
        first = points[start - 1] if start else None
        judged = point.judged - (first.judged if first else 0)
        wrong = point.mistakes - (first.mistakes if first else 0)
        rolling = 1.0 - wrong / judged if judged else None
        labelled = point.labelled - points[before].labelled if i else point.labelled
        delay_ms = point.delay_ms - points[before].delay_ms if i else point.delay_ms
        yield HistoryPoint(
            at_ms=point.at_ms,
            events=point.events,
            judged=point.judged,
            mistakes=point.mistakes,
            updates=point.updates,
            drifts=point.drifts,
            labelled=point.labelled,
            accuracy=1.0 - point.mistakes / point.judged if point.judged else None,
            rolling_accuracy=rolling if point.rolling_accuracy is None else point.rolling_accuracy,
            log_loss=point.log_loss,
            events_per_s=rates[i],
            mean_delay_s=delay_ms / labelled / 1000 if labelled > 0 else None,
        )
        before = i


def _rates(points: Sequence[Point]) -> list[float | None]:
    """Return the events per second since the last point of another time."""
    found: list[float | None] = []
    before: Point | None = None
    for _, some in groupby(points, key=lambda point: point.at_ms):
        group = list(some)
        rate = None
        if before is not None and group[-1].at_ms > before.at_ms:
            rate = 1000 * (group[-1].events - before.events) / (group[-1].at_ms - before.at_ms)
        found += [rate] * len(group)
        before = group[-1]
    return found
