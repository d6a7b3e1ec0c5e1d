"""Conformance checks for learners: for those of this package, and for rules of your own.

One file for all, past 400 lines: a list of checks, each to be read by itself.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import itertools
import json
import math
import pickle
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from hinged.base import LinearClassifier
from hinged.binary import BinaryLinearClassifier
from hinged.errors import InvalidEvent, InvalidState
from hinged.events import Label
from hinged.frames import Frame, Series
from hinged.vector import Event

__all__ = [
    "Check",
    "assert_finite",
    "check_finite",
    "check_learner",
    "frame_makers",
    "name_of",
    "plain_state",
    "yield_checks",
]

Check = Callable[[LinearClassifier], None]
Row = tuple[dict[str, float], Label]
FrameMakers = tuple[Callable[[dict[str, Any]], Frame], Callable[[Any], Series]]
Refusal = TypeVar("Refusal", bound=Exception)
HUGE = 1.7976931348623157e308


def check_learner(model: LinearClassifier) -> None:
    """Check that a learner keeps the promises of this package and of River.

    River's own checks need scikit-learn and pandas. Those of batches run on each of
    pandas, Polars and PyArrow that is installed.

    Parameters
    ----------
    model
        A learner that has not learned, of this package or a subclass; only clones of
        it learn. Checks named by its `_unit_test_skips` are left out.

    Raises
    ------
    AssertionError
        At the first promise that is not kept; a note names the check. What a learner
        raises itself comes through likewise.

    Examples
    --------
    >>> from hinged import Perceptron, checks
    >>> checks.check_learner(Perceptron(margin=0.5))

    """
    for check in yield_checks(model):
        try:
            check(model.clone())
        except Exception as error:
            error.add_note(f"in {name_of(check)} of {type(model).__name__}")
            raise


def yield_checks(model: LinearClassifier, river: bool = True) -> Iterator[Check]:
    """Yield the checks of a learner: callables with a name that take a fresh clone of it.

    Parameters
    ----------
    model
        The learner to be checked.
    river
        Whether River's own checks come first.

    """
    skips = model._unit_test_skips()
    checks: Iterable[Check] = CHECKS
    if river:
        from river.checks import yield_checks as of_river

        checks = itertools.chain(of_river(model), CHECKS)
    for check in checks:
        if name_of(check) not in skips:
            yield check


def name_of(check: Check) -> str:
    """Return the name of a check, as `_unit_test_skips` gives it."""
    return str(getattr(check, "__name__", check))


def plain_state(model: LinearClassifier) -> dict[str, Any]:
    """Return a copy of the state of a learner, its vectors as dictionaries."""
    state = model.get_state()
    return {**state, "vectors": {n: dict(v.view()) for n, v in state["vectors"].items()}}


def frame_makers() -> dict[str, FrameMakers]:
    """Return how to make a frame and a series, for each library of frames installed."""
    found: dict[str, FrameMakers] = {}
    for name, frame, series in (
        ("pandas", "DataFrame", "Series"),
        ("polars", "DataFrame", "Series"),
        ("pyarrow", "table", "array"),
    ):
        with contextlib.suppress(ModuleNotFoundError):
            library = importlib.import_module(name)
            found[name] = getattr(library, frame), getattr(library, series)
    return found


def _labels(model: LinearClassifier) -> list[Label]:
    return ["A", "B", "C"] if model._multiclass else [True, False]


def _rows(model: LinearClassifier, count: int, seed: int = 7) -> list[Row]:
    """Return events with noise, an unused feature now and then, and labels that can be learned."""
    chance, labels, rows = random.Random(seed), _labels(model), []  # noqa: S311
    for number in range(count):
        label = labels[number if number < len(labels) else chance.randrange(len(labels))]
        centre = float(labels.index(label))
        x = {name: chance.gauss(centre - power, 0.7) for power, name in enumerate("abc")}
        rows.append(({**x, "d": 0.0} if number % 5 == 0 else x, label))
    return rows


def _taught(model: LinearClassifier, rows: Iterable[Row]) -> LinearClassifier:
    for x, y in rows:
        model.learn_one(x, y)
    return model


def _columns(rows: Iterable[Row]) -> dict[str, list[float]]:
    table = [x for x, _ in rows]
    return {name: [x[name] for x in table] for name in "abc"}


def check_outcomes_are_honest(model: LinearClassifier) -> None:
    """Compare every outcome with the prediction before it, and the sums with the outcomes."""
    total, weights = model.accounting, (1.0, 1.0, 0.0)
    mistakes = updates = 0
    losses = []
    for number, (x, y) in enumerate(_rows(model, 150)):
        y_pred, score = model.predict_one(x), model.score_one(x)
        before, w = plain_state(model)["vectors"], weights[number % 3]
        outcome = model.predict_learn_one(x, y, w)
        assert (outcome.y_pred, outcome.score) == (y_pred, score), "predicted before learning"
        assert outcome.mistake is (w > 0.0 and y_pred is not None and y_pred != y)
        assert outcome.hinge_loss >= 0.0
        if w == 0.0:
            assert not outcome.updated
            assert outcome.hinge_loss == 0.0
        if w == 0.0 or not (outcome.updated or _moves_unseen(model)):
            after = plain_state(model)["vectors"]
            assert {n: v for n, v in after.items() if n in before} == before, "moved, not counted"
        mistakes += outcome.mistake
        updates += outcome.updated
        losses.append(outcome.hinge_loss)
        counted = total.events, total.mistakes, total.updates
        assert counted == (number + 1, mistakes, updates)
    assert math.isclose(total.hinge_loss, math.fsum(losses), rel_tol=1e-9)
    assert total.overflows == total.ignored == 0
    assert updates > 0, "nothing was ever learned"


def _moves_unseen(model: LinearClassifier) -> bool:
    """Return whether penalties, or a pocket, move stored numbers without an update."""
    names = plain_state(model)["vectors"].keys()
    return any({"shrink_marks", "pocket"}.intersection(name.split("/")) for name in names)


def check_loss_is_that_of_the_margin(model: LinearClassifier) -> None:
    """Compare the hinge loss with the score, where the weights that learn also predict."""
    for x, y in _rows(model, 60):
        state = model.get_state()
        stored = state["vectors"].get("weights")
        served = getattr(model, "weights", None)
        if stored is None or model._multiclass:
            return
        bias = model.score_one({})
        outcome = model.predict_learn_one(x, y)
        if dict(stored.view()) == served and state["scalars"]["intercept"] == bias:
            margin = outcome.score if y else -outcome.score
            assert outcome.hinge_loss == max(0.0, 1.0 - margin)


def _pickled(model: LinearClassifier) -> LinearClassifier:
    again: LinearClassifier = pickle.loads(pickle.dumps(model))  # noqa: S301
    return again


def check_copies_go_on_alike(model: LinearClassifier) -> None:
    """Pickle and copy a learner: both go on as it does and share nothing with it."""
    rows = _rows(model, 120)
    _taught(model, rows[:50])
    for duplicate in (_pickled, copy.deepcopy):
        one, twin, frozen = copy.deepcopy(model), duplicate(model), duplicate(model)
        before = plain_state(frozen)
        for x, y in rows[50:]:
            assert twin.predict_learn_one(x, y) == one.predict_learn_one(x, y)
        assert plain_state(twin) == plain_state(one) != before
        assert plain_state(frozen) == before


def check_clone_forgets(model: LinearClassifier) -> None:
    """Clone a learner that has learned: the parameters stay, all else is as new."""
    fresh, text = plain_state(model), repr(model)
    _taught(model, _rows(model, 50))
    clone = model.clone()
    assert repr(clone) == text
    assert plain_state(clone) == fresh != plain_state(model)
    assert model.accounting.events == 50


def check_state_restores(model: LinearClassifier) -> None:
    """Take a state through text that keeps no order: the learner goes on bit for bit."""
    rows = _rows(model, 120)
    through, before = model.clone(), _taught(model.clone(), rows[:60])
    _taught(through, rows[:60])
    for turned in (False, True):
        after = model.clone()
        after.set_state(_through_text(before, turned))
        one = copy.deepcopy(through)
        for x, y in rows[60:]:
            assert after.predict_learn_one(x, y) == one.predict_learn_one(x, y)
        assert after.accounting == one.accounting
        assert plain_state(after) == plain_state(one)
        assert [after.score_one(x) for x, _ in rows] == [one.score_one(x) for x, _ in rows]


def _through_text(model: LinearClassifier, turned: bool = False) -> dict[str, Any]:
    state = plain_state(model)
    vectors = {}
    for name, vector in state["vectors"].items():
        items = [(key, json.loads(json.dumps(value))) for key, value in vector.items()]
        vectors[name] = dict(reversed(items) if turned else items)
    return {**json.loads(json.dumps({**state, "vectors": None})), "vectors": vectors}


def check_damaged_state_is_refused(model: LinearClassifier) -> None:
    """Damage every part of a state: each is refused, and the learner has not changed."""
    good = _through_text(_taught(model, _rows(model, 40)))
    bad: list[Any] = [None, {}, {**good, "version": 0}, {**good, "type": "Other"}]
    for part in ("scalars", "vectors"):
        bad += [{**good, part: None}, {**good, part: {**good[part], "other": 1.0}}]
        for name, value in good[part].items():
            bad.append({**good, part: {k: v for k, v in good[part].items() if k != name}})
            wrong: dict[str, list[Any]]
            wrong = {"scalars": [math.nan, None, "1"], "vectors": [None, {"a": math.inf}, {"a": 1}]}
            bad += [{**good, part: {**good[part], name: w}} for w in wrong[part] if w != value]
    if "classes" in good:
        classes = good["classes"]
        bad += [{**good, "classes": c} for c in (None, classes[1:], [*classes[1:], classes[1]])]
        bad.append({**good, "classes": [*classes[1:], 1.5]})
    if "members" in good:
        members = good["members"]
        bad += [{**good, "members": m} for m in (None, members[1:], ["x"] * len(members))]
    for state in bad:
        _refused(InvalidState, model.set_state, state)
        assert _through_text(model) == good, "changed by a state that was refused"


def _refused(kind: type[Refusal], call: Callable[..., object], *arguments: object) -> Refusal:
    """Return the error of a call that must be refused."""
    try:
        call(*arguments)
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def check_changed_names_are_noted(model: LinearClassifier) -> None:
    """Track the vectors: each name whose number changed is reported."""
    rows = _rows(model, 80)
    _taught(model, rows[:40]).track()
    before = plain_state(model)["vectors"]
    _taught(model, [({**x, "fresh": 1.0}, y) for x, y in rows[40:]])
    for name, vector in model.get_state()["vectors"].items():
        now, old = vector.view(), before.get(name, {})
        changed = {key for key in {*now, *old} if now.get(key) != old.get(key)}
        assert changed <= vector.take_changed(), f"{name} changed unnoticed"


def check_predictions_change_nothing(model: LinearClassifier) -> None:
    """Predict, score and explain, unknown names included: the state does not change."""
    _taught(model, _rows(model, 40)).track()
    before = pickle.dumps(plain_state(model))
    for x in ({"unknown": 1.0}, {"a": 1.0, "b": -3.0}, {}):
        score = model.score_one(x)
        assert model.score_one(x) == score
        model.predict_one(x)
        model.predict_proba_one(x)
        model.debug_one(x)
        model.explain_one(x)
    assert pickle.dumps(plain_state(model)) == before
    assert not any(vector.changed_count() for vector in model.get_state()["vectors"].values())


def check_explanation_sums_to_score(model: LinearClassifier) -> None:
    """Sum the contributions of the features: they equal the score."""
    _taught(model, _rows(model, 40))
    for x in ({"a": 1.0, "b": -3.0}, {"c": 2.0, "unknown": 1.0}, {}):
        parts = math.fsum(model.explain_one(x).values())
        assert math.isclose(parts, model.score_one(x), rel_tol=1e-9, abs_tol=1e-12)


def check_served_score_is_the_score(model: LinearClassifier) -> None:
    """Compare a binary rule's `_served_score`, by which a follower predicts, with its score."""
    if not isinstance(model, BinaryLinearClassifier):
        return
    rows = _rows(model, 40)
    _taught(model, rows)
    for x, _ in rows:
        assert model._served_score(x) == model.score_one(x)


