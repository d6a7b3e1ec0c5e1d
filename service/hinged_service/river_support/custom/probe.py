"""Trials of a custom model before it is served: it must keep the promises of hinged.

No prediction may change it, its state must survive being stored, and the same events must
lead to the same state, in any process.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, NoReturn, TypeVar

from river import base
from river.compose import Pipeline
from river.multiclass import OneVsOneClassifier

import hinged
from hinged_service.errors import ServiceError, StartupError
from hinged_service.river_support import state
from hinged_service.river_support.custom import parts
from hinged_service.river_support.custom.classifier import custom_learner
from hinged_service.river_support.custom.loader import explained
from hinged_service.river_support.custom.model import CustomModel, Sample, Served, last_step
from hinged_service.river_support.custom.patches import mend
from hinged_service.river_support.learners import RiverBinary, RiverMulticlass
from hinged_service.river_support.state.naming import full_name
from hinged_service.wire.codec import DamagedState

__all__ = ["probe_all", "trained_parts"]

_EVENTS = 1_000
_MAX_NAMES = 100_000
_MAX_CLASSES = 1_000
_TIMEOUT_S = 120
_UNORDERED = full_name(OneVsOneClassifier)
_MULTICLASS = "_multiclass"
"""River's property of a classifier of more than two classes."""

_T = TypeVar("_T")
_Adaptor = RiverBinary | RiverMulticlass


def probe_all(sources: Sequence[str], models: Mapping[str, CustomModel]) -> dict[str, Served]:
    """Return the models to serve by name; a second process loads them from `sources`.

    Raises
    ------
    StartupError
        Naming the model, the type at fault and what to do.

    """
    mend()
    found: dict[str, Served] = {}
    ours: dict[str, parts.Parts] = {}
    for name, model in models.items():
        served = _built(name, model)
        ours[name] = _Probe(served, model).run()
        found[name] = served
    for name, theirs in _elsewhere(sources).items():
        odd = parts.changed(ours[name], theirs)
        if odd:
            _refuse(
                name,
                f"another process that learned the same is in another state: {_listed(odd)}. "
                "Perhaps it goes through a set, whose order differs between processes, or reads "
                "a clock. Take it out",
            )
    return found


def trained_parts(name: str, model: CustomModel) -> parts.Parts:
    """Return the parts of a model that has learned its sample, for another process to compare."""
    mend()
    served = _built(name, model)
    probe = _Probe(served, model)
    return probe.parts_of(probe.taught())


def _built(name: str, model: CustomModel) -> Served:
    """Return a model's classifier, built twice to see that it is the same."""
    try:
        fresh, again = model.build(), model.build()
    except Exception as error:  # noqa: BLE001 - all that the operator's code may raise
        _refuse(name, f"build() fails: {explained(error)}")
    _check_type(name, fresh)
    try:
        before, after = parts.parts_of(fresh), parts.parts_of(again)
    except (state.Unencodable, DamagedState) as error:
        _refuse(
            name,
            f"{error}. hinged keeps the state of a model as plain data, by a closed list of types "
            "of River's and hinged's (hinged_service.river_support.state): use those",
        )
    if _UNORDERED in {part.type for part in before}:
        _refuse(
            name,
            f"{_UNORDERED} goes through a set of classes, whose order differs between processes. "
            "Use OneVsRestClassifier, or the learner OneVsOneClassifier of a spec",
        )
    odd = parts.changed(before, after)
    if odd:
        _refuse(
            name,
            f"build() does not make the same every time: {_listed(odd)}. Give every random part "
            "a seed",
        )
    multiclass = bool(getattr(last_step(fresh), _MULTICLASS))
    return Served(name, model.version, fresh, state.digest(fresh), multiclass)


def _check_type(name: str, fresh: object) -> None:
    last = last_step(fresh)
    if not (
        isinstance(fresh, (base.Classifier, base.Wrapper, Pipeline))
        and isinstance(getattr(last, _MULTICLASS, None), bool)
        and callable(getattr(last, "learn_one", None))
    ):
        _refuse(
            name,
            f"build() makes a {type(fresh).__name__} that ends in a {type(last).__name__}, which "
            "is not a classifier of River or hinged",
        )


