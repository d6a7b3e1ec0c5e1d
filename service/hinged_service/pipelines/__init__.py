"""Pipelines declared in a spec: a closed catalogue of River's transformers, made pure.

Nothing is imported, evaluated or unpickled by name: `Steps` lists what there is.
Every stage is deterministic (no set is iterated over, no random number drawn) and
bounded, and its state is plain numbers and text.
"""

from __future__ import annotations

from hinged_service.pipelines.catalogue import Step, Steps
from hinged_service.pipelines.pipeline import Pipeline
from hinged_service.pipelines.values import Value

__all__ = ["Pipeline", "Step", "Steps", "Value"]
