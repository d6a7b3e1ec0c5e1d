"""Scaling that leaves flags and sparse features alone."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from hinged.auto_scaler import NUMBERS, new_scales, restored
from hinged.kernel import Scales
from hinged.kernel.pure import UNSEEN, Record, scale_of
from hinged_service.pipelines.by_name import ByName
from hinged_service.pipelines.stage import Scaling, StepSpec
from hinged_service.pipelines.state_checks import count, items
from hinged_service.pipelines.values import Features, Numbers, floats

__all__ = ["AutoScalerSpec"]


class AutoScaler(ByName[Record]):
    """The records of `hinged.AutoScaler`, and the number of events learned."""

    numbers = NUMBERS
    _records: Scales  # type: ignore[assignment] # it has what the base needs of a dictionary

    def __init__(self, spec: StepSpec, max_features: int) -> None:
        super().__init__(spec, max_features)
        self._events = 0
        self._records = new_scales(0)

    def transform(self, x: Features) -> dict[str, float]:
        return self._records.now(floats(x, "AutoScaler"))

    def learn_transform(self, x: Features) -> Numbers:
        records, numbers = self._records, floats(x, "AutoScaler")
        self._events += 1
        for name in records.unknown(numbers):
            self._admit(name)
        return records.after(numbers, self._events, len(records), keep=True)[0]

    def scaling(self, name: str) -> Scaling:
        return Scaling(*scale_of(self._records.get(name)))

    def _fresh(self) -> Record:
        return UNSEEN

    def _dump(self, record: Record) -> list[Any]:
        return list(record)

    def _load(self, data: list[Any]) -> Record:
        return restored(data, self._events)

    def get_state(self) -> list[Any]:
        """Return the number of events, and `[name, ...record]` for each name."""
        return [self._events, super().get_state()]

    def set_state(self, data: Any) -> None:
        """Restore the state that `get_state` returned."""
        events, names = items(data, "the state of AutoScaler", 2)
        self._events = count(events, "the events of AutoScaler")
        self._records = new_scales(self._events)
        super().set_state(names)


class AutoScalerSpec(StepSpec):
    """Centre and scale dense numeric features; leave flags (0 or 1) and sparse ones alone.

    A feature is dense if three in five of the events since its first have it, once it has
    16 values and two of them are other than 0 and 1; or if every event so far has it, with
    the first of 15 values that is no whole number from -8 to 8. It stays so until fewer than
    a quarter have it. It becomes its distance from its mean in standard deviations, at most 8.
    Any other stays as it is, but one whose root mean square is above 8 is divided by that.

    Of more than 8 values, one huge one changes no other: the least and the largest count
    only within 8 standard deviations of the others, values beyond count as those. Older
    values fade after a thousand. A constant is 0, unless it is 0 or 1; whole numbers that
    code categories are scaled as numbers (put OneHotEncoder before); a feature not seen
    before is 0.

    `hinged.AutoScaler` in a process. `"scale": "auto"` of the model puts it last, or
    before FourierFeatures.
    """

    stage: ClassVar = AutoScaler
    type: Literal["AutoScaler"]
