"""A model as two workers show it, and what the tests ask of it."""

import json
from typing import Any

import httpx
import redis

import hinged
from tests.support.plain_fold import LateAccount, fold_log, model_uid

Answer = tuple[int, Any]


class Face:
    """One model through the HTTP of two workers, which take turns."""

    def __init__(self, name: str, *clients: httpx.Client) -> None:
        self.name = name
        self.clients = clients
        self._turn = 0

    def _next(self) -> httpx.Client:
        self._turn += 1
        return self.clients[self._turn % len(self.clients)]

    def create(self, spec: dict[str, Any]) -> None:
        body = {"learner": {"type": "perceptron"}} | spec
        answer = self.clients[0].put(f"/v1/models/{self.name}", json=body)
        assert answer.status_code == 201, answer.text

    def predict(self, *bodies: Any) -> Answer:
        return self._post("predict", bodies)

    def learn(self, *bodies: Any) -> Answer:
        return self._post("learn", bodies)

    def _post(self, call: str, bodies: tuple[Any, ...]) -> Answer:
        body = bodies[0] if len(bodies) == 1 else list(bodies)
        path = f"/v1/models/{self.name}/{call}"
        content = json.dumps(body, ensure_ascii=False).encode("utf-8")
        headers = {"content-type": "application/json"}
        answer = self._next().post(path, content=content, headers=headers)
        return answer.status_code, answer.json()

    def infos(self) -> list[dict[str, Any]]:
        found = []
        for client in self.clients:
            answer = client.get(f"/v1/models/{self.name}")
            assert answer.status_code == 200, answer.text
            found.append(answer.json())
        return found

    def labels(self) -> dict[str, Any]:
        """Return the counts of predictions and labels; all workers must soon agree."""
        counts = [info["label_counts"] for info in self.infos()]
        for _ in range(20):  # they are asked one after the other, and the ring may turn between
            if all(one == counts[0] for one in counts):
                break
            counts = [info["label_counts"] for info in self.infos()]
        assert all(one == counts[0] for one in counts), counts
        found: dict[str, Any] = counts[0]
        return found

    def damaged(self) -> list[str]:
        """Return where something is damaged; all workers agree."""
        damage = [sorted(part["where"] for part in info["damaged"]) for info in self.infos()]
        assert all(one == damage[0] for one in damage), damage
        return damage[0]

    def repair(self) -> dict[str, Any]:
        answer = self._next().post(f"/v1/models/{self.name}/repair")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def counts(self, *names: str) -> tuple[int, ...]:
        labels = self.labels()
        return tuple(labels[name] for name in names)


def faults(answer: Answer) -> tuple[int, list[str]]:
    body = answer[1] if isinstance(answer[1], dict) else {}
    return answer[0], [fault["field"] for fault in body.get("errors", [])]


def witnessed(client: redis.Redis, stream: str) -> tuple[dict[str, float], LateAccount, int]:
    """Return weights, late account and progressive mistakes by a plain fold of the log."""
    uid = model_uid(client, stream)
    folded = fold_log(client, stream, hinged.Perceptron(), late_of=uid)
    return folded.weights, folded.late, folded.mistakes


def agrees_with_its_log(client: redis.Redis, face: Face) -> None:
    """Fail unless every worker's weights and late account are those of a plain fold."""
    weights, late, mistakes = witnessed(client, face.name)
    for worker, info in zip(face.clients, face.infos(), strict=True):
        stored = worker.get(f"/v1/models/{face.name}/weights").json()
        assert _bits(stored["weights"]) == _bits(weights)
        counts = info["label_counts"]
        assert info["mistakes"] == mistakes
        assert (counts["labelled"], counts["served"], counts["served_mistakes"]) == (
            late.labelled,
            late.served,
            late.served_mistakes,
        )
        assert counts["longest_delay_s"] == late.longest_delay_ms / 1000
        mean = late.delay_ms / late.labelled / 1000 if late.labelled else None
        assert counts["mean_delay_s"] == mean


def _bits(weights: dict[str, float]) -> dict[str, str]:
    return {name: float(w).hex() for name, w in weights.items() if w != 0.0}
