"""A visitor of the page that notes all complaints of the browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

PATIENCE_MS = 30_000

_LISTEN = """
addEventListener("securitypolicyviolation", (event) => {
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`);
});
"""


class Visit:
    """A tab of its own in a context of its own.

    `page` is Playwright's; `complaints` are errors of the console, of scripts and of the
    security policy, and answers of the service that the test did not expect.
    """

    def __init__(self, browser: Any, url: str, options: dict[str, Any]) -> None:
        self.url = url
        self.complaints: list[str] = []
        self.expected: set[int] = set()
        size = {"width": 1280, "height": 900}
        self._context = browser.new_context(
            **{"viewport": size, "reduced_motion": "reduce"} | options
        )
        self._context.set_default_timeout(PATIENCE_MS)
        self._context.add_init_script(_LISTEN)
        self.page = self._context.new_page()
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("response", self._on_response)

    def _on_console(self, message: Any) -> None:
        # A failed call is logged too; whether it may fail is known from its answer.
        if message.type in ("error", "warning") and "Failed to load resource" not in message.text:
            self.complaints.append(message.text)

    def _on_response(self, response: Any) -> None:
        if response.status >= 400 and response.status not in self.expected:
            self.complaints.append(f"{response.status} {response.url}")

    def go(self, path: str) -> None:
        """Open a view by the part of the address after the last slash."""
        self.page.goto(f"{self.url}/{path}")

    def button(self, name: str) -> Any:
        """A button by its name."""
        return self.page.get_by_role("button", name=name, exact=True)

    def card(self, title: str) -> Any:
        """A section by its title."""
        return self.page.get_by_role("region", name=title, exact=True)

    def number(self, key: str) -> float:
        """One of the numbers on top of a model's page; no number until it is known."""
        text = self.page.locator(f"[data-number={key}]").inner_text()
        found = re.search(r"[\d.,]+", text)
        return float(found[0].replace(",", "")) if found else float("nan")

    def until(self, condition: Callable[..., object], *given: Any) -> None:
        """Return once the condition holds of what is given."""
        waited_ms = 0
        while not condition(*given):
            assert waited_ms < PATIENCE_MS, "it did not happen in time"
            self.page.wait_for_timeout(50)
            waited_ms += 50

    def sees(self, text: str) -> None:
        """Wait until a text is shown somewhere."""
        self.page.get_by_text(text).first.wait_for()

    def close(self) -> None:
        """Close the tab."""
        self._context.close()
