"""River's classifiers behind the face of hinged's learners."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from river import linear_model, tree

import hinged
from hinged_service.river_support import state as river_state
from tests.evaluation.specs import ALL, BINARY, MULTICLASS, built, parsed, stream

ROOT = Path(__file__).parents[2]


NORMED = ("pa_1", "pa_2", "alma")
"""Rules that take a norm, which River leaves to the processor."""


def weights_of(model: Any) -> dict[str, float]:
    return dict(model.w if isinstance(model, linear_model.ALMAClassifier) else model.weights)


def through_json(state: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(state, sort_keys=True))  # type: ignore[no-any-return]


def cpu_flags() -> str:
    info = Path("/proc/cpuinfo")
    return info.read_text() if info.exists() else ""


def dumped(learner: Any) -> str:
    return json.dumps(learner.get_state(), sort_keys=True)


@pytest.mark.parametrize("name", BINARY)
def test_a_binary_learner_answers_as_river_does(name: str) -> None:
    ours, theirs = built(name), parsed(BINARY[name]).river()
    for x, y in stream(name):
        proba, label = theirs.predict_proba_one(x), theirs.predict_one(x)
        assert ours.score_one(x) == pytest.approx(2.0 * proba[True] - 1.0, abs=1e-12)
        outcome = ours.predict_learn_one(x, y)
        assert outcome.y_pred is label
        assert outcome.mistake is (label is not y)
        assert outcome.hinge_loss == max(0.0, 1.0 - (1.0 if y else -1.0) * outcome.score)
        theirs.learn_one(x, y)
    if name in NORMED:
        assert dict(ours.weights()["weights"]) == pytest.approx(weights_of(theirs), rel=1e-12)
    else:
        assert river_state.digest(ours.classifier.model) == river_state.digest(theirs)


@pytest.mark.parametrize("name", [name for name in MULTICLASS if name != "one_vs_one"])
def test_a_multiclass_learner_answers_as_river_does(name: str) -> None:
    ours, theirs = built(name), parsed(MULTICLASS[name]).river()
    seen: list[str] = []
    for x, y in stream(name):
        proba = theirs.predict_proba_one(x)
        scores = ours.scores_one(x)
        assert list(scores) == seen
        if any(proba.values()):
            assert scores == {label: proba.get(label, 0.0) for label in seen}
        outcome = ours.predict_learn_one(x, y)
        if seen:
            assert outcome.score == max(scores.values())
            assert outcome.y_pred == max(seen, key=scores.__getitem__)
        else:
            assert outcome.y_pred is None
        theirs.learn_one(x, y)
        if y not in seen:
            seen.append(y)
    assert river_state.digest(ours.classifier.model) == river_state.digest(theirs)


def test_one_vs_one_answers_as_river_does_but_for_ties() -> None:
    ours, theirs = built("one_vs_one"), parsed(MULTICLASS["one_vs_one"]).river()
    for x, y in stream("one_vs_one"):
        scores = ours.scores_one(x)
        top = [label for label in scores if scores[label] == max(scores.values())]
        label = theirs.predict_one(x)
        assert label in top or len(scores) < 2
        assert ours.predict_learn_one(x, y).y_pred == (top[0] if top else None)
        theirs.learn_one(x, y)
    assert ours.classifier.model.classes == theirs.classes
    for pair, classifier in theirs.classifiers.items():
        weights = dict(ours.classifier.model.classifiers[pair].weights)
        assert weights == pytest.approx(dict(classifier.weights), rel=1e-12)


@pytest.mark.parametrize("name", ALL)
def test_no_prediction_changes_a_learner(name: str) -> None:
    learner = built(name)
    for number, (x, y) in enumerate(stream(name)):
        if number % 40 == 0:
            before, whole = river_state.digest(learner.classifier.model), dumped(learner)
            learner.score_one({})
            learner.score_one(x)
            learner.score_one({**x, "never seen": 1.0})
            learner.score_one({"never seen": 2.0})
            learner.score_one(dict(list(x.items())[:2]))
            assert river_state.digest(learner.classifier.model) == before
            assert dumped(learner) == whole
        learner.predict_learn_one(x, y)


@pytest.mark.parametrize("name", ALL)
def test_a_learner_goes_on_exactly_where_its_state_stood(name: str) -> None:
    plain, moved = built(name), built(name)
    for number, (x, y) in enumerate(stream(name)):
        if number in (0, 1, 57, 200, 333):
            state = through_json(moved.get_state())
            moved = built(name)
            moved.set_state(state)
            assert through_json(moved.get_state()) == state
        assert moved.predict_learn_one(x, y) == plain.predict_learn_one(x, y)
    assert dumped(moved) == dumped(plain)
    assert moved.feature_count() == plain.feature_count() > 0


def test_outcomes_and_states_are_the_same_in_every_process() -> None:
    def trace(seed: str, processor: str) -> str:
        env = {**os.environ, "PYTHONHASHSEED": seed, "OPENBLAS_CORETYPE": processor}
        command = [sys.executable, "-m", "tests.evaluation.trace"]
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
        assert not done.returncode, done.stderr
        return done.stdout

    first = trace("1", "Haswell")
    assert len(first.splitlines()) == len(ALL)
    assert trace("2", "Nehalem") == first
    assert trace("3", "SkylakeX" if "avx512f" in cpu_flags() else "Haswell") == first


EXTREMES = st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e-160, 3.0, -7.5, 1e16, 1e20, 1e100, -1e100])
EVENTS = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abcd"), EXTREMES, max_size=4),
        st.booleans(),
        st.sampled_from([1.0, 1.0, 0.0, 1e6, 1e-6, 0.5]),
    ),
    max_size=60,
)


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=20, deadline=None)
@given(events=EVENTS)
def test_no_event_within_the_bounds_makes_an_answer_infinite(
    name: str, events: list[tuple[dict[str, float], bool, float]]
) -> None:
    learner = built(name)
    for x, y, w in events:
        label = y if name in BINARY else str(y)
        if learner.classifier.nonnegative:
            x = {key: abs(value) for key, value in x.items()}
        try:
            learner.check_weight(w)
        except hinged.InvalidEvent:
            w = 1.0
        outcome = learner.predict_learn_one(x, label, w)
        assert -1.0 <= outcome.score <= 1.0
        assert 0.0 <= outcome.hinge_loss <= 2.0
        assert outcome.updated is (w > 0.0)
        weights = learner.weights()
        if weights is not None:
            values = [*weights["weights"].values(), weights["intercept"]]
            assert all(abs(value) < 1e150 for value in values)
    json.dumps(learner.get_state(), allow_nan=False)


@pytest.mark.parametrize("spec", [BINARY["pa_2"], BINARY["pa_1"], BINARY["logistic_l2"]])
def test_contradicting_events_never_throw_weights_to_infinity(spec: dict[str, Any]) -> None:
    learner = parsed(spec).build(10)
    for number in range(5_000):
        learner.predict_learn_one({"a": 1e-160} if number % 3 else {"a": 2.0}, number % 2 == 0)
    weights = learner.weights()
    assert all(abs(v) < 1e9 for v in [*weights["weights"].values(), weights["intercept"]])


def test_accounting_counts_what_hinged_counts() -> None:
    learner = parsed({"type": "PAClassifier"}).build(10)
    learner.predict_learn_one({"a": 3.0, "b": 4.0}, True)  # score 0: false, loss 1
    score = 2.0 / (1.0 + math.exp(-(25.0 / 25.0 + 1.0 / 25.0))) - 1.0  # w = x / 25, b = 1 / 25
    outcome = learner.predict_learn_one({"a": 3.0, "b": 4.0}, False)
    assert outcome.score == pytest.approx(score)
    learner.predict_learn_one({"a": 1.0}, True, 0.0)
    account = learner.accounting
    assert (account.events, account.updates, account.mistakes) == (3, 2, 2)
    assert account.hinge_loss == pytest.approx(2.0 + score)
    assert account.perceptron_loss == pytest.approx(score)
    assert account.radius == math.sqrt(26.0)


@pytest.mark.parametrize("name", ["logistic", "pa_1", "alma"])
def test_weights_reproduce_the_score(name: str) -> None:
    learner = built(name)
    for x, y in stream(name):
        learner.predict_learn_one(x, y)
    weights = json.loads(json.dumps(learner.weights()))
    for x, _ in stream(name, 50):
        raw = (
            sum(weights["weights"][key] * value for key, value in x.items()) + weights["intercept"]
        )
        assert learner.score_one(x) == pytest.approx(2.0 / (1.0 + math.exp(-raw)) - 1.0, abs=1e-9)


def test_only_linear_learners_show_weights() -> None:
    assert built("bagging").weights() is None
    assert all(built(name).weights() is None for name in MULTICLASS)


@pytest.mark.parametrize("name", ALL)
def test_names_beyond_the_cap_are_left_out_and_counted(name: str) -> None:
    capped, plain = built(name, max_features=3), built(name, max_features=3)
    for number in range(40):
        label: Any = number % 2 == 0
        label = label if name in BINARY else str(label)
        x = {"a": 1.0, "b": float(number % 3), "c": 2.0}
        capped.predict_learn_one({**x, f"fresh {number}": 5.0}, label)
        plain.predict_learn_one(x, label)
    assert capped.feature_count() == 3
    assert capped.accounting.ignored == 40
    assert river_state.digest(capped.classifier.model) == river_state.digest(plain.classifier.model)
    assert capped.score_one({**x, "later": 9.0}) == plain.score_one(x)


def test_a_full_tree_stops_growing_and_goes_on_learning() -> None:
    learner = parsed({**ALL["tree"], "max_leaves": 3, "tau": 1.0}).build(100)
    free = parsed({**ALL["tree"], "tau": 1.0}).build(100)
    for x, y in stream("tree"):
        learner.predict_learn_one(x, y)
        free.predict_learn_one(x, y)
    assert free.classifier.model.n_leaves > learner.classifier.model.n_leaves >= 3
    assert learner.classifier.model.n_leaves <= 4
    assert learner.accounting.updates == 350


@pytest.mark.parametrize("w", [1e6, 0.001, 1.0])
def test_a_tree_never_measures_its_memory(monkeypatch: pytest.MonkeyPatch, w: float) -> None:
    def measured(self: object) -> None:
        raise AssertionError("read the sizes of objects")

    monkeypatch.setattr(tree.HoeffdingTreeClassifier, "_estimate_model_size", measured)
    learner = parsed(ALL["tree"]).build(100)
    for x, y in stream("tree"):
        learner.predict_learn_one(x, y, w)


def test_weights_of_events_reach_river() -> None:
    ours, theirs = built("logistic"), linear_model.LogisticRegression()
    for number, (x, y) in enumerate(stream("logistic", 50)):
        ours.predict_learn_one(x, y, 1.0 + number)
        theirs.learn_one(x, y, w=1.0 + number)
    assert river_state.digest(ours.classifier.model) == river_state.digest(theirs)


@pytest.mark.parametrize(
    ("name", "x", "y", "w", "field"),
    [
        ("logistic", {"a": math.nan}, True, 1.0, "x['a']"),
        ("logistic", {"a": 1e101}, True, 1.0, "x['a']"),
        ("logistic", {"a": "1"}, True, 1.0, "x['a']"),
        ("logistic", {"a": 1.0}, "true", 1.0, "y"),
        ("logistic", {"a": 1.0}, True, -1.0, "w"),
        ("logistic", {"a": 1.0}, True, 1e7, "w"),
        ("tree", {"a": 1.0}, "b", 1e-7, "w"),
        ("pa_1", {"a": 1.0}, True, 0.5, "w"),
        ("gaussian", {"a": math.inf}, "b", 1.0, "x['a']"),
        ("gaussian", {"a": 1.0}, None, 1.0, "y"),
        ("gaussian", {"a": 1.0}, 3, 1.0, "y"),
        ("gaussian", {"a": 1.0}, "fresh", 1.0, "y"),
        ("multinomial", {"a": -1.0}, "b", 1.0, "x['a']"),
        ("one_vs_rest", {"a": 1.0}, "fresh", 1.0, "y"),
        ("one_vs_one", {"a": 1.0}, "fresh", 1.0, "y"),
    ],
)
def test_a_refused_event_changes_nothing(
    name: str, x: dict[str, Any], y: Any, w: float, field: str
) -> None:
    spec = ALL[name] if name in BINARY else {**ALL[name], "max_classes": 2}
    learner = parsed(spec).build(10)
    for number in range(6):
        good = number % 2 == 0 if name in BINARY else "bc"[number % 2]
        learner.predict_learn_one({"a": float(number)}, good)
    before = dumped(learner)
    with pytest.raises(hinged.InvalidEvent) as caught:
        learner.predict_learn_one(x, y, w)
    assert caught.value.field == field
    assert dumped(learner) == before


@pytest.mark.parametrize("name", MULTICLASS)
def test_a_fresh_multiclass_learner_knows_no_class(name: str) -> None:
    learner = built(name)
    assert learner.classes == []
    assert learner.scores_one({"a": 1.0}) == {}
    outcome = learner.predict_learn_one({}, "b")  # an event without features is one, too
    assert (outcome.y_pred, outcome.score, outcome.hinge_loss) == (None, 0.0, 1.0)
    assert learner.scores_one({"a": 1.0}) == {"b": 1.0}


@pytest.mark.parametrize("labels", [[3, -1, 2], [True, False], ["z", "a", "m"]])
@pytest.mark.parametrize("name", MULTICLASS)
def test_classes_keep_type_and_order_through_a_state(name: str, labels: list[Any]) -> None:
    learner = built(name)
    for number in range(30):
        learner.predict_learn_one({"a": float(number % 5)}, labels[number % len(labels)])
    again = built(name)
    again.set_state(through_json(learner.get_state()))
    assert again.classes == labels
    assert list(map(type, again.classes)) == list(map(type, labels))
    assert list(again.scores_one({"a": 1.0})) == labels


def damaged(state: dict[str, Any]) -> list[dict[str, Any]]:
    """Return variations of a sound state that no learner may take."""
    scalars = state["scalars"]

    def with_scalar(name: str, value: Any) -> dict[str, Any]:
        return {**state, "scalars": {**scalars, name: value}}

    return [
        {},
        {**state, "version": 2},
        {**state, "type": "Perceptron"},
        {**state, "vectors": {"weights": {}}},
        {**state, "scalars": {}},
        with_scalar("events", -1),
        with_scalar("radius", math.nan),
        with_scalar("names", ["a", "a"]),
        with_scalar("names", [1]),
        with_scalar("names", ["a", "b", "c", "d", "e"]),
        with_scalar("model", None),
        with_scalar("model", {"type": "os.system", "args": ["id"]}),
        with_scalar("model", river_state.encode(linear_model.LogisticRegression(l2=0.7))),
        with_scalar("model", river_state.encode({"a": 1})),
    ]


@pytest.mark.parametrize("name", ALL)
def test_a_damaged_state_is_refused_and_changes_nothing(name: str) -> None:
    learner = built(name, max_features=4)
    for number in range(10):
        learner.predict_learn_one(
            {"a": float(number)}, number % 2 == 0 if name in BINARY else str(number % 2)
        )
    before = dumped(learner)
    sound = through_json(learner.get_state())
    broken = damaged(sound)
    if name in MULTICLASS:
        broken += [{**sound, "classes": bad} for bad in (None, ["0", "0"], ["0", 1], [1.5])]
    for state in broken:
        with pytest.raises(hinged.InvalidState):
            learner.set_state(state)
        assert dumped(learner) == before
    learner.set_state(sound)


@pytest.mark.parametrize(
    "spec",
    [
        {"type": "PAClassifier", "mode": 0},
        {"type": "PAClassifier", "mode": 2, "C": 1.0},
        {"type": "LogisticRegression", "l2": 200.0},
        {"type": "LogisticRegression", "optimizer": {"type": "os.system"}},
        {"type": "BaggingClassifier", "model": {"type": "GaussianNB"}},
        {"type": "BaggingClassifier", "model": ALL["one_vs_one"], "seed": 1},
        {"type": "BaggingClassifier", "model": ALL["bagging"], "seed": 1},
        {"type": "OneVsRestClassifier", "classifier": ALL["tree"]},
        {"type": "HoeffdingTreeClassifier", "max_size": 10.0},
        {"type": "Perceptron"},
    ],
)
def test_a_spec_outside_the_catalogue_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        parsed(spec)


@pytest.mark.parametrize("name", ALL)
def test_a_spec_says_whether_it_is_multiclass(name: str) -> None:
    spec = parsed(ALL[name])
    assert hasattr(spec, "max_classes") is (name in MULTICLASS)
    assert hasattr(spec.build(10), "classes") is (name in MULTICLASS)
    assert parsed(json.loads(spec.model_dump_json())) == spec
