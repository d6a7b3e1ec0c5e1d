"""Freed memory is there for the next request, and a worker does not look through its modules."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

RETURNED = """
import resource
from pathlib import Path
from hinged_service.server.memory import keep_freed

def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6

keep_freed()
table = bytearray(b"x" * 8_000_000)
what_comes_after = [bytearray(b"x" * 100_000) for _ in range(20)]
before = resident_mb()
del table
print(before - resident_mb())
"""

PROGRAM = """
import resource
from hinged_service.server.memory import keep_freed

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        parts = [bytearray(b"x" * 340_000) for _ in range(4)]
        del parts
    return (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 50

faults()
before = faults()
keep_freed()
faults()
print(before, faults())
"""


def _printed(program: str) -> str:
    """Return the output of a program in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only the GNU C library is told")
def test_a_body_like_the_last_one_costs_no_page_faults() -> None:
    before, after = map(float, _printed(PROGRAM).split())
    assert before > 50
    assert after < 5


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="only Linux tells")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only the GNU C library is told")
def test_a_table_that_a_model_outgrew_is_given_back() -> None:
    assert float(_printed(RETURNED)) > 7


WORKER = """
import gc
from hinged_service.cli.serve import worker_app

app = worker_app()
print(gc.get_freeze_count(), len(gc.get_objects()))
"""


def test_a_worker_looks_for_garbage_among_what_came_after_its_imports_only() -> None:
    spared, looked_through = map(int, _printed(WORKER).split())
    assert spared > 50_000
    assert looked_through < 1_000
