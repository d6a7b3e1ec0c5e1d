"""Settings of the service in groups, units in the names.

A function that needs one group takes that group; `Settings` is all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field
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


class _Group(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="HINGED_", extra="forbid")


class RedisSettings(_Group):
    """The Redis that keeps the models, and the way a worker speaks to it."""

    redis_url: str | None = Field(
        None,
        repr=False,
        description="redis://, rediss:// or unix:// address of a Redis >= 7.0 or Valkey >= 7.2, "
        "redis+sentinel:// of Sentinels or redis+cluster:// of a cluster. Without it an embedded "
        "Valkey keeps its data in data_dir.",
    )
    redis_password_file: Path | None = Field(
        None,
        description="File that holds the password for redis_url, read at start, if that has none.",
    )
    data_dir: Path = Field(
        Path.home() / ".local" / "share" / "hinged",
        description="Where the embedded Valkey keeps its append-only file.",
    )
    disk_reserve_bytes: int = Field(
        16 * 2**20,
        ge=2**20,
        description="Bytes of the disk set aside for the file of the embedded Valkey; without "
        "them learning is refused.",
    )
    disk_warning_bytes: int = Field(
        512 * 2**20, ge=0, description="Free bytes of that disk below which to warn."
    )
    redis_connections: int = Field(
        16, ge=1, description="Connections per worker to Redis, to each primary of a cluster."
    )
    redis_timeout_ms: int = Field(
        800, ge=50, description="Longest one command may take before its connection is given up."
    )
    reply_bytes: int = Field(
        4 * 2**20, ge=1024, description="Log bytes that one script reply may carry; then it pages."
    )


class AccessSettings(_Group):
    """Keys of the API, code of the operator, and the models to begin with."""

    keys_file: Path | None = Field(
        None,
        description="JSON file of the API keys' salted hashes, as `hinged key` makes them. Without "
        "keys anybody who reaches the service may do anything.",
    )
    keys: str | None = Field(None, description="The same as JSON text; both may be given.")
    models: str | None = Field(
        None,
        description="The operator's own pipelines: Python files or module:function, separated by "
        "commas. This code is run.",
    )
    preload: str | None = Field(
        None,
        description="Names of models to load at the start, separated by commas; before that the "
        "worker is not ready.",
    )


class LimitSettings(_Group):
    """Bounds on size and number; beyond them a call is refused."""

    max_body_bytes: int = Field(8 * 2**20, ge=1024, description="Largest request body.")
    max_import_bytes: int = Field(
        256 * 2**20, ge=1024, description="Largest document of an imported model."
    )
    max_line_bytes: int = Field(
        8 * 2**20,
        ge=1024,
        description="Longest line of a body of lines, which has no limit itself.",
    )
    max_events_per_call: int = Field(10_000, ge=1, description="Longest array in one call.")
    max_queued_events: int = Field(
        20_000, ge=1, description="Events waiting for the log, per model and worker; then 429."
    )
    max_queued_bytes: int = Field(
        32 * 2**20, ge=1, description="The same in bytes of their JSON; whichever comes first."
    )
    max_requests: int = Field(
        5_000, ge=1, description="Requests that a worker has under way at once; then 429."
    )
    max_held_bytes: int = Field(
        64 * 2**20,
        ge=1024,
        description="What the bodies and large answers of all these requests may hold together, "
        "the answers half of it; then 429.",
    )
    max_answer_bytes: int = Field(
        16 * 2**20,
        ge=1024,
        description="Largest answer of a call, counted before it is made; then 413.",
    )
    max_models: int = Field(
        20_000, ge=1, description="Models and aliases that there may be; then PUT answers 409."
    )
    max_sources: int = Field(
        10_000,
        ge=1,
        description="Sources a stream may have when a body of lines names a new one; then 409.",
    )
    max_model_bytes: int = Field(
        512 * 2**20,
        ge=4_096,
        le=2**40,
        description="The largest max_bytes of a new model, and that of a spec without one: what "
        "the model may learn by name.",
    )
    max_replicas: int = Field(
        1_000, ge=1, description="Models a worker keeps in memory; the least recently used goes."
    )
    max_live_feeds: int = Field(
        200, ge=0, description="Live feeds that may be open on a worker; then 429."
    )
    max_bound_events: int = Field(
        20_000, ge=1, description="Events that a bound certificate covers at most."
    )


class TimeoutSettings(_Group):
    """Bounds on time, in milliseconds."""

    max_staleness_ms: int = Field(
        100, ge=0, description="Age beyond which a prediction reads the log first."
    )
    read_wait_ms: int = Field(
        250, ge=1, description="Longest a prediction waits for that read before it answers stale."
    )
    append_timeout_ms: int = Field(
        900, ge=50, description="Longest a learn call waits for Redis before it answers 503."
    )
    at_least_timeout_ms: int = Field(
        1_000, ge=1, description="Longest a call waits for the position it asked for."
    )
    body_timeout_ms: int = Field(
        30_000,
        ge=1,
        description="Longest a body may be on its way, and a second more per 64 KiB; then 408.",
    )
    lines_patience_ms: int = Field(
        10_000,
        ge=0,
        description="Longest such a body waits in the middle for Redis or a full queue.",
    )
    bound_timeout_ms: int = Field(
        10_000, ge=1, description="Longest a bound certificate may fold and search, each."
    )


class SnapshotSettings(_Group):
    """Snapshots of models, and the log kept behind them."""

    snapshot_every_events: int = Field(10_000, ge=1, description="Events between snapshots.")
    snapshot_every_names: int = Field(
        5_000, ge=1, description="Changed weights that make a snapshot due."
    )
    snapshot_every_ms: int = Field(
        1_000, ge=1, description="Age of an unsaved change that makes a snapshot due."
    )
    snapshot_chunk: int = Field(
        1_000, ge=1, le=3_000, description="Weights written or read in one command."
    )
    hold_ms: int = Field(
        10_000,
        ge=100,
        le=60_000,
        description="Longest a loading worker may hold a model's snapshot still.",
    )
    retention_bytes: int = Field(
        64 * 2**20, ge=0, description="Log kept behind the snapshots, per stream."
    )


class TelemetrySettings(_Group):
    """Metrics and logs."""

    metrics_models: int = Field(
        500, ge=0, description="Models that /metrics names; of the others it tells how many."
    )
    metrics_dir: Path | None = Field(
        None,
        description="Existing directory where all workers of one service keep their counts, for "
        "/metrics. `hinged serve` makes one for its workers.",
    )
    log_format: Literal["text", "json"] = Field(
        "text", description="What `hinged serve` logs: text, or a line of JSON per record."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="What `hinged serve` logs at least."
    )


class TuningSettings(_Group):
    """Trade-offs of throughput, latency and memory."""

    max_batch_events: int = Field(
        2_000, ge=1, description="Events that one append may gather from waiting callers."
    )
    inbox_poll_ms: int = Field(
        200, ge=10, description="Pause between two looks for what came into the inboxes."
    )
    housekeeping_ms: int = Field(
        500, ge=10, description="Pause between two rounds of the background task."
    )
    fast_path: bool = Field(
        True,
        description="Whether plain predict and learn calls are answered where their bytes arrive.",
    )
    seen_ids: int = Field(
        1_000_000,
        ge=1,
        description="Event ids a new stream remembers before it may forget any.",
    )
    seen_s: int = Field(
        86_400,
        ge=1,
        description="How long a new stream remembers an event id at least, unless seen_ids came.",
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
    """All settings, read from `HINGED_...` environment variables or given by name.

    They never decide the arithmetic of a model, which its spec alone does: workers with
    different settings agree on every model.
    """
