"""Learns the samples of custom models in a process of its own and prints the states, as JSON."""

from __future__ import annotations

import json
import sys

from hinged_service.errors import StartupError
from hinged_service.river_support.custom.loader import load
from hinged_service.river_support.custom.probe import trained_parts

if __name__ == "__main__":
    try:
        trained = {name: trained_parts(name, model) for name, model in load(sys.argv[1:]).items()}
    except StartupError as error:
        sys.exit(str(error))
    sys.stdout.write("\n" + json.dumps(trained) + "\n")
