"""A classifier of River in the service: its answers are those of the learner in process."""

import copy
import pickle
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from river import checks, compose, datasets, evaluate, metrics, preprocessing

import hinged
from hinged.checks import name_of
from hinged_service.client import (
    Client,
    Conflict,
    Invalid,
    NotFound,
    RemoteClassifier,
    Retries,
    Unreachable,
)
from tests.client.conftest import NewName, Recorder
from tests.support.proxy import Proxy
from tests.support.redis_server import RedisServer
from tests.support.service import Service

PERCEPTRON = {"learner": {"type": "perceptron"}}
Events = list[tuple[dict[Any, Any], Any]]


def made_events(labels: list[Any], count: int = 300) -> Events:
    """Numbers around a centre per label, some features absent."""
    rng = random.Random(7)
    centres = [{f"x{k}": rng.gauss(0, 2) for k in range(5)} for _ in labels]
    events = []
    for _ in range(count):
        i = rng.randrange(len(labels))
        x = {k: c + rng.gauss(0, 1) for k, c in centres[i].items() if rng.random() < 0.8}
        events.append((x, labels[i]))
    return events


@pytest.fixture
def remote(api: Client, name: str) -> Iterator[RemoteClassifier]:
    with RemoteClassifier(api, name) as made:
        yield made


CLONING = {
    "check_clone_changes_memory_addresses",
    "check_clone_is_idempotent",
    "check_clone_is_independent",
    "check_clone_same_class",
    "check_init_has_default_params_for_tests",
    "check_repr_roundtrips_clone",
    "check_shuffle_features_no_impact",
}
MEMORY = "check_bounded_memory_growth"  # of the learners in process


def test_conforms_to_river_apart_from_cloning(service: Service, new_name: NewName) -> None:
    ran = 0
    with Client(service.url) as client:
        for check in checks.yield_checks(RemoteClassifier(client, new_name())):
            if name_of(check) not in {*CLONING, MEMORY}:
                try:
                    check(RemoteClassifier(client, new_name()))
                except Exception as error:
                    error.add_note(f"in River's {name_of(check)}")
                    raise
                ran += 1
    assert ran > 25


@pytest.mark.parametrize("batch", [1, 16])
def test_equals_the_perceptron_in_process_behind_a_scaler(
    api: Client, service: Service, new_name: NewName, batch: int
) -> None:
    with RemoteClassifier(service.url, new_name(), batch=batch) as remote:
        far = preprocessing.StandardScaler() | remote
        near = preprocessing.StandardScaler() | hinged.Perceptron()
        for i, (x, y) in enumerate(datasets.Phishing()):
            if i % 5 == 0:
                assert far.predict_one(x) is near.predict_one(x)
                assert far.predict_proba_one(x) == near.predict_proba_one(x)
                scaled = near["StandardScaler"].transform_one(x)
                assert remote.score_one(scaled) == near["Perceptron"].score_one(scaled)
            far.learn_one(x, y)
            near.learn_one(x, y)
        remote.flush()
        weights = api.weights(remote.model, at_least=remote._position)
        assert weights.weights == dict(near["Perceptron"].weights)
        assert weights.intercept == near["Perceptron"].intercept


def test_progressive_validation_gives_the_same_metric(service: Service) -> None:
    with RemoteClassifier(service.url, "phishing", spec=PERCEPTRON) as remote:
        near = preprocessing.StandardScaler() | hinged.Perceptron()
        kinds: list[Any] = [metrics.Accuracy, metrics.ROCAUC]
        for metric in (kind() for kind in kinds):
            far = preprocessing.StandardScaler() | remote.clone(
                {"model": metric.__class__.__name__}
            )
            expected = evaluate.progressive_val_score(
                datasets.Phishing(), near.clone(), metric.clone()
            )
            found = evaluate.progressive_val_score(datasets.Phishing(), far, metric)
            assert found.get() == expected.get()
            far["RemoteClassifier"].close()
        assert expected.get() > 0.8


@pytest.mark.parametrize(
    ("labels", "given"),
    [
        (["p", "q", "r", "s"], None),
        ([3, 5, 8, -1], "integers"),
        ([8, 5, 3], [3, 5, 8]),
        (["p", "q", "r"], ["r", "q", "p"]),
    ],
)
def test_equals_a_multiclass_learner_in_process(
    api: Client, new_name: NewName, labels: list[Any], given: Any
) -> None:
    name = new_name(learner={"type": "multiclass_perceptron"}, labels=given)
    near = hinged.MulticlassPerceptron()
    with RemoteClassifier(api, name) as remote:
        assert remote._multiclass
        assert remote.predict_one({"x1": 1.0}) is None
        assert remote.predict_proba_one({"x1": 1.0}) == {}
        for x, y in made_events(labels):
            found = remote.predict_one(x)
            assert (found, type(found)) == (near.predict_one(x), type(near.predict_one(x)))
            assert remote.predict_proba_one(x) == near.predict_proba_one(x)
            assert remote.score_one(x) == near.score_one(x)
            remote.learn_one(x, y)
            near.learn_one(x, y)
        assert set(remote.predict_proba_one({})) == set(labels)