def check_missing_is_absent(model: LinearClassifier) -> None:
    """Learn and predict with NaN and `None`: as if the feature were absent."""
    one, other = model.clone(), model.clone()
    for number, (whole, y) in enumerate(_rows(model, 60)):
        # the first event has none of its features
        gone = [
            name for place, name in enumerate(whole) if number == 0 or (number + place) % 3 == 0
        ]
        x = {name: value for name, value in whole.items() if name not in gone}
        holed: Event = {**whole, **dict.fromkeys(gone, (math.nan, None)[number % 2])}
        assert other.score_one(holed) == one.score_one(x)
        assert other.predict_one(holed) == one.predict_one(x)
        assert other.predict_proba_one(holed) == one.predict_proba_one(x)
        assert other.explain_one(holed) == one.explain_one(x)
        assert other.debug_one(holed) == one.debug_one(x)
        assert other.predict_learn_one(holed, y) == one.predict_learn_one(x, y)
    assert plain_state(other) == plain_state(one)


def check_bad_events_are_refused(model: LinearClassifier) -> None:
    """Offer bad features, labels and weights: each is refused, and nothing has changed."""
    _taught(model, _rows(model, 20))
    before, good = plain_state(model), _labels(model)[0]
    x = {"a": 1.0, "b": 2.0}
    no_numbers: list[Any] = ["1", math.inf, -math.inf, 10**400, [1.0], 1j]
    no_labels: list[Any] = [None, math.nan, 0.5, [], {}]
    bad: list[tuple[Any, Any, Any, str]] = [
        *((v, good, 1.0, "x") for v in (None, [1.0], "a")),
        *(({**x, name: v}, good, 1.0, f"x['{name}']") for name in ("b", "new") for v in no_numbers),
        *((x, label, 1.0, "y") for label in no_labels),
        *((x, good, w, "w") for w in (-1.0, math.nan, math.inf, "1", None)),
    ]
    for features, y, w, field in bad:
        for learn in (model.learn_one, model.predict_learn_one):
            error = _refused(InvalidEvent, learn, features, y, w)
            assert error.field == field, f"{error} does not name {field}"
            assert plain_state(model) == before, f"changed by a bad {field}"
        if field.startswith("x"):
            for ask in (model.score_one, model.predict_one, model.predict_proba_one):
                assert _refused(InvalidEvent, ask, features).field == field


