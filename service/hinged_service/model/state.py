"""The state of a model: its parts and its counters, moved only by log entries.

Nothing here reads a clock, a setting or the environment: the same entries from
the same state give the same state, on every worker.

The file is long: one class, as an event moves all its parts and counters together or none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import hinged
from hinged.kernel import is_compiled
from hinged.temperature import Temperature
from hinged.vector import saturated
from hinged_service.evaluation.drift import Drift
from hinged_service.evaluation.metrics import Metrics
from hinged_service.model.byte_budget import ByteBudget
from hinged_service.model.cost import limits_of
from hinged_service.model.history import History, Point, Turn
from hinged_service.model.predictor import Prediction, predictor_for
from hinged_service.model.results import KEPT_DETECTIONS, Detection, Late, Rejection, Result
from hinged_service.model.spec import ModelSpec
from hinged_service.model.start import Exclusion
from hinged_service.pipelines import Pipeline
from hinged_service.river_support.learners import Features, Label, Learner
from hinged_service.wire.events import Event, MixedEvent, Value, not_a_number
from hinged_service.wire.faults import MAX_FEATURES
from hinged_service.wire.position import EntryId
from hinged_service.wire.proba import USUAL

__all__ = ["ModelState"]

OnAnswer = Callable[[str, int, Prediction], None]
"""Takes the id of a log entry, the number of an event in it, and the answer before learning it."""
OnTaught = Callable[[Features, Label, float, hinged.Outcome], None]
"""Takes features, label and weight as the learner is taught them, and the outcome."""
Columns = tuple[Sequence[Features], Sequence[Label | None], Sequence[float]]
"""Features, learner's label and sample weight of some events."""
_WITH_FEATURES = frozenset({Event, MixedEvent})
_LEAST_RUN = 4
"""Events for which it pays to look at them together, and to learn them at once."""


