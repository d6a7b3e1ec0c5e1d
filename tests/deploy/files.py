"""The files of a deployment, parsed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def documents(path: Path) -> list[dict[str, Any]]:
    """The YAML documents of a file."""
    return list(yaml.safe_load_all(path.read_text()))


def compose() -> dict[str, Any]:
    """docker-compose.yml, its merges done."""
    (whole,) = documents(ROOT / "docker-compose.yml")
    return whole


def kustomization() -> dict[str, Any]:
    (whole,) = documents(DEPLOY / "kustomization.yaml")
    return whole


def manifests() -> list[dict[str, Any]]:
    """Every object of deploy/kubernetes, also those that are not applied with the others."""
    paths = sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    return [document for path in paths for document in documents(path)]


def manifest(kind: str, name: str = "hinged") -> dict[str, Any]:
    (found,) = [m for m in manifests() if (m["kind"], m["metadata"]["name"]) == (kind, name)]
    return found


def containers() -> dict[str, dict[str, Any]]:
    """By name of its pod's object the only container."""
    found = {}
    for one in manifests():
        if "template" in one.get("spec", {}):
            (found[one["metadata"]["name"]],) = one["spec"]["template"]["spec"]["containers"]
    return found


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, in order, continued lines joined."""
    text = (DEPLOY / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [
        (word, rest.strip()) for word, _, rest in (x.partition(" ") for x in joined.split("\n"))
    ]


def every(word: str) -> list[str]:
    """Return the arguments of each such instruction of the Dockerfile."""
    return [rest for instruction, rest in instructions() if instruction == word]


def pinned(image: str) -> bool:
    """Return whether an image is named by a whole version or a digest."""
    return re.search(r":v?\d+\.\d+\.\d+(-[\w.-]+)?$|@sha256:[0-9a-f]{64}$", image) is not None
