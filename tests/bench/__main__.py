"""`python -m tests.bench`: measure, print the table, and write it to RESULTS.md."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import subprocess
import tempfile
from pathlib import Path

from tests.bench import (
    arrays,
    cluster,
    compare,
    doors,
    family,
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
    scale,
    sizes,
    tables,
    text,
)
from tests.bench.load import generator
from tests.bench.table import Row, table
from tests.support.redis_server import server_binaries

RESULTS = Path(__file__).with_name("RESULTS.md")
PACKAGES = (
    *(
        "hinged",
        "river",
        "scikit-learn",
        "vowpalwabbit",
        "fastapi",
        "starlette",
        "uvicorn",
        "uvloop",
        "httptools",
    ),
    *("pydantic", "msgspec", "orjson", "redis", "hiredis"),
)


def main() -> None:
    """Run what the command line asks for."""
    parts = {
        "http": ("Single calls, 16 connections", _http),
        "arrays": ("Arrays of 500", _arrays),
        "lines": ("Bodies of lines", _lines),
        "doors": ("Files and streams against arrays of 500", _doors),
        "live": ("Learning while 50 watch, 16 connections", _live),
        "learners": ("In process, 30 random features of 20,000", _learners),
        "family": ("Every learner in process, beside River's nearest relative", _family),
        "tables": ("Whole tables", _tables),
        "text": ("From text to weights", _text),
        "matrix": ("The service over connections and workers", _matrix),
        "mixed": ("Predictions while others learn, 64 connections, 2 workers", _mixed),
        "replay": ("A log folded in again, in process, entries of 500", _replay),
        "restart": ("Restart", _restart),
        "promises": ("Promised in seconds", _promises),
        "growth": ("Growth with the log", _growth),
        "sizes": ("What things weigh", _sizes),
        "scale": ("Growth with models, features and workers", _scale),
        "cluster": ("A million models on a cluster, simulated", _cluster),
        "quality": ("Accuracy, predicted before learning", _quality),
        "profile": ("Where a worker's time goes", _profile),
    }
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few short runs, nothing written")
    parser.add_argument(
        "--json", type=Path, help="keep every value there; a whole run keeps RESULTS.json anyway"
    )
    parser.add_argument(
        "--compare", type=Path, metavar="OLD.json", help="tell what became slower since that run"
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=f"any of {', '.join(parts)}; all")
    given = parser.parse_args()
    if unknown := set(given.parts) - parts.keys():
        parser.error(f"there is no part {', '.join(sorted(unknown))}")
    old = None
    if given.compare is not None:
        try:
            old = compare.read(given.compare)
        except (OSError, ValueError) as error:
            parser.error(str(error))
    sections, found = ["# Measured by `python -m tests.bench`", _machine()], {}
    for name, (title, measure) in parts.items():
        if given.parts and name not in given.parts:
            continue
        print(f"… {title}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            found[title] = measure(Path(folder), given.quick)
        shown = quality.grid if name == "quality" else table
        shown_rows = shown(found[title])
        print(shown_rows, flush=True)
        sections.append(f"## {title}\n\n{shown_rows}")
        if not given.quick and not given.parts:  # part by part: a whole run takes long
            RESULTS.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
            compare.write(RESULTS.with_suffix(".json"), sections[1], found)
    machine = _machine()
    print(machine)
    if given.json is not None:
        compare.write(given.json, machine, found)
    if old is not None:
        slower = compare.changes(old, found)
        print("\n".join(slower) or "Nothing became worse beyond what rounds differ by.")


def _http(folder: Path, quick: bool) -> list[Row]:
    return http_calls.measure(folder, 3, 1) if quick else http_calls.measure(folder, 5, 2)


def _arrays(folder: Path, quick: bool) -> list[Row]:
    return arrays.measure(folder, 3, 30) if quick else arrays.measure(folder, 7, 60)


def _lines(folder: Path, quick: bool) -> list[Row]:
    return lines.measure(folder, 3, 30) if quick else lines.measure(folder, 7, 60)


def _doors(folder: Path, quick: bool) -> list[Row]:
    return doors.measure(folder, 3, 5_000) if quick else doors.measure(folder, 7, 50_000)


def _live(folder: Path, quick: bool) -> list[Row]:
    return live.measure(folder, 3, 1) if quick else live.measure(folder, 5, 2)


def _learners(_: Path, quick: bool) -> list[Row]:
    return learners.measure(3, 10_000) if quick else learners.measure(9, 20_000)


def _mixed(folder: Path, quick: bool) -> list[Row]:
    return mixed.measure(folder, 3, 2) if quick else mixed.measure(folder, 5, 3)


def _replay(_: Path, quick: bool) -> list[Row]:
    return replay.measure(3, 10) if quick else replay.measure(9, 20)


def _restart(folder: Path, quick: bool) -> list[Row]:
    return restart.measure(folder, 3, 100_000) if quick else restart.measure(folder, 5, 1_000_000)


def _promises(folder: Path, quick: bool) -> list[Row]:
    return promises.measure(folder, 1, 100_000) if quick else promises.measure(folder, 5, 1_000_000)


def _sizes(folder: Path, quick: bool) -> list[Row]:
    return sizes.measure(folder, 1, 10_000) if quick else sizes.measure(folder, 2, 200_000)


def _scale(folder: Path, quick: bool) -> list[Row]:
    return scale.measure(folder, 1, 1, 100) if quick else scale.measure(folder, 2, 1, 10_000)


def _cluster(_: Path, quick: bool) -> list[Row]:
    return cluster.measure(1, 100_000) if quick else cluster.measure(3, 1_000_000)


def _family(_: Path, quick: bool) -> list[Row]:
    return family.measure(1, 500) if quick else family.measure(5, 2_000)


def _tables(_: Path, quick: bool) -> list[Row]:
    return tables.measure(1, 5_000) if quick else tables.measure(5, 50_000)


def _text(folder: Path, quick: bool) -> list[Row]:
    return text.measure(folder, 1, 5_000) if quick else text.measure(folder, 5, 50_000)


def _matrix(folder: Path, quick: bool) -> list[Row]:
    return matrix.measure(folder, 1, 1) if quick else matrix.measure(folder, 3, 1)


def _growth(folder: Path, quick: bool) -> list[Row]:
    lengths = (1_000, 10_000) if quick else (1_000, 10_000, 100_000, 1_000_000)
    return restart.measure_growth(folder, 1 if quick else 3, lengths)


def _quality(_: Path, quick: bool) -> list[Row]:
    return quality.measure(quick)


def _profile(folder: Path, quick: bool) -> list[Row]:
    return profile.measure(folder, 2 if quick else 8)


def _machine() -> str:
    """Return what the numbers depend on besides the code."""
    versions = ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
    servers = "; ".join(_server_version(path) for path in server_binaries().values())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB; "
        f"{platform.system()}; load average {os.getloadavg()[0]:.1f}.\n"
        f"{platform.python_implementation()} {platform.python_version()}; {versions}.\n"
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
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    words = [word for word in said.split() if not word.startswith(("sha=", "build=", "malloc="))]
    return " ".join(words)


if __name__ == "__main__":
    main()