class _Probe:
    """Tries one model."""

    def __init__(self, served: Served, model: CustomModel) -> None:
        self._served = served
        self._has_sample = bool(model.sample)
        self._sample = list(islice(model.sample, _EVENTS)) or _made_up(served.multiclass)

    def run(self) -> parts.Parts:
        """Return the parts of the model that has learned its sample; raise `StartupError`."""
        first, second = self.taught(watched=True), self.taught()
        odd = parts.changed(self.parts_of(first), self.parts_of(second))
        if odd:
            self._refuse(
                f"having learned the same twice, it is in two states: {_listed(odd)}. Give every "
                "random part a seed"
            )
        learned = self.parts_of(first)
        restored = self._restored(first)
        for adaptor in (first, restored):
            self._teach(adaptor)
        odd = parts.changed(self.parts_of(first), self.parts_of(restored))
        if odd:
            self._refuse(
                f"stored and read again, it goes on in another way: {_listed(odd)}. Take it out"
            )
        return learned

    def taught(self, watched: bool = False) -> _Adaptor:
        """Return a learner of the sample, checked or not for changes by predictions."""
        adaptor = self._fresh()
        self._teach(adaptor, watched)
        return adaptor

    def _fresh(self) -> _Adaptor:
        classes = _MAX_CLASSES if self._served.multiclass else None
        return custom_learner(self._served, _MAX_NAMES, classes)

    def _teach(self, adaptor: _Adaptor, watched: bool = False) -> None:
        for number, (x, y) in enumerate(self._sample):
            if watched and (number & (number - 1) == 0):
                self._watch(adaptor, x)
            try:
                adaptor.predict_learn_one(_as_posted(x), y)
            except Exception as error:  # noqa: BLE001 - as above
                self._cannot("learn", number, error)
        if watched and self._sample:
            self._watch(adaptor, self._sample[-1][0])

    def _watch(self, adaptor: _Adaptor, x: Mapping[str, Any]) -> None:
        """Ask about an event and others like it, and see that nothing changes."""
        before = self.parts_of(adaptor)
        for question in _variations(_as_posted(x)):
            try:
                adaptor.score_one(question)
            except hinged.InvalidEvent:
                continue  # refusing an event is fine, as long as that changes nothing
        odd = parts.changed(before, self.parts_of(adaptor))
        if odd:
            self._refuse(
                f"a prediction changes it: {_listed(odd)}. Predictions must change nothing, or "
                "workers would differ: take it out (StandardScaler, for one, does not change)"
            )

    def _restored(self, adaptor: _Adaptor) -> _Adaptor:
        restored = self._fresh()
        stored = json.dumps(self._encoded(adaptor.get_state), allow_nan=False)
        try:
            restored.set_state(json.loads(stored))
        except (hinged.InvalidState, ServiceError) as error:
            self._refuse(f"its stored state cannot be read again: {error}. Simplify it")
        return restored

    def parts_of(self, adaptor: _Adaptor) -> parts.Parts:
        """Return the parts of the classifier of a learner."""
        return self._encoded(lambda: parts.parts_of(adaptor.classifier.model))

    def _encoded(self, call: Callable[[], _T]) -> _T:
        try:
            return call()
        except (state.Unencodable, DamagedState) as error:
            self._refuse(
                f"having learned, it cannot be stored: {error}. Use other parts in its place"
            )

    def _cannot(self, what: str, number: int, error: BaseException) -> NoReturn:
        sample = "its sample" if self._has_sample else "six made-up numbers (it has no sample)"
        self._refuse(
            f"it cannot {what} {sample}: event {number} raises {explained(error)}. Give "
            "CustomModel a sample of events as they will come, or mend the pipeline"
        )

    def _refuse(self, why: str) -> NoReturn:
        _refuse(self._served.name, why)


def _refuse(name: str, why: str) -> NoReturn:
    raise StartupError(f"The custom model {name!r} cannot be served: {why}.") from None


def _listed(types: Sequence[str]) -> str:
    return ", ".join(types)


def _as_posted(x: Mapping[str, Any]) -> dict[str, Any]:
    """Return features as they come out of JSON: every number a float."""
    return {name: float(v) if type(v) is int else v for name, v in x.items()}


def _variations(x: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an event and others: features gone, new ones, values never seen."""
    found = [x, {}, {**x, "hinged: never seen": 1.0}, {**x, "hinged: never seen": "word"}]
    for name, value in islice(x.items(), 50):
        other = f"{value} never-seen" if isinstance(value, str) else 12345.678
        found += [{n: v for n, v in x.items() if n != name}, {**x, name: other}]
    return found


def _made_up(multiclass: bool) -> Sample:
    """Return 60 events of six numbers, some of them missing."""
    found = []
    for i in range(60):
        x = {f"x{j}": ((i * (j + 3)) % 11 - 5) / 4 for j in range(6) if (i + j) % 4}
        y: Any = sum(x.values()) > 0.0
        found.append((x, ("many" if y else "few") if multiclass else y))
    return found


def _elsewhere(sources: Sequence[str]) -> dict[str, parts.Parts]:
    """Return `trained_parts` of all models, from a process with another order of sets."""
    seed = "0" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    try:
        done = subprocess.run(  # noqa: S603 - this Python and this package
            [sys.executable, "-m", "hinged_service.river_support.custom", *sources],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        lines = done.stdout.strip().splitlines()
        answer = json.loads(lines[-1]) if done.returncode == 0 and lines else None
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise StartupError(
            f"The custom models could not be tried in a second process: {error}."
        ) from None
    if answer is None:
        reason = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise StartupError(f"The custom models fail in a second process: {reason}")
    return {name: parts.from_json(found) for name, found in answer.items()}
