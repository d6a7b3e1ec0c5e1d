"""The commands that speak to a running service."""

from __future__ import annotations

import typer

from hinged_service.cli.checkpoints import add as add_checkpoints
from hinged_service.cli.errors import ABOUT_CODES
from hinged_service.cli.events import add as add_events
from hinged_service.cli.keys import add as add_keys
from hinged_service.cli.models import add as add_models
from hinged_service.cli.streams import add as add_streams
from hinged_service.cli.upgrades import add as add_upgrades

__all__ = ["mount"]


def mount(cli: typer.Typer) -> None:
    """Add every verb to the command line.

    Parameters
    ----------
    cli
        The command line.

    """
    for add in (add_models, add_events, add_checkpoints, add_streams, add_upgrades, add_keys):
        add(cli)
    cli.info.epilog = ABOUT_CODES
