"""The files of the page: all there, all our own, and under a policy that lets nothing else in."""

import json
import re

import httpx
import pytest

from hinged_service.api.api_keys import new_key
from hinged_service.web import POLICY, assets
from tests.support.redis_server import RedisServer
from tests.support.running import serving

FILES = sorted(assets())


def test_the_page_and_its_files_are_served(client: httpx.Client) -> None:
    page = client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for name in re.findall(r'"page/([^"]+)"', page.text):
        assert name in FILES
    for name in FILES:
        answer = client.get(f"/page/{name}")
        assert answer.content == assets()[name].body
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert client.get("/page/main.js").headers["content-type"] == "text/javascript; charset=utf-8"


def test_the_policy_lets_in_no_script_but_our_own() -> None:
    parts = dict(part.split(" ", 1) for part in POLICY.split("; "))
    assert parts["default-src"] == "'none'"
    assert parts["script-src"] == parts["style-src"] == "'self'"
    assert "unsafe" not in POLICY


@pytest.mark.parametrize("name", FILES)
def test_a_file_needs_nothing_from_elsewhere_and_parses_no_markup(name: str) -> None:
    text = assets()[name].body.decode()
    addresses = set(re.findall(r"https?://[^\s\"'`]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in text
    assert not re.search(r"\sstyle=|\son\w+=\"|<script>", text)
    for imported in re.findall(r'from "(\.[^"]+)"', text):
        parts = [*name.split("/")[:-1], *imported.split("/")]
        path: list[str] = []
        for part in parts:
            if part == "..":
                path.pop()
            elif part != ".":
                path.append(part)
        assert "/".join(path) in FILES


def _luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    """Return the contrast of WCAG 2, 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_colours_have_the_contrast_of_wcag_aa_in_both_themes() -> None:
    themes = re.findall(r":root \{(.*?)\}", assets()["page.css"].body.decode(), re.DOTALL)
    assert len(themes) == 2
    for theme in themes:
        colors = dict(re.findall(r"--([\w-]+): (#\w{6})", theme))
        for name in ("ink", "soft", "accent", "good", "bad", "drift", "command", "cold"):
            least = min(_contrast(colors[name], colors[on]) for on in ("paper", "ground"))
            assert least >= 4.5, f"text of {name}: {least:.2f}"
        assert _contrast(colors["accent"], colors["accent-ink"]) >= 4.5
        for name in ("edge", *(c for c in colors if re.match("(class|line)-", c))):
            assert _contrast(colors[name], colors["paper"]) >= 3.0, name


def test_a_browser_need_not_fetch_them_again(client: httpx.Client) -> None:
    first = client.get("/page/main.js")
    again = client.get("/page/main.js", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    other = client.get("/page/main.js", headers={"if-none-match": '"other"'})
    assert other.status_code == 200
    assert first.headers["cache-control"] == "no-cache", "asked for each time, fetched when new"


def test_heads_and_what_is_not_there(client: httpx.Client) -> None:
    assert client.head("/").status_code == 200
    assert client.head("/").content == b""
    for path in ("/page/", "/page/nothing.js", "/page/../security.py", "/page/%2e%2e/security.py"):
        assert client.get(path).status_code == 404
    assert client.post("/").status_code == 405


def test_the_page_needs_no_key_but_what_it_asks_for_does(own_server: RedisServer) -> None:
    _, record = new_key("root", ("predict",), ("*",))
    keys = json.dumps([record.model_dump(mode="json")])
    with serving(own_server.url, keys=keys) as client:
        for path in ("/", "/page/main.js", "/page/views/model.js"):
            assert client.get(path).status_code == 200
        for path in ("/v1/overview", "/v1/models/m/recent", "/v1/models/m/live", "/v1/models"):
            assert client.get(path).status_code == 401
