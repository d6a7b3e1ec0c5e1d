"""River's detectors of drift on a model's mistakes, and their specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

import hinged
from hinged_service.river_support import state
from hinged_service.river_support.lazy import drift
from hinged_service.wire.codec import DamagedState
from hinged_service.wire.strict_model import StrictModel

__all__ = ["Detector", "Drift", "DriftSpec", "Promote", "PromoteTo"]

_STATE_VERSION = 1
_TRIED = (*(0, 1) * 16, *(1,) * 16, *(0,) * 16)
"""Values for a restored detector: parts that decode may still not go together."""

_DAMAGE = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
_drift: Any = drift  # not all of River is typed

Confidence = Annotated[float, Field(gt=0, lt=1)]
Instances = Annotated[int, Field(ge=1, le=1_000_000)]


class _Detector(StrictModel):
    def build(self) -> Any:
        """Return the fresh River detector of this name, with these parameters."""
        parameters = self.model_dump()
        name = parameters.pop("type")
        return getattr(_drift if hasattr(_drift, name) else _drift.binary, name)(**parameters)


class ADWINSpec(_Detector):
    """ADWIN: a window that shrinks when its two halves differ."""

    type: Literal["ADWIN"]
    delta: Confidence = Field(0.002, description="The risk of a false alarm.")
    clock: int = Field(32, ge=1, le=10_000, description="Events from one look to the next.")
    max_buckets: int = Field(5, ge=2, le=50, description="Buckets of a size before two merge.")
    min_window_length: int = Field(5, ge=1, le=10_000, description="The shortest half compared.")
    grace_period: int = Field(10, ge=1, le=1_000_000, description="Events before the first look.")


class PageHinkleySpec(_Detector):
    """Page and Hinkley's test: the sum of deviations from the mean moves too far."""

    type: Literal["PageHinkley"]
    min_instances: Instances = Field(30, description="Events before the first alarm.")
    delta: float = Field(0.005, ge=0, le=1, description="Deviations up to this are no change.")
    threshold: float = Field(50.0, gt=0, le=1e9, description="The sum that is a change.")
    alpha: float = Field(0.9999, gt=0, le=1, description="How slowly the sum forgets.")
    mode: Literal["up", "down", "both"] = Field("both", description="Which changes count.")


class KSWINSpec(_Detector):
    """KSWIN: Kolmogorov and Smirnov's test of the newest events against a sample of older ones."""

    type: Literal["KSWIN"]
    alpha: Confidence = Field(0.005, description="The level of the test.")
    window_size: int = Field(100, ge=2, le=5_000, description="Events kept.")
    stat_size: int = Field(30, ge=1, le=2_500, description="The newest events, and the sample.")
    seed: int = Field(ge=0, lt=2**63, description="Seed of the sample; always the same one.")

    @model_validator(mode="after")
    def _fitting(self) -> KSWINSpec:
        if self.window_size < 2 * self.stat_size:
            raise ValueError("window_size must be at least twice stat_size")
        return self


class DDMSpec(_Detector):
    """DDM: the rate of mistakes rises above its best."""

    type: Literal["DDM"]
    warm_start: Instances = Field(30, description="Events before the first alarm.")
    warning_threshold: float = Field(2.0, gt=0, le=1e3, description="Deviations that warn.")
    drift_threshold: float = Field(3.0, gt=0, le=1e3, description="Deviations that are a change.")


class EDDMSpec(_Detector):
    """EDDM: mistakes come closer together than they were at their rarest."""

    type: Literal["EDDM"]
    warm_start: Instances = Field(30, description="Mistakes before the first alarm.")
    alpha: float = Field(0.95, gt=0, le=1, description="The part of the best distance that warns.")
    beta: float = Field(0.9, gt=0, le=1, description="The part that is a change; at most alpha.")

    @model_validator(mode="after")
    def _fitting(self) -> EDDMSpec:
        if self.beta > self.alpha:
            raise ValueError("beta must be at most alpha")
        return self


class _HDDM(_Detector):
    drift_confidence: Confidence = Field(0.001, description="The risk of a false alarm.")
    warning_confidence: Confidence = Field(0.005, description="The risk of a false warning.")
    two_sided_test: bool = Field(False, description="Fewer mistakes are a change, too.")


class HDDMASpec(_HDDM):
    """HDDM by Hoeffding's bound on averages."""

    type: Literal["HDDMA"]


class HDDMWSpec(_HDDM):
    """HDDM by McDiarmid's bound on weighted averages."""

    type: Literal["HDDMW"]
    lambda_val: float = Field(0.05, gt=0, le=1, description="The weight of the newest event.")


Detector = Annotated[
    ADWINSpec | PageHinkleySpec | KSWINSpec | DDMSpec | EDDMSpec | HDDMASpec | HDDMWSpec,
    Field(discriminator="type"),
]


class PromoteTo(StrictModel):
    """The alias that goes to the best challenger."""

    alias: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]{0,127}$", description="An alias of the stream."
    )


class Promote(StrictModel):
    """On a change, switch an alias to the best challenger."""

    promote: PromoteTo


class DriftSpec(StrictModel):
    """A watch for a change in a model's mistakes, and the action at one."""

    detector: Detector = Field(description="River's detector and its parameters.")
    action: Literal["mark", "reset"] | Promote = Field(
        "mark", description="Only record it, reset the learner, or switch an alias."
    )


class Drift:
    """A detector at work: fed with one mistake or none per learned event.

    Parameters
    ----------
    spec
        The detector's spec.

    """

    def __init__(self, spec: DriftSpec) -> None:
        self._spec = spec.detector
        self._detector: Any = self._spec.build()
        self._parameters = set(type(self._spec).model_fields) - {"type"}

    def update(self, mistake: bool) -> bool:
        """Take in one event; return whether it shows a change.

        River's detectors restart at the event after a change.

        Parameters
        ----------
        mistake
            Whether the label predicted before learning was wrong.

        """
        self._detector.update(int(mistake))
        return bool(self._detector.drift_detected)

    def get_state(self) -> dict[str, Any]:
        """Return the complete state as JSON-like data."""
        return {
            "version": _STATE_VERSION,
            "type": self._spec.type,
            "detector": state.encode(self._detector),
        }

    def set_state(self, saved: Mapping[str, Any]) -> None:
        """Take over a state that `get_state` gave.

        Raises
        ------
        hinged.InvalidState
            If it is of another version, detector or parameters, or damaged.
            Nothing has changed.

        """
        if not isinstance(saved, Mapping) or set(saved) != {"version", "type", "detector"}:
            raise hinged.InvalidState("not the state of a drift detector")
        if (saved["version"], saved["type"]) != (_STATE_VERSION, self._spec.type):
            raise hinged.InvalidState(f"not a version {_STATE_VERSION} state of {self._spec.type}")
        fresh = self._spec.build()
        try:
            detector: Any = state.decode(saved["detector"])
            trial: Any = state.decode(saved["detector"])
            same = type(detector) is type(fresh) and all(
                getattr(detector, name) == getattr(fresh, name) for name in self._parameters
            )
            if same:
                for mistake in _TRIED:
                    trial.update(mistake)
                state.encode(trial)
        except (DamagedState, *_DAMAGE) as error:
            raise hinged.InvalidState(f"the detector is damaged: {error}") from None
        if not same:
            raise hinged.InvalidState("the detector is another one than the spec describes")
        self._detector = detector