@pytest.mark.parametrize("labels", [["ham", "spam"], [0, 1], [False, True]])
def test_binary_labels_come_back_as_they_are(
    api: Client, new_name: NewName, labels: list[Any]
) -> None:
    near = hinged.Perceptron()
    with RemoteClassifier(api, new_name(labels=labels)) as remote:
        assert not remote._multiclass
        for x, y in made_events(labels, 60):
            found = remote.predict_one(x)
            assert found == labels[near.predict_one(x)]
            assert type(found) is type(labels[0])
            near_proba = near.predict_proba_one(x)
            assert remote.predict_proba_one(x) == {
                y: near_proba[bool(i)] for i, y in enumerate(labels)
            }
            remote.learn_one(x, y)
            near.learn_one(x, y == labels[1])


def test_numpy_and_flags_are_numbers_as_in_process(remote: RemoteClassifier) -> None:
    near = hinged.Perceptron()
    for y in (True, False, True):
        x: dict[str, Any] = {
            "a": np.float32(0.1),
            "b": True,
            "c": np.bool_(True),
            "d": np.int64(3),
            "e": 2,
        }
        remote.learn_one(x, y, 1.0)
        near.learn_one(x, y)
    assert remote.score_one(x) == near.score_one(x)


def test_names_that_are_no_text(remote: RemoteClassifier) -> None:
    near = hinged.Perceptron()
    x = {0: 1.0, ("free", "money"): 2.0, "a": 3.0}
    remote.learn_one(x, True)
    near.learn_one(x, True)
    assert remote.score_one(x) == near.score_one(x) == 15.0
    with pytest.raises(Invalid, match="has a name"):
        remote.predict_one({None: 1.0})


def test_sample_weights(api: Client, remote: RemoteClassifier) -> None:
    remote.learn_one({"a": 1.0}, True, w=0.5)
    assert remote.score_one({"a": 1.0}) == 1.0


def test_a_prediction_sees_what_was_just_learned_on_another_worker(own_server: RedisServer) -> None:
    with (
        Service(own_server.url, max_staleness_ms=60_000) as here,
        Service(own_server.url, max_staleness_ms=60_000) as there,
        RemoteClassifier(here.url, "m", spec=PERCEPTRON) as learning,
        RemoteClassifier(there.url, "m") as predicting,
    ):
        learning.predict_one({})  # makes the model
        predicting.predict_one({"a": 1.0})
        learning.learn_one({"a": 1.0}, True)
        assert predicting.score_one({"a": 1.0}) == 0.0  # within its staleness
        predicting._position = learning._position
        assert predicting.score_one({"a": 1.0}) == 2.0


def test_gathered_events_go_together_and_before_any_prediction(
    api: Client, name: str, recorder: Recorder
) -> None:
    with RemoteClassifier(api, name, batch=4) as remote:
        for i in range(6):
            remote.learn_one({"a": float(i)}, True)
        assert api.model(name).events == 4
        remote.predict_one({"a": 1.0})
        assert api.model(name).events == 6
        remote.learn_one({"a": 1.0}, False)
    assert api.model(name).events == 7
    learned = [r for r in recorder.requests if r.url.path.endswith("/learn")]
    assert len(learned) == 3


def test_an_event_changed_after_it_was_given_is_learned_as_it_was(api: Client, name: str) -> None:
    with RemoteClassifier(api, name, batch=10) as remote:
        x = {"a": 1.0}
        remote.learn_one(x, True)
        x["a"] = 100.0
        assert remote.score_one({"a": 1.0}) == 2.0


def test_a_refused_event_leaves_and_the_others_are_learned(api: Client, name: str) -> None:
    with RemoteClassifier(api, name, batch=5) as remote:
        for y in (True, True, "no label", True):
            remote.learn_one({"a": 1.0}, y)
        with pytest.raises(Invalid) as refused:
            remote.learn_one({"a": 1.0}, False)
        assert [f.field for f in refused.value.errors] == ["[2].y"]
        remote.flush()
        assert api.model(name).events == 4
        with pytest.raises(Invalid):
            remote.learn_one({"a": float("inf")}, True)


@pytest.mark.parametrize("missing", [float("nan"), np.float32("nan"), None])
def test_a_missing_value_is_left_out_as_in_process(api: Client, name: str, missing: Any) -> None:
    with RemoteClassifier(api, name) as remote:
        remote.learn_one({"a": 1.0, "b": missing}, True)
        assert remote.score_one({"a": missing, "c": 1.0}) == 1.0  # the intercept alone
        assert api.weights(name).weights == {"a": 1.0}


def test_a_fresh_scaler_in_front_gives_nan_and_the_answers_are_those_in_process(
    api: Client, name: str
) -> None:
    with RemoteClassifier(api, name) as remote:
        scalers: list[Any] = [preprocessing.MinMaxScaler(), preprocessing.MinMaxScaler()]
        local: Any = scalers[0] | hinged.Perceptron()
        far: Any = scalers[1] | remote
        for x, y in made_events([False, True], 60):
            assert far.predict_proba_one(x) == local.predict_proba_one(x)
            far.learn_one(x, y)
            local.learn_one(x, y)
        assert api.weights(name).weights == dict(local["Perceptron"].weights)