class ModelState:
    """The state of one model of a spec.

    Attributes
    ----------
    learner
        The learner; its weights, intercept and accounting are the model's.
    pipeline
        The transformers of the features; `None` for a model of plain numbers.
    answers
        The predictor: the model's labels and answers.
    temperature
        What calibrates the probabilities, if the spec asks for it.
    balance
        The labels so far and the weights that balance them, if the spec asks for it.
    events
        Events that counted: learned, or only scored while the model was frozen.
    judged
        Those of them that count in accuracy: of weight above 0, and with a label predicted
        before anything was learned (a multiclass model without classes predicts none).
    mistakes
        Those of the judged whose predicted label was wrong.
    labelled, delay_ms, longest_delay_ms
        Events that were the label of an earlier prediction; how long those waited, in
        all and at most, in ms.
    served, served_mistakes
        Predictions served by this model that have their label, be it the default, judged
        likewise; those that were wrong. (`mistakes` counts what it would answer at the time of
        learning.)
    rejected
        Events in the log that this model could not take: not an event, a label
        of another model, one class too many, features that its pipeline refuses.
    excluded
        Events that the spec leaves out.
    on_answer
        Called with the answer to each event, see `set_on_answer`.
    frozen
        True while the model only predicts.
    detections, detected
        The last drifts found; how many there were.
    history
        Readings of these counters as they rose.
    accepts_non_numeric, multiclass
        As in the spec.
    can_reject_features
        True if it depends on the features whether the model takes an event.
    takes_gathered
        True if features may be mappings that the kernel has read, as for `parse_events`.
    replaced
        True if other weights took the place of those that were tracked, until a save resets it.

    """

    __slots__ = (
        *("_at_once", "_budget", "_by_runs", "_exclusion", "_limits", "_looks_closely"),
        *("_may_be_wide", "_on_taught", "_place", "_plain", "_spec", "_teach", "_teach_plainly"),
        *("_vectors", "accepts_non_numeric", "answers", "balance", "can_reject_features"),
        *("configured", "delay_ms", "detected", "detections", "drift", "events", "excluded"),
        *("frozen", "history", "judged", "labelled", "learner", "longest_delay_ms", "metrics"),
        *("mistakes", "multiclass", "on_answer", "pipeline", "rejected", "replaced", "served"),
        *("served_mistakes", "takes_gathered", "temperature"),
    )

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec
        self.accepts_non_numeric = spec.accepts_non_numeric
        self._limits = spec.once(limits_of)
        self._may_be_wide = self._limits.features < MAX_FEATURES
        self._looks_closely = spec.can_reject_features
        self.can_reject_features = self._looks_closely or self._may_be_wide
        self.multiclass = spec.multiclass
        self._exclusion = None if spec.exclude is None else Exclusion(spec.exclude)
        self.drift = None if spec.drift is None else Drift(spec.drift)
        self.configured: dict[str, Any] = {}
        self.frozen = False
        self.events = self.judged = self.mistakes = self.rejected = 0
        self.excluded = self.detected = self.served = self.served_mistakes = 0
        self.labelled = self.delay_ms = self.longest_delay_ms = 0
        self.detections: tuple[Detection, ...] = ()
        self.history = History()
        self.replaced = False
        self._on_taught: OnTaught | None = None
        self.on_answer: OnAnswer | None = None
        self._place = ("", 0)
        self.renew()
        by_score = isinstance(self.learner, hinged.BinaryLinearClassifier)
        self.metrics = (
            Metrics(spec.metrics, spec.multiclass, spec.pair, by_score) if spec.metrics else None
        )
        outcome_is_complete = self.temperature is None or isinstance(
            self.learner, (hinged.BinaryLinearClassifier, hinged.Hedge)
        )
        self.takes_gathered = self.pipeline is None and isinstance(
            self.learner, hinged.LinearClassifier
        )
        parts = (self.pipeline, self.metrics, self.drift)
        self._plain = outcome_is_complete and not any(part is not None for part in parts)
        """True if an outcome has all facts of an event."""

    def renew(self) -> None:
        """Make a fresh learner and pipeline, with the parameters as configured."""
        spec = self._spec
        self.temperature = Temperature() if spec.calibrate else None
        self.balance = hinged.ClassBalance() if spec.class_weight is not None else None
        half = spec.bytes_bound // 2
        self.pipeline = Pipeline(spec.steps, spec.max_features, half) if spec.steps else None
        self._use(spec.configured(self.configured).build(spec.max_features))
        at_once = (
            self.pipeline is not None
            and self.pipeline.learns
            and self.pipeline.added is not None
            and self.pipeline.takes_numbers
            and isinstance(self.learner, hinged.LinearClassifier)
        )
        self._at_once = self.pipeline if at_once else None
        """The pipeline, if a labelled event of plain numbers cannot be refused for its features."""

    def _use(self, learner: Learner) -> None:
        self.learner = learner
        self.answers = predictor_for(self._spec, learner, self.temperature)
        self._budget = ByteBudget(self._spec, learner, self.pipeline)
        self._vectors: dict[str, hinged.WeightVector] | None = None
        self._link()

    def observe(self, on_taught: OnTaught | None) -> None:
        """Call `on_taught` with every event from now on, after the learner was taught it."""
        self._on_taught = on_taught
        self._link()

    def set_on_answer(self, on_answer: OnAnswer | None) -> None:
        """Call `on_answer` from now on with the answer to every event before it is learned."""
        self.on_answer = on_answer
        self._plain = self._plain and on_answer is None

    def _link(self) -> None:
        learn = self.learner.predict_learn_one
        bare = self._on_taught is None and self.balance is None
        by_sign = isinstance(self.learner, hinged.BinaryLinearClassifier)
        self._by_runs = is_compiled and bare and by_sign and self.temperature is None
        self._teach = learn if bare else self._teach_with_hooks
        self._teach_plainly = self._teach if self.temperature is None else self._teach_and_calibrate

    def _weighed(self, y: Label, w: float) -> float:
        """Return the sample weight that the learner is taught with."""
        return w if self.balance is None else saturated(w * self.balance.weight(y))

    def _teach_with_hooks(self, x: Features, y: Label, w: float) -> hinged.Outcome:
        w = self._weighed(y, w)
        outcome = self.learner.predict_learn_one(x, y, w)
        if self.balance is not None and w > 0.0:
            self.balance.count(y)
        if self._on_taught is not None:
            self._on_taught(x, y, w, outcome)
        return outcome

    def _teach_and_calibrate(self, x: Features, y: Label, w: float) -> hinged.Outcome:
        outcome = self._teach(x, y, w)
        self.answers.calibrate(y, outcome.score, w)
        return outcome

    def take_over(self, saved: Mapping[str, Any]) -> None:
        """Give the learner a saved state, as its `set_state` does."""
        self.learner.set_state(saved)
        self._vectors = None  # the state has vectors of its own

    def learn_all(
        self,
        events: Iterable[Event | None],
        skip: frozenset[int],
        entry_id: str,
        late: Mapping[int, Late] | None = None,
        first: int = 0,
    ) -> list[Result]:
        """Fold the events of one entry in, or a part of them.

        Parameters
        ----------
        events
            Decoded events; `None` for one that could not be decoded.
        skip
            Indices of those that do not count.
        entry_id
            The entry's id.
        late
            By index what is stored of the prediction that an event is the label of.
        first
            The index within the entry of the first of these events.

        Returns
        -------
        One per event. A rejection is counted and changes nothing else.

        """
        events = list(events)
        runs = self._by_runs and self._plain and len(events) >= _LEAST_RUN
        if not runs or self.frozen or self._exclusion or skip or late:
            return self._learn_each(events, skip, entry_id, late, first)
        columns, single = self._columns(events), 1
        results: list[Result] = []
        while (at := len(results)) < len(events):
            run: Sequence[Result] = self._learn_run(columns, at, entry_id)
            if not run:  # after each such event look for a run less often
                run = self._learn_each(events[at : at + single], skip, entry_id, late, first + at)
                single *= 2
            results += run
        return results

    def _columns(self, events: Sequence[Event | None]) -> Columns:
        """Return what is learned of each event; the columns end before one that is not there."""
        there = [event for event in events if event is not None]
        if len(there) < len(events):
            there = there[: events.index(None)]
        ys = self.answers.targets([event.y for event in there])
        return [event.x for event in there], ys, [event.w for event in there]

    def _learn_run(self, columns: Columns, at: int, entry_id: str) -> list[hinged.Outcome]:
        """Learn events from `at` on at once, as far as they are ordinary.

        A run ends where the history gets a point.
        """
        learner, budget = self.learner, self._budget
        assert isinstance(learner, hinged.BinaryLinearClassifier)  # noqa: S101
        before, end = learner.accounting.mistakes, at + self.history.due - self.events
        run = learner.predict_learn_run(*columns, at, end, int(budget.spare // budget.per_name))
        if run:
            taken = sum(map(len, columns[0][at : at + len(run)]))
            budget.spare -= taken * budget.per_name
            self.events += len(run)
            self.judged += len(run)
            self.mistakes += learner.accounting.mistakes - before
            if self.events >= self.history.due:
                self.history.add(self.reading(EntryId.of(entry_id).ms))
        return run

    def _learn_each(
        self,
        events: Iterable[Event | None],
        skip: frozenset[int],
        entry_id: str,
        late: Mapping[int, Late] | None,
        first: int,
    ) -> list[Result]:
        """Learn events one by one, as `learn_all` does."""
        exclusion = self._exclusion
        excluded = exclusion is not None and exclusion.has_entry(entry_id)
        numbers = not self.accepts_non_numeric
        plain = self._plain
        step = self._progress if self.on_answer is None else self._answer_and_progress
        budget = self._budget  # of plain events none puts another learner in place
        due = self.history.due
        results: list[Result] = []
        for number, event in enumerate(events, first):
            if number in skip:
                results.append(None)
                continue
            try:
                target = None if event is None else self.answers.target(event.y)
                if event is None or target is None:
                    results.append(self._refuse(event))
                elif exclusion is not None and (excluded or exclusion.has_id(event.id)):
                    self.excluded += 1
                    results.append(None)
                elif type(event) is not Event and (fault := _unfit(event, numbers)):
                    self.rejected += 1
                    results.append(fault)
                else:
                    if plain and not self.frozen:
                        need = len(event.x) * budget.per_name
                        if self.multiclass or need > budget.spare:
                            budget.check(event.x, target, event.w > 0.0)
                        else:
                            budget.spare -= need
                        outcome = self._teach_plainly(event.x, target, event.w)
                    else:
                        self._place = entry_id, number
                        outcome = step(event, target)
                    count = self.events = self.events + 1
                    self.judged += event.w > 0.0 and outcome.y_pred is not None
                    self.mistakes += outcome.mistake
                    if count >= due or late is not None:
                        prediction = None if late is None else late.get(number)
                        self._look_back(prediction, target, event.w, EntryId.of(entry_id).ms)
                        due = self.history.due
                    results.append(outcome)
            except hinged.InvalidEvent as error:
                self.rejected += 1
                results.append(Rejection(error.field, error.reason))
        return results

    def reading(self, at_ms: int) -> Point:
        """Return the counters as a point of the history."""
        metrics = self.metrics
        return Point(
            at_ms=at_ms,
            events=self.events,
            judged=self.judged,
            mistakes=self.mistakes,
            updates=self.learner.accounting.updates,
            drifts=self.detected,
            labelled=self.labelled,
            delay_ms=self.delay_ms,
            log_loss=None if metrics is None else metrics.first("log_loss", rolling=False),
            rolling_accuracy=None if metrics is None else metrics.first("accuracy", rolling=True),
        )

    def stored_bytes(self) -> int:
        """Return the bytes of all that was learned by name."""
        return self._budget.stored_bytes()

    @property
    def max_bytes(self) -> int:
        """The most bytes that it may take."""
        return self._spec.bytes_bound

    def _look_back(self, late: Late | None, y: Label, w: float, at_ms: int) -> None:
        """Account the prediction that an event is the label of; add a point that is due."""
        if late is not None and late.at_ms is not None:
            delay_ms = max(0, at_ms - int(late.at_ms))
            self.labelled += 1
            self.delay_ms += delay_ms
            self.longest_delay_ms = max(self.longest_delay_ms, delay_ms)
        if late is not None and late.served and late.y is not None and w > 0.0:
            self.served += 1
            if self.answers.target(late.y) != y:
                self.served_mistakes += 1
        if self.events >= self.history.due:
            self.history.add(self.reading(at_ms))

    def _refuse(self, event: Event | None) -> Rejection:
        self.rejected += 1
        if event is None:
            return Rejection("", "is not an event")
        return Rejection("y", self.answers.expected())

    def _progress(self, event: Event, y: Label) -> hinged.Outcome:
        """Predict and score, then learn; count in the metrics and ask the drift detector."""
        answers, pipeline, x, w = self.answers, self.pipeline, event.x, event.w
        plain = type(event) is Event and w > 0.0 and not self.frozen
        at_once = self._at_once if plain else None
        before: Features = x
        if pipeline is not None and at_once is None:
            before = pipeline.transform_one(x)
        answers.admit(y)
        self.learner.check_weight(self._weighed(y, w))
        taught = before
        named = before if at_once is None else self._budget.with_added(before)
        self._budget.check(named, y, w > 0.0 and not self.frozen)
        if at_once is not None:
            before, taught = at_once.progress_one(x)
        y_pred, score, scores = answers.decide(before)
        judged = w > 0.0 and y_pred is not None
        mistake = judged and y_pred != y
        proba = answers.probabilities(scores) if self.metrics is not None else {}
        if self.frozen:
            margin = answers.margin(y, score, scores)
            loss = max(0.0, 1.0 - margin) if w > 0.0 else 0.0
            if loss > 0.0:
                self.learner.accounting.add_margin(margin)
            outcome = hinged.Outcome(y_pred, score, mistake, False, saturated(loss))
        elif pipeline is None or not pipeline.learns:
            outcome = self._teach(before, y, w)
        else:
            if at_once is None and w > 0.0:
                taught = pipeline.learn_transform_one(x, checked=True)
            learned = self._teach(taught, y, w)
            outcome = hinged.Outcome(y_pred, score, mistake, learned.updated, learned.hinge_loss)
        if judged:
            answers.calibrate(y, scores, 0.0 if self.frozen else w)
            if self.metrics is not None:
                self.metrics.update(y, y_pred, proba, score)
            if self.drift is not None and not self.frozen and self.drift.update(mistake):
                self._detect()
        return outcome

    def _answer_and_progress(self, event: Event, y: Label) -> hinged.Outcome:
        """Do what `_progress` does, and report the answer before it if the event counts."""
        pipeline = self.pipeline
        x: Features = event.x if pipeline is None else pipeline.transform_one(event.x)
        answer = self.answers.predict(x)
        outcome = self._progress(event, y)
        if self.on_answer is not None:
            self.on_answer(*self._place, answer)
        return outcome

    def _detect(self) -> None:
        self.detected += 1
        entry, number = self._place
        kept = (*self.detections, Detection(entry, number, self.events + 1))
        self.history.mark(Turn(EntryId.of(entry).ms, self.events + 1, "drift", ""))
        self.detections = kept[-KEPT_DETECTIONS:]
        if self._spec.drift is not None and self._spec.drift.action == "reset":
            self.reset()

    def reset(self) -> None:
        """Forget all that was learned; the counters and metrics go on."""
        account = self.learner.accounting
        self.renew()
        self.learner.accounting = account
        self.replaced = True

    def obey(self, command: Mapping[str, Any], entry_id: str) -> bool:
        """Carry out a command of the log that names this model.

        Parameters
        ----------
        entry_id
            The id of its entry.
        command
            `{"do": "freeze" | "unfreeze" | "reset"}` or `{"do": "configure",
            "set": {parameter: value}}`.

        Returns
        -------
        False if it could not be carried out: nothing changed but that it is counted.

        """
        match command:
            case {"do": "freeze"}:
                self.frozen = True
            case {"do": "unfreeze"}:
                self.frozen = False
            case {"do": "reset"}:
                self.reset()
            case {"do": "configure", "set": dict() as parameters}:
                if not self._configure(parameters):
                    return False
            case {"do": "upgrade", "fold": str(), "from": str()}:
                pass  # the workers that may fold on, and the state, are settled before
            case _:
                self.rejected += 1
                return False
        self.note(command, entry_id)
        return True

    def note(self, command: Mapping[str, Any], entry_id: str) -> None:
        """Mark a command that was carried out in the history."""
        text = json.dumps(command["set"], sort_keys=True) if "set" in command else ""
        at_ms = EntryId.of(entry_id).ms
        self.history.mark(Turn(at_ms, self.events, str(command["do"]), text))

    def _configure(self, parameters: dict[str, Any]) -> bool:
        wanted = {**self.configured, **parameters}
        try:
            learner = self._spec.configured(wanted).build(self._spec.max_features)
        except (ValueError, RecursionError):
            self.rejected += 1
            return False
        learner.set_state(self.learner.get_state())
        self.configured = wanted
        self._use(learner)
        self.replaced = True
        return True

    def faults(self, events: Iterable[Event]) -> list[tuple[int, Rejection]]:
        """Return by index why the model cannot take label, weight or features of events now.

        Of events that together may need more room than there is, the first ones are taken.
        """
        found, need = self.faults_of_each(events)
        return self.with_room(events, found, need)

    def with_room(
        self, events: Iterable[Event], found: list[tuple[int, Rejection]], need: float
    ) -> list[tuple[int, Rejection]]:
        """Return the faults found, and the events for which there is no room after those before."""
        if need <= self._budget.spare or self.frozen:
            return found
        faulty = {i for i, _ in found}
        over = self._budget.without_room(events, faulty, self.answers.target, self.made_of)
        return found + [(i, Rejection("x", reason)) for i, reason in over]

    def faults_of_each(self, events: Iterable[Event]) -> tuple[list[tuple[int, Rejection]], float]:
        """Return by index why events by themselves cannot be taken, and the room they may need."""
        events, found = list(events), []
        target, closely, budget = self.answers.target, self._looks_closely, self._budget
        need, each = 0.0, 0 if closely or self.multiclass else budget.per_name
        if each and len(events) >= _LEAST_RUN and self._are_usual(events):
            need += each * sum([len(event.x) for event in events])
            return [*self._too_wide(events)] if self._may_be_wide else [], need
        for i, event in enumerate(events):
            y = target(event.y)
            if y is None:
                found.append((i, Rejection("y", self.answers.expected())))
            if event.w != 1.0 or closely:
                try:
                    self.learner.check_weight(event.w if y is None else self._weighed(y, event.w))
                    if closely and not event.is_label:
                        x = self.made_of(event.x)
                        self.answers.predict(x)
                        need += budget.most_bytes(x)
                except hinged.InvalidEvent as error:
                    found.append((i, Rejection(error.field, error.reason)))
            if not (closely or event.is_label):
                need += len(event.x) * each if each else budget.most_bytes(event.x)
        if self._may_be_wide and not closely:
            found += self._too_wide(events)
        return found, need

    def _are_usual(self, events: Sequence[Event]) -> bool:
        """Return whether all events have features, a label of the model, and the weight 1."""
        return (
            _WITH_FEATURES.issuperset(map(type, events))
            and {event.w for event in events} <= {1.0}
            and None not in set(self.answers.targets([event.y for event in events]))
        )

    def _too_wide(self, events: Iterable[Event]) -> Iterator[tuple[int, Rejection]]:
        """Yield the events of too many features."""
        for i, event in enumerate(events):
            if not event.is_label:
                try:
                    self.made_of(event.x)
                except hinged.InvalidEvent as error:
                    yield i, Rejection(error.field, error.reason)

    def predict(self, x: Mapping[str, Value], most: int = USUAL) -> Prediction:
        """Return the answer for one event, with the `most` largest probabilities.

        Raises
        ------
        hinged.InvalidEvent
            As `made_of`.

        """
        return self.answers.predict(self.made_of(x), most)

    def made_of(self, x: Mapping[str, Value]) -> Features:
        """Return the features that the learner gets for those of an event at the door.

        An event in the log is learned at any size, by all workers alike.

        Raises
        ------
        hinged.InvalidEvent
            Naming the feature that the pipeline does not take, or `x` if there are so many, or
            so much text, that the event would take seconds.

        """
        most = self._limits
        made: Features = x
        if self.pipeline is not None:
            if most.characters is not None:
                size = sum(len(value) for value in x.values() if type(value) is str)
                if size > most.characters:
                    reason = f"has {size} characters of text, more than {most.characters}"
                    raise hinged.InvalidEvent("x", f"{reason}: that would take too long")
            made = self.pipeline.transform_one(x)
        if len(made) > most.features:
            reason = f"gives {len(made)} features, more than {most.features}"
            raise hinged.InvalidEvent("x", f"{reason}: with this spec that would take too long")
        return made

    def vectors(self) -> dict[str, hinged.WeightVector]:
        """Return the live vectors of the learner by name."""
        if self._vectors is not None:
            return self._vectors
        if not isinstance(self.learner, hinged.LinearClassifier):
            return {}
        vectors: dict[str, hinged.WeightVector] = self.learner.get_state()["vectors"]
        if not self.multiclass:  # nothing but another state gives a binary learner other vectors
            self._vectors = vectors
        return vectors


def _unfit(event: Event, numbers: bool) -> Rejection | None:
    """Return why an event that is not plain numbers cannot be taken."""
    if event.is_label:
        return Rejection("x", "is missing")
    fault = not_a_number(event.x) if numbers else None
    return None if fault is None else Rejection(*fault)
