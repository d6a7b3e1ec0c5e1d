"""The export of a model's present state, through a temporary checkpoint."""

from __future__ import annotations

from hinged_service.client.sync_client import Client
from hinged_service.wire.progress import OnProgress

__all__ = ["export_model"]


def export_model(
    client: Client, name: str, checkpoint: str | None = None, progress: OnProgress | None = None
) -> bytes:
    """Return the document of a model: of a checkpoint, by default of its present state."""
    if checkpoint is not None:
        return client.export_checkpoint(name, checkpoint, progress=progress)
    made = client.make_checkpoint(name, progress=progress)
    try:
        return client.export_checkpoint(name, made.uid, progress=progress)
    finally:
        client.delete_checkpoint(name, made.uid)
