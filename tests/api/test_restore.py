"""A restore says whether the model learns afterwards: the checkpoint decides that, too."""

from __future__ import annotations

import httpx


def test_a_restore_tells_whether_it_thaws_or_freezes(client: httpx.Client) -> None:
    path = "/v1/models/thawing"

    def restored(name: str) -> tuple[bool, bool]:
        answer = client.post(f"{path}/restore", json={"checkpoint": name}).json()
        assert client.get(path).json()["frozen"] is answer["frozen"]
        return answer["was_frozen"], answer["frozen"]

    client.put(path, json={"learner": {"type": "perceptron"}}).raise_for_status()
    client.post(f"{path}/checkpoints", json={"name": "learning"}).raise_for_status()
    client.post(f"{path}/freeze").raise_for_status()
    client.post(f"{path}/checkpoints", json={"name": "frozen"}).raise_for_status()
    assert restored("learning") == (True, False)
    assert restored("learning") == (False, False)
    assert restored("frozen") == (False, True)
    assert restored("frozen") == (True, True)


def test_a_model_tells_whether_its_probabilities_are_calibrated(client: httpx.Client) -> None:
    for number, (spec, calibrated) in enumerate(
        (
            ({"learner": {"type": "perceptron"}}, False),
            ({"learner": {"type": "perceptron"}, "calibrate": True}, True),
            ({"learner": {"type": "hedge"}}, True),
            ({"learner": {"type": "multiclass_hedge"}}, True),
            ({"learner": {"type": "auto"}}, True),
            ({"learner": {"type": "GaussianNB"}}, False),
        )
    ):
        path = f"/v1/models/calibrated-{number}"
        client.put(path, json=spec).raise_for_status()
        assert client.get(path).json()["calibrated"] is calibrated
