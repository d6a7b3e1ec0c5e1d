"""The history of a model: its whole life in few points, with its state wherever that goes."""

import copy
import hashlib
import json
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import httpx
import pytest

import hinged
from hinged_service.client import Client
from hinged_service.model.history import History, Point
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import restore_state, state_scalars
from hinged_service.wire.events import Event
from tests.support.shared_service import NewModel

METRICS = ["log_loss", {"type": "rolling", "metric": "accuracy", "window": 20}]
RIGHT, WRONG = {"x": {"a": 1}, "y": True}, {"x": {"a": 1}, "y": False}


def learn(client: httpx.Client, model: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    answer = client.post(f"{model}/learn", json=events)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


def history(client: httpx.Client, model: str) -> dict[str, Any]:
    answer = client.get(f"{model}/history")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_points_are_the_account_after_their_event(
    client: httpx.Client, new_model: NewModel
) -> None:
    model = new_model(learner={"type": "passive_aggressive"})
    assert history(client, model)["points"] == []
    learn(client, model, [RIGHT] * 12)  # the first one is a mistake: a score of 0 is negative
    found = history(client, model)["points"]
    assert [one["events"] for one in found] == [8, 12]
    assert [one["mistakes"] for one in found] == [1, 1]
    assert [one["accuracy"] for one in found] == [1 - 1 / 8, 1 - 1 / 12]
    assert [one["updates"] for one in found] == [1, 1]
    learn(client, model, [{**WRONG, "w": 0}] * 4 + [RIGHT] * 4)
    last = history(client, model)["points"][-1]
    assert (last["events"], last["judged"], last["accuracy"]) == (20, 16, 1 - 1 / 16)
    info = client.get(model).json()
    assert {name: last[name] for name in ("events", "judged", "mistakes", "updates")} == {
        name: info[name] for name in ("events", "judged", "mistakes", "updates")
    }
    assert last["accuracy"] == info["accuracy"]


def test_a_long_life_has_few_points(client: httpx.Client, new_model: NewModel) -> None:
    model = new_model()
    events = [RIGHT if n % 7 else WRONG for n in range(9_000)]
    wrong = [0]
    for first in range(0, len(events), 1_500):
        for one in learn(client, model, events[first : first + 1_500]):
            wrong.append(wrong[-1] + one["mistake"])
    read = history(client, model)
    points = read["points"]
    assert read["position"] == client.get(model).json()["position"]
    assert [one["events"] for one in points] == [*range(32, 9_000, 32), 9_000]
    assert [one["mistakes"] for one in points] == [wrong[one["events"]] for one in points]
    for i, one in enumerate(points):  # of the events since the last point that is 200 back
        before = max(
            (p["events"] for p in points[:i] if one["events"] - p["events"] >= 200), default=0
        )
        n = one["events"] - before
        share = 1 - (wrong[one["events"]] - wrong[before]) / n
        assert one["rolling_accuracy"] == pytest.approx(share, abs=1e-12)
    times = [one["at_ms"] for one in points]
    assert times == sorted(times)
    later = next(one for one in points if one["at_ms"] > times[0])
    same = [one for one in points if one["at_ms"] == later["at_ms"]]
    before = max(one["events"] for one in points if one["at_ms"] == times[0])
    rate = 1000 * (same[-1]["events"] - before) / (later["at_ms"] - times[0])
    assert [points[0]["events_per_s"], later["events_per_s"]] == [None, pytest.approx(rate)]


def test_metrics_of_the_spec_and_late_labels(client: httpx.Client, new_model: NewModel) -> None:
    model = new_model(metrics=METRICS)
    learn(client, model, [RIGHT] * 16)
    for n in range(8):
        client.post(f"{model}/predict", json={"id": f"p{n}", "x": {"a": 1}}).raise_for_status()
    learn(client, model, [{"id": f"p{n}", "y": n < 4} for n in range(8)])
    found, metrics = history(client, model)["points"][-1], client.get(model).json()["metrics"]
    assert (found["events"], found["labelled"]) == (24, 8)
    assert found["mean_delay_s"] >= 0
    assert found["log_loss"] == pytest.approx(metrics["log_loss"], abs=1e-6)
    assert found["rolling_accuracy"] == pytest.approx(metrics["rolling_accuracy_20"], abs=1e-6)


def test_commands_and_what_they_do_to_it(client: httpx.Client, model: str) -> None:
    learn(client, model, [RIGHT] * 8)
    client.post(f"{model}/checkpoints", json={"name": "c"}).raise_for_status()
    learn(client, model, [WRONG] * 8)
    client.post(f"{model}/freeze").raise_for_status()
    client.post(f"{model}/unfreeze").raise_for_status()
    client.post(f"{model}/reset").raise_for_status()
    set_to = {"learning_rate": 0.5}
    client.post(f"{model}/configure", json={"set": set_to}).raise_for_status()
    found = history(client, model)
    assert [one["events"] for one in found["points"]] == [8, 16]
    turns = [(one["kind"], one["events"], one["text"]) for one in found["turns"]]
    assert turns == [
        *((kind, 16, "") for kind in ("freeze", "unfreeze", "reset")),
        ("configure", 16, json.dumps(set_to)),
    ]
    assert all(one["at_ms"] >= found["points"][-1]["at_ms"] for one in found["turns"])
    client.post(f"{model}/restore", json={"checkpoint": "c"}).raise_for_status()
    found = history(client, model)
    assert [one["events"] for one in found["points"]] == [8]
    assert [(one["kind"], one["events"]) for one in found["turns"]] == [("restore", 8)]


def test_the_client_and_an_import_bring_it(
    client: httpx.Client, new_model: NewModel, service: Any
) -> None:
    model = new_model()
    learn(client, model, [RIGHT, WRONG] * 20)
    name = model.rpartition("/")[2]
    with Client(service.url) as own:
        own.make_checkpoint(name, "c")
        own.import_model(f"{name}-far", own.export_checkpoint(name, "c"))
        here, there = own.history(name), own.history(f"{name}-far")
    assert [one.events for one in here.points] == [8, 16, 24, 32, 40]
    assert there.points == here.points


def test_a_forged_one_is_refused_by_name(client: httpx.Client, model: str) -> None:
    learn(client, model, [RIGHT] * 40)
    client.post(f"{model}/checkpoints", json={"name": "c"}).raise_for_status()
    document = client.get(f"{model}/checkpoints/c/export").json()
    document["scalars"]["history"]["points"]["mistakes"][-1] = 1_000
    del document["digest"]
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    document["digest"] = hashlib.sha256(text.encode()).hexdigest()
    answer = client.post(f"{model}-far/import", json=document)
    assert answer.status_code == 422
    assert "history" in answer.json()["errors"][0]["reason"]


def grown(events: int) -> ModelState:
    state = ModelState(
        ModelSpec.model_validate_json(json.dumps({"learner": {"type": "perceptron"}}))
    )
    for n in range(events):
        state.learn_all([Event({"a": 1.0}, n % 3 > 0)], frozenset(), f"{1_700_000_000_000 + n}-0")
    return state


def restored(scalars: dict[str, Any], state: ModelState) -> ModelState:
    other = ModelState(state._spec)
    vectors = {name: dict(vector.view()) for name, vector in state.vectors().items()}
    restore_state(other, json.loads(json.dumps(scalars)), vectors)
    return other


def test_a_state_of_a_version_without_history_begins_one() -> None:
    state = grown(30)
    scalars = state_scalars(state)
    del scalars["history"]
    other = restored(scalars, state)
    assert other.history.points() == []
    other.learn_all([Event({"a": 1.0}, True)] * 2, frozenset(), "1800000000000-0")
    assert [(p.events, p.at_ms) for p in other.history.points()] == [(32, 1_800_000_000_000)]


FORGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "no step": lambda h: h.pop("step"),
    "a step that is none": lambda h: h.update(step=12),
    "a step beyond all": lambda h: h.update(step=8 * 2**60),
    "a step that is true": lambda h: h.update(step=True),
    "another part": lambda h: h.update(more=1),
    "no column": lambda h: h["points"].pop("judged"),
    "a column that is none": lambda h: h["points"].update(judged={}),
    "a column too short": lambda h: h["points"]["updates"].pop(),
    "a count that falls": lambda h: h["points"]["updates"].__setitem__(2, -1),
    "a point twice": lambda h: h["points"]["events"].__setitem__(2, 0),
    "a fraction": lambda h: h["points"]["events"].__setitem__(2, 8.0),
    "a time before all": lambda h: h["points"]["at_ms"].__setitem__(0, -5),
    "a time beyond all": lambda h: h["points"]["at_ms"].__setitem__(1, 2**63 - 1),
    "more events than the model": lambda h: h["points"]["events"].__setitem__(2, 80),
    "more updates than the model": lambda h: h["points"]["updates"].__setitem__(2, 10**6),
    "more mistakes than events": lambda h: h["points"]["mistakes"].__setitem__(0, 9),
    "a share above 1": lambda h: h["points"]["rolling_accuracy"].__setitem__(0, 1.5),
    "a loss below 0": lambda h: h["points"]["log_loss"].__setitem__(0, -0.5),
    "a loss that is text": lambda h: h["points"]["log_loss"].__setitem__(0, "0.5"),
    "an infinite loss": lambda h: h["points"]["log_loss"].__setitem__(0, float("inf")),
    "marks that are none": lambda h: h.update(marks="abcd"),
    "a mark of three": lambda h: h["marks"].append([1, 1, "freeze"]),
    "a mark below 0": lambda h: h["marks"].append([-1, 1, "freeze", ""]),
    "a mark with half a character": lambda h: h["marks"].append([1, 1, "freeze", "\ud800"]),
    "a mark of a long text": lambda h: h["marks"].append([1, 1, "freeze", "x" * 101]),
    "too many marks": lambda h: h["marks"].extend([[1, 1, "freeze", ""]] * 51),
    "no history at all": lambda h: h.clear(),
}


