"""Build hook: compile the inner loops if there is a C compiler, else install those in Python."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNEL = Path("core/hinged/kernel")
FLAGS = ["-O2", "-DNDEBUG", "-fPIC", "-fno-strict-aliasing"]
SAME_BITS = ["-ffp-contract=off"]  # and never -ffast-math: each operation rounds as in Python


class KernelHook(BuildHookInterface):
    """Add the compiled `hinged.kernel.native` to a wheel, or say why it is left out."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile into a temporary folder; into the tree for an editable install."""
        if self.target_name != "wheel":
            return
        self._folder = Path(tempfile.mkdtemp())
        if version != "editable" and (commit := commit_of(Path(self.root))):
            (self._folder / "commit.txt").write_text(f"{commit}\n", "utf-8")
            source = str(self._folder / "commit.txt")
            build_data["force_include"][source] = "hinged_service/commit.txt"
        if os.environ.get("HINGED_PURE", "") not in ("", "0"):
            self.app.display_warning("HINGED_PURE is set: hinged.kernel stays in Python")
            return
        try:
            library = compiled(Path(self.root), self._folder)
        except (OSError, subprocess.CalledProcessError, RuntimeError) as error:
            self.app.display_warning(f"hinged.kernel stays in Python, which is slower: {error}")
            return
        if version == "editable":
            put(library, Path(self.root) / KERNEL)
        else:
            build_data["force_include"][str(library)] = f"hinged/kernel/{library.name}"
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary folder."""
        shutil.rmtree(getattr(self, "_folder", ""), ignore_errors=True)


def commit_of(root: Path) -> str | None:
    """Return the commit of a checkout, marked if files were changed since."""
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments, no shell
            [*command, "--exclude=*"], check=True, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def compiled(root: Path, folder: Path) -> Path:
    """Return the extension compiled into a folder, or raise why there is none."""
    if os.name != "posix" or sys.maxsize < 2**32:
        raise RuntimeError("only 64-bit systems with a compiler like cc are known to give its bits")
    source = folder / "native.c"
    library = folder / f"native{sysconfig.get_config_var('EXT_SUFFIX')}"
    cython = [sys.executable, "-m", "cython", "-3", str(root / KERNEL / "native.pyx")]
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    mac = sys.platform == "darwin"
    bundle = ["-bundle", "-undefined", "dynamic_lookup"] if mac else ["-shared"]
    given = shlex.split(os.environ.get("ARCHFLAGS", "") + " " + os.environ.get("CFLAGS", ""))
    include = f"-I{sysconfig.get_path('include')}"
    for command in (
        [*cython, "-o", str(source)],
        [*compiler, *given, *FLAGS, *SAME_BITS, include, *bundle, str(source), "-o", str(library)],
    ):
        subprocess.run(command, check=True)  # noqa: S603 - the compiler of this Python
    return library


def put(library: Path, folder: Path) -> None:
    """Put a library into a folder, as a new file: the old one may be in use."""
    new = shutil.copy2(library, folder / f"{library.name}.new")
    Path(new).replace(folder / library.name)


if __name__ == "__main__":  # into the tree, for work on the kernel
    with tempfile.TemporaryDirectory() as made:
        put(compiled(Path(), Path(made)), KERNEL)
