"""Run every pipeline of the catalogue and print a hash of all it gives: for `test_determinism`."""

import hashlib
import json
import sys

from tests.pipelines.streams import CATALOGUE, of_catalogue


def main() -> None:
    for name in CATALOGUE:
        ours, events = of_catalogue(name, max_features=20)
        found = hashlib.sha256()
        for x in events:
            for made in (ours.transform_one(x), ours.learn_transform_one(x), ours.origins(x)):
                found.update(json.dumps(list(made.items())).encode())
        found.update(json.dumps(ours.get_state()).encode())
        sys.stdout.write(f"{name}: {found.hexdigest()}\n")


if __name__ == "__main__":
    main()