def check_batch_equals_sequence(model: LinearClassifier) -> None:
    """Learn a frame in chunks: state and answers are those of single calls, bit for bit."""
    rows = _rows(model, 60)
    table = _columns(rows)
    events = [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]
    labels = [y for _, y in rows]
    one = _taught(model.clone(), zip(events, labels, strict=True))
    for (kind, (frame, series)), chunk in itertools.product(frame_makers().items(), (1, 7, 60)):
        many = model.clone()
        for start in range(0, len(rows), chunk):
            part = slice(start, start + chunk)
            X = frame({name: values[part] for name, values in table.items()})
            many.learn_many(X, series(labels[part]))
        assert plain_state(many) == plain_state(one), f"{kind} by {chunk}"
        X = frame(table)
        assert list(many.predict_many(X).to_numpy()) == [one.predict_one(x) for x in events]
        probas = many.predict_proba_many(X)
        for label, p in one.predict_proba_one(events[0]).items():
            assert probas[label if kind == "pandas" else str(label)].to_numpy()[0] == p


def check_bad_batch_changes_nothing(model: LinearClassifier) -> None:
    """Offer frames with a bad row: the row and field are named, no row has been learned."""
    before, good = plain_state(model), _labels(model)[0]
    for frame, _ in frame_makers().values():
        for values, labels, w, field in (
            ([1.0, 2.0], [good, None], 1.0, "row 1: y"),
            ([1.0, 2.0], [good, good], [1.0, -1.0], "row 1: w"),
            ([1.0, math.inf], [good, good], 1.0, "row 1: x['a']"),
            ([1.0, 2.0], [good], 1.0, "y"),
        ):
            X = frame({"a": values})
            error = _refused(InvalidEvent, model.learn_many, X, labels, w)
            assert error.field == field, f"{error} does not name {field}"
            assert plain_state(model) == before