def test_forged_histories_are_refused() -> None:
    state = grown(40)
    scalars = state_scalars(state)
    assert restored(scalars, state).history.get_state() == scalars["history"]
    for what, forge in FORGED.items():
        forged = copy.deepcopy(scalars)
        forge(forged["history"])
        try:
            restored(forged, state)
        except hinged.InvalidState:
            continue
        pytest.fail(what)
    with pytest.raises(hinged.InvalidState):
        restored({**scalars, "history": []}, state)


def bytes_of(history: History) -> int:
    parts = (getattr(history, name) for name in History.__slots__)
    return sys.getsizeof(history) + sum(map(sys.getsizeof, parts))


def test_it_takes_little_room() -> None:
    few = grown(64).history
    assert max(bytes_of(few), len(json.dumps(few.get_state()))) < 1_024
    full = History()
    for n in range(1, 500):
        many = 10**9 * n
        full.add(Point._make((10**12 + many, *[many] * 7, n / 7, n / 501)))
    assert len(full) == 499
    assert bytes_of(full) < 64_000
    assert len(json.dumps(full.get_state())) < 64_000
    full.add(Point._make((2 * 10**12, *[10**12] * 7, None, None)))
    steps = [b.events - a.events for a, b in pairwise(full.points())]
    assert (len(full), set(steps[:-1])) == (250, {2 * 10**9})


def test_an_absent_model(client: httpx.Client) -> None:
    assert client.get("/v1/models/nobody/history").status_code == 404
