"""What was freed is there for what comes next."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
from hinged_service.memory import keep_freed

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


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only the GNU C library is told")
def test_a_body_like_the_last_one_costs_no_page_faults() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    before, after = map(float, done.stdout.split())
    assert before > 50
    assert after < 5
