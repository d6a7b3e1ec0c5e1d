"""`python -m tests.bench`: measure, print tables; `--keep` keeps every value in RESULTS.json."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from hinged import kernel
from tests.bench import (
    arrays,
    cluster,
    doors,
    family,
    followers,
    http_calls,
    learners,
    lines,
    live,
    matrix,
    mixed,
    profile,
    promises,
    quality,
    replay,
    restart,
    results,
    scale,
    sizes,
    tables,
    text,
)
from tests.bench.load import generator
from tests.bench.table import Row, table
from tests.support.redis_server import server_binaries

RESULTS = Path(__file__).with_name("RESULTS.json")
PACKAGES = [
    *("hinged", "river", "scikit-learn", "vowpalwabbit", "fastapi", "starlette", "uvicorn"),
    *("uvloop", "httptools", "pydantic", "msgspec", "orjson", "redis", "hiredis"),
]


class Part(NamedTuple):
    """A part of the measurements.

    Attributes
    ----------
    title
        Heading of its table.
    measure
        Returns the rows, given a folder (unless `in_process`) and `whole` or `quick`.
    whole, quick
        Rounds and sizes of a whole run and of a quick one.

    """

    title: str
    measure: Callable[..., list[Row]]
    whole: tuple[object, ...]
    quick: tuple[object, ...]
    in_process: bool = False


LENGTHS = (1_000, 10_000, 100_000, 1_000_000)
PARTS = {
    "http": Part("Single calls, 16 connections", http_calls.measure, (5, 2), (3, 1)),
    "arrays": Part("Arrays of 500", arrays.measure, (7, 60), (3, 30)),
    "lines": Part("Bodies of lines", lines.measure, (7, 60), (3, 30)),
    "doors": Part(
        "Files and streams against arrays of 500", doors.measure, (7, 50_000), (3, 5_000)
    ),
    "live": Part("Learning while 50 watch, 16 connections", live.measure, (5, 2), (3, 1)),
    "followers": Part("Followers, and what 100 cost", followers.measure, (5, 5_000), (2, 500)),
    "learners": Part(
        "In process, 30 random features of 20,000",
        *(learners.measure, (9, 20_000), (3, 10_000), True),
    ),
    "family": Part(
        "Every learner in process, beside River's nearest relative",
        *(family.measure, (5, 2_000), (1, 500), True),
    ),
    "tables": Part("Whole tables", tables.measure, (5, 50_000), (1, 5_000), True),
    "text": Part("From text to weights", text.measure, (5, 50_000), (1, 5_000)),
    "matrix": Part("The service over connections and workers", matrix.measure, (3, 1), (1, 1)),
    "mixed": Part(
        "Predictions while others learn, 64 connections, 2 workers", mixed.measure, (5, 3), (3, 2)
    ),
    "replay": Part(
        "A log folded in again, in process, entries of 500", replay.measure, (9, 20), (3, 10), True
    ),
    "restart": Part("Restart", restart.measure, (5, 1_000_000), (3, 100_000)),
    "promises": Part("Promised in seconds", promises.measure, (5, 1_000_000), (1, 100_000)),
    "growth": Part("Growth with the log", restart.measure_growth, (3, LENGTHS), (1, LENGTHS[:2])),
    "sizes": Part("What things weigh", sizes.measure, (2, 200_000), (1, 10_000)),
    "scale": Part(
        "Growth with models, features and workers", scale.measure, (3, 1, 10_000), (1, 1, 100)
    ),
    "cluster": Part(
        "A million models on a cluster: unit costs, and what they come to",
        *(cluster.measure, (3, 1_000_000, 2_000, 4), (1, 100_000, 50, 1)),
    ),
    "quality": Part(
        "Accuracy, predicted before learning", quality.measure, (False,), (True,), True
    ),
    "profile": Part("Where a worker's time goes", profile.measure, (8,), (2,)),
}


def main() -> None:
    """Run the parts that the command line names, or show what was kept."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few short runs")
    parser.add_argument(
        "--json", type=Path, help="keep every value there, in place of what the file holds"
    )
    parser.add_argument(
        "--keep", action="store_true", help="keep the parts measured in RESULTS.json, not --quick"
    )
    parser.add_argument(
        "--compare", type=Path, metavar="OLD.json", help="tell what became slower since that run"
    )
    parser.add_argument(
        "--show",
        action="store_true",
        help="measure nothing: print the tables of --json, of RESULTS.json if left out",
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(PARTS)}; all")
    options = parser.parse_args()
    if options.keep and options.quick:
        parser.error("--keep is for whole runs of a part: leave --quick out")
    if unknown := set(options.parts) - PARTS.keys():
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    parts = {
        name: part for name, part in PARTS.items() if not options.parts or name in options.parts
    }
    old: results.Results | None = None
    try:
        if options.show:
            _show(results.read(options.json or RESULTS), parts)
            return
        if options.compare is not None:
            old = results.read(options.compare)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    new: results.Results = {}
    for name, part in parts.items():
        print(f"… {part.title}", flush=True)
        sizes = part.quick if options.quick else part.whole
        with tempfile.TemporaryDirectory() as folder:
            machine = _machine()
            rows = part.measure(*() if part.in_process else (Path(folder),), *sizes)
        new[part.title] = results.Section(machine, rows)
        print(_table(name, rows), flush=True)
        if options.keep:  # part by part: a whole run takes long
            results.write(RESULTS, results.read(RESULTS) | {part.title: new[part.title]})
    print(_machine())
    if options.json is not None:
        results.write(options.json, new)
    if old is not None:
        slower = results.changes(old, new)
        print("\n".join(slower) or "Nothing became worse beyond what rounds differ by.")


def _show(kept: results.Results, parts: Mapping[str, Part]) -> None:
    """Print the tables as Markdown, with what each was measured on where that changes."""
    print("# Measured by `python -m tests.bench`")
    machine = ""
    for name, part in parts.items():
        section = kept.get(part.title)
        if section is None:
            continue
        print(f"\n## {part.title}\n\n{_table(name, section.rows)}")
        if section.machine != machine:
            machine = section.machine
            print(f"\n{machine}")


def _table(part: str, rows: list[Row]) -> str:
    return quality.grid(rows) if part == "quality" else table(rows)


def _machine() -> str:
    """Return what the numbers depend on, apart from the code."""
    versions = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    servers = "; ".join(_server_version(path) for path in server_binaries().values())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB; "
        f"{platform.system()}; load average {os.getloadavg()[0]:.1f}.\n"
        f"{platform.python_implementation()} {platform.python_version()}, {kernel.kind()} kernel; "
        f"{versions}.\n"
        f"{servers}. Load: {generator()}. One uvicorn worker each. Per row the median and the "
        "range over repeated rounds; a ratio's two sides come from the same round."
    )


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _server_version(path: str) -> str:
    output = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    words = [word for word in output.split() if not word.startswith(("sha=", "build=", "malloc="))]
    return " ".join(words)


if __name__ == "__main__":
    main()
