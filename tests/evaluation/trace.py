"""Prints what every River learner does on a stream: run with several hash seeds by a test."""

import hashlib
import json

from tests.evaluation.specs import ALL, built, stream


def main() -> None:
    for name in ALL:
        learner = built(name)
        outcomes = [list(learner.predict_learn_one(x, y)) for x, y in stream(name, 200)]
        text = json.dumps([outcomes, learner.get_state()])
        print(name, hashlib.sha1(text.encode()).hexdigest())


if __name__ == "__main__":
    main()
