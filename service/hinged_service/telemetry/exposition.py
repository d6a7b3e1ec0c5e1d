"""Metrics of all workers, in the text format of Prometheus or of OpenMetrics."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector, CollectorRegistry

from hinged_service.telemetry.multiprocess import Gathered
from hinged_service.telemetry.observer import BUCKETS
from hinged_service.telemetry.worker_report import DiskSample, Labels, ModelSample, counted

__all__ = ["exposed"]

_FACTS: tuple[tuple[str, str, Callable[[ModelSample], float]], ...] = (
    ("hinged_events", "Events that counted, each once.", lambda row: row.events),
    ("hinged_judged", "Events that count in accuracy.", lambda row: row.judged),
    ("hinged_mistakes", "Judged events predicted wrong.", lambda row: row.mistakes),
    ("hinged_updates", "Weight changes.", lambda row: row.updates),
    ("hinged_hinge_loss", "Sum of max(0, 1 - margin).", lambda row: row.hinge_loss),
    ("hinged_overflows", "Updates left out: a number would overflow.", lambda row: row.overflows),
)
_LABELS: tuple[tuple[str, str, Callable[[Labels], float]], ...] = (
    ("hinged_labels_joined", "Predictions whose label came.", lambda labels: labels.joined),
    ("hinged_labels_expired", "Predictions given up.", lambda labels: labels.expired),
    ("hinged_labels_late", "Labels that came too late.", lambda labels: labels.late),
)
_REDIS: tuple[tuple[str, str, Callable[[Iterable[int]], int]], ...] = (
    ("evicts", "1 if Redis may lose the event log by its configuration, else 0.", max),
    ("append_only", "1 if Redis has an append-only file, else 0.", min),
    ("replicas", "Replicas of Redis; of a cluster, of the primary with the fewest.", min),
)
_DISK: tuple[tuple[str, str, Callable[[DiskSample], float]], ...] = (
    ("hinged_disk_free_bytes", "Free bytes on the embedded Valkey's disk.", lambda d: d.free),
    ("hinged_disk_reserved_bytes", "Bytes set aside there for its file.", lambda d: d.reserved),
    (
        "hinged_disk_unwritten_bytes",
        "Bytes that it acknowledged and could not write yet.",
        lambda d: d.unwritten,
    ),
    (
        "hinged_disk_writable",
        "Whether it takes writes: 1, or 0 on a full disk.",
        lambda d: d.writable,
    ),
)
_NUMBERS = {
    "http_requests": ("Requests answered.", ("method", "route", "status")),
    "redis_errors": ("Commands that Redis did not carry out.", ("kind",)),
    "foreign_entries": ("Entries met in logs that do not follow from the one before.", ()),
    "queue_refused": ("Calls refused because a model's queue was full.", ()),
}
_SPREADS = {
    "http_request_seconds": ("Time from a request to its answer.", ("route",)),
    "append_seconds": ("Time of an append to a log, sending again included.", ()),
    "batch_events": ("Events that went out in one append.", ()),
}


class _Workers(Collector):
    def __init__(self, gathered: Gathered, version: str, fold_tag: str) -> None:
        self._gathered = gathered
        self._tags = [version, fold_tag]

    def collect(self) -> Iterable[Metric]:
        yield from self._process()
        yield from self._disk()
        yield from self._numbers()
        yield from self._models()
        yield from self._streams()

    def _process(self) -> Iterator[Metric]:
        pages, left_out = self._gathered.pages, self._gathered.left_out
        info = GaugeMetricFamily("hinged_info", "Versions.", labels=["version", "fold_tag"])
        info.add_metric(self._tags, 1)
        yield info
        for name, text, value in (
            ("hinged_workers", "Living workers.", len(pages)),
            ("hinged_replicas", "Models in the memory of workers.", sum(p.replicas for p in pages)),
            ("hinged_live_feeds", "Open live feeds.", sum(p.feeds for p in pages)),
            (
                "hinged_models_set_aside",
                "Models that a worker cannot serve, on the worker with most of them.",
                max((page.aside for page in pages), default=0),
            ),
            ("hinged_models_left_out", "Models that these metrics leave out.", left_out),
        ):
            yield GaugeMetricFamily(name, text, value)
        for name, text, worst in _REDIS:
            if seen := [page.redis[name] for page in pages if name in page.redis]:
                yield GaugeMetricFamily(f"hinged_redis_{name}", text, worst(seen))

    def _disk(self) -> Iterator[Metric]:
        disks = [page.disk for page in self._gathered.pages if page.disk is not None]
        for name, text, value in _DISK:
            if disks:
                yield GaugeMetricFamily(name, text, min(value(disk) for disk in disks))

    def _numbers(self) -> Iterator[Metric]:
        found: dict[str, list[tuple[Sequence[str], list[float]]]] = defaultdict(list)
        for key, numbers in sorted(self._gathered.numbers.items()):
            found[key[0]].append((key[1:], numbers))
        for name, (text, labels) in _NUMBERS.items():
            counter = CounterMetricFamily(f"hinged_{name}", text, labels=labels)
            for values, numbers in found[name]:
                counter.add_metric(values, numbers[0])
            yield counter
        for name, (text, labels) in _SPREADS.items():
            spread = HistogramMetricFamily(f"hinged_{name}", text, labels=labels)
            bounds = [*map(str, BUCKETS[name]), "+Inf"]
            for values, numbers in found[name]:
                heights = itertools.accumulate(numbers[:-1])
                buckets = list(zip(bounds, heights, strict=True))
                spread.add_metric(values, buckets, numbers[-1])
            yield spread

    def _models(self) -> Iterator[Metric]:
        rows = sorted(self._gathered.totals.models.values(), key=lambda row: row.name)
        for name, text, value in _FACTS:
            family = CounterMetricFamily(name, text, labels=["model"])
            for row in rows:
                family.add_metric([row.name], value(row))
            yield family
        delays = SummaryMetricFamily(
            "hinged_label_delay_seconds", "Time from a prediction to its label.", labels=["model"]
        )
        for row in rows:
            delays.add_metric([row.name], row.labelled, row.delay_ms / 1000)
        yield delays
        did = counted(self._gathered.totals, self._gathered.pages)
        duplicates = CounterMetricFamily(
            "hinged_duplicates", "Events that had counted before.", labels=["model"]
        )
        rejected = CounterMetricFamily(
            "hinged_rejected",
            "Learn calls and lines that were refused, and with a door dead letters of sources; "
            "reason fold: events in the log that the model could not take.",
            labels=["model", "reason"],
        )
        for row in rows:
            counts = did[row.name]
            duplicates.add_metric([row.name], counts.get("duplicates", 0))
            rejected.add_metric([row.name, "fold"], row.rejected)
            for what, count in sorted(counts.items()):
                if what != "duplicates":
                    rejected.add_metric([row.name, what], count)
            for door, by_kind in self._gathered.totals.doors.get(row.uid, {}).items():
                at = {"model": row.name, "door": door}
                for what, count in by_kind.items():
                    if what == "duplicates":
                        duplicates.add_sample("hinged_duplicates_total", at, count)
                    else:
                        rejected.add_sample("hinged_rejected_total", {**at, "reason": what}, count)
        yield from (duplicates, rejected)
        yield from self._gauges(rows)

    def _gauges(self, rows: Sequence[ModelSample]) -> Iterator[Metric]:
        position = GaugeMetricFamily(
            "hinged_replica_position_events",
            "Events that the stream had taken up to the furthest replica.",
            labels=["model"],
        )
        stale = GaugeMetricFamily(
            "hinged_replica_staleness_seconds",
            "Age of the answers while the log cannot be read, else 0; of the worst worker.",
            labels=["model"],
        )
        unsaved = GaugeMetricFamily(
            "hinged_snapshot_age_seconds",
            "Age of the oldest change that no snapshot holds, 0 if all are saved.",
            labels=["model"],
        )
        queued = GaugeMetricFamily(
            "hinged_queue_events", "Events that wait to be appended.", labels=["model"]
        )
        taken = GaugeMetricFamily(
            "hinged_model_bytes",
            "Bytes of all that a model learned by name, counted as for its max_bytes.",
            labels=["model"],
        )
        allowed = GaugeMetricFamily(
            "hinged_model_max_bytes", "The limit of hinged_model_bytes.", labels=["model"]
        )
        held: dict[str, list[ModelSample]] = defaultdict(list)
        for page in self._gathered.pages:
            for row in page.rows:
                held[row.uid].append(row)
        for row in rows:
            position.add_metric([row.name], row.log_events)
            taken.add_metric([row.name], row.bytes)
            allowed.add_metric([row.name], row.max_bytes)
            here = held.get(row.uid)
            if here:
                stale.add_metric([row.name], max(r.stale_s for r in here))
                unsaved.add_metric([row.name], max(r.unsaved_s for r in here))
                queued.add_metric([row.name], sum(r.queued for r in here))
        yield from (position, taken, allowed, stale, unsaved, queued)

    def _streams(self) -> Iterator[Metric]:
        streams = sorted(self._gathered.totals.labels.items())
        pending = GaugeMetricFamily(
            "hinged_labels_pending", "Predictions that wait for their label.", labels=["stream"]
        )
        for stream, labels in streams:
            pending.add_metric([stream], labels.waiting)
        yield pending
        for name, text, value in _LABELS:
            family = CounterMetricFamily(name, text, labels=["stream"])
            for stream, labels in streams:
                family.add_metric([stream], value(labels))
            yield family


def exposed(gathered: Gathered, version: str, fold_tag: str, accept: str) -> tuple[bytes, str]:
    """Return metrics as text, and its media type.

    Parameters
    ----------
    gathered
        Counters and reports of all workers.
    version, fold_tag
        Versions of this worker.
    accept
        The media types that the scraper takes.

    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Workers(gathered, version, fold_tag))
    try:
        encode, media_type = choose_encoder(accept)
    except (ValueError, TypeError):  # it asks for a version that is no version
        encode, media_type = choose_encoder("")
    return encode(registry), media_type
