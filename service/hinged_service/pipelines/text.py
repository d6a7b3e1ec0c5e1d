"""Text into counts or weights of its words."""

from __future__ import annotations

import collections
import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

import hinged
from hinged_service.pipelines.selection import Name
from hinged_service.pipelines.stage import Origins, Stage, StepSpec
from hinged_service.pipelines.state_checks import count, items, text
from hinged_service.pipelines.values import Features, field, refused
from hinged_service.river_support.lazy import feature_extraction

__all__ = ["BagOfWordsSpec", "TFIDFSpec"]

MAX_TERM = 256

Length = Annotated[int, Field(ge=1, le=5)]


class _Words(StepSpec):
    on: Name = Field(description="The feature that holds the text; the others are left out.")
    strip_accents: bool = Field(True, description="Take accents off the letters.")
    lowercase: bool = Field(True, description="Make all letters small.")
    stop_words: tuple[Name, ...] = Field((), max_length=10_000, description="Words to leave out.")
    prefix: str = Field(
        "",
        max_length=64,
        description="Put before each term: without it two texts of an event, side by side in a "
        "Union, share the names of their terms, and the first one's value counts.",
    )
    ngram_range: tuple[Length, Length] = Field(
        (1, 1), description="The least and the most words that make a term."
    )

    @model_validator(mode="after")
    def _consistent(self) -> _Words:
        if self.ngram_range[0] > self.ngram_range[1]:
            raise ValueError("the first of ngram_range must not be above the second")
        return self


class BagOfWords(Stage):
    """A stage without state."""

    numbers_suffice = False
    _spec: _Words

    def __init__(self, spec: _Words, max_features: int) -> None:
        super().__init__(spec, max_features)
        self._on, self._prefix = spec.on, spec.prefix
        self._words: Any = feature_extraction.BagOfWords(
            strip_accents=spec.strip_accents,
            lowercase=spec.lowercase,
            stop_words=set(spec.stop_words),
            ngram_range=spec.ngram_range,
        )

    def transform(self, x: Features) -> dict[str, float]:
        """Return the number of each term, in the order they come."""
        return {term: float(number) for term, number in self._counts(x).items()}

    def _counts(self, x: Features) -> Mapping[str, int]:
        value = x.get(self._on)
        if isinstance(value, str):
            return collections.Counter(self._terms(value))
        if self._on not in x:
            return {}
        if value is None:
            raise refused(self._on, None, type(self).__name__)
        raise hinged.InvalidEvent(
            field(self._on), f"must be text: {type(self).__name__} takes nothing else"
        )

    def _terms(self, value: str) -> list[str]:
        grams = self._words.process_text(value)
        terms = (gram if isinstance(gram, str) else " ".join(gram) for gram in grams)
        return [self._prefix + term for term in terms if len(term) <= MAX_TERM]

    def origins(self, x: Features) -> Origins:
        """Return the text as the origin of its terms."""
        return dict.fromkeys(self._counts(x), (self._on,))


class TFIDF(BagOfWords):
    """The number of texts, and of those with each term."""

    learns = True
    _spec: TFIDFSpec

    def __init__(self, spec: TFIDFSpec, max_features: int) -> None:
        super().__init__(spec, max_features)
        self._texts = 0
        self._with_term: dict[str, int] = {}

    def transform(self, x: Features) -> dict[str, float]:
        """Return the weight of each term, in the order they come."""
        return self._weighed(self._counts(x))

    def learn_transform(self, x: Features) -> dict[str, float]:
        """Count the terms of the text, then weigh them."""
        counts = self._counts(x)
        with_term = self._with_term
        for term in counts:
            if term in with_term:
                with_term[term] += 1
            elif len(with_term) < self._max_features and self._byte_limit.admit((term,), 1):
                with_term[term] = 1
            else:
                self._ignored += 1
        self._texts += self._on in x
        return self._weighed(counts)

    def _weighed(self, counts: Mapping[str, int]) -> dict[str, float]:
        with_term, total, texts = self._with_term, sum(counts.values()), 1 + self._texts
        weights = {
            term: number / total * (math.log(texts / (1 + with_term.get(term, 0))) + 1)
            for term, number in counts.items()
        }
        if not self._spec.normalize:
            return weights
        norm = math.sqrt(sum(weight**2 for weight in weights.values()))
        return {term: weight / norm for term, weight in weights.items()}

    def get_state(self) -> list[Any]:
        """Return the number of texts and of those with each term, in the order they came."""
        return [self._texts, [list(pair) for pair in self._with_term.items()]]

    def set_state(self, data: Any) -> None:
        texts, terms = items(data, "the state of TFIDF", 2)
        self._texts = count(texts, "the number of texts")
        for entry in items(terms, "the terms"):
            term, number = items(entry, "a term with its number", 2)
            self._with_term[text(term, "a term")] = count(number, "a number of texts", 1, texts)
            self._byte_limit.restore((term,), 1)
        if len(self._with_term) != len(terms) or len(terms) > self._max_features:
            raise hinged.InvalidState(f"there are {len(terms)} terms: too many, or some twice")


class BagOfWordsSpec(_Words):
    """Count the terms of a text.

    As `river.feature_extraction.BagOfWords` with its own tokenizer, which knows words of two
    letters or more, but n-grams are named with a space (`"of the"`), which no word contains;
    terms of more than 256 characters are left out, and an event without the text has no
    terms.
    """

    stage: ClassVar = BagOfWords
    type: Literal["BagOfWords"]


class TFIDFSpec(_Words):
    """Weigh the terms of a text by how rare they were in the texts so far.

    The weight of a term is its share of the text's terms, times
    ln((1 + texts) / (1 + texts with the term)) + 1. As `river.feature_extraction.TFIDF`
    with its own tokenizer, and as `BagOfWords` here; terms beyond the model's
    `max_features` or `max_bytes` count as never seen before.
    """

    stage: ClassVar = TFIDF
    type: Literal["TFIDF"]
    normalize: bool = Field(True, description="Divide the weights by their Euclidean norm.")
