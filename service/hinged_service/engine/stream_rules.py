"""The rules of a stream, from the spec of a model that joins it and the settings."""

from __future__ import annotations

import json

from hinged_service.model.spec import LateLabels, ModelSpec
from hinged_service.settings import TuningSettings
from hinged_service.store.followers import DelayedLabelRules, Retention, StreamRules
from hinged_service.wire.dedup import label_digest

__all__ = ["stream_rules"]


def stream_rules(spec: ModelSpec, settings: TuningSettings) -> StreamRules:
    """Return the rules of the stream of a model with this spec."""
    kept = spec.retention
    return StreamRules(
        settings.seen_s * 1000,
        settings.seen_ids,
        Retention(*((None, None) if kept is None else (kept.events, kept.bytes))),
        None if spec.late_labels is None else _label_rules(spec.late_labels),
    )


def _label_rules(rules: LateLabels) -> DelayedLabelRules:
    default = rules.default_label
    return DelayedLabelRules(
        rules.wait_s * 1000,
        rules.max_waiting,
        "" if default is None else json.dumps(default),
        "" if default is None else label_digest(default),
        early=rules.early,
        declared=True,
    )