def check_finite(
    model: LinearClassifier, stream: Iterable[tuple[Mapping[Any, float], int, float]] | None = None
) -> None:
    """Learn numbers of all sizes: weights, scores, losses and probabilities stay finite.

    Parameters
    ----------
    model
        The learner.
    stream
        Events as features, number of the label and sample weight; by default 200
        drawn with a fixed seed.

    """
    labels, whole = _labels(model), _takes_whole_weights(model)
    for x, number, w in _extremes() if stream is None else stream:
        w = float(w > 0.0) if whole else w
        overflows, before = model.accounting.overflows, plain_state(model)["vectors"]
        outcome = model.predict_learn_one(x, labels[number % len(labels)], w)
        assert math.isfinite(outcome.score)
        assert math.isfinite(outcome.hinge_loss)
        assert_finite(model, x)
        left_out = model.accounting.overflows > overflows and not outcome.updated
        if left_out and not _moves_unseen(model):
            after = plain_state(model)["vectors"]
            assert {name: after[name] for name in before} == before, "moved by halves"
        if not model._multiclass:
            score = model.score_one(x)
            at_zero = score == 0.0 and getattr(model, "label_at_zero", False)
            assert model.predict_one(x) is (score > 0.0 or at_zero), "not the sign of the score"
    other = model.clone()
    other.set_state(model.get_state())
    assert plain_state(other) == plain_state(model)


