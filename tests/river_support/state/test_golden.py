"""Objects that an earlier version stored are read for ever, and go on as they did then.

A file is never changed, but for the outputs of hedges, which pool since fold version 3.
`python -m tests.river_support.state.test_golden` writes those of new cases.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from hinged_service.river_support.state import decode, encode
from tests.river_support.state.cases import CASES

GOLDEN = Path(__file__).parent / "golden"
BEFORE, AFTER = 40, 5


def numbers(output: Any) -> Any:
    """Return an output with its numbers as numbers, which may differ in the last digits."""
    if isinstance(output, list):
        return [numbers(one) for one in output]
    try:
        return pytest.approx(float(output), rel=1e-9, abs=1e-12)
    except ValueError:
        return output


def parsed(output: Any) -> Any:
    if isinstance(output, list):
        return [parsed(one) for one in output]
    try:
        return float(output)
    except ValueError:
        return output


@pytest.mark.parametrize("name", CASES)
def test_a_stored_object_goes_on_as_it_did(name: str) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_text())
    outputs = CASES[name].run(decode(golden["stored"]), BEFORE, AFTER)
    assert flattened(parsed(outputs)) == flattened(numbers(golden["outputs"]))


def flattened(output: Any) -> list[Any]:
    return (
        [one for part in output for one in flattened(part)]
        if isinstance(output, list)
        else [output]
    )


def test_every_file_has_its_case() -> None:
    assert {path.stem for path in GOLDEN.glob("*.json")} == set(CASES)


if __name__ == "__main__":
    for case_name, case in CASES.items():
        path = GOLDEN / f"{case_name}.json"
        if not path.exists():
            made = case.make()
            case.run(made, 0, BEFORE)
            stored = encode(made)
            document = {"stored": stored, "outputs": case.run(made, BEFORE, AFTER)}
            path.write_text(json.dumps(document, allow_nan=False) + "\n")
