"""The tests of late labels can fail: with a line of a script changed, one of them does."""

import hashlib
from collections.abc import Callable
from typing import Any

import pytest
import redis

from hinged_service.store import log, pending_predictions
from hinged_service.store.scripts import Script
from tests.engine.delayed_labels import test_answers, test_at_once
from tests.engine.delayed_labels.conftest import NewFace

Scenario = Callable[[NewFace, redis.Redis], None]

CASES: list[tuple[Any, str, str, str, Scenario]] = [
    (
        *(log, "_APPEND", "redis.call('HINCRBY', meta, 'predicted', 0)", ""),
        lambda new, _: test_answers.test_an_event_sent_whole_takes_the_place_of_its_early_label(
            new
        ),
    ),
    (
        *(pending_predictions, "_KEEP", "if kept[id] then", "if false then"),
        lambda new, _: (
            test_answers.test_one_array_predicts_an_early_labels_id_with_one_set_of_features(new)
        ),
    ),
    (
        *(pending_predictions, "_KEEP", "if seen[i] then", "if false then"),
        lambda new, _: test_answers.test_an_event_learned_whole_is_not_predicted_under_its_id(new),
    ),
    (
        *(
            log,
            "_APPEND",
            "if waiting[2] == oldest(ring) then return false, Refusal",
            "if false then return false, Refusal",
        ),
        lambda new, _: test_answers.test_expired_is_told_from_unknown_and_labelled(new),
    ),
    (
        *(log, "_APPEND", "#early + #mine_early >= space", "false"),
        test_answers.test_early_labels_are_bounded_and_forgotten,
    ),
    (
        *(pending_predictions, "_KEEP", "request)\n    claim(meta, ring, slot)", "request)"),
        test_at_once.test_predictions_race_their_early_labels,
    ),
]


@pytest.mark.parametrize(("module", "name", "before", "after", "scenario"), CASES)
def test_without_it_a_test_fails(
    monkeypatch: pytest.MonkeyPatch,
    new: NewFace,
    db: redis.Redis,
    module: Any,
    name: str,
    before: str,
    after: str,
    scenario: Scenario,
) -> None:
    script: Script = getattr(module, name)
    assert before in script.source
    source = script.source.replace(before, after)
    sha = hashlib.sha1(source.encode()).hexdigest()
    monkeypatch.setattr(module, name, Script(script.name, source, sha))
    with pytest.raises(AssertionError):
        scenario(new, db)
