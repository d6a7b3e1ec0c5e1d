"""A custom model in a spec: its name, its version, and whether it has more than two labels."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StrictStr

from hinged_service.errors import Detail, SetAside, Unprocessable
from hinged_service.river_support.custom import registry
from hinged_service.river_support.custom.classifier import custom_learner
from hinged_service.river_support.learners import RiverBinary, RiverMulticlass
from hinged_service.wire.strict_model import StrictModel

__all__ = ["CustomSpec"]


class CustomSpec(StrictModel):
    """A pipeline of the operator's own code, from `hinged serve --models`.

    It takes numbers, text, true, false and null, and learns 100,000 feature names at most.
    """

    type: Literal["custom"]
    name: Annotated[StrictStr, Field(min_length=1, max_length=128)] = Field(
        description="Its name in that code."
    )
    version: Annotated[StrictStr, Field(min_length=1, max_length=64)] = Field(
        description="The version that the code declares."
    )
    classes: int | None = Field(
        None,
        ge=1,
        le=1_000,
        description="The most classes of a multiclass classifier; an event of one more is "
        "refused. Left out for a binary one.",
    )

    @property
    def max_classes(self) -> int:
        """The most classes; no attribute of a binary model."""
        if self.classes is None:
            raise AttributeError("max_classes")
        return self.classes

    def check_served(self) -> None:
        """Raise `Unprocessable` unless this process serves such a custom model."""
        served = registry.served()
        found = served.get(self.name)
        if found is None:
            names = ", ".join(sorted(served)) or "none"
            field, reason = (
                "name",
                f"is not a custom model of this service; its custom models are: {names}",
            )
        elif found.version != self.version:
            field, reason = "version", f"is not the one served here, {found.version!r}"
        elif found.multiclass is (self.classes is None):
            field = "classes"
            reason = (
                "must say how many classes there are at most: the classifier is a multiclass one"
                if found.multiclass
                else "must be left out: the classifier is binary"
            )
        else:
            return
        raise Unprocessable("Nothing was made: see errors.", [Detail(f"learner.{field}", reason)])

    def build(self, max_features: int) -> RiverBinary | RiverMulticlass:
        """Return the fresh learner.

        Raises
        ------
        SetAside
            This process does not serve such a custom model.

        """
        found = registry.served().get(self.name)
        wanted = f"version {self.version!r} of the custom model {self.name!r}"
        if found is None or found.version != self.version:
            here = "none of that name" if found is None else f"version {found.version!r}"
            raise SetAside(
                f"The model is {wanted}; this worker has {here}. Start it with the code of that "
                "version (hinged serve --models), or ask a worker that was.",
                retry_after_s=60,
            )
        if found.multiclass is (self.classes is None):
            now = "multiclass" if found.multiclass else "binary"
            raise SetAside(
                f"The model is {wanted}, whose code makes a {now} classifier now. Declare another "
                "version for it.",
                retry_after_s=60,
            )
        return custom_learner(found, max_features, self.classes)
