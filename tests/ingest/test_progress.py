"""The progress of an ingestion at a terminal."""

from __future__ import annotations

import pytest

from hinged_service.ingest.progress import Reporter
from hinged_service.ingest.writer import Tally


def test_a_terminal_sees_share_time_left_and_rate(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    tally = Tally()
    with Reporter(tally) as reporter:
        reporter.total_bytes = 200  # known once the files are open
        tally.records = 5
        reporter.show(50)
    written = capsys.readouterr().err  # the last of it stands there for certain
    assert "100%, about 0 s left" in written
    assert "/s" in written
