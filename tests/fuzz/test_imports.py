"""Documents with a right digest and forged content: refused, or a model that works."""

import contextlib
import copy
import hashlib
import json
import random
import resource
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

import hinged
from hinged_service.engine import export
from hinged_service.engine.top_weights import largest
from hinged_service.errors import ServiceError
from hinged_service.model.inspection import (
    explain_event,
    feature_count,
    recent_accuracy,
    shown_weights,
)
from hinged_service.model.spec import ModelSpec
from hinged_service.model.state import ModelState
from hinged_service.model.state_codec import restore_state, state_scalars
from tests.fuzz.budget import ASKED
from tests.fuzz.kinds import KINDS, event_of, exported

LONGEST_S = 1.0
MOST_KB = 100_000
ODD: list[Any] = [
    *(None, True, False, 0, 1, -1, 2, 7, 0.5, -0.5, -0.0, 1e-300, 1e100, 1e308, -1e308),
    *(10**6, 10**9, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, 10**300, 10**400),
    *("", "a", "0", "p", "nan", "\x00json:[1]", "\x00json:1", "\x00json:null", "\x00json:[[]]"),
    *([], [0], [1], [5], [10**6], ["list", []], {}, {"": None}, {"float": "nan"}),
    *({"float": "inf"}, {"tuple": []}, {"numpy": ["int8", 1]}, {"call": "dict"}),
    {"partial": [{"call": "set"}, [1], {}]},
]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        for key in holder if isinstance(holder, dict) else range(len(holder)):
            yield holder, key
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])


def forge(document: Any, source: random.Random) -> None:
    """Change one part: a number, a reference, a name, a size, or what stands there at all."""
    found = list(places(document))
    holder, key = source.choice(found)
    given = holder[key]
    match source.randrange(8):
        case 0 | 1:
            holder[key] = copy.deepcopy(source.choice(ODD))
        case 2:
            other, place = source.choice(found)
            holder[key] = copy.deepcopy(other[place])
        case 3:
            del holder[key]
        case 4 if isinstance(holder, list):
            holder.insert(key, copy.deepcopy(given))
        case 5 if isinstance(holder, dict):
            holder[source.choice(ODD[-10]) if False else source.choice(["", "a", "0"])] = (
                holder.pop(key)
            )
        case _:
            if isinstance(given, bool):
                holder[key] = not given
            elif isinstance(given, int | float):
                factor = source.choice([-1, 0, 2, 10, 10**6, 10**12])
                holder[key] = source.choice([given * factor, given + 1, given - 1, [given]])
            elif isinstance(given, str):
                holder[key] = source.choice(["\x00json:" + json.dumps([given]), given[::-1]])
            elif isinstance(given, list) and len(given) == 1 and type(given[0]) is int:
                given[0] += source.choice([-2, -1, 1, 2, 3, 10])


def sealed(document: dict[str, Any]) -> bytes:
    """Return the document with the digest that it must have."""
    document = {name: value for name, value in document.items() if name != "digest"}
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({**document, "digest": digest}).encode()


def use(spec: ModelSpec, state: ModelState) -> None:
    """Do with a model what its callers may; only what they are told is refused."""
    for n in range(60, 66):
        event = event_of(spec, n)
        if not state.faults([event]):
            state.predict(event.x)
        with contextlib.suppress(hinged.InvalidEvent):
            explain_event(state, event.x, None)
        state.learn_all([event], frozenset(), f"1-{n}")
    shown = shown_weights(state, None)
    if shown is not None:
        json.dumps(largest(shown, None), allow_nan=False)
        for vector in shown.get("classes", shown.get("experts", [shown])):
            vector = shown["classes"][vector] if isinstance(vector, str) else vector
            assert all(type(name) is str for name in vector["weights"])
    feature_count(state), recent_accuracy(state)
    if state.metrics is not None:
        json.dumps(state.metrics.report(), allow_nan=False)
    saved = json.loads(json.dumps(state_scalars(state), allow_nan=False))
    vectors = {name: dict(vector.view()) for name, vector in state.vectors().items()}
    restore_state(ModelState(spec), saved, vectors)


class TooLong(BaseException):
    pass


def check(body: bytes) -> bool:
    """Import a document and use the model, in bounded time; return whether it was taken."""

    def stop(*_: object) -> None:
        raise TooLong

    signal.signal(signal.SIGVTALRM, stop)  # of this process's time: others are busy, too
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_S)
    try:
        made = export.imported(body)
    except ServiceError:
        return False
    else:
        use(made.spec, made.state)
        return True
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_forged_document_is_refused_or_a_model_that_works(kind: str) -> None:
    whole = json.loads(exported(kind))
    assert check(sealed(whole))
    source = random.Random(time.time() if ASKED else kind)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(ASKED or 12):
        document = copy.deepcopy(whole)
        for _ in range(source.choice([1, 1, 1, 2, 3])):
            forge({name: document[name] for name in ("scalars", "vectors")}, source)
        check(sealed(document))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before_kb + MOST_KB