def assert_finite(model: LinearClassifier, x: Event) -> None:
    """Assert that all numbers of the state, and the answers to an event, are finite."""
    state, proba = plain_state(model), model.predict_proba_one(x)
    assert all(map(math.isfinite, state["scalars"].values())), state["scalars"]
    for name, vector in state["vectors"].items():
        assert all(map(math.isfinite, vector.values())), name
    assert math.isfinite(model.score_one(x))
    assert all(0.0 < p < 1.0 for p in proba.values()) or list(proba.values()) == [1.0]
    assert not proba or math.isclose(math.fsum(proba.values()), 1.0)


def _takes_whole_weights(model: LinearClassifier) -> bool:
    """Return whether the rule takes sample weights of 0 and 1 only."""
    try:
        model.check_weight(0.5)
    except InvalidEvent:
        return True
    return False


def _extremes() -> Iterator[tuple[dict[str, float], int, float]]:
    chance = random.Random(3)  # noqa: S311
    values = [0.0, -0.0, 5e-324, -5e-324, 1e-200, 1e200, -1e200, HUGE, -HUGE, 1e154, 1.0, -2.5]
    for _ in range(200):
        names = chance.sample("abcd", chance.randrange(5))
        w = chance.choice([1.0, 1.0, 0.0, 0.5, 5e-324, 1e300, HUGE])
        yield {name: chance.choice(values) for name in names}, chance.randrange(6), w


CHECKS: tuple[Check, ...] = (
    check_outcomes_are_honest,
    check_loss_is_that_of_the_margin,
    check_copies_go_on_alike,
    check_clone_forgets,
    check_state_restores,
    check_damaged_state_is_refused,
    check_changed_names_are_noted,
    check_predictions_change_nothing,
    check_explanation_sums_to_score,
    check_served_score_is_the_score,
    check_missing_is_absent,
    check_bad_events_are_refused,
    check_batch_equals_sequence,
    check_bad_batch_changes_nothing,
    check_finite,
)
"""The checks of this package, which need neither scikit-learn nor pandas."""
