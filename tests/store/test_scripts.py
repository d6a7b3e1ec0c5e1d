"""The Lua texts and Python agree: on names of reasons, and on the kinds of replies."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Any, get_args, get_type_hints

import pytest

from hinged_service.store import aliases, snapshot, upgrades
from hinged_service.store.log_types import Appended, CaughtUp, Commanded, Refusal
from hinged_service.store.pending_predictions import KeepRefusal
from hinged_service.store.scripts import load


@pytest.mark.parametrize(
    ("script", "reasons"), [("append", Refusal), ("keep_predictions", KeepRefusal)]
)
def test_reasons_have_the_same_numbers_in_lua(script: str, reasons: type[IntEnum]) -> None:
    source = load(script).source
    table = re.search(rf"^local {reasons.__name__} = {{(.*?)}}", source, re.MULTILINE | re.DOTALL)
    assert table is not None
    documented = {name: int(number) for name, number in re.findall(r"(\w+) = (\d+)", table[1])}
    assert documented == {reason.name: reason.value for reason in reasons}
    assert set(re.findall(rf"\b{reasons.__name__}\.(\w+)", source)) == set(documented)


@pytest.mark.parametrize(
    ("script", "kinds"),
    [
        ("append", get_type_hints(Appended)["kind"]),
        ("command", get_type_hints(Commanded)["kind"]),
        ("catch_up", get_type_hints(CaughtUp)["kind"]),
        ("promote", get_type_hints(aliases.Promoted)["kind"]),
        ("upgrade", upgrades.Upgraded),
    ],
)
def test_kinds_of_replies_are_those_of_lua(script: str, kinds: Any) -> None:
    assert _kinds(script) == set(get_args(kinds))


def test_the_fates_of_a_snapshot_are_those_of_lua() -> None:
    assert _kinds("snapshot_changes") | _kinds("snapshot_full") == set(get_args(snapshot.Saved))


def _kinds(script: str) -> set[str]:
    source = re.sub("--.*", "", load(script).source)
    replies = re.findall(r"return {(?:moved and '(\w+)' or )?'(\w+)'", source)
    return {kind for found in replies for kind in found if kind}
