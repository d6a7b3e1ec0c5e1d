"""`hinged demo` where there is a screen: it opens the page and lets people watch."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests.e2e.page.conftest import Open
from tests.support.processes import wait_until


def test_the_demo_opens_the_page_and_stays_up(visit: Open, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HINGED_")}
    screen = {"DISPLAY": ":0", "BROWSER": str(browser), "TMPDIR": str(tmp_path), "TERM": "xterm"}
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "hinged_service.cli.main", "demo"]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=kept | screen) as demo:
        os.close(theirs)
        threading.Thread(target=_drained, args=(ours,), daemon=True).start()
        try:
            wait_until(opened.exists, 60)
            url, _, path = opened.read_text().rpartition("/#")
            here = visit(f"#{path}", url=url)
            here.page.locator(".status.live").wait_for()
            here.page.get_by_role("heading", name="phishing", level=1).wait_for()
            here.until(lambda: here.number("events") > 0)
            before = here.number("events")
            here.until(lambda: here.number("events") > before or before == 1_250)
            here.until(lambda: "phishing-averaged" in here.card("Challengers").inner_text())
            here.close()
        finally:
            demo.send_signal(signal.SIGINT)
        assert demo.wait(60) in (0, 130)


def _drained(terminal: int) -> None:
    try:
        while os.read(terminal, 65_536):
            pass
    except OSError:  # a terminal without a writer reads as an error
        os.close(terminal)
