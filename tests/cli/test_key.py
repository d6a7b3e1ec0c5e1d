"""`hinged key`: a key is shown once, its hash is kept, and the service knows it."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hinged_service.api.api_keys import Keys
from hinged_service.cli.main import cli


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["key", *arguments])
    return result.exit_code, result.output


def test_a_key_is_shown_once_and_known_afterwards(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    code, printed = run("web", "--scope", "predict", "--model", "spam*", "--file", str(file))
    assert code == 0
    key = printed.splitlines()[0].rpartition(" ")[2]
    assert key.rpartition("_")[2] not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert run("teacher", "--scope", "learn", "--scope", "admin", "--file", str(file))[0] == 0
    keys = Keys.load(file, None)
    assert keys is not None
    found = keys.identify(f"Bearer {key}".encode())
    assert (found.name, found.scopes, found.models) == ("web", ("predict",), ("spam*",))
    assert [record["name"] for record in json.loads(file.read_text())] == ["web", "teacher"]


def test_a_file_of_keys_may_begin_with_a_mark(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    run("web", "--file", str(file))
    marked = b"\xef\xbb\xbf" + file.read_bytes()
    file.write_bytes(marked)
    assert [key.name for key in Keys.load(file, None) or ()] == ["web"]
    assert [key.name for key in Keys.load(None, marked.decode()) or ()] == ["web"]
    assert run("teacher", "--file", str(file))[0] == 0
    assert [key.name for key in Keys.load(file, None) or ()] == ["web", "teacher"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["a b"], "not a valid name"), (["a", "--scope", "root"], "is not a scope"), ([], "")],
)
def test_bad_arguments_for_a_key_are_refused(arguments: list[str], message: str) -> None:
    code, printed = run(*arguments)
    assert code == 2
    assert message in printed


def test_no_key_is_shown_that_cannot_be_kept(tmp_path: Path) -> None:
    code, shown = run("web", "--file", str(tmp_path / "none" / "keys.json"))
    assert code == 2
    assert "Cannot write" in shown
    assert "hinged_web" not in shown


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_text('{"not": "keys"}')
    assert run("web", "--file", str(file))[0] == 2
    assert file.read_text() == '{"not": "keys"}'
    file.unlink()
    assert run("web", "--file", str(file))[0] == 0
    before = file.read_text()
    assert run("web", "--file", str(file))[0] == 2
    assert file.read_text() == before
