"""Settings of the service in groups, units in the names.

A function that needs one group takes that group; `Settings` is all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

__all__ = [
    "AccessSettings",
    "LimitSettings",
    "RedisSettings",
    "Settings",
    "SnapshotSettings",
    "TelemetrySettings",
    "TimeoutSettings",
    "TuningSettings",
]


def _named(path: object) -> object:
    if path == "":
        raise ValueError("must name a directory, or be left out")
    return path


class _Group(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="HINGED_", extra="forbid")


class RedisSettings(_Group):
    """The Redis that keeps the models, and the way a worker speaks to it."""

    redis_url: str | None = Field(
        None,
        repr=False,
        description="Address of a Redis >= 7.0 or Valkey >= 7.2: redis://, rediss://, unix://, "
        "redis+sentinel:// or redis+cluster://. Without it an embedded Valkey keeps everything in "
        "the data directory.",
    )
    redis_password_file: Path | None = Field(
        None,
        description="File with the password for that address, read at the start. It is used if the "
        "address has no password.",
    )
    data_dir: Annotated[Path, BeforeValidator(_named)] = Field(
        Path.home() / ".local" / "share" / "hinged",
        description="Where the embedded Valkey keeps its append-only file.",
    )
    disk_reserve_bytes: int = Field(
        16 * 2**20,
        ge=2**20,
        description="Bytes of the disk reserved for the file of the embedded Valkey. Without them "
        "learning is refused.",
    )
    disk_warning_bytes: int = Field(
        512 * 2**20,
        ge=0,
        description="Free bytes of that disk below which the log, /readyz and /metrics warn.",
    )
    redis_connections: int = Field(
        16,
        ge=1,
        description="Connections to Redis per worker, in addition to the one that all models "
        "share; with a cluster, to each primary.",
    )
    redis_timeout_ms: int = Field(
        800, ge=50, description="Longest time of one command; then its connection is closed."
    )
    reply_bytes: int = Field(
        4 * 2**20,
        ge=1024,
        description="Bytes of the log in one answer of Redis; more are read in pages.",
    )


class AccessSettings(_Group):
    """Keys of the API, code of the operator, and the models to begin with."""

    keys_file: Path | None = Field(
        None,
        description="JSON file of the API keys' salted hashes, as `hinged key` makes them. Without "
        "keys every caller may do everything.",
    )
    keys: str | None = Field(None, description="The same as JSON text; both may be set.")
    models: str | None = Field(
        None,
        description="Your own pipelines: Python files or module:function, separated by commas. The "
        "service runs this code.",
    )
    preload: str | None = Field(
        None,
        description="Names of models to load at the start, separated by commas. Until they are "
        "loaded /readyz answers 503.",
    )


class LimitSettings(_Group):
    """Bounds on size and number; beyond them a call is refused."""

    max_body_bytes: int = Field(
        8 * 2**20, ge=1024, description="Largest request body; beyond it 413."
    )
    max_import_bytes: int = Field(
        256 * 2**20, ge=1024, description="Largest document of an imported model."
    )
    max_line_bytes: int = Field(
        8 * 2**20,
        ge=1024,
        description="Longest line of a body of lines. The body itself has no limit.",
    )
    max_events_per_call: int = Field(10_000, ge=1, description="Longest array in one call.")
    max_queued_events: int = Field(
        20_000, ge=1, description="Events waiting for the log, per model and worker; then 429."
    )
    max_queued_bytes: int = Field(
        32 * 2**20,
        ge=1,
        description="The same in bytes of their JSON; the limit that is reached first counts.",
    )
    max_requests: int = Field(
        5_000, ge=1, description="Requests that a worker has under way at once; then 429."
    )
    max_held_bytes: int = Field(
        64 * 2**20,
        ge=1024,
        description="Bytes that the bodies and large answers of all these requests may hold "
        "together, the answers half of it; then 429.",
    )
    max_answer_bytes: int = Field(
        16 * 2**20,
        ge=1024,
        description="Largest answer of a call, counted before it is made; then 413.",
    )
    max_models: int = Field(
        20_000, ge=1, description="Most models and aliases in one Redis; then PUT answers 409."
    )
    max_sources: int = Field(
        10_000,
        ge=1,
        description="Most sources of a stream; then a body of lines that names a new one is 409.",
    )
    max_model_bytes: int = Field(
        512 * 2**20,
        ge=4_096,
        le=2**40,
        description="Largest max_bytes in the spec of a new model, and its value if a spec has "
        "none: the bytes that a model may take for what it learns by name.",
    )
    max_replicas: int = Field(
        1_000,
        ge=1,
        description="Models that a worker keeps in memory; the least recently used is parked.",
    )
    max_parked_bytes: int = Field(
        64 * 2**20,
        ge=0,
        description="Memory of a worker for small models beyond max_replicas. Such a model is "
        "parked, about 5 kB, and open again without a read of Redis. 0: none is.",
    )
    max_live_feeds: int = Field(
        200, ge=0, description="Live feeds that may be open on a worker; then 429."
    )
    max_bound_events: int = Field(
        20_000, ge=1, description="Events that a bound certificate covers at most."
    )
    max_cost_per_event_ms: int = Field(
        200,
        ge=1,
        description="Estimated time of one event (30 numbers or 200 words, all classes) beyond "
        "which the spec of a new model is refused with 422.",
    )


class TimeoutSettings(_Group):
    """Bounds on time, in milliseconds."""

    max_staleness_ms: int = Field(
        100, ge=0, description="Age of a model beyond which a prediction asks Redis first."
    )
    read_wait_ms: int = Field(
        250,
        ge=1,
        description="Longest wait of a prediction for that read; then it answers from memory.",
    )
    append_timeout_ms: int = Field(
        900, ge=50, description="Longest wait of a learn call for Redis; then 503."
    )
    at_least_timeout_ms: int = Field(
        1_000,
        ge=1,
        description="Longest wait of a call for the position in its at_least; then 503.",
    )
    body_timeout_ms: int = Field(
        30_000,
        ge=1,
        description="Longest time to receive a body, and a second more per 64 KiB; then 408.",
    )
    lines_patience_ms: int = Field(
        10_000,
        ge=0,
        description="Longest wait of a body of lines for Redis or a full queue; then it fails.",
    )
    bound_timeout_ms: int = Field(
        10_000,
        ge=1,
        description="Longest time of a bound certificate for its fold, and for its search.",
    )


class SnapshotSettings(_Group):
    """Snapshots of models, and the log kept behind them."""

    snapshot_every_events: int = Field(50_000, ge=1, description="Events that make a snapshot due.")
    snapshot_every_names: int = Field(
        5_000,
        ge=1,
        description="Changed weights that make a snapshot due, of a model that has more of them "
        "than it changes each second.",
    )
    snapshot_every_byte_s: int = Field(
        2**20,
        ge=1,
        description="Bytes of unsaved log times their age in seconds that make a snapshot due: a "
        "busy model is saved each second, a quiet one less often.",
    )
    snapshot_every_ms: int = Field(
        600_000, ge=1, description="Age of an unsaved change that makes a snapshot due."
    )
    snapshot_chunk: int = Field(
        1_000, ge=1, le=3_000, description="Weights written or read in one command."
    )
    hold_ms: int = Field(
        10_000,
        ge=100,
        le=60_000,
        description="Longest time that a loading worker may keep a snapshot from being changed.",
    )
    retention_bytes: int = Field(
        64 * 2**20, ge=0, description="Bytes of the log kept behind the snapshots, per stream."
    )


class TelemetrySettings(_Group):
    """Metrics and logs."""

    metrics_models: int = Field(
        500, ge=0, description="Most models that /metrics names; it only counts the others."
    )
    metrics_dir: Path | None = Field(
        None,
        description="Existing directory for the counts of all workers of one service. `hinged "
        "serve` makes one.",
    )
    log_format: Literal["text", "json"] = Field(
        "text", description="Format of the log of `hinged serve`: text, or a JSON object per line."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Lowest level that `hinged serve` logs."
    )


class TuningSettings(_Group):
    """Trade-offs of throughput, latency and memory."""

    max_batch_events: int = Field(
        2_000, ge=1, description="Most events of waiting calls in one append."
    )
    inbox_poll_ms: int = Field(200, ge=10, description="Pause between two reads of the inboxes.")
    housekeeping_ms: int = Field(
        500, ge=10, description="Pause between two rounds of the background task."
    )
    fast_path: bool = Field(
        True,
        description="Answer plain predict and learn calls in the HTTP protocol itself.",
    )
    owners: Literal["auto", "off"] = Field(
        "auto",
        description="Workers of one service hand learn calls to the owner of the stream, so that "
        "others need not fold its events: auto if there are several, or off.",
    )
    seen_ids: int = Field(
        1_000_000,
        ge=1,
        description="Event ids that a new stream remembers before it may forget any.",
    )
    seen_s: int = Field(
        86_400,
        ge=1,
        description="Seconds that a new stream remembers an event id, if fewer than seen_ids newer "
        "ones came.",
    )


class Settings(
    TuningSettings,
    TelemetrySettings,
    SnapshotSettings,
    TimeoutSettings,
    LimitSettings,
    AccessSettings,
    RedisSettings,
):
    """All settings, read from `HINGED_...` environment variables or passed by name.

    They never decide the arithmetic of a model, which its spec alone does: workers with
    different settings agree on every model.
    """