def test_a_lone_refused_event_leaves_too(api: Client, remote: RemoteClassifier) -> None:
    with pytest.raises(Invalid, match="y must be true or false"):
        remote.learn_one({"a": 1.0}, "no label")
    remote.learn_one({"a": 1.0}, True)
    assert api.model(remote.model).events == 1


def test_an_event_refused_after_logging_is_not_sent_again(api: Client, new_name: NewName) -> None:
    name = new_name(learner={"type": "multiclass_perceptron", "max_classes": 2})
    with RemoteClassifier(api, name, batch=4) as remote:
        for y in ("p", "q", "r"):
            remote.learn_one({"a": 1.0}, y)
        with pytest.raises(Invalid) as refused:
            remote.learn_one({"a": 1.0}, "p")
        assert refused.value.logged
        remote.flush()
        info = api.model(name)
        assert (info.events, info.rejected) == (3, 1)


def test_unsent_events_are_sent_by_the_next_call_and_count_once(
    lossy: Proxy, api: Client, name: str
) -> None:
    once = Retries(deadline_s=0)
    with Client(f"http://127.0.0.1:{lossy.port}", retries=once) as client:
        with RemoteClassifier(client, name) as remote:
            remote.learn_one({"a": 1.0}, True)
            lossy.drop_replies = 1
            with pytest.raises(Unreachable) as lost:
                remote.learn_one({"b": 1.0}, True)
            assert len(lost.value.event_ids) == 1
            assert remote.score_one({"b": 1.0}) == 2.0 - 1.0
        assert api.model(name).events == 2


def test_a_lost_position_is_said_once(api: Client, remote: RemoteClassifier) -> None:
    remote.learn_one({"a": 1.0}, True)
    assert remote._position is not None
    entry, _, _ = remote._position.partition(".")
    remote._position = f"{entry}.{'0' * 40}"
    with pytest.raises(Conflict):
        remote.predict_one({"a": 1.0})
    assert remote.predict_one({"a": 1.0}) is True


def test_the_model_is_made_from_the_spec_on_first_use(api: Client, recorder: Recorder) -> None:
    with RemoteClassifier(api, "by-spec", spec=PERCEPTRON) as remote:
        assert recorder.requests == []
        remote.learn_one({"a": 1.0}, True)
    with RemoteClassifier(api, "by-spec", spec=PERCEPTRON) as same:
        assert same.predict_one({"a": 1.0}) is True
    with (
        RemoteClassifier(api, "by-spec", spec={"learner": {"type": "arow"}}) as other,
        pytest.raises(Conflict),
    ):
        other.predict_one({"a": 1.0})
    api.delete_model("by-spec")
    with RemoteClassifier(api, "by-spec") as missing, pytest.raises(NotFound):
        missing.learn_one({"a": 1.0}, True)


def test_a_clone_needs_a_model_of_its_own(api: Client) -> None:
    pipeline = preprocessing.StandardScaler() | RemoteClassifier(api, "first", spec=PERCEPTRON)
    for params in (None, {}, {"batch": 2}, {"model": "first"}):
        with pytest.raises(TypeError, match="Name another one"):
            pipeline["RemoteClassifier"].clone(params)
    with pytest.raises(TypeError, match="Name another one"):
        pipeline.clone()
    with pytest.raises(TypeError, match="share the model"):
        copy.deepcopy(pipeline)
    clone = pipeline.clone({"RemoteClassifier": {"model": "second"}})
    assert isinstance(clone, compose.Pipeline)
    made = clone["RemoteClassifier"]
    assert (made.model, made.spec, made.service) == ("second", PERCEPTRON, api)
    pipeline.learn_one({"a": 1.0}, True)
    clone.learn_one({"a": 1.0}, True)
    clone.learn_one({"a": 1.0}, True)
    assert (api.model("first").events, api.model("second").events) == (1, 2)


def test_a_pickle_is_a_handle_to_the_same_model(service: Service, name: str) -> None:
    with RemoteClassifier(service.url, name, batch=3) as remote:
        remote.learn_one({"a": 1.0}, True)
        with pickle.loads(pickle.dumps(remote)) as other:
            assert other.score_one({"a": 1.0}) == 2.0
            remote.flush()  # both had the event: it counts once
            assert other._client.model(name).events == 1


def test_it_shows_what_it_was_made_of(remote: RemoteClassifier) -> None:
    assert f'model="{remote.model}"' in repr(remote)
    assert "secret" not in repr(RemoteClassifier(Client("http://s", api_key="secret"), "m"))


@pytest.mark.parametrize("batch", [0, -1, 10_001])
def test_a_batch_that_cannot_be_is_refused(batch: int) -> None:
    with pytest.raises(ValueError, match="batch"):
        RemoteClassifier("http://s", "m", batch=batch)
