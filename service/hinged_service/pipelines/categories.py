"""One 0/1 feature per category."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, model_validator

import hinged
from hinged_service.pipelines.selection import Name, Separator
from hinged_service.pipelines.stage import Origins, Stage, StepSpec
from hinged_service.pipelines.state_checks import items, text
from hinged_service.pipelines.values import MAX_WIDTH, Features, Value, field, refuse_missing

__all__ = ["OneHotEncoderSpec"]

MAX_TEXT = 256

Category = (
    Annotated[StrictStr, Field(max_length=MAX_TEXT)]
    | StrictBool
    | Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]
    | Annotated[StrictFloat, Field(allow_inf_nan=False)]
)


class OneHotEncoderSpec(StepSpec):
    """Turn each feature `name` with the value `v` into the feature `name_v` with the value 1.

    As `river.preprocessing.OneHotEncoder`, but it keeps at most 10,000 zeros (later
    categories are 1 where they occur and not mentioned elsewhere), refuses a feature that
    `categories` does not list, and drops nothing from nothing. All numbers of an event are
    floats, so `"size": 1` and `"size": 1.0` both give `size_1.0`, as River names the float;
    true is another category, `size_True`, and so is the text `"1"`, `size_1`. A number in
    `categories` stands for both spellings, and the feature is named as it is listed.

    Two categories of one name are one feature to the learner, with one weight: `"a": "x_y"`
    and `"a_x": "y"` are both `a_x_y`. A `separator` of characters that are in no feature name
    keeps all features apart. Within a feature a text that reads like another value still
    shares its name: `"1.0"` that of the number 1, `"True"` that of true.
    """

    type: Literal["OneHotEncoder"]
    categories: dict[Name, tuple[Category, ...]] | None = Field(
        None,
        max_length=MAX_WIDTH,
        description="The values that count, by feature, other values giving no feature; all that "
        "occur if left out. Exactly the listed features are taken.",
    )
    drop_zeros: bool = Field(
        False, description="Leave the other categories out instead of giving them as 0."
    )
    drop_first: bool = Field(
        False, description="Leave out the first of the given names in the order of the alphabet."
    )
    separator: Separator = Field(
        "_", description="Stands between feature and value in a name; as River has it by default."
    )

    @model_validator(mode="after")
    def _bounded(self) -> OneHotEncoderSpec:
        if sum(map(len, (self.categories or {}).values())) > MAX_WIDTH:
            raise ValueError(f"there may be {MAX_WIDTH} categories at most")
        return self

    def build(self, max_features: int) -> Stage:
        """Return the fresh stage."""
        if self.categories is not None:
            return ListedCategories(self, max_features)
        return OneHotEncoder(self, max_features)


class OneHotEncoder(Stage):
    """The names that it gave, in the order they were learned."""

    _spec: OneHotEncoderSpec

    def __init__(self, spec: OneHotEncoderSpec, max_features: int) -> None:
        super().__init__(spec, min(max_features, MAX_WIDTH))
        self.learns = not spec.drop_zeros
        self._fields: dict[str, str] = {}

    def transform(self, x: Features) -> dict[str, float]:
        """Return 1 for the categories of `x`, 0 for the others seen."""
        made = dict.fromkeys(self._fields, 0.0)
        made.update((column, 1.0) for column, _ in self._categories(x))
        return _without_first(made) if self._spec.drop_first else made

    def learn_transform(self, x: Features) -> dict[str, float]:
        """Note the categories of `x`, then encode."""
        made = self.transform(x)
        if self.learns:
            for column, name in self._categories(x):
                if column not in self._fields:
                    self._admit(column, name)
        return made

    def _admit(self, column: str, name: str) -> None:
        full = len(self._fields) >= self._max_features
        if full or not self._byte_limit.admit((column, name), 1):
            self._ignored += 1
        else:
            self._fields[column] = name

    def origins(self, x: Features) -> Origins:
        """Return the features whose categories each name may denote; usually one."""
        found: dict[str, tuple[str, ...]] = {}
        for column, name in self._categories(x):
            found[column] = (*found.get(column, ()), name)
        return {g: found[g] if g in found else (self._fields[g],) for g in self.transform(x)}

    def _categories(self, x: Features) -> Iterator[tuple[str, str]]:
        refuse_missing(x, "OneHotEncoder")
        separator = self._spec.separator
        for name, value in x.items():
            if isinstance(value, str) and len(value) > MAX_TEXT:
                raise hinged.InvalidEvent(
                    field(name),
                    f"has a category of more than {MAX_TEXT} characters: BagOfWords takes longer "
                    "text",
                )
            yield f"{name}{separator}{value}", name

    def get_state(self) -> list[list[str]]:
        """Return the names made, each with its feature."""
        return [list(pair) for pair in self._fields.items()]

    def set_state(self, data: Any) -> None:
        for entry in items(data, "the categories"):
            column, name = items(entry, "a category with its feature", 2)
            start = text(name, "a feature") + self._spec.separator
            if not text(column, "a category").startswith(start):
                raise hinged.InvalidState("a category is not named for its feature")
            self._fields[column] = name
            self._byte_limit.restore((column, name), 1)
        if len(self._fields) != len(data) or len(data) > (self._max_features if self.learns else 0):
            raise hinged.InvalidState(f"there are {len(data)} categories: too many, or some twice")


class ListedCategories(Stage):
    """A stage without state: the spec lists the categories."""

    numbers_suffice = False
    _spec: OneHotEncoderSpec

    def __init__(self, spec: OneHotEncoderSpec, max_features: int) -> None:
        super().__init__(spec, max_features)
        self._columns = {
            name: {_kind(value): f"{name}{spec.separator}{value}" for value in values}
            for name, values in (spec.categories or {}).items()
        }
        self._fields: dict[str, tuple[str, ...]] = {}
        for name, listed in self._columns.items():
            for column in dict.fromkeys(listed.values()):
                self._fields[column] = (*self._fields.get(column, ()), name)
        self._blank = {} if spec.drop_zeros else dict.fromkeys(self._fields, 0.0)

    def transform(self, x: Features) -> dict[str, float]:
        """Return 1 for the categories of `x`, 0 for the others listed."""
        made = self._blank.copy()
        for column in self._found(x):
            made[column] = 1.0
        return _without_first(made) if self._spec.drop_first else made

    def origins(self, x: Features) -> Origins:
        """Return the features whose categories each name may denote; usually one."""
        return {column: self._fields[column] for column in self.transform(x)}

    def _found(self, x: Features) -> Iterator[str]:
        refuse_missing(x, "OneHotEncoder")
        for name, value in x.items():
            if (listed := self._columns.get(name)) is None:
                raise hinged.InvalidEvent(
                    field(name),
                    "has no categories in the spec: list them, or put Select before OneHotEncoder",
                )
            if (column := listed.get(_kind(value))) is not None:
                yield column


def _kind(value: Value) -> tuple[bool, Value]:
    """Return a key that distinguishes values: true is not 1, though Python finds them equal."""
    return isinstance(value, bool), value


def _without_first(made: dict[str, float]) -> dict[str, float]:
    if made:
        del made[min(made)]
    return made
