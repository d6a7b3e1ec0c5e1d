"""The version of git that this installation is of."""

from __future__ import annotations

import contextlib
import json
import subprocess
from importlib import metadata, resources
from pathlib import Path

import hinged

__all__ = ["git_version"]

_TIMEOUT_S = 5


def git_version() -> str | None:
    """Return the commit, marked if files were changed since; `None` if there is none.

    A checkout asks git. A wheel built from one holds it, and a package that was installed from a
    git address has it in its metadata.
    """
    root = Path(hinged.__file__).parents[2]
    if (root / ".git").exists():
        describe = ["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]  # no tags
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(  # noqa: S603 - our own arguments, no shell
                ["git", "-C", str(root), *describe],  # noqa: S607 - that of the user
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=True,
            )
            return done.stdout.strip()
        return None
    built = resources.files("hinged_service").joinpath("commit.txt")
    if built.is_file():
        return built.read_text("utf-8").strip()
    with contextlib.suppress(metadata.PackageNotFoundError, ValueError):
        found = json.loads(metadata.distribution("hinged").read_text("direct_url.json") or "{}")
        commit = found.get("vcs_info", {}).get("commit_id")
        return commit[:12] if isinstance(commit, str) else None
    return None
