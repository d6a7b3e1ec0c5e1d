"""Names of features and ids of events come back exactly as they were sent, after Redis too."""

import json

import httpx
import pytest
import redis

from tests.support.checks import check_problem
from tests.support.service import Service
from tests.support.shared_service import NewModel

NAMES = [
    *("a:b", "a|b", "a b", "a", "b", " ", "", "a\x00b", "\x00", "\x00\x00", "\x7f", "\u2028"),
    *("é", "e\u0301", "\u212b", "å", "Å", "ﬁ", "fi", "中", "\U0001f600", "\ufeff", "\ufeffa"),
    *("__bias__", "intercept", "bias", "weights", "position", "chain", "constructor", "__proto__"),
    *("{S}", "{a}", "%41", "A", "1", "01", "1.0", "true", "null", "NaN", "[1]", '["a","b"]'),
    *('\x00json:"a"', "\x00json:1", "\x00json:", "\x00json", '\x00json:"\\u0000json:1"'),
    *("'", '"', "\\", "\\u0000", "\r\n", "\t", "*", "?", "$", "\ud7ff", "\ue000", "\uffff"),
    *("n" * 255, "n" * 256, "中" * 256, "\U0001f600" * 256),
]


def test_odd_feature_names_stay_distinct_and_unchanged_after_a_restart(
    redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert len(set(NAMES)) == len(NAMES)
    expected = {name: float(n + 1) for n, name in enumerate(NAMES)}
    with Service(redis_url) as service, service.client() as client:
        client.put("/v1/models/odd", json={"learner": {"type": "perceptron"}})
        learned = client.post("/v1/models/odd/learn", json={"x": expected, "y": True})
        assert learned.status_code == 200
        assert client.get("/v1/models/odd").json()["features"] == len(NAMES)
        assert client.get("/v1/models/odd/weights").json()["weights"] == expected
    with redis.Redis.from_url(redis_url) as store:
        (key,) = store.scan_iter("hinged:{odd}:model:*:weights")
        assert store.hlen(key) == len(NAMES)
    with Service(redis_url) as service, service.client() as client:
        found = client.get("/v1/models/odd/weights").json()
        assert found["weights"] == expected
        assert found["intercept"] == 1.0
        asked = [{"x": {name: 1.0}} for name in NAMES]
        answers = client.post("/v1/models/odd/predict", json=asked).json()
        assert [a["score"] - 1.0 for a in answers] == list(expected.values())
    logged = [r for r in caplog.records if "server_watch" not in r.name]  # the server's version
    assert logged == []  # read from the snapshot, not learned again from the log


def test_an_escape_in_a_name_is_the_character_it_stands_for(
    client: httpx.Client, model: str
) -> None:
    escaped = b'{"x":{"\\u00e9":1,"\\ud83d\\ude00":2,"a\\/b":3},"y":true,"id":"\\u00e9"}'
    plain = '{"id":"é","y":true,"x":{"😀":2,"é":1,"a/b":3}}'.encode()
    headers = {"content-type": "application/json"}
    first = client.post(f"{model}/learn", content=escaped, headers=headers).json()
    second = client.post(f"{model}/learn", content=plain, headers=headers).json()
    assert (first["duplicate"], second["duplicate"]) == (False, True)
    weights = client.get(f"{model}/weights").json()["weights"]
    assert weights == {"a/b": 3.0, "😀": 2.0, "é": 1.0}


@pytest.mark.parametrize("call", ["learn", "predict"])
@pytest.mark.parametrize("name", ["n" * 257, "\U0001f600" * 257, "n" * 10_000])
def test_a_name_over_256_characters_is_refused_not_cut(
    client: httpx.Client, model: str, name: str, call: str
) -> None:
    event: dict[str, object] = {"x": {"a": 1, name: 1}}
    answer = client.post(f"{model}/{call}", json=event | ({"y": True} if call == "learn" else {}))
    assert answer.status_code == 422
    (fault,) = answer.json()["errors"]
    assert fault["field"].startswith("x['" + ("n" if name[0] == "n" else "\\U0001f600"))
    assert "256" in fault["reason"]
    assert client.get(model).json()["events"] == 0


def test_ids_that_a_float_would_merge_stay_two(client: httpx.Client, model: str) -> None:
    ids = ["9007199254740993", "9007199254740992", "9007199254740993.0", "09007199254740993"]
    ids += ["é", "e\u0301", " e", "e", "e ", "E", "e\x00", "i" * 256, "中" * 256]
    for name in ids:
        event = {"x": {"a": 1}, "y": True, "id": name}
        assert client.post(f"{model}/learn", json=event).json()["duplicate"] is False
    for name in ids:
        event = {"x": {"a": 1}, "y": True, "id": name}
        assert client.post(f"{model}/learn", json=event).json()["duplicate"] is True
    assert client.get(model).json()["events"] == len(ids)


def test_weights_come_in_order_of_magnitude_and_the_top_of_them_on_request(
    client: httpx.Client, model: str
) -> None:
    x = {"b": -2, "a": 2, "zero": 0, "c": 3, "d": -0.5}
    client.post(f"{model}/learn", json={"x": x, "y": True})
    everything = client.get(f"{model}/weights").json()["weights"]
    in_order = [("c", 3.0), ("a", 2.0), ("b", -2.0), ("d", -0.5), ("zero", 0.0)]
    assert list(everything.items()) == in_order
    top = client.get(f"{model}/weights", params={"top": 2}).json()["weights"]
    assert list(top.items()) == in_order[:2]
    for large in (5, 6, 10**40):
        found = client.get(f"{model}/weights", params={"top": large}).json()["weights"]
        assert list(found.items()) == in_order
    for wrong in ("0", "-1", "x", "1.5", ""):
        answer = client.get(f"{model}/weights", params={"top": wrong})
        check_problem(answer, 422)
        assert [e["field"] for e in answer.json()["errors"]] == ["query.top"]


def test_digits_of_a_weight_survive_redis_and_json(redis_url: str) -> None:
    values = [0.1 + 0.2, 1e-300, 5e-324, 1e100, -1 / 3, 2.0**-1074 * 3, 123456789.123456789]
    x = {f"f{n}": value for n, value in enumerate(values)}
    with Service(redis_url) as service, service.client() as client:
        client.put("/v1/models/m", json={"learner": {"type": "perceptron"}})
        client.post("/v1/models/m/learn", json={"x": x, "y": True})
    with Service(redis_url) as service, service.client() as client:
        text = client.get("/v1/models/m/weights").text
    assert json.loads(text)["weights"] == x
    assert "0.30000000000000004" in text


def test_two_models_with_names_that_look_alike_do_not_meet(
    client: httpx.Client, new_model: NewModel
) -> None:
    first, second = new_model(stream="x.model"), new_model(stream="x")
    client.post(f"{first}/learn", json={"x": {"model:y": 1}, "y": True, "id": "e"})
    answer = client.post(f"{second}/learn", json={"x": {"y": 1}, "y": False, "id": "e"})
    assert answer.json()["duplicate"] is False
    assert client.get(f"{first}/weights").json()["weights"] == {"model:y": 1.0}
    assert client.get(f"{second}/weights").json()["weights"] == {"y": -1.0}
