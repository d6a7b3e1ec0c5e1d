"""Run `hinged` in a process of its own, forked from one that has imported everything.

To import the service takes most of a second, which most commands last in all.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.process
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

__all__ = ["enter", "fresh", "processes", "run_forked"]

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload(
    [
        *("hinged_service.app", "hinged_service.cli.main", "hinged_service.client"),
        *("river.ensemble", "river.metrics", "river.naive_bayes", "river.preprocessing"),
        "tests.support.forked",
    ]
)


def run_forked(
    arguments: Sequence[str], environment: dict[str, str], stdin: str = "", seconds: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run `hinged` with these arguments and this environment to its end; warnings are errors."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "0").write_text(stdin, encoding="utf-8")
        process = processes.Process(
            target=_run, args=(arguments, environment, folder, str(Path.cwd()))
        )
        with fresh():
            process.start()
        process.join(seconds)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise subprocess.TimeoutExpired(list(arguments), seconds)
        out, err = ((Path(folder) / fd).read_text(encoding="utf-8") for fd in "12")
        return subprocess.CompletedProcess(arguments, process.exitcode, out, err)


@contextlib.contextmanager
def fresh() -> Iterator[None]:
    """Keep the tests' own warnings filter from what the fork server does at its start."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        yield


def _run(arguments: Sequence[str], environment: dict[str, str], folder: str, cwd: str) -> None:
    for fd, flags in enumerate((os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_CREAT)):
        opened = os.open(Path(folder) / str(fd), flags)
        os.dup2(opened, fd)
        os.close(opened)
    os.chdir(cwd)
    warnings.simplefilter("error")
    enter(arguments, environment)


def enter(arguments: Sequence[str], environment: dict[str, str]) -> None:
    """Be `hinged` with these arguments, in a process that is forked and has its three files."""
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    sys.stdin = open(0, encoding=encoding, closefd=False)  # noqa: SIM115 - open as long as we run
    sys.stdout = open(1, "w", encoding=encoding, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding=encoding, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["hinged", *arguments]
    if environment.get("PYTHONWARNINGS") == "error":
        warnings.simplefilter("error")
    # As from a shell: a parent known to multiprocessing would make it a worker of that parent.
    multiprocessing.process._parent_process = None  # type: ignore[attr-defined]
    sys.modules["__main__"] = _main_module()
    from hinged_service.cli.main import main

    main()


def _main_module() -> ModuleType:
    """Return what a command has as its main module, which workers that it starts import."""
    module = ModuleType("__main__")
    script = Path(sys.executable).with_name("hinged")
    if script.exists():
        module.__file__ = str(script)
    return module
