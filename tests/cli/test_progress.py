"""Progress of commands whose work is the service's: shown at a terminal, and nowhere else."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.conftest import at_a_terminal, run_hinged
from tests.support.slow_service import SlowService


def test_a_terminal_sees_the_steps_with_rate_and_time_left(
    slow: SlowService, tmp_path: Path
) -> None:
    slow.proxy.delay_s = 0.02  # two seconds and more for each step
    code, screen = at_a_terminal(
        slow.service, ["export", "m", str(tmp_path / "m.json")], lambda _: False
    )
    plain = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", screen)
    assert code == 0
    for step in ("writing", "reading"):
        shape = rf"exporting: {step} .* \d+%  [\d,]+ weights/s +\S+ left: \d:\d\d:\d\d"
        assert re.search(shape, plain), plain


def test_elsewhere_the_work_is_done_in_silence(slow: SlowService) -> None:
    slow.proxy.delay_s = 0.012  # more than a second
    done = run_hinged("checkpoint", "m", "--json", HINGED_URL=slow.service.url)
    assert done.json()["model"] == "m"  # and nothing on standard error
